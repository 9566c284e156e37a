"""Attention of a few new tokens over long caches of keys and values."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

import tilewright

from ._attention import are_at_one_place, descales, require_dims
from ._context import (
    DTYPES,
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

_INPUTS = (
    "Tensor q, Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor lengths, Tensor? page_table, "
    "Tensor? k_new, Tensor? v_new, Tensor? rotary_cos, Tensor? rotary_sin, bool interleaved, "
    "Tensor? sink, Tensor? k_descale, Tensor? v_descale, float? scale, bool causal, "
    "int window_left, float softcap, int splits, str kernel"
)


def attention_decode(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    *,
    lengths: Tensor,
    page_table: Tensor | None = None,
    k_new: Tensor | None = None,
    v_new: Tensor | None = None,
    rotary_cos: Tensor | None = None,
    rotary_sin: Tensor | None = None,
    interleaved: bool = True,
    sink: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
    scale: float | None = None,
    causal: bool = True,
    window: int = -1,
    softcap: float = 0.0,
    splits: int = 0,
    out: Tensor | None = None,
    return_lse: bool = False,
    kernel: str = "auto",
    chunk: int = 0,
) -> Any:
    """Attention of q [b, s, heads, d], s at most 16, over caches that are longer.

    k_cache, v_cache  [pages, page_size, kv_heads, d] with page_table int32 [b, max_pages], or
                      [b, max_len, kv_heads, d]; of q's dtype or float8_e4m3fn
    lengths           int32 [b]: keys in the cache, read on the device
    k_new, v_new      [b, s, kv_heads, d]: are written behind them first, which changes the caches
    rotary_cos, _sin  fp32 [positions, rotary_dim / 2]: turn k_new and q by their positions;
                      `interleaved`: pairs are neighbours, else the halves of rotary_dim
    k_descale         of an e4m3 cache, with v_descale: fp32, one number or [b, kv_heads]
    window            visible keys before the query's; -1: all
    splits            parts that the keys are cut into; 0: by the lengths
    chunk             keys of a chunk: a query sees those of its own alone; 0: all are one

    The last query stands at the last key. Returns out, or out and the lse [b, heads, s].
    """
    given = (
        *(q, k_cache, v_cache, lengths, page_table, k_new, v_new, rotary_cos, rotary_sin, sink),
        *(k_descale, v_descale, out, None, return_lse, interleaved, scale, causal, window),
        *(softcap, splits, kernel, chunk),
    )
    if not is_compiling() and (done := _calls.run(*given)) is not None:
        return done
    return decode(given)


#: Tensors of a call, results last.
_TENSORS = places_of(
    "q k_cache v_cache lengths block_table new_k new_v cos sin sink k_descale v_descale out lse"
)
_WITHOUT_LSE = {name: at for name, at in _TENSORS.items() if name != "lse"}
_calls = known_calls(len(_TENSORS))
_NAMES = (
    "q k_cache v_cache lengths page_table k_new v_new rotary_cos rotary_sin sink k_descale v_descale out"
)


def decode(given: tuple[Any, ...], also: Way | None = None) -> Any:
    """A call that is not known; from now on it is, or the one that `also` says, if it fits."""
    if also is not None and not also.fits(dict(zip(_TENSORS, given[:12], strict=False))):
        also = None
        if not is_compiling() and (done := _calls.run(*given)) is not None:
            return done
    q, k_cache, v_cache, _, _, k_new, v_new, _, _, sink, *scales, out, _, return_lse = given[:15]
    interleaved, *options, chunk = given[15:]
    expect_tensors(_NAMES, given, 3)
    direct = is_direct(q, k_cache, v_cache) and have_no_gradient(sink, k_new, v_new)
    require_dims(q, 4, "[batch, tokens, heads, head_dim]")
    args = (*given[:9], interleaved, sink, *scales, *options)
    if not direct and out is None:
        out, lse = _decode_op(*args, return_lse, chunk)
        return (out, lse) if return_lse else out
    out = empty_as(q) if out is None else out
    lse = q.new_empty(_lse_shape(q), dtype=torch.float32) if return_lse else None
    if not direct:
        _decode_out_op(*args, out, lse, chunk)
        return (out, lse) if return_lse else out
    run: Any = _decode_into
    if entry := run(*args, out, lse, chunk):
        (also or Way(_calls, given, _TENSORS)).remember(entry, {"out": out, "lse": lse})
    return (out, lse) if return_lse else out


def _lse_shape(q: Tensor) -> tuple[int, int, int]:
    return q.shape[0], q.shape[2], q.shape[1]


def _decode_into(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    lengths: Tensor,
    page_table: Tensor | None,
    k_new: Tensor | None,
    v_new: Tensor | None,
    rotary_cos: Tensor | None,
    rotary_sin: Tensor | None,
    interleaved: bool,
    sink: Tensor | None,
    k_descale: Tensor | None,
    v_descale: Tensor | None,
    scale: float | None,
    causal: bool,
    window_left: int,
    softcap: float,
    splits: int,
    kernel: str,
    out: Tensor,
    lse: Tensor | None,
    chunk: int = 0,
) -> Entry | None:
    """The operator, if the next call may hand over to it what it is given."""
    if q.numel() == 0:
        return None
    sharing, is_as_given = None, True
    if k_descale is not None or v_descale is not None:
        shape = (q.shape[0], k_cache.shape[2])
        scales = (k_descale, v_descale)
        sharing, (k_descale, v_descale) = descales(scales, shape, q.device)
        is_as_given = are_at_one_place(scales, (k_descale, v_descale))
    key = (
        "decode",
        signature(q, k_cache, v_cache, lengths, page_table, k_new, v_new, out, lse, sink),
        None if rotary_cos is None else signature(rotary_cos, rotary_sin),
        *(interleaved, sharing, scale, causal, window_left, softcap, splits, kernel, chunk),
    )
    entry: Entry | None = table.get(key)
    if entry is None:
        _check(q, k_cache, v_cache, lengths, page_table, k_new, v_new, sink, out, lse)
        append = _append(q, k_new, v_new, rotary_cos, rotary_sin, interleaved)
        problem = {
            **_shape(q, k_cache, page_table),
            **append,
            "scale": scale,
            "causal": causal,
            "window_left": window_left,
            "softcap": softcap,
            "descale": sharing,
            "has_sink": sink is not None,
            "has_lse": lse is not None,
            "q_strides": strides(q),
            "out_strides": strides(out),
            "cache_strides": strides(k_cache),
            "splits": splits,
            "kernel": kernel,
            "chunk": chunk,
        }
        entry = table.add(key, make(tilewright.AttentionDecode, q.device, problem))
    entry.run(
        q=q,
        k_cache=k_cache,
        v_cache=v_cache,
        lengths=lengths,
        block_table=page_table,
        k_descale=k_descale,
        v_descale=v_descale,
        new_k=k_new,
        new_v=v_new,
        cos=rotary_cos,
        sin=rotary_sin,
        out=out,
        lse=lse,
        sink=sink,
        workspace=workspace(entry, q.device),
    )
    return entry if is_as_given else None


def _decode_out(*args: Any) -> Done:
    into: Any = _decode_into
    return (), known(into(*args), _TENSORS, args[0])


def _shape(q: Tensor, cache: Tensor, page_table: Tensor | None) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "dtype": DTYPES[q.dtype],
        "kv_dtype": DTYPES[cache.dtype],
        "batch": q.shape[0],
        "q_len": q.shape[1],
        "heads": q.shape[2],
        "kv_heads": cache.shape[2],
        "head_dim": q.shape[3],
    }
    if page_table is None:
        return {**shape, "max_len": cache.shape[1]}
    return {
        **shape,
        "page_size": cache.shape[1],
        "num_pages": cache.shape[0],
        "max_pages": page_table.shape[1],
        "table_stride": page_table.stride(0),
    }


def _append(
    q: Tensor,
    k_new: Tensor | None,
    v_new: Tensor | None,
    cos: Tensor | None,
    sin: Tensor | None,
    interleaved: bool,
) -> dict[str, Any]:
    require((k_new is None) == (v_new is None), "k_new and v_new: expected both or neither")
    require((cos is None) == (sin is None), "rotary_cos and rotary_sin: expected both or neither")
    if k_new is None or v_new is None:
        require(cos is None, "rotary_cos without k_new: turn q before the call, or pass k_new")
        return {}
    for name, tensor in (("k_new", k_new), ("v_new", v_new)):
        require(
            tensor.dim() == 4 and tensor.dtype == q.dtype and tensor.device == q.device,
            f"{describe(name, tensor)}: expected [batch, tokens, kv_heads, head_dim] as "
            f"{describe('q', q)}",
        )
        require(
            tensor.shape[:2] == q.shape[:2],
            f"{describe(name, tensor)}: expected as many tokens as {describe('q', q)}",
        )
    append: dict[str, Any] = {"is_wanted": True}
    if cos is not None and sin is not None:
        require(
            cos.dim() == 2,
            f"{describe('rotary_cos', cos)}: expected [positions, rotary_dim / 2]; reshape both tables",
        )
        require_operand("rotary_cos", cos, q, torch.float32)
        require_operand("rotary_sin", sin, q, torch.float32, tuple(cos.shape))
        append["rotary"] = "interleaved" if interleaved else "halves"
        append["rotary_dim"] = 2 * cos.shape[1]
        append["max_position"] = cos.shape[0]
    return {
        "append": append,
        "new_k_strides": strides(k_new),
        "new_v_strides": strides(v_new),
    }


def has_equal_strides(k_cache: Tensor, v_cache: Tensor) -> bool:
    """Of caches of one shape; the stride of a dimension of one element says nothing."""
    pairs = zip(k_cache.shape, k_cache.stride(), v_cache.stride(), strict=True)
    return all(size <= 1 or one == other for size, one, other in pairs)


def _check(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    lengths: Tensor,
    page_table: Tensor | None,
    k_new: Tensor | None,
    v_new: Tensor | None,
    sink: Tensor | None,
    out: Tensor,
    lse: Tensor | None,
) -> None:
    text = ", ".join(
        (describe("q", q), describe("k_cache", k_cache), describe("v_cache", v_cache))
    )
    require(
        q.dtype in (torch.bfloat16, torch.float16), f"{text}: expected q in bfloat16 or float16"
    )
    require(
        k_cache.dtype == v_cache.dtype and k_cache.dtype in (q.dtype, torch.float8_e4m3fn),
        f"{text}: expected both caches in the dtype of q, or in float8_e4m3fn",
    )
    require(q.device == k_cache.device == v_cache.device, f"{text}: expected one device")
    require(
        k_cache.dim() == 4 and k_cache.shape == v_cache.shape,
        f"{text}: expected caches of one shape, [pages, page_size, kv_heads, head_dim] or "
        "[batch, max_len, kv_heads, head_dim]",
    )
    require(k_cache.shape[3] == q.shape[3], f"{text}: expected one head size")
    require(
        has_equal_strides(k_cache, v_cache), f"{text}: expected equal strides of both caches"
    )
    require(
        page_table is not None or k_cache.shape[0] == q.shape[0],
        f"{text}: without a page_table, expected the batch of q in the caches",
    )
    for name, tensor in (("q", q), ("k_cache", k_cache), ("k_new", k_new), ("v_new", v_new)):
        require(
            tensor is None or tensor.dim() > 0 and tensor.stride(-1) == 1,
            f"{describe(name, tensor)}: expected the last dimension contiguous; "
            f"{name}.contiguous() makes it so",
        )
    require_operand("lengths", lengths, q, torch.int32, (q.shape[0],))
    require_operand("sink", sink, q, torch.float32, (q.shape[2],))
    require(
        page_table is None
        or page_table.dtype == torch.int32
        and page_table.device == q.device
        and page_table.dim() == 2
        and page_table.shape[0] == q.shape[0]
        and page_table.stride(1) == 1,
        f"{describe('page_table', page_table)}: expected int32 [{q.shape[0]}, pages of a "
        f"sequence] on {q.device}, rows contiguous",
    )
    require(
        out.shape == q.shape and out.device == q.device and out.dtype == q.dtype,
        f"{describe('out', out)}: expected the shape, dtype and device of {describe('q', q)}",
    )
    require_operand("lse", lse, q, torch.float32, _lse_shape(q))


#: Where return_lse is among the arguments of the operator; chunk is behind it, if it is given.
_RETURN_LSE = 19


def _decode(*args: Any) -> Done:
    into: Any = _decode_into
    return_lse = args[_RETURN_LSE]
    out, lse = _decode_fake(*args)
    lse_or_none = lse if return_lse else None
    entry = into(*args[:_RETURN_LSE], out, lse_or_none, *args[_RETURN_LSE + 1 :])
    return (out, lse), known(entry, _TENSORS if return_lse else _WITHOUT_LSE, args[0])


def _decode_fake(*args: Any) -> tuple[Tensor, Tensor]:
    q, return_lse = args[0], args[_RETURN_LSE]
    out = empty_as(q)
    return out, q.new_empty(_lse_shape(q) if return_lse else (0,), dtype=torch.float32)


_decode_op = define(
    "attention_decode", f"({_INPUTS}, bool return_lse, int chunk=0) -> (Tensor, Tensor)", _decode, _decode_fake
)
_decode_out_op = define(
    "attention_decode_out", f"({_INPUTS}, Tensor(c!) out, Tensor(d!)? lse, int chunk=0) -> ()", _decode_out
)
