"""Attention over all keys of caches, of values that make scores beside narrow keys."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

import tilewright

from ._context import (
    DTYPES,
    Entry,
    Way,
    describe,
    expect_tensors,
    have_no_gradient,
    is_direct,
    known_calls,
    make,
    places_of,
    require,
    require_operand,
    signature,
    strides,
    table,
    workspace,
)
from ._ops import define_with_lse

KEY_DIM = 64
VALUE_DIMS = (256, 512)


def latent_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    lengths: Tensor,
    *,
    qv: Tensor | None = None,
    page_table: Tensor | None = None,
    causal: bool = True,
    sink: Tensor | None = None,
    scale: float | None = None,
    out: Tensor | None = None,
    return_lse: bool = False,
    kernel: str = "auto",
) -> Any:
    """softmax(scale * (q k^T + qv v^T)) v over the keys of each sequence; bfloat16 or float16.

    q           [b, s, heads, 64]
    k, v        [pages, page_size, kv_heads, 64] and [..., d], d 256 or 512, with page_table, int32 [b, blocks],
                page_size 8, 16, 32 or a multiple of 64; without pages [b, keys, kv_heads, ...]
    lengths     int32 [b]: keys of a sequence, those of the s queries included; read on the device
    qv          [b, s, heads, d]; without it k alone makes scores
    causal      query i sees keys up to lengths - s + i; otherwise every query sees all
    sink        fp32 [heads]
    scale       (64 + d)^-0.5 if absent, 1/8 without qv

    Returns out [b, s, heads, d], then the lse if wanted, fp32 [b, heads, s]. A query without a key has out 0
    and -inf as lse.
    """
    inputs = (q, k, v, lengths, qv, page_table, sink)
    given = (*inputs, out, None, return_lse, causal, scale, kernel)
    if not is_compiling() and (done := _calls.run(*given)) is not None:
        return done
    return attend(inputs, (causal, scale, kernel, False), out, return_lse, given)


class Schedule:
    """A workspace that calls with the same shapes, and the same values of lengths, make a schedule in once."""

    def __init__(self) -> None:
        self.operator: Any = None
        self.workspace: Tensor | None = None

    def take(self, entry: Entry, device: torch.device) -> bool:
        """Whether the workspace has the schedule of the operator; if not, there is a new one for it."""
        if self.operator is entry.operator:
            return True
        self.operator = entry.operator
        size = entry.operator.workspace_bytes
        self.workspace = torch.empty(size, dtype=torch.uint8, device=device) if size else None
        return False


#: Tensors of a call, results last.
_TENSORS = places_of("q k v lengths qv block_table sink out lse")
_calls = known_calls(len(_TENSORS))


def attend(
    inputs: tuple[Any, ...],
    options: tuple[Any, ...],
    out: Tensor | None,
    return_lse: bool,
    given: tuple[Any, ...] = (),
    schedule: Schedule | None = None,
) -> Any:
    """A call that is not known; with what was `given` to latent_attention() from now on it is.

    The last of the options: the lse of a query without a key is +inf, as FlashMLA has it. A schedule is
    used where the dispatcher is not asked.
    """
    q, k, v, lengths, qv, page_table, sink = inputs
    expect_tensors("q k v lengths qv page_table sink out", (*inputs, out), 4)
    for name, x in (("q", q), ("v", v)):
        require(x.dim() == 4, f"{describe(name, x)}: expected 4 dimensions")
    is_plain = is_direct(q, k, v) and have_no_gradient(qv, sink)
    if is_plain or out is not None:
        result = _empty_out(q, v) if out is None else out
        lse = _empty_lse(q) if return_lse else None
        if is_plain:
            into: Any = _latent_into
            entry: Entry | None = into(*inputs, *options, result, lse, schedule)
            if entry is not None and given:
                Way(_calls, given, _TENSORS).remember(entry, {"out": result, "lse": lse})
        else:
            _latent_out_op(*inputs, *options, result, lse)
    else:
        result, lse = _latent_op(*inputs, *options, return_lse)
    return (result, lse) if return_lse else result


def _empty_out(q: Tensor, v: Tensor) -> Tensor:
    return q.new_empty((*q.shape[:-1], v.shape[-1]))


def _empty_lse(q: Tensor) -> Tensor:
    return q.new_empty((q.shape[0], *q.shape[1:3][::-1]), dtype=torch.float32)


def _latent_into(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    lengths: Tensor,
    qv: Tensor | None,
    page_table: Tensor | None,
    sink: Tensor | None,
    causal: bool,
    scale: float | None,
    kernel: str,
    positive_empty_lse: bool,
    out: Tensor,
    lse: Tensor | None,
    schedule: Schedule | None = None,
) -> Entry | None:
    """The operator; None if there was nothing to do."""
    tensors = (q, k, v, lengths, qv, page_table, sink, out, lse)
    key = ("latent", signature(*tensors), causal, scale, kernel, positive_empty_lse)
    entry: Entry | None = table.get(key)
    if entry is None:
        _check(*tensors)
        problem = _problem(*tensors)
        problem.update(
            causal=causal, scale=scale, kernel=kernel, positive_empty_lse=positive_empty_lse
        )
        entry = table.add(key, make(tilewright.LatentAttention, q.device, problem))
    if q.numel() == 0:
        return None
    reuses_schedule = schedule is not None and schedule.take(entry, q.device)
    scratch = workspace(entry, q.device) if schedule is None else schedule.workspace
    entry.run(
        q=q,
        qv=qv,
        k=k,
        v=v,
        lengths=lengths,
        block_table=page_table,
        out=out,
        lse=lse,
        sink=sink,
        workspace=scratch,
        reuses_schedule=reuses_schedule,
    )
    return entry


def _problem(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    lengths: Tensor,
    qv: Tensor | None,
    page_table: Tensor | None,
    sink: Tensor | None,
    out: Tensor,
    lse: Tensor | None,
) -> dict[str, Any]:
    problem: dict[str, Any] = {
        "dtype": DTYPES[q.dtype],
        "batch": q.shape[0],
        "q_len": q.shape[1],
        "heads": q.shape[2],
        "kv_heads": k.shape[2],
        "value_dim": v.shape[3],
        "has_qv": qv is not None,
        "has_sink": sink is not None,
        "has_lse": lse is not None,
        "q_strides": strides(q),
        "qv_strides": None if qv is None else strides(qv),
        "out_strides": strides(out),
        "k_strides": strides(k),
        "v_strides": strides(v),
    }
    if lse is not None:
        batch, head, row = lse.stride()
        problem["lse_strides"] = {"batch": batch, "row": row, "head": head}
    if page_table is None:
        return {**problem, "max_len": k.shape[1]}
    pages = {"page_size": k.shape[1], "num_pages": k.shape[0], "max_pages": page_table.shape[1]}
    return {**problem, **pages, "table_stride": page_table.stride(0)}


def _check(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    lengths: Tensor,
    qv: Tensor | None,
    page_table: Tensor | None,
    sink: Tensor | None,
    out: Tensor,
    lse: Tensor | None,
) -> None:
    text = describe("q", q)
    require(
        q.dim() == 4
        and q.shape[3] == KEY_DIM
        and q.dtype in (torch.bfloat16, torch.float16)
        and q.stride(3) == 1,
        f"{text}: expected bfloat16 or float16 [batch, tokens, heads, {KEY_DIM}], the last "
        "dimension contiguous",
    )
    batch = q.shape[0]
    for name, x in (("k", k), ("v", v)):
        require(
            x.dim() == 4 and x.dtype == q.dtype and x.device == q.device and x.stride(3) == 1,
            f"{describe(name, x)}: expected 4 dimensions, the last one contiguous, of the dtype "
            f"and device of {text}",
        )
    require(
        k.shape[3] == KEY_DIM and v.shape[3] in VALUE_DIMS and k.shape[:3] == v.shape[:3],
        f"{describe('k', k)}, {describe('v', v)}: expected keys of {KEY_DIM} and as many values of "
        "256 or 512",
    )
    require(
        page_table is not None or k.shape[0] == batch,
        f"{describe('k', k)}: expected {batch} sequences, or a page_table",
    )
    require(
        page_table is None
        or page_table.dim() == 2
        and page_table.shape[0] == batch
        and page_table.dtype == torch.int32
        and page_table.device == q.device
        and page_table.stride(1) == 1,
        f"{describe('page_table', page_table)}: expected int32 [{batch}, blocks] on {q.device}, "
        "rows contiguous",
    )
    require_operand("lengths", lengths, q, torch.int32, (batch,))
    require_operand("sink", sink, q, torch.float32, (q.shape[2],))
    for name, other in (("qv", qv), ("out", out)):
        require(
            other is None
            or other.shape == (*q.shape[:3], v.shape[3])
            and other.dtype == q.dtype
            and other.device == q.device
            and other.stride(3) == 1,
            f"{describe(name, other)}: expected {[*q.shape[:3], v.shape[3]]} of the dtype and "
            f"device of {text}, the last dimension contiguous",
        )
    shape = (batch, q.shape[2], q.shape[1])
    require(
        lse is None
        or lse.shape == shape
        and lse.dtype == torch.float32
        and lse.device == q.device,
        f"{describe('lse', lse)}: expected float32 {list(shape)} on {q.device}",
    )


def _fake(*args: Any) -> tuple[Tensor, Tensor]:
    q, v, return_lse = args[0], args[2], args[-1]
    return _empty_out(q, v), _empty_lse(q) if return_lse else q.new_empty((0,), dtype=torch.float32)


_latent_op, _latent_out_op = define_with_lse(
    "latent_attention",
    "Tensor q, Tensor k, Tensor v, Tensor lengths, Tensor? qv, Tensor? page_table, Tensor? sink, "
    "bool causal, float? scale, str kernel, bool positive_empty_lse",
    _latent_into,
    _fake,
    _TENSORS,
)
