"""Matrices in block formats."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from .. import _library
from .._errors import InvalidArgument
from ._formats import (BlockFormat, block_formats, decode, format_of, like, numpy, pointer, to_numpy, unpack)


@dataclass(frozen=True, eq=False)
class Quantized:
    """A matrix in a block format.

    codes         uint8, packed: of 8 bits one a byte, of 4 bits two, the even one low; rows of the padded matrix
    scales        one a block: uint8 codes of ue8m0 or ue4m3, or float32
    tensor_scale  what the products are multiplied by, 1 where the format has none
    shape         of the matrix that was given, without the padding
    """

    format: BlockFormat
    shape: tuple[int, ...]
    codes: Any
    scales: Any
    tensor_scale: float

    def dequantize(self) -> Any:
        """float32, in the shape that was given."""
        rows, cols = _matrix(self.shape)
        codes, scales = to_numpy(self.codes, "uint8"), _scale_bytes(self.scales)
        out = numpy().empty((rows, cols), "float32")
        _library.call("tw_block_dequantize", self.format.name.encode(), pointer(codes), pointer(scales),
                      ctypes.c_float(self.tensor_scale), ctypes.c_int64(rows), ctypes.c_int64(cols), pointer(out))
        return like(out.reshape(self.shape), self.codes)

    def unpacked(self) -> Any:
        """Codes one a byte."""
        bits = format_of(self.format.element).bits
        padded = to_numpy(self.codes, "uint8").shape
        codes = to_numpy(unpack(self.codes, bits), "uint8")
        return like(codes.reshape(padded[0], padded[1] * 8 // bits), self.codes)

    def scale_values(self) -> Any:
        """Scales as float32."""
        return self.scales if format_of(self.format.scale).bits > 8 else decode(self.scales, self.format.scale)


def _scale_bytes(scales: Any) -> Any:
    is_float = str(scales.dtype).endswith("float32")
    return to_numpy(scales, "float32").view("uint8") if is_float else to_numpy(scales, "uint8")


def _matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """Leading dimensions are rows."""
    if not shape:
        raise InvalidArgument("quantize: a single number; expected at least one dimension")
    rows = 1
    for extent in shape[:-1]:
        rows *= extent
    return rows, shape[-1]


def quantize(x: Any, format: str, *, encode_scale: float | None = None,
             scale_choice: str = "nearest") -> Quantized:
    """x, an array whose last dimension is divided into blocks, in a block format, by the arithmetic of the
    quantisers that docs/02-formats.md names.

    encode_scale   of nvfp4: G, by which scales are multiplied before they are rounded; without it 2688 / largest
    scale_choice   of nvfp4: "nearest", "four_over_six", "exact_nearest", "exact_best"
    """
    if format not in block_formats():
        raise InvalidArgument(f"there is no block format {format!r}; expected one of {', '.join(block_formats())}")
    if encode_scale == 0:
        raise InvalidArgument("quantize: encode_scale = 0; expected a number above 0, or None")
    made = block_formats()[format]
    values = to_numpy(x, "float32")
    rows, cols = _matrix(values.shape)
    size, name = (ctypes.c_int64(rows), ctypes.c_int64(cols)), format.encode()
    code_bytes, scale_bytes = ctypes.c_size_t(), ctypes.c_size_t()
    _library.call("tw_block_quantize_sizes", name, *size, ctypes.byref(code_bytes), ctypes.byref(scale_bytes))
    codes, scales = numpy().empty(code_bytes.value, "uint8"), numpy().empty(scale_bytes.value, "uint8")
    tensor_scale = ctypes.c_float()
    _library.call("tw_block_quantize", name, pointer(values), *size, ctypes.c_float(encode_scale or 0),
                  scale_choice.encode(), pointer(codes), pointer(scales), ctypes.byref(tensor_scale))
    blocks = -(-rows // made.block_rows), -(-cols // made.block_cols)
    if format_of(made.scale).bits > 8:
        scales = scales.view("float32")
    return Quantized(made, tuple(values.shape), like(codes.reshape(blocks[0] * made.block_rows, -1), x),
                     like(scales.reshape(blocks), x), tensor_scale.value)


__all__ = ["BlockFormat", "Quantized", "quantize"]
