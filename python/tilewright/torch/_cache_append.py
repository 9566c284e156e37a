"""New keys and values written to caches, any number of them for any number of queries."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import tilewright

from ._attention import descales
from ._context import (
    DTYPES,
    Entry,
    describe,
    empty_as,
    expect_tensors,
    have_no_gradient,
    is_direct,
    make,
    require,
    require_operand,
    signature,
    strides,
    table,
)
from ._ops import Done, define

_E4M3 = torch.float8_e4m3fn
_INPUTS = (
    "Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor k_new, Tensor v_new, Tensor lengths, "
    "Tensor? page_table, Tensor? cu_new, Tensor? q, Tensor? cu_q, Tensor? rotary_cos, "
    "Tensor? rotary_sin, Tensor? rotary_lengths, Tensor? k_descale, Tensor? v_descale, "
    "bool interleaved, bool is_one_position"
)


def cache_append(
    k_cache: Tensor,
    v_cache: Tensor,
    k_new: Tensor,
    v_new: Tensor,
    *,
    lengths: Tensor,
    page_table: Tensor | None = None,
    cu_new: Tensor | None = None,
    q: Tensor | None = None,
    cu_q: Tensor | None = None,
    rotary_cos: Tensor | None = None,
    rotary_sin: Tensor | None = None,
    rotary_lengths: Tensor | None = None,
    interleaved: bool = True,
    is_one_position: bool = False,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Writes new tokens behind the keys of caches; gives the lengths after that, and q turned.

    attention_decode does so itself with as many tokens as queries; this is for other numbers of
    them, packed ones, angles that count from elsewhere, and values of another width.

    k_cache, v_cache  [pages, page_size, kv_heads, d or dv] with page_table int32 [b, max_pages], or
                      [b, max_len, kv_heads, d or dv]; of k_new's dtype or float8_e4m3fn
    k_new, v_new      [b, s, kv_heads, d or dv], or [rows, kv_heads, ..] with cu_new int32 [b + 1];
                      bfloat16 or float16, or float8_e4m3fn, codes of such caches
    lengths           int32 [b]: keys in the cache, read on the device; tokens beyond its room are
                      left out
    q                 with rotary_cos: [b, s, heads, d], or [rows, heads, d] with cu_q; turned as
                      queries of a sequence that stand where its new tokens begin
    rotary_cos, _sin  fp32 [positions, rotary_dim / 2], rotary_dim a multiple of 16: turn k_new and q
    rotary_lengths    int32 [b]: positions count from there, not from lengths
    is_one_position   all queries of a sequence turn as its first
    k_descale         of an e4m3 cache, with v_descale: fp32, one number or [b, kv_heads]
    """
    given: tuple[Any, ...]
    given = (k_cache, v_cache, k_new, v_new, lengths, page_table, cu_new, q, cu_q, rotary_cos)
    given += (rotary_sin, rotary_lengths, k_descale, v_descale)
    expect_tensors(_NAMES, given, 5)
    args = (*given, interleaved, is_one_position)
    if not is_direct(k_cache, v_cache, k_new) or not have_no_gradient(v_new, q):
        grown, turned = _append_op(*args)
    else:
        into: Any = _append_into
        grown, turned = into(*args)
    return grown, None if q is None else turned


_NAMES = (
    "k_cache v_cache k_new v_new lengths page_table cu_new q cu_q rotary_cos rotary_sin "
    "rotary_lengths k_descale v_descale"
)


def _results(lengths: Tensor, q: Tensor | None) -> tuple[Tensor, Tensor]:
    turned = lengths.new_empty(0) if q is None else empty_as(q)
    return torch.empty_like(lengths, memory_format=torch.contiguous_format), turned


