"""Attention of DeepSeek-V4 and V3.2 over chosen rows of caches."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

import tilewright

from ._context import (
    Entry,
    Way,
    describe,
    empty_as,
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
from ._ops import Done, define, known

HEAD_DIM = 512
#: Numbers of a row of DeepSeek-V3: the first HEAD_DIM are the value.
MLA_DIM = 576
#: Bytes of a row by the format of a cache; formats of one-byte elements are known by it.
_ROW_BYTES = {HEAD_DIM: {584: "fp8", 384: "nvfp4"}, MLA_DIM: {656: "fp8"}}
_ONE_BYTE = (torch.float8_e4m3fn, torch.uint8, torch.int8)
_INPUTS = (
    "Tensor q, Tensor cache, Tensor indices, Tensor? lengths, Tensor? extra_cache, "
    "Tensor? extra_indices, Tensor? extra_lengths, Tensor? sink, float? scale, str kernel, "
    "bool positive_empty_lse"
)


def sparse_attention(
    q: Tensor,
    cache: Tensor,
    indices: Tensor,
    *,
    lengths: Tensor | None = None,
    extra_cache: Tensor | None = None,
    extra_indices: Tensor | None = None,
    extra_lengths: Tensor | None = None,
    sink: Tensor | None = None,
    scale: float | None = None,
    out: Tensor | None = None,
    return_lse: bool = False,
    return_max_logits: bool = False,
    kernel: str = "auto",
) -> Any:
    """Attention of q, bfloat16 [b, s, heads, 512 or 576], over the rows that lists name.

    cache    bfloat16 [pages, page_size, 512] or [rows, 512]; FP8 [pages, page_size, 584] or NVFP4
             [pages, page_size, 384] of one-byte elements, whose pages may be padded; a dimension
             of one head may stand before the last. DeepSeek-V3 and V3.2, q of 576: bfloat16 rows
             of 576 or FP8 [pages, page_size, 656], of which the first 512 numbers are values
    indices  int32 [b, s, entries]: page * page_size + slot; negative ones, and those that no page
             holds, are skipped
    lengths  int32 [b] or [b, s]: entries of a list that count
    extra_*  a second list, of rows of a second cache of the same format
    sink     fp32 [heads]

    Returns out [b, s, heads, 512], then the lse and the largest logit if wanted, fp32 [b, s, heads].
    A query without a row has out 0, and -inf as lse and as largest logit.
    """
    inputs = (q, cache, indices, lengths, extra_cache, extra_indices, extra_lengths, sink)
    given = (*inputs, out, None, None, return_lse, return_max_logits, scale, kernel)
    if not is_compiling() and (done := _calls.run(*given)) is not None:
        return done
    return attend(given)


#: Tensors of a call, results last.
_TENSORS = places_of(
    "q window.pages window.indices window.lengths compressed.pages compressed.indices "
    "compressed.lengths sink out lse max_logits"
)
_calls = known_calls(len(_TENSORS))


def attend(given: tuple[Any, ...], positive_empty_lse: bool = False) -> Any:
    """A call that is not known, and from now on is.

    positive_empty_lse  the lse of a query without a row is +inf, as FlashMLA has it
    """
    q, cache, indices = given[:3]
    sink, out, _, _, return_lse, return_max_logits, *options = given[7:]
    args = (*given[:8], *options, positive_empty_lse)
    expect_tensors(
        "q cache indices lengths extra_cache extra_indices extra_lengths sink out", given, 3
    )
    direct = is_direct(q, cache, indices) and (sink is None or have_no_gradient(sink))
    if direct or out is not None:
        out = empty_out(q) if out is None else out
        lse = _statistic(q, return_lse)
        max_logits = _statistic(q, return_max_logits)
        if direct:
            run: Any = _sparse_into
            entry: Entry | None = run(*args, out, lse, max_logits)
            results = {"out": out, "lse": lse, "max_logits": max_logits}
            if entry is not None and not positive_empty_lse:
                Way(_calls, given, _TENSORS).remember(entry, results)
        else:
            _sparse_out_op(*args, out, lse, max_logits, None, False)
    else:
        out, lse, max_logits = _sparse_op(*args, return_lse, return_max_logits)
    if return_max_logits:
        return (out, lse, max_logits) if return_lse else (out, max_logits)
    return (out, lse) if return_lse else out


def sparse_attention_scheduled(
    inputs: tuple[Any, ...],
    scale: float | None,
    out: Tensor,
    lse: Tensor,
    workspace: Tensor | None,
    also: Way | None,
) -> Tensor:
    """sparse_attention() of `inputs`, its tensors, with +inf as lse of a query without a row.

    The workspace of the call before has its schedule, if lengths have the same values; None: a new
    one is made. Returns it, for the next call.
    """
    options = (scale, "auto", True)
    reuses = workspace is not None
    run: Any = _sparse_into
    if workspace is None:
        find: Any = _entry
        size = find(*inputs, *options, out, lse, None).operator.workspace_bytes
        workspace = torch.empty(size, dtype=torch.uint8, device=inputs[0].device)
    if is_direct(*inputs[:3]) and have_no_gradient(inputs[7]):
        made = run(*inputs, *options, out, lse, None, workspace, reuses)
        used = {**dict(zip(_TENSORS, inputs, strict=False)), "workspace": workspace}
        if made is not None and also is not None and reuses and also.fits(used):
            also.remember(made, {"out": out, "lse": lse}, {"reuses_schedule": True})
    else:
        _sparse_out_op(*inputs, *options, out, lse, None, workspace, reuses)
    return workspace


def empty_out(q: Tensor) -> Tensor:
    """What a call without `out` returns."""
    is_mla = q.shape[-1:] == (MLA_DIM,)
    return q.new_empty((*q.shape[:-1], HEAD_DIM)) if is_mla else empty_as(q)


def _statistic(q: Tensor, is_wanted: bool) -> Tensor | None:
    return q.new_empty(q.shape[:3], dtype=torch.float32) if is_wanted else None


def _sparse_into(
    q: Tensor,
    cache: Tensor,
    indices: Tensor,
    lengths: Tensor | None,
    extra_cache: Tensor | None,
    extra_indices: Tensor | None,
    extra_lengths: Tensor | None,
    sink: Tensor | None,
    scale: float | None,
    kernel: str,
    positive_empty_lse: bool,
    out: Tensor,
    lse: Tensor | None,
    max_logits: Tensor | None,
    scratch: Tensor | None = None,
    reuses_schedule: bool = False,
) -> Entry | None:
    """The operator; None if there was nothing to do."""
    if q.numel() == 0:
        return None
    lists = (lengths, extra_cache, extra_indices, extra_lengths)
    options = (scale, kernel, positive_empty_lse)
    entry = _entry(q, cache, indices, *lists, sink, *options, out, lse, max_logits)
    second = None
    if extra_cache is not None:
        second = {"pages": extra_cache, "indices": extra_indices, "lengths": extra_lengths}
    entry.run(
        q=q,
        window={"pages": cache, "indices": indices, "lengths": lengths},
        compressed=second,
        out=out,
        lse=lse,
        max_logits=max_logits,
        sink=sink,
        workspace=workspace(entry, q.device) if scratch is None else scratch,
        reuses_schedule=reuses_schedule,
    )
    return entry


def _sparse_out(*args: Any) -> Done:
    into: Any = _sparse_into
    scratch, reuses_schedule = args[-2:]
    names = {**_TENSORS, "workspace": len(_TENSORS)} if scratch is not None else _TENSORS
    return (), known(into(*args), names, args[0], {"reuses_schedule": reuses_schedule})


def _entry(
    q: Tensor,
    cache: Tensor,
    indices: Tensor,
    lengths: Tensor | None,
    extra_cache: Tensor | None,
    extra_indices: Tensor | None,
    extra_lengths: Tensor | None,
    sink: Tensor | None,
    scale: float | None,
    kernel: str,
    positive_empty_lse: bool,
    out: Tensor,
    lse: Tensor | None,
    max_logits: Tensor | None,
) -> Entry:
    first = signature(q, cache, indices, lengths, out, lse, max_logits, sink)
    second = signature(extra_cache, extra_indices, extra_lengths)
    key = ("sparse", first, second, scale, kernel, positive_empty_lse)
    entry: Entry | None = table.get(key)
    if entry is not None:
        return entry
    _check(q, sink, out, lse, max_logits)
    statistic = lse if lse is not None else max_logits
    problem = {
        "batch": q.shape[0],
        "q_len": q.shape[1],
        "heads": q.shape[2],
        "scale": scale,
        "window": _list("", q, cache, indices, lengths),
        "compressed": _second(q, extra_cache, extra_indices, extra_lengths),
        "has_sink": sink is not None,
        "has_lse": lse is not None,
        "has_max_logits": max_logits is not None,
        "q_strides": strides(q),
        "out_strides": strides(out),
        "lse_strides": None if statistic is None else _statistic_strides(statistic),
        "positive_empty_lse": positive_empty_lse,
        "kernel": kernel,
        "head_dim": q.shape[3],
    }
    made: Entry = table.add(key, make(tilewright.SparseAttention, q.device, problem))
    return made


def _statistic_strides(statistic: Tensor) -> dict[str, int]:
    batch, row, head = statistic.stride()
    return {"batch": batch, "row": row, "head": head}


def _second(
    q: Tensor, cache: Tensor | None, indices: Tensor | None, lengths: Tensor | None
) -> dict[str, Any] | None:
    require(
        (cache is None) == (indices is None),
        "extra_cache and extra_indices: expected both or neither",
    )
    if cache is None or indices is None:
        require(lengths is None, "extra_lengths without extra_indices: pass both or neither")
        return None
    return _list("extra_", q, cache, indices, lengths)


def _list(
    prefix: str, q: Tensor, cache: Tensor, indices: Tensor, lengths: Tensor | None
) -> dict[str, Any]:
    name = f"{prefix}indices"
    batch, tokens = q.shape[:2]
    require(
        indices.dim() == 3
        and tuple(indices.shape[:2]) == (batch, tokens)
        and indices.dtype == torch.int32
        and indices.device == q.device
        and indices.stride(2) == 1
        and (batch == 1 or indices.stride(0) == tokens * indices.stride(1)),
        f"{describe(name, indices)}: expected int32 [{batch}, {tokens}, entries] on {q.device}, "
        f"queries of the batch at equal distances; {name}.to(torch.int32).contiguous() makes it so",
    )
    kind = "full"
    if lengths is not None:
        shape = (batch, tokens) if lengths.dim() == 2 else (batch,)
        require_operand(f"{prefix}lengths", lengths, q, torch.int32, shape)
        kind = "per_query" if lengths.dim() == 2 else "per_batch"
    return {
        "cache": _layout(f"{prefix}cache", q, cache),
        "topk": indices.shape[2],
        "index_stride": indices.stride(1),
        "lengths": kind,
    }


def _layout(name: str, q: Tensor, cache: Tensor) -> dict[str, Any]:
    text = describe(name, cache)
    require(cache.device == q.device, f"{text}: expected {q.device}")
    if cache.dim() == 4:
        require(cache.shape[2] == 1, f"{text}: expected one head of keys")
        cache = cache.squeeze(2)
    row, dims = cache.shape[-1], q.shape[-1]
    if cache.dtype == torch.bfloat16 and row == dims:
        kind = "bf16"
    else:
        kinds = _ROW_BYTES[dims]
        known_rows = " or ".join(f"{size} ({name.upper()})" for size, name in kinds.items())
        require(
            cache.dtype in _ONE_BYTE and row in kinds and cache.dim() == 3,
            f"{text}: expected bfloat16 rows of {dims}, or pages of one-byte elements with "
            f"{known_rows} a row",
        )
        kind = kinds[row]
    if cache.dim() == 2:
        cache = cache.unsqueeze(1)
    pages, page_size = cache.shape[:2]
    require(
        cache.dim() == 3 and cache.stride(2) == 1 and (page_size == 1 or cache.stride(1) == row),
        f"{text}: expected rows of a page one behind the other; .contiguous() makes it so",
    )
    layout = {"format": kind, "page_size": page_size, "num_pages": pages}
    if pages > 1:  # from one to the next
        layout["page_stride_bytes"] = cache.stride(0) * cache.element_size()
    return layout


def _check(
    q: Tensor, sink: Tensor | None, out: Tensor, lse: Tensor | None, max_logits: Tensor | None
) -> None:
    text = describe("q", q)
    require(
        q.dim() == 4
        and q.shape[3] in _ROW_BYTES
        and q.dtype == torch.bfloat16
        and q.stride(3) == 1,
        f"{text}: expected bfloat16 [batch, tokens, heads, 512 or 576], the last dimension "
        "contiguous",
    )
    require(
        tuple(out.shape) == (*q.shape[:3], HEAD_DIM)
        and out.dtype == q.dtype
        and out.device == q.device
        and out.stride(3) == 1,
        f"{describe('out', out)}: expected [batch, tokens, heads, 512] with the sizes, dtype and "
        f"device of {text}",
    )
    require_operand("sink", sink, q, torch.float32, (q.shape[2],))
    shape = tuple(q.shape[:3])
    for name, tensor in (("lse", lse), ("max_logits", max_logits)):
        require(
            tensor is None
            or tuple(tensor.shape) == shape
            and tensor.dtype == torch.float32
            and tensor.device == q.device,
            f"{describe(name, tensor)}: expected float32 {list(shape)} on {q.device}",
        )
    require(
        lse is None or max_logits is None or lse.stride() == max_logits.stride(),
        f"{describe('lse', lse)}, {describe('max_logits', max_logits)}: expected equal strides",
    )


def _sparse(*args: Any) -> Done:
    into: Any = _sparse_into
    return_lse, return_max_logits = args[-2:]
    out, lse, max_logits = _sparse_fake(*args)
    given = (lse if return_lse else None, max_logits if return_max_logits else None)
    entry = into(*args[:-2], out, *given)
    absent = {"lse": not return_lse, "max_logits": not return_max_logits}
    names = {name: at for name, at in _TENSORS.items() if not absent.get(name)}
    return (out, lse, max_logits), known(entry, names, args[0])


def _sparse_fake(*args: Any) -> tuple[Tensor, Tensor, Tensor]:
    q, return_lse, return_max_logits = args[0], args[-2], args[-1]
    lse, max_logits = (
        q.new_empty(q.shape[:3] if is_wanted else (0,), dtype=torch.float32)
        for is_wanted in (return_lse, return_max_logits)
    )
    return empty_out(q), lse, max_logits


_sparse_op = define(
    "sparse_attention",
    f"({_INPUTS}, bool return_lse, bool return_max_logits) -> (Tensor, Tensor, Tensor)",
    _sparse,
    _sparse_fake,
)
_sparse_out_op = define(
    "sparse_attention_out",
    f"({_INPUTS}, Tensor(a!) out, Tensor(b!)? lse, Tensor(c!)? max_logits, "
    "Tensor(d!)? workspace, bool reuses_schedule) -> ()",
    _sparse_out,
)
