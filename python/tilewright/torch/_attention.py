"""Attention over whole sequences, equally long or packed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

import tilewright
from tilewright._errors import InvalidArgument

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
from ._ops import define_with_lse

_E4M3 = torch.float8_e4m3fn
_INPUTS = (
    "Tensor q, Tensor k, Tensor v, Tensor? sink, Tensor? cu_q, Tensor? cu_kv, Tensor? q_descale, "
    "Tensor? k_descale, Tensor? v_descale, SymInt max_q, SymInt max_kv, float? scale, bool causal, "
    "SymInt window_left, SymInt window_right, float softcap, str kernel"
)


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
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
) -> Any:
    """softmax(scale * q k^T) v of q [b, s, heads, d] and k, v [b, t, kv_heads, d].

    Values of 16 bits may have another last dimension than keys, [b, t, kv_heads, dv]; out is [b, s,
    heads, dv] then.

    Query i stands at key i + t - s; `causal` and `window` (visible keys before and after it; -1: all)
    count from there. A row without a visible key gives 0, and an lse of -inf.

    sink       fp32 [heads]: a logit that takes part in the sum and brings no value
    q_descale  of e4m3 operands, with k_descale and v_descale: fp32, one number or [b, kv_heads];
               out is bf16 then
    return_lse also the natural logarithm of the sum, fp32 [b, heads, s]
    """
    given: tuple[Any, ...]
    given = (q, k, v, sink, None, None, q_descale, k_descale, v_descale, out, None, return_lse)
    given += (None, None, scale, causal, *window, softcap, kernel)
    if not is_compiling() and (done := _calls.run(*given)) is not None:
        return done
    return attend(given)


def attention_varlen(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    cu_q: Tensor,
    cu_kv: Tensor,
    max_q: int,
    max_kv: int,
    scale: float | None = None,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    sink: Tensor | None = None,
    q_descale: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
    q_lengths: Tensor | None = None,
    kv_lengths: Tensor | None = None,
    out: Tensor | None = None,
    return_lse: bool = False,
    kernel: str = "auto",
    chunk: int = 0,
) -> Any:
    """attention() of packed sequences: q [rows, heads, d], k and v [rows, kv_heads, d].

    cu_q, cu_kv            int32 [batch + 1]: the row at which each sequence begins, and the end
    max_q                  at least the longest sequence's queries; max_kv its keys
    q_lengths, kv_lengths  int32 [batch]: queries and keys in use, the first of each sequence's rows,
                           read on the device; rows of results behind them are not written
    chunk                  keys of a chunk: a query sees those of its own alone; 0: all are one
    The lse is [heads, rows].
    """
    if q_lengths is not None or kv_lengths is not None or chunk:
        from . import _paged

        return _paged.attend(
            (q, k, v, None, q_lengths, kv_lengths, cu_q, cu_kv, sink)
            + (q_descale, k_descale, v_descale, out, None, return_lse)
            + (max_q, max_kv, scale, causal, *window, softcap, kernel, chunk)
        )
    given: tuple[Any, ...]
    given = (q, k, v, sink, cu_q, cu_kv, q_descale, k_descale, v_descale, out, None, return_lse)
    given += (max_q, max_kv, scale, causal, *window, softcap, kernel)
    if not is_compiling() and (done := _calls.run(*given)) is not None:
        return done
    return attend(given)


def require_dims(q: Tensor, dims: int, shape: str) -> None:
    if q.dim() != dims:
        raise InvalidArgument(f"{describe('q', q)}: expected {shape}")


#: Tensors of a call, results last.
_TENSORS = places_of("q k v sink cu_q cu_kv q_descale k_descale v_descale out lse")
_calls = known_calls(len(_TENSORS))


def attend(given: tuple[Any, ...], also: Way | None = None) -> Any:
    """A call that is not known; from now on it is, or the one that `also` says, if it fits."""
    if also is not None and not also.fits(dict(zip(_TENSORS, given[:9], strict=False))):
        also = None
        if not is_compiling() and (done := _calls.run(*given)) is not None:
            return done
    q, k, v, sink, cu_q, cu_kv, q_descale, k_descale, v_descale, out, _, return_lse = given[:12]
    max_q, max_kv, *options = given[12:]
    expect_tensors("q k v sink cu_q cu_kv q_descale k_descale v_descale out", given, 3)
    direct = is_direct(q, k, v) and (sink is None or have_no_gradient(sink))
    if cu_q is None and cu_kv is None:
        require_dims(q, 4, "[batch, tokens, heads, head_dim]")
        require(k.dim() == 4, f"{describe('k', k)}: expected [batch, keys, heads, head_dim]")
        max_q, max_kv = q.shape[1], k.shape[1]
    else:
        require_dims(q, 3, "[rows, heads, head_dim]")
    args = (*given[:9], max_q, max_kv, *options)
    if not direct and out is None:
        out, lse = _attention_op(*args, return_lse)
        return (out, lse) if return_lse else out
    out = _empty_out(q, v) if out is None else out
    lse = q.new_empty(_lse_shape(q), dtype=torch.float32) if return_lse else None
    if not direct:
        _attention_out_op(*args, out, lse)
        return (out, lse) if return_lse else out
    run: Any = _attention_into
    if entry := run(*args, out, lse):
        (also or Way(_calls, given, _TENSORS)).remember(entry, {"out": out, "lse": lse})
    return (out, lse) if return_lse else out


def _lse_shape(q: Tensor) -> tuple[int, ...]:
    if q.dim() == 3:
        return q.shape[1], q.shape[0]
    return q.shape[0], q.shape[2], q.shape[1]


def out_shape(q: Tensor, v: Tensor) -> tuple[int, ...]:
    return *q.shape[:-1], v.shape[-1]


def _empty_out(q: Tensor, v: Tensor) -> Tensor:
    if q.dtype is _E4M3:
        return torch.empty(q.shape, dtype=torch.bfloat16, device=q.device)
    if v.dim() > 0 and v.shape[-1] != q.shape[-1]:
        return q.new_empty(out_shape(q, v))
    return empty_as(q)


def _attention_into(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    sink: Tensor | None,
    cu_q: Tensor | None,
    cu_kv: Tensor | None,
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
) -> Entry | None:
    """The operator, if the next call may hand over to it what it is given."""
    if q.numel() == 0:
        return None
    sharing, is_as_given = None, True
    if q.dtype is _E4M3:
        batch = q.shape[0] if cu_q is None else cu_q.shape[0] - 1
        scales = (q_descale, k_descale, v_descale)
        sharing, used = descales(scales, (batch, k.shape[-2]), q.device)
        q_descale, k_descale, v_descale = used
        is_as_given = are_at_one_place(scales, used)
    key = (
        "attention",
        signature(q, k, v, out, lse, sink, cu_q, cu_kv),
        *(sharing, max_q, max_kv, scale, causal, window_left, window_right, softcap, kernel),
    )
    entry: Entry | None = table.get(key)
    if entry is None:
        _check(q, k, v, sink, cu_q, cu_kv, out, lse)
        problem = {
            **_shape(q, k, v, out, cu_q, max_q, max_kv),
            "scale": scale,
            "causal": causal,
            "window_left": window_left,
            "window_right": window_right,
            "softcap": softcap,
            "has_sink": sink is not None,
            "has_lse": lse is not None,
            "kernel": kernel,
            "fp8": {"scales": sharing} if sharing else None,
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
        q_descale=q_descale,
        k_descale=k_descale,
        v_descale=v_descale,
        workspace=workspace(entry, q.device),
    )
    return entry if is_as_given else None


def longest(given: int, rows: int, batch: int) -> int:
    """Of packed sequences, where the longest is said to have at most `given` rows: not more than there
    are, nor so few that rows behind the last sequence, padding, would be too many for the operator."""
    return given if given < 0 else max(min(given, rows), -(-rows // max(batch, 1)))


def _shape(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, cu_q: Tensor | None, max_q: int, max_kv: int
) -> dict[str, Any]:
    batch = q.shape[0] if cu_q is None else cu_q.shape[0] - 1
    if cu_q is not None:
        max_q, max_kv = longest(max_q, q.shape[0], batch), longest(max_kv, k.shape[0], batch)
    return {
        "dtype": DTYPES[q.dtype],
        "out_dtype": DTYPES[out.dtype] if q.dtype is _E4M3 else None,
        "batch": batch,
        "heads": q.shape[-2],
        "kv_heads": k.shape[-2],
        "q_len": max_q,
        "kv_len": max_kv,
        "head_dim": q.shape[-1],
        "value_dim": v.shape[-1],
        "is_packed": cu_q is not None,
        "total_q": None if cu_q is None else q.shape[0],
        "total_kv": None if cu_q is None else k.shape[0],
        "q_strides": strides(q),
        "k_strides": strides(k),
        "v_strides": strides(v),
        "out_strides": strides(out),
    }


def _check(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    sink: Tensor | None,
    cu_q: Tensor | None,
    cu_kv: Tensor | None,
    out: Tensor,
    lse: Tensor | None,
) -> None:
    text = ", ".join((describe("q", q), describe("k", k), describe("v", v)))
    require(q.dtype in DTYPES, f"{text}: expected bfloat16, float16 or float8_e4m3fn")
    require(q.dtype == k.dtype == v.dtype, f"{text}: expected one dtype; convert with .to()")
    require(q.device == k.device == v.device, f"{text}: expected one device; move with .to()")
    require(k.dim() == v.dim() == q.dim(), f"{text}: expected as many dimensions in all three")
    require(
        k.shape[:-1] == v.shape[:-1] and k.shape[-1] == q.shape[-1],
        f"{text}: expected k with the head size of q, and v of k's shape but for its head size",
    )
    require(
        q.dim() == 3 or q.shape[0] == k.shape[0],
        f"{text}: expected the same batch in q, k and v",
    )
    for name, tensor in (("q", q), ("k", k), ("v", v), ("out", out)):
        require(
            tensor.dim() > 0 and (tensor.stride(-1) == 1 or tensor.shape[-1] <= 1),
            f"{describe(name, tensor)}: expected the last dimension contiguous; "
            f"{name}.contiguous() makes it so",
        )
    require((cu_q is None) == (cu_kv is None), "cu_q and cu_kv: expected both or neither")
    require_operand("sink", sink, q, torch.float32, (q.shape[-2],))
    if cu_q is not None and cu_kv is not None:
        require_operand("cu_q", cu_q, q, torch.int32)
        require_operand("cu_kv", cu_kv, q, torch.int32, tuple(cu_q.shape))
    require(
        out.shape == out_shape(q, v) and out.device == q.device and out.dtype in DTYPES,
        f"{describe('out', out)}: expected {list(out_shape(q, v))} on the device of {describe('q', q)}",
    )
    require(
        out.dtype == q.dtype or q.dtype is _E4M3,
        f"{describe('out', out)}: expected the dtype of {describe('q', q)}",
    )
    require_operand("lse", lse, q, torch.float32, _lse_shape(q))


_ones: dict[torch.device, Tensor] = {}


def descales(
    given: tuple[Tensor | None, ...], shape: tuple[int, int], device: torch.device
) -> tuple[str, tuple[Tensor, ...]]:
    """What shares a scale, and the scales: all one number each, or all [batch, kv_heads].

    An expanded number (strides 0) is one number; absent is 1.
    """
    numbers = [scale is None or _is_one_number(scale) for scale in given]
    if all(numbers):
        return "tensor", tuple(_one_number(scale, device) for scale in given)
    heads = []
    for scale in given:
        scale = _one_number(scale, device) if scale is None or scale.numel() == 1 else scale
        require(
            scale.dtype == torch.float32 and scale.device == device,
            f"{describe('descale', scale)}: expected float32 on {device}",
        )
        require(
            scale.numel() == 1 or tuple(scale.shape) == shape,
            f"{describe('descale', scale)}: expected one number or {list(shape)}, "
            "[batch, kv_heads]",
        )
        heads.append(scale.expand(shape).contiguous())
    return "head", tuple(heads)


def are_at_one_place(given: tuple[Tensor | None, ...], used: tuple[Tensor | None, ...]) -> bool:
    """Whether what is used is what was given, though perhaps under another shape."""
    return all(
        one is other or (one is not None and other is not None and one.data_ptr() == other.data_ptr())
        for one, other in zip(given, used, strict=True)
    )


def _is_one_number(scale: Tensor) -> bool:
    return scale.numel() == 1 or all(stride == 0 for stride in scale.stride())


def _one_number(scale: Tensor | None, device: torch.device) -> Tensor:
    if scale is not None:
        require(
            scale.dtype == torch.float32 and scale.device == device,
            f"{describe('descale', scale)}: expected float32 on {device}",
        )
        return scale.as_strided((1,), (1,))
    found = _ones.get(device)
    if found is None:
        found = _ones[device] = torch.ones(1, dtype=torch.float32, device=device)
    return found


def _attention_fake(*args: Any) -> tuple[Tensor, Tensor]:
    q, v, return_lse = args[0], args[2], args[-1]
    return _empty_out(q, v), q.new_empty(_lse_shape(q) if return_lse else (0,), dtype=torch.float32)


_attention_op, _attention_out_op = define_with_lse(
    "attention", _INPUTS, _attention_into, _attention_fake, _TENSORS
)