def _append_into(
    k_cache: Tensor,
    v_cache: Tensor,
    k_new: Tensor,
    v_new: Tensor,
    lengths: Tensor,
    page_table: Tensor | None,
    cu_new: Tensor | None,
    q: Tensor | None,
    cu_q: Tensor | None,
    cos: Tensor | None,
    sin: Tensor | None,
    rotary_lengths: Tensor | None,
    k_descale: Tensor | None,
    v_descale: Tensor | None,
    interleaved: bool,
    is_one_position: bool,
) -> tuple[Tensor, Tensor]:
    grown, turned = _results(lengths, q)
    if lengths.numel() == 0:
        return grown, turned
    require(k_cache.dim() == 4, f"{describe('k_cache', k_cache)}: expected 4 dimensions")
    require(lengths.dim() == 1, f"{describe('lengths', lengths)}: expected one dimension")
    sharing = None
    if k_descale is not None or v_descale is not None:
        shape = (lengths.shape[0], k_cache.shape[2])
        sharing, (k_descale, v_descale) = descales((k_descale, v_descale), shape, k_cache.device)
    tensors = (k_cache, v_cache, k_new, v_new, lengths, page_table, cu_new, q, cu_q)
    angles = (cos, sin, rotary_lengths)
    key = ("cache_append", signature(*tensors, *angles), sharing, interleaved, is_one_position)
    entry: Entry | None = table.get(key)
    if entry is None:
        _check(*tensors, *angles)
        problem = {
            **_shape(k_cache, v_cache, k_new, v_new, lengths, page_table, cu_new),
            **_turning(q, turned, cu_q, cos, rotary_lengths, interleaved, is_one_position),
            "descale": sharing,
            "has_new_lengths": True,
        }
        entry = table.add(key, make(tilewright.CacheAppend, k_cache.device, problem))
    is_empty = k_new.numel() == 0
    entry.run(
        q=q,
        new_k=None if is_empty else k_new,
        new_v=None if is_empty else v_new,
        turned_q=None if q is None else turned,
        k_cache=k_cache,
        v_cache=v_cache,
        lengths=lengths,
        rotary_lengths=rotary_lengths,
        new_lengths=grown,
        block_table=page_table,
        cu_new=cu_new,
        cu_q=cu_q,
        k_descale=k_descale,
        v_descale=v_descale,
        cos=cos,
        sin=sin,
    )
    return grown, turned


def _shape(
    k_cache: Tensor,
    v_cache: Tensor,
    k_new: Tensor,
    v_new: Tensor,
    lengths: Tensor,
    page_table: Tensor | None,
    cu_new: Tensor | None,
) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "dtype": DTYPES[k_new.dtype],
        "kv_dtype": DTYPES[k_cache.dtype],
        "batch": lengths.shape[0],
        "kv_heads": k_cache.shape[2],
        "head_dim": k_cache.shape[3],
        "value_dim": v_cache.shape[3],
        "is_packed": cu_new is not None,
        "new_len": k_new.shape[1] if cu_new is None else 0,
        "total_new": 0 if cu_new is None else k_new.shape[0],
        "new_k_strides": strides(k_new),
        "new_v_strides": strides(v_new),
        "k_cache_strides": strides(k_cache),
        "v_cache_strides": strides(v_cache),
    }
    if page_table is None:
        return shape | {"max_len": k_cache.shape[1]}
    return shape | {
        "page_size": k_cache.shape[1],
        "num_pages": k_cache.shape[0],
        "max_pages": page_table.shape[1],
        "table_stride": page_table.stride(0),
    }


def _turning(
    q: Tensor | None,
    turned: Tensor,
    cu_q: Tensor | None,
    cos: Tensor | None,
    rotary_lengths: Tensor | None,
    interleaved: bool,
    is_one_position: bool,
) -> dict[str, Any]:
    if cos is None:
        return {}
    turning: dict[str, Any] = {
        "rotary": "interleaved" if interleaved else "halves",
        "rotary_dim": 2 * cos.shape[1],
        "max_position": cos.shape[0],
        "has_rotary_lengths": rotary_lengths is not None,
        "is_one_position": is_one_position,
    }
    if q is None:
        return turning
    return turning | {
        "heads": q.shape[-2],
        "is_q_packed": cu_q is not None,
        "q_len": q.shape[1] if cu_q is None else 0,
        "total_q": 0 if cu_q is None else q.shape[0],
        "q_strides": strides(q),
        "turned_q_strides": strides(turned),
    }


