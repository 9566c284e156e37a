"""Matrices to block-scaled formats, and weights in them."""

from __future__ import annotations

from typing import Any, NamedTuple

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
    is_direct,
    known_calls,
    make,
    places_of,
    require,
    signature,
    table,
    workspace,
)
from ._ops import Done, define, known


class _Format(NamedTuple):
    bits: int
    block: tuple[int, int]  # rows and columns that share a scale; 0: all
    scale: torch.dtype
    columns: int  # their number is rounded up to a multiple


_F32, _E4M3, _E8M0 = torch.float32, torch.float8_e4m3fn, torch.float8_e8m0fnu
FORMATS = {
    "nvfp4": _Format(4, (1, 16), _E4M3, 32),
    "mxfp4": _Format(4, (1, 32), _E8M0, 32),
    "mxfp4_ceil": _Format(4, (1, 32), _E8M0, 32),
    "mxfp8": _Format(8, (1, 32), _E8M0, 32),
    "mxfp8_ceil": _Format(8, (1, 32), _E8M0, 32),
    "fp8_64_pow2": _Format(8, (1, 64), _E8M0, 64),
    "fp8_1x128": _Format(8, (1, 128), _F32, 128),
    "fp8_1x128_ue8m0": _Format(8, (1, 128), _E8M0, 128),
    "fp8_token": _Format(8, (1, 0), _F32, 64),
    "fp8_token_ue8m0": _Format(8, (1, 0), _E8M0, 64),
    "fp8_128x128": _Format(8, (128, 128), _F32, 128),
    "fp8_128x128_ue8m0": _Format(8, (128, 128), _E8M0, 128),
}


class Quantized(NamedTuple):
    """Codes and scales; an element is code * scale, of nvfp4 times tensor_scale."""

    codes: Tensor  # float8_e4m3fn [rows, cols], or uint8 [rows, cols / 2]: two e2m1 in a byte
    scales: Tensor  # [rows / block rows, cols / block columns]
    tensor_scale: Tensor  # fp32 [1] of nvfp4, else empty


def quantize(
    x: Tensor,
    format: str = "nvfp4",
    *,
    scales: str = "nearest",
    encode_scale: float | Tensor | None = None,
) -> Quantized:
    """A matrix [rows, cols] of bfloat16, float16 or float32 in a format; padding to whole blocks is 0.

    scales        of nvfp4: "nearest", "four_over_six", "exact_nearest" or "exact_best"
    encode_scale  of nvfp4: G, a number or fp32 [1] on the device; None: 2688 / the largest magnitude
    """
    number, address = (None, encode_scale) if isinstance(encode_scale, Tensor) else (encode_scale, None)
    given = (x, address, None, None, None, format, scales, number)
    if not is_compiling() and (done := _calls.run(*given)) is not None:
        return Quantized(*done)
    expect_tensors("x", given, 1)
    args = (x, format, scales, number, address)
    if not is_direct(x):
        return Quantized(*_quantize_op(*args))
    results, entry = _quantize_into(*args)
    if entry is not None:
        made: dict[str, Tensor | None] = dict(zip(_RESULTS, results, strict=True))
        Way(_calls, given, _TENSORS).remember(entry, made, without=_unused(format))
    return Quantized(*results)


_RESULTS = ("codes", "scales", "tensor_scale")
#: Tensors of a call, results last.
_TENSORS = places_of("in_ encode_scale codes scales tensor_scale")
_calls = known_calls(len(_TENSORS))


def _unused(format: str) -> tuple[str, ...]:
    return () if format == "nvfp4" else ("tensor_scale",)


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _results(x: Tensor, format: str) -> tuple[Tensor, Tensor, Tensor]:
    require(
        format in FORMATS, f"format={format!r}: expected one of {', '.join(map(repr, FORMATS))}"
    )
    require(x.dim() == 2, f"{describe('x', x)}: expected a matrix [rows, cols]")
    kind = FORMATS[format]
    cols = _up(x.shape[1], kind.columns)
    block_rows, block_cols = kind.block[0], kind.block[1] or max(cols, 1)
    rows = _up(x.shape[0], block_rows)
    width, dtype = (cols // 2, torch.uint8) if kind.bits == 4 else (cols, _E4M3)
    return (
        torch.empty((rows, width), dtype=dtype, device=x.device),
        torch.empty((rows // block_rows, cols // block_cols), dtype=kind.scale, device=x.device),
        torch.empty(1 if format == "nvfp4" else 0, dtype=_F32, device=x.device),
    )


def _quantize_fake(x: Tensor, format: str, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return _results(x, format)


def _quantize_into(
    x: Tensor, format: str, scales: str, number: float | None, address: Tensor | None
) -> tuple[tuple[Tensor, Tensor, Tensor], Entry | None]:
    """The results, and the operator, if there was something to do."""
    codes, block_scales, tensor_scale = _results(x, format)
    if x.numel() == 0:
        return (codes, block_scales.zero_(), tensor_scale.fill_(1)), None
    key = ("quantize", signature(x, address), format, scales, number)
    entry: Entry | None = table.get(key)
    if entry is None:
        require(
            x.dtype in (torch.bfloat16, torch.float16, _F32) and x.stride(1) == 1,
            f"{describe('x', x)}: expected bfloat16, float16 or float32, rows contiguous",
        )
        problem = {
            "format": format,
            "scales": scales if format == "nvfp4" else None,
            "dtype": DTYPES[x.dtype],
            "rows": x.shape[0],
            "cols": x.shape[1],
            "row_stride": x.stride(0),
            "encode_scale": number,
            "has_encode_scale_address": address is not None,
        }
        entry = table.add(key, make(tilewright.Quantize, x.device, problem))
    entry.run(
        in_=x,
        codes=codes,
        scales=block_scales,
        encode_scale=address,
        tensor_scale=tensor_scale if format == "nvfp4" else None,
        workspace=workspace(entry, x.device),
    )
    return (codes, block_scales, tensor_scale), entry


def _quantize(*args: Any) -> Done:
    results, entry = _quantize_into(*args)
    unused = _unused(args[1])
    names = {name: at for name, at in _TENSORS.items() if name not in unused}
    return results, known(entry, names, args[0])


_quantize_op = define(
    "quantize",
    "(Tensor x, str format, str scales, float? encode_scale, Tensor? encode_scale_address) "
    "-> (Tensor, Tensor, Tensor)",
    _quantize,
    _quantize_fake,
)
