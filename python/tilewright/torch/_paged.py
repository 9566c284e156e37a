"""Attention of any number of queries over keys in pages, and with lengths that only the device knows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

import tilewright
from tilewright import Reason

from ._attention import _empty_out, _lse_shape, are_at_one_place, descales, longest, out_shape
from ._context import (
    DTYPES,
    Entry,
    Way,
    describe,
    device_of,
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

_E4M3 = torch.float8_e4m3fn
_INPUTS = (
    "Tensor q, Tensor k, Tensor v, Tensor? page_table, Tensor? q_lengths, Tensor? kv_lengths, "
    "Tensor? cu_q, Tensor? cu_kv, Tensor? sink, Tensor? q_descale, Tensor? k_descale, "
    "Tensor? v_descale, SymInt max_q, SymInt max_kv, float? scale, "
    "bool causal, SymInt window_left, SymInt window_right, float softcap, str kernel"
)


def attention_paged(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    *,
    page_table: Tensor,
    kv_lengths: Tensor,
    cu_q: Tensor | None = None,
    max_q: int | None = None,
    q_lengths: Tensor | None = None,
    scale: float | None = None,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    sink: Tensor | None = None,
    q_descale: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
    out: Tensor | None = None,
    return_lse: bool = False,
    kernel: str = "auto",
    chunk: int = 0,
) -> Any:
    """attention() of q over keys in pages: parts of prompts and sequences that decode, in one call.

    q                 [rows, heads, d] with cu_q, or [b, s, heads, d]; bfloat16, float16, or
                      float8_e4m3fn over caches of it: products are of e4m3 then, and out is bf16
    k_cache, v_cache  [pages, page_size, kv_heads, d] of q's dtype, or float8_e4m3fn, whose codes
                      queries of 16 bits meet exactly, as numbers of their dtype; values may be of
                      another width dv, and out is then, too, but where q is of e4m3
    q_descale         of e4m3 operands, with k_descale and v_descale: fp32, one number or
                      [b, kv_heads]
    page_table        int32 [b, max_pages]: key j of a sequence is row j % page_size of page
                      page_table[b, j / page_size]; one that names no page stands for zeros
    kv_lengths        int32 [b]: keys of each sequence, read on the device
    cu_q              int32 [b + 1]: the row of q at which each sequence begins, and the end
    max_q             at least the longest sequence's queries; needed with cu_q
    q_lengths         int32 [b]: queries of each, the first of those that there is room for; rows of
                      out and lse behind them are not written
    chunk             keys of a chunk: a query sees those of its own alone; 0: all are one

    The last query of a sequence stands at its last key. The lse is [heads, rows], or [b, heads, s].
    Nothing waits for the device, and a CUDA graph of the call serves other lengths and pages.
    """
    if max_q is None and isinstance(q, Tensor):
        require(cu_q is None, "max_q is None; with cu_q, expected the longest sequence's queries or more")
        max_q = q.shape[1] if q.dim() == 4 else 0
    given: tuple[Any, ...]
    given = (q, k_cache, v_cache, page_table, q_lengths, kv_lengths, cu_q, None, sink)
    given += (q_descale, k_descale, v_descale, out, None)
    given += (return_lse, max_q, 0, scale, causal, *window, softcap, kernel, chunk)
    if not is_compiling() and (done := _calls.run(*given)) is not None:
        return done
    require(page_table is not None, "page_table is None; expected int32 [batch, pages of a sequence]")
    return attend(given)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def reasons_against(
    device: torch.device,
    dtype: torch.dtype,
    heads: int,
    kv_heads: int,
    head_dim: int,
    value_dim: int | None = None,
    kv_dtype: torch.dtype | None = None,
) -> tuple[Reason, ...]:
    """Why no kernel there reads keys in pages, or lengths on the device; empty if one does.

    One reason: that of the kernel for it, or on devices that have none what the others lack.
    """
    key = ("reads pages", device, dtype, heads, kv_heads, head_dim, value_dim, kv_dtype)
    found: tuple[Reason, ...] | None = table.get(key)
    if found is None:
        on = "h200" if device.type == "meta" else device_of(device)
        problem: dict[str, Any] = {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "scale": 1.0}
        problem |= {"value_dim": value_dim or 0}
        problem |= {} if kv_dtype is None else {"kv_dtype": DTYPES[kv_dtype]}
        problem |= {"page_size": 16, "num_pages": 1, "max_pages": 1, "has_kv_lengths": True}
        answer = tilewright.can_implement(
            "Attention", on, dtype=DTYPES.get(dtype, "f32"), q_len=1, kv_len=16, **problem
        )
        of_e4m3, of_16_bits = ("k7_pages", "sm100_pages_e4m3"), ("k6_pages", "sm100_pages")
        kernels = of_e4m3 if dtype is _E4M3 else of_16_bits
        own = [reason for reason in answer.reasons if reason.value in kernels]
        lacking = [reason for reason in answer.reasons if "pages" in reason.rule]
        found = table.add(key, tuple((own or lacking or answer.reasons)[:1]))
    return found


#: Tensors of a call, results last.
_TENSORS = places_of(
    "q k v block_table q_lengths kv_lengths cu_q cu_kv sink q_descale k_descale v_descale out lse"
)
_NAMES = (
    "q k v page_table q_lengths kv_lengths cu_q cu_kv sink q_descale k_descale v_descale out lse"
)
_calls = known_calls(len(_TENSORS))


def attend(given: tuple[Any, ...]) -> Any:
    """A call that is not known; from now on it is. A chunk is its last argument.

    k and v are [pages, page_size, kv_heads, d] with page_table, and else [rows, kv_heads, d] with
    cu_kv, or [b, t, kv_heads, d]. A given lse is written where there are queries.
    """
    q, k, v, *_, sink, _, _, _, out, lse, return_lse = given[:15]
    expect_tensors(_NAMES, given, 3)
    _require_rows(q, given[6])
    direct = is_direct(q, k, v) and (sink is None or have_no_gradient(sink))
    args, chunk = (*given[:12], *given[15:-1]), given[-1]
    if not direct and out is None and lse is None:
        out, lse = _paged_op(*args, return_lse, chunk)
        return (out, lse) if return_lse else out
    out = _empty_out(q, v) if out is None else out
    if return_lse and lse is None:
        lse = q.new_empty(_lse_shape(q), dtype=torch.float32)
    if not direct:
        _paged_out_op(*args, out, lse, chunk)
        return (out, lse) if return_lse else out
    run: Any = _paged_into
    if entry := run(*args, out, lse, chunk):
        Way(_calls, given, _TENSORS).remember(entry, {"out": out, "lse": lse})
    return (out, lse) if return_lse else out


def _require_rows(q: Tensor, cu_q: Tensor | None) -> None:
    dims = "[rows, heads, head_dim] with cu_q, [batch, tokens, heads, head_dim] without"
    require(q.dim() == (4 if cu_q is None else 3), f"{describe('q', q)}: expected {dims}")


def _paged_into(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    page_table: Tensor | None,
    q_lengths: Tensor | None,
    kv_lengths: Tensor | None,
    cu_q: Tensor | None,
    cu_kv: Tensor | None,
    sink: Tensor | None,
    q_descale: Tensor | None,
    k_descale: Tensor | None,
    v_descale: Tensor | None,
    max_q: int,
    max_kv: int,
    scale: float | None,
    causal: bool,
    window_left: int,
    window_right: int,
    softcap: float,
    kernel: str,
    out: Tensor,
    lse: Tensor | None,
    chunk: int = 0,
) -> Entry | None:
    """The operator, which the next call may hand over to what it is given."""
    if q.numel() == 0:
        return None
    sharing, is_as_given = None, True
    if k.dtype is _E4M3:
        batch = q.shape[0] if cu_q is None else cu_q.shape[0] - 1
        scales = (q_descale, k_descale, v_descale)
        sharing, used = descales(scales, (batch, k.shape[-2]), q.device)
        q_descale, k_descale, v_descale = used if q.dtype is _E4M3 else (None, *used[1:])
        is_as_given = are_at_one_place(scales, (q_descale, k_descale, v_descale))
    lengths = (page_table, q_lengths, kv_lengths, cu_q, cu_kv)
    key = (
        "attention_paged",
        signature(q, k, v, out, lse, sink, *lengths),
        *(sharing, max_q, max_kv, scale, causal, window_left, window_right, softcap, kernel, chunk),
    )
    entry: Entry | None = table.get(key)
    if entry is None:
        _check(q, k, v, page_table, q_lengths, kv_lengths, cu_q, cu_kv, sink, out, lse)
        problem = {
            **_shape(q, k, page_table, cu_q, max_q, max_kv),
            "out_dtype": DTYPES[out.dtype] if q.dtype is _E4M3 else None,
            "kv_dtype": DTYPES[k.dtype],
            "fp8": {"scales": sharing} if sharing else None,
            "value_dim": v.shape[-1],
            "scale": scale,
            "causal": causal,
            "window_left": window_left,
            "window_right": window_right,
            "softcap": softcap,
            "chunk": chunk,
            "has_sink": sink is not None,
            "has_lse": lse is not None,
            "has_q_lengths": q_lengths is not None,
            "has_kv_lengths": kv_lengths is not None,
            "q_strides": strides(q),
            "k_strides": strides(k),
            "v_strides": strides(v),
            "out_strides": strides(out),
            "kernel": kernel,
        }
        entry = table.add(key, make(tilewright.Attention, q.device, problem))
    entry.run(
        q=q,
        k=k,
        v=v,
        out=out,
        lse=lse,
        sink=sink,
        cu_q=cu_q,
        cu_kv=cu_kv,
        q_lengths=q_lengths,
        kv_lengths=kv_lengths,
        block_table=page_table,
        q_descale=q_descale,
        k_descale=k_descale,
        v_descale=v_descale,
        workspace=workspace(entry, q.device),
    )
    return entry if is_as_given else None


def _shape(
    q: Tensor,
    k: Tensor,
    page_table: Tensor | None,
    cu_q: Tensor | None,
    max_q: int,
    max_kv: int,
) -> dict[str, Any]:
    batch = q.shape[0] if cu_q is None else cu_q.shape[0] - 1
    shape: dict[str, Any] = {
        "dtype": DTYPES[q.dtype],
        "batch": batch,
        "heads": q.shape[-2],
        "kv_heads": k.shape[-2],
        "q_len": q.shape[1] if cu_q is None else longest(max_q, q.shape[0], batch),
        "head_dim": q.shape[-1],
        "is_packed": cu_q is not None,
        "total_q": None if cu_q is None else q.shape[0],
    }
    if page_table is not None:
        return shape | {
            "kv_len": page_table.shape[1] * k.shape[1],
            "page_size": k.shape[1],
            "num_pages": k.shape[0],
            "max_pages": page_table.shape[1],
            "table_stride": page_table.stride(0),
        }
    if cu_q is None:
        return shape | {"kv_len": k.shape[1]}
    return shape | {"kv_len": longest(max_kv, k.shape[0], batch), "total_kv": k.shape[0]}


def _check(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    page_table: Tensor | None,
    q_lengths: Tensor | None,
    kv_lengths: Tensor | None,
    cu_q: Tensor | None,
    cu_kv: Tensor | None,
    sink: Tensor | None,
    out: Tensor,
    lse: Tensor | None,
) -> None:
    text = ", ".join((describe("q", q), describe("k", k), describe("v", v)))
    require(q.dtype in DTYPES, f"{text}: expected bfloat16, float16 or float8_e4m3fn")
    require(
        k.dtype == v.dtype and k.dtype in (q.dtype, _E4M3),
        f"{text}: expected one dtype, or k and v in float8_e4m3fn; convert with .to()",
    )
    require(q.device == k.device == v.device, f"{text}: expected one device; move with .to()")
    _require_rows(q, cu_q)
    lengths = (("q_lengths", q_lengths), ("kv_lengths", kv_lengths), ("cu_q", cu_q), ("cu_kv", cu_kv))
    for name, x in lengths:
        require(x is None or x.dim() == 1, f"{describe(name, x)}: expected one dimension")
    is_packed = cu_q is not None
    dims = 3 if is_packed and page_table is None else 4
    require(
        k.dim() == v.dim() == dims
        and k.shape[:-1] == v.shape[:-1]
        and k.shape[-1] == q.shape[-1],
        f"{text}: expected k with {dims} dimensions and the head size of q, and v of k's shape but "
        "for its head size",
    )
    batch = q.shape[0] if cu_q is None else cu_q.shape[0] - 1
    require(
        page_table is not None or is_packed or k.shape[0] == batch,
        f"{text}: expected the same batch in q, k and v",
    )
    require(
        (cu_kv is not None) == (is_packed and page_table is None),
        "cu_q and cu_kv: expected both or neither; with a page_table cu_q alone",
    )
    require(page_table is None or kv_lengths is not None, "kv_lengths is None; expected it with a page_table")
    for name, tensor in (("q", q), ("k", k), ("v", v), ("out", out)):
        require(
            tensor.dim() > 0 and (tensor.stride(-1) == 1 or tensor.shape[-1] <= 1),
            f"{describe(name, tensor)}: expected the last dimension contiguous; "
            f"{name}.contiguous() makes it so",
        )
    require_operand("sink", sink, q, torch.float32, (q.shape[-2],))
    require_operand("cu_q", cu_q, q, torch.int32, (batch + 1,))
    require_operand("cu_kv", cu_kv, q, torch.int32, (batch + 1,))
    require_operand("q_lengths", q_lengths, q, torch.int32, (batch,))
    require_operand("kv_lengths", kv_lengths, q, torch.int32, (batch,))
    require(
        page_table is None
        or page_table.dtype == torch.int32
        and page_table.device == q.device
        and page_table.dim() == 2
        and page_table.shape[0] == batch
        and (page_table.stride(1) == 1 or page_table.shape[1] <= 1),
        f"{describe('page_table', page_table)}: expected int32 [{batch}, pages of a sequence] on "
        f"{q.device}, rows contiguous",
    )
    dtypes = (torch.bfloat16, torch.float16) if q.dtype is _E4M3 else (q.dtype,)
    require(
        out.shape == out_shape(q, v) and out.device == q.device and out.dtype in dtypes,
        f"{describe('out', out)}: expected {list(out_shape(q, v))} of {' or '.join(map(str, dtypes))} "
        f"on the device of {describe('q', q)}",
    )
    require_operand("lse", lse, q, torch.float32, _lse_shape(q))


def _paged_fake(*args: Any) -> tuple[Tensor, Tensor]:
    q, v, return_lse = args[0], args[2], args[-2]
    return _empty_out(q, v), q.new_empty(_lse_shape(q) if return_lse else (0,), dtype=torch.float32)


_paged_op, _paged_out_op = define_with_lse(
    "attention_paged", _INPUTS, _paged_into, _paged_fake, _TENSORS, ("int chunk=0",)
)
