"""Partial results of attention merged into one, and masks made into lists of keys."""

from __future__ import annotations

from collections.abc import Sequence
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
)
from ._ops import Done, define, define_with_lse, known

_TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


def merge_attention(
    parts: Tensor | Sequence[Tensor],
    lse: Tensor | Sequence[Tensor],
    *,
    sink: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    out: Tensor | None = None,
    return_lse: bool = False,
) -> Any:
    """Results over parts of the keys as the result over all of them: splits, other ranks, a shared prefix.

    parts       [parts, b, s, heads, d], or [parts, rows, heads, d] if packed; or two tensors without
                the first dimension, wherever they are. bfloat16, float16 or float32
    lse         fp32 [parts, b, heads, s], packed [parts, heads, rows], or two: as attention() gives
                it, of any strides. A part whose lse is infinite has no weight, and is not read
    sink        fp32 [heads]: of the merged result; parts come without one
    out_dtype   that of the parts if absent; out may be one of two parts
    return_lse  also the lse of the result, without the sink
    """
    part, other = _pair("parts", parts)
    part_lse, other_lse = _pair("lse", lse)
    require((other is None) == (other_lse is None), "parts and lse: expected one tensor each, or two each")
    like = next((x.dtype for x in (out, part) if isinstance(x, Tensor)), torch.float32)
    kind = like if out_dtype is None or isinstance(out, Tensor) else out_dtype
    require(kind in _TYPES.values(), f"out_dtype={kind}: expected bfloat16, float16 or float32")
    given = (part, part_lse, other, other_lse, sink, out, None, return_lse, DTYPES[kind])
    if not is_compiling() and (done := _calls.run(*given)) is not None:
        return done
    return _merge(given)


def _pair(name: str, given: Tensor | Sequence[Tensor]) -> tuple[Any, Any]:
    if not isinstance(given, tuple | list):
        return given, None
    require(len(given) == 2, f"{name}: {len(given)} tensors; expected two, or one of all parts (torch.stack)")
    return given[0], given[1]


#: Tensors of a call, results last.
_TENSORS = places_of("part_out part_lse other_out other_lse sink out lse")
_calls = known_calls(len(_TENSORS))


def _merge(given: tuple[Any, ...]) -> Any:
    expect_tensors("parts lse parts[1] lse[1] sink out", given, 2)
    part, part_lse, other, other_lse, sink, out, _, return_lse, kind = given
    optional = (part_lse, other, other_lse, sink)
    direct = is_direct(part) and all(x is None or have_no_gradient(x) for x in optional)
    args = (*given[:5], kind)
    if not direct and out is None:
        out, lse = _merge_op(*args, return_lse)
        return (out, lse) if return_lse else out
    out = _empty_out(part, other, kind) if out is None else out
    lse = out.new_empty(_lse_shape(out), dtype=torch.float32) if return_lse else None
    if not direct:
        _merge_out_op(*args, out, lse)
        return (out, lse) if return_lse else out
    run: Any = _merge_into
    if entry := run(*args, out, lse):
        Way(_calls, given, _TENSORS).remember(entry, {"out": out, "lse": lse})
    return (out, lse) if return_lse else out


def _empty_out(part: Tensor, other: Tensor | None, kind: str) -> Tensor:
    require(kind in _TYPES, f"out_dtype={kind!r}: expected one of {', '.join(_TYPES)}")
    shape = part.shape if other is not None else part.shape[1:]
    return torch.empty(shape, dtype=_TYPES[kind], device=part.device)


def _lse_shape(out: Tensor) -> tuple[int, ...]:
    require(out.dim() in (3, 4), f"{describe('out', out)}: expected [rows, heads, d] or [b, s, heads, d]")
    return (*out.shape[:-3], out.shape[-2], out.shape[-3])


def _lse_strides(lse: Tensor) -> dict[str, int]:
    """Of [b, heads, s], or [heads, rows]."""
    batch = lse.stride(0) if lse.dim() == 3 else 0
    return {"batch": batch, "row": lse.stride(-1), "head": lse.stride(-2)}