def _check(
    k_cache: Tensor,
    v_cache: Tensor,
    k_new: Tensor,
    v_new: Tensor,
    lengths: Tensor,
    page_table: Tensor | None,
    cu_new: Tensor | None,
    q: Tensor | None,
    cu_q: Tensor | None,
    cos: Tensor | None,
    sin: Tensor | None,
    rotary_lengths: Tensor | None,
) -> None:
    text = ", ".join((describe("k_cache", k_cache), describe("v_cache", v_cache)))
    new = ", ".join((describe("k_new", k_new), describe("v_new", v_new)))
    require(
        k_new.dtype in DTYPES
        and k_new.dtype == v_new.dtype
        and k_cache.dtype == v_cache.dtype
        and k_cache.dtype in (k_new.dtype, _E4M3),
        f"{text}, {new}: expected bfloat16, float16 or float8_e4m3fn, caches as new tokens or in "
        "float8_e4m3fn",
    )
    require(
        k_cache.dim() == v_cache.dim() == 4 and k_cache.shape[:3] == v_cache.shape[:3],
        f"{text}: expected [pages, page_size, kv_heads, head_dim] or [batch, max_len, kv_heads, "
        "head_dim], alike but for their head sizes",
    )
    dims = 4 if cu_new is None else 3
    require(
        k_new.dim() == v_new.dim() == dims
        and k_new.shape[:-1] == v_new.shape[:-1]
        and k_new.shape[-2] == k_cache.shape[2]
        and (k_new.shape[-1], v_new.shape[-1]) == (k_cache.shape[3], v_cache.shape[3]),
        f"{new}: expected [batch, tokens, kv_heads, head_dim], or [rows, kv_heads, head_dim] with "
        f"cu_new, with heads as {text}",
    )
    batch = lengths.shape[0]
    require(
        (cu_new is not None or k_new.shape[0] == batch)
        and (page_table is not None or k_cache.shape[0] == batch),
        f"{text}, {new}: expected the batch of {describe('lengths', lengths)}",
    )
    sizes = {"lengths": batch, "rotary_lengths": batch, "cu_new": batch + 1, "cu_q": batch + 1}
    given = {"lengths": lengths, "rotary_lengths": rotary_lengths, "cu_new": cu_new, "cu_q": cu_q}
    for name, size in sizes.items():
        require_operand(name, given[name], k_cache, torch.int32, (size,))
    require(
        page_table is None
        or page_table.dtype == torch.int32
        and page_table.device == k_cache.device
        and page_table.dim() == 2
        and page_table.shape[0] == batch
        and (page_table.stride(1) == 1 or page_table.shape[1] <= 1),
        f"{describe('page_table', page_table)}: expected int32 [{batch}, pages of a sequence] on "
        f"{k_cache.device}, rows contiguous",
    )
    rows = {"k_cache": k_cache, "v_cache": v_cache, "k_new": k_new, "v_new": v_new, "q": q}
    for name, x in rows.items():
        require(
            x is None or (x.device == k_cache.device and (x.stride(-1) == 1 or x.shape[-1] <= 1)),
            f"{describe(name, x)}: expected it on {k_cache.device}, the last dimension contiguous",
        )
    _check_turning(q, cu_q, k_new, cos, sin, rotary_lengths, batch)


def _check_turning(
    q: Tensor | None,
    cu_q: Tensor | None,
    k_new: Tensor,
    cos: Tensor | None,
    sin: Tensor | None,
    rotary_lengths: Tensor | None,
    batch: int,
) -> None:
    require((cos is None) == (sin is None), "rotary_cos and rotary_sin: expected both or neither")
    if cos is None:
        require(
            q is None and rotary_lengths is None,
            f"{describe('q', q)}, {describe('rotary_lengths', rotary_lengths)}: expected None without "
            "rotary_cos; pass rotary_cos and rotary_sin, or leave both out",
        )
        return
    require(
        cos.dim() == 2,
        f"{describe('rotary_cos', cos)}: expected [positions, rotary_dim / 2]; reshape both tables",
    )
    require_operand("rotary_cos", cos, k_new, torch.float32)
    require_operand("rotary_sin", sin, k_new, torch.float32, tuple(cos.shape))
    require(
        q is None
        or q.dtype == k_new.dtype
        and q.dim() == (4 if cu_q is None else 3)
        and q.shape[-1] == k_new.shape[-1]
        and (cu_q is not None or q.shape[0] == batch),
        f"{describe('q', q)}: expected [batch, tokens, heads, head_dim], or [rows, heads, head_dim] "
        f"with cu_q, of the dtype and head size of {describe('k_new', k_new)}",
    )


def _append(*args: Any) -> Done:
    into: Any = _append_into
    return into(*args), None


def _append_fake(*args: Any) -> tuple[Tensor, Tensor]:
    return _results(args[4], args[7])


_append_op = define("cache_append", f"({_INPUTS}) -> (Tensor, Tensor)", _append, _append_fake)