def _merge_into(
    part: Tensor,
    part_lse: Tensor,
    other: Tensor | None,
    other_lse: Tensor | None,
    sink: Tensor | None,
    out_dtype: str,
    out: Tensor,
    lse: Tensor | None,
) -> Entry | None:
    """The operator, which the next call may hand over to what it is given."""
    key = ("merge", signature(part, part_lse, other, other_lse, sink, out, lse), out_dtype)
    entry: Entry | None = table.get(key)
    if entry is None:
        _check(part, part_lse, other, other_lse, sink, out_dtype, out, lse)
        if out.numel() == 0:
            return None
        problem = _problem(part, part_lse, other, other_lse, sink, out, lse)
        entry = table.add(key, make(tilewright.AttentionMerge, part.device, problem))
    entry.run(
        part_out=part,
        part_lse=part_lse,
        other_out=other,
        other_lse=other_lse,
        sink=sink,
        out=out,
        lse=lse,
    )
    return entry


def _problem(
    part: Tensor,
    part_lse: Tensor,
    other: Tensor | None,
    other_lse: Tensor | None,
    sink: Tensor | None,
    out: Tensor,
    lse: Tensor | None,
) -> dict[str, Any]:
    problem: dict[str, Any] = {
        "part_dtype": DTYPES[part.dtype],
        "out_dtype": DTYPES[out.dtype],
        "batch": out.shape[0] if out.dim() == 4 else 1,
        "rows": out.shape[-3],
        "heads": out.shape[-2],
        "head_dim": out.shape[-1],
        "has_sink": sink is not None,
        "has_lse": lse is not None,
        "out_strides": strides(out),
        "lse_strides": None if lse is None else _lse_strides(lse),
    }
    if other is not None and other_lse is not None:
        return problem | {
            "parts": 2,
            "part_strides": strides(part),
            "other_strides": strides(other),
            "lse_part_strides": _lse_strides(part_lse),
            "lse_other_strides": _lse_strides(other_lse),
        }
    return problem | {
        "parts": part.shape[0],
        "part_stride": part.stride(0),
        "lse_part_stride": part_lse.stride(0),
        "part_strides": strides(part[0]),
        "lse_part_strides": _lse_strides(part_lse[0]),
    }


def _check(
    part: Tensor,
    part_lse: Tensor,
    other: Tensor | None,
    other_lse: Tensor | None,
    sink: Tensor | None,
    out_dtype: str,
    out: Tensor,
    lse: Tensor | None,
) -> None:
    shape = tuple(out.shape)
    lse_shape = _lse_shape(out)
    first = () if other is not None else tuple(part.shape[:1])
    require(
        out.dtype is _TYPES.get(out_dtype) and out.device == part.device and out.stride(-1) == 1,
        f"{describe('out', out)}: expected {out_dtype} on {part.device}, the last dimension contiguous",
    )
    for name, x in (("parts", part), ("parts[1]", other)):
        require(
            x is None
            or tuple(x.shape) == (*first, *shape)
            and x.dtype in _TYPES.values()
            and (x.dtype, x.device) == (part.dtype, part.device)
            and x.stride(-1) == 1,
            f"{describe(name, x)}: expected bfloat16, float16 or float32 {[*first, *shape]}, the last "
            f"dimension contiguous, all parts alike, for {describe('out', out)}",
        )
    require((other is None) == (other_lse is None), "parts and lse: expected one tensor each, or two each")
    for name, x in (("lse", part_lse), ("lse[1]", other_lse)):
        require(
            x is None
            or tuple(x.shape) == (*first, *lse_shape)
            and x.dtype is torch.float32
            and x.device == part.device,
            f"{describe(name, x)}: expected float32 {[*first, *lse_shape]} on {part.device}",
        )
    require_operand("sink", sink, part, torch.float32, (shape[-2],))
    require_operand("lse of the result", lse, part, torch.float32, lse_shape)


def _merge_fake(*args: Any) -> tuple[Tensor, Tensor]:
    out = _empty_out(args[0], args[2], args[5])
    return out, out.new_empty(_lse_shape(out) if args[-1] else (0,), dtype=torch.float32)


_INPUTS = (
    "Tensor part, Tensor part_lse, Tensor? other, Tensor? other_lse, Tensor? sink, str out_dtype"
)
_merge_op, _merge_out_op = define_with_lse(
    "merge_attention", _INPUTS, _merge_into, _merge_fake, _TENSORS
)


def mask_lists(
    mask: Tensor,
    *,
    topk: int | None = None,
    page_table: Tensor | None = None,
    page_size: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """The keys that a mask shows, as lists: what sparse_attention() reads.

    mask        bool [b, rows, keys], of any strides of b and rows: True is visible
    topk        entries of a list; those beyond are left out. All keys if absent
    page_table  int32 [b, ceil(keys / page_size)]: keys become slots of a paged cache, page_table[b,
                j / page_size] * page_size + j % page_size

    Returns indices int32 [b, rows, topk], ascending, -1 behind the last; lengths int32 [b, rows], at
    most topk; and totals, how many keys are visible.
    """
    expect_tensors("mask page_table", (mask, page_table), 1)
    require(mask.dim() == 3, f"{describe('mask', mask)}: expected bool [batch, rows, keys]")
    found: tuple[Tensor, Tensor, Tensor]
    found = _lists_op(mask, page_table, mask.shape[2] if topk is None else topk, page_size)
    return found


def _lists(mask: Tensor, page_table: Tensor | None, topk: int, page_size: int) -> Done:
    indices, lengths, totals = _lists_fake(mask, page_table, topk, page_size)
    if mask.numel() == 0:
        return (indices.fill_(-1), lengths.zero_(), totals.zero_()), None
    key = ("mask_lists", signature(mask, page_table), topk, page_size)
    entry: Entry | None = table.get(key)
    if entry is None:
        _check_mask(mask, page_table, page_size)
        problem = {
            "entry": "bytes",
            "batch": mask.shape[0],
            "rows": mask.shape[1],
            "keys": mask.shape[2],
            "topk": topk,
            "mask_batch_bytes": mask.stride(0),
            "mask_row_bytes": mask.stride(1),
            "page_size": page_size,
            "table_stride": None if page_table is None else page_table.stride(0),
            "has_totals": True,
        }
        entry = table.add(key, make(tilewright.MaskLists, mask.device, problem))
    entry.run(
        mask=mask.view(torch.uint8),
        indices=indices,
        lengths=lengths,
        totals=totals,
        block_table=page_table,
    )
    return (indices, lengths, totals), None


def _check_mask(mask: Tensor, page_table: Tensor | None, page_size: int) -> None:
    is_spread = mask.stride(2) == 1 and all(mask.stride(i) > 0 or mask.shape[i] == 1 for i in (0, 1))
    require(
        mask.dim() == 3 and mask.dtype is torch.bool and is_spread,
        f"{describe('mask', mask)}: expected bool [batch, rows, keys], keys contiguous and nothing expanded; "
        "mask.contiguous() makes it so",
    )
    require((page_table is None) == (page_size == 0), "page_table and page_size: expected both or neither")
    if page_table is not None:
        require_operand("page_table", page_table, mask, torch.int32)
        pages = -(-mask.shape[2] // max(page_size, 1))
        require(
            tuple(page_table.shape) == (mask.shape[0], pages),
            f"{describe('page_table', page_table)}: expected int32{[mask.shape[0], pages]}",
        )


def _lists_fake(
    mask: Tensor, page_table: Tensor | None, topk: int, page_size: int
) -> tuple[Tensor, Tensor, Tensor]:
    def ints(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.int32, device=mask.device)

    batch, rows = mask.shape[:2]
    return ints(batch, rows, topk), ints(batch, rows), ints(batch, rows)


_lists_op = define(
    "mask_lists",
    "(Tensor mask, Tensor? page_table, int topk, int page_size) -> (Tensor, Tensor, Tensor)",
    _lists,
    _lists_fake,
)
