"""Single numbers: encode, decode, round; codes in packed bytes."""

from __future__ import annotations

import ctypes
import functools
import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from .. import _library
from .._errors import InvalidArgument


@dataclass(frozen=True)
class Format:
    """A number format; `max` is its largest finite number."""

    name: str
    bits: int
    exponent_bits: int
    mantissa_bits: int
    max: float


@dataclass(frozen=True)
class BlockFormat:
    """Elements that share a scale in blocks of block_rows x block_cols; a second, fp32 scale for all of them."""

    name: str
    element: str
    scale: str
    block_rows: int
    block_cols: int
    has_tensor_scale: bool


@functools.lru_cache(maxsize=None)
def _listed() -> dict[str, Any]:
    listed: dict[str, Any] = json.loads(_library.text("tw_formats"))
    return listed


@functools.lru_cache(maxsize=None)
def formats() -> Mapping[str, Format]:
    """All by name: fp32, fp16, bf16, tf32, e4m3, e5m2, e3m2, e2m3, e2m1, ue8m0, ue4m3."""
    return MappingProxyType({each["name"]: Format(**each) for each in _listed()["formats"]})


@functools.lru_cache(maxsize=None)
def block_formats() -> Mapping[str, BlockFormat]:
    """All by name: nvfp4, mxfp4, mxfp8, fp8_1x128, ..."""
    return MappingProxyType({each["name"]: BlockFormat(**each) for each in _listed()["block_formats"]})


def format_of(name: str) -> Format:
    if name not in formats():
        raise InvalidArgument(f"there is no format {name!r}; expected one of {', '.join(formats())}")
    return formats()[name]


def numpy() -> Any:
    return importlib.import_module("numpy")


def is_tensor(array: Any) -> bool:
    return hasattr(array, "untyped_storage")


def to_numpy(array: Any, dtype: str) -> Any:
    """Contiguous, of that type."""
    if is_tensor(array):
        array = array.detach()
        array = (array.float() if array.is_floating_point() and array.itemsize <= 2 else array).numpy()
    return numpy().asarray(array, dtype=dtype, order="C")


def like(result: Any, array: Any) -> Any:
    """A tensor if the argument was one."""
    return importlib.import_module("torch").from_numpy(result) if is_tensor(array) else result


def pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.__array_interface__["data"][0])


def encode(x: Any, format: str, *, rounding: str = "nearest_even", saturate: bool | None = None,
           random_bits: Any = None, num_random_bits: int = 16) -> Any:
    """Codes as unsigned integers of 8, 16 or 32 bits, in the shape of x.

    rounding   "nearest_even", "nearest_away", "toward_zero", "up" or "down"; "stochastic": away from zero where
               adding random_bits, integers like x of num_random_bits, to the part that is cut off carries
    saturate   True: beyond the largest number comes the largest; False: infinity or NaN, where the format has
               them; None: as the instruction does, which saturates up to 8 bits"""
    if rounding == "stochastic":
        return _encode_stochastic(x, format, saturate, random_bits, num_random_bits)
    bits = format_of(format).bits
    values = to_numpy(x, "float64")
    codes = numpy().empty(values.shape, "uint32")
    flag = -1 if saturate is None else int(saturate)
    _library.call("tw_format_encode", format.encode(), rounding.encode(), flag, pointer(values),
                  ctypes.c_size_t(values.size), pointer(codes))
    return like(codes.astype("uint8" if bits <= 8 else "uint16" if bits <= 16 else "uint32"), x)


def _encode_stochastic(x: Any, format: str, saturate: bool | None, random_bits: Any, bits: int) -> Any:
    """Between the neighbours towards zero and away from it; gaps are powers of two, so nothing rounds here."""
    if random_bits is None or not 0 <= bits <= 32:
        raise InvalidArgument("stochastic rounding: expected random_bits, and num_random_bits from 0 to 32")
    values = to_numpy(x, "float64")
    random = to_numpy(random_bits, "uint64") & numpy().uint64((1 << bits) - 1)
    below = to_numpy(encode(values, format, rounding="toward_zero", saturate=saturate), "uint32")
    down, up = (to_numpy(encode(values, format, rounding=word, saturate=saturate), "uint32")
                for word in ("down", "up"))
    above = numpy().where(values < 0, down, up)
    with numpy().errstate(invalid="ignore", divide="ignore", over="ignore"):
        low, high = (abs(decode(codes, format).astype("float64")) for codes in (below, above))
        part = numpy().where(high > low, (abs(values) - low) / (high - low), 0)
        part = numpy().where(numpy().isfinite(part), part, 0)
    carries = numpy().floor(part * 2.0**bits).astype("uint64") + random >= numpy().uint64(1 << bits)
    codes = numpy().where(carries & (low != high), above, below)
    size = format_of(format).bits
    return like(codes.astype("uint8" if size <= 8 else "uint16" if size <= 16 else "uint32"), x)


def decode(codes: Any, format: str) -> Any:
    """The numbers that codes stand for, as float32, which holds those of every format."""
    format_of(format)
    words = to_numpy(codes, "uint32")
    values = numpy().empty(words.shape, "float64")
    _library.call("tw_format_decode", format.encode(), pointer(words), ctypes.c_size_t(words.size),
                  pointer(values))
    with numpy().errstate(invalid="ignore"):
        return like(values.astype("float32"), codes)


def round(x: Any, format: str, *, rounding: str = "nearest_even", saturate: bool | None = None,
          random_bits: Any = None, num_random_bits: int = 16) -> Any:
    """x as the format has it, as float32."""
    return decode(encode(x, format, rounding=rounding, saturate=saturate, random_bits=random_bits,
                         num_random_bits=num_random_bits), format)


def pack(codes: Any, bits: int) -> Any:
    """Codes of 4, 6 or 8 bits in a dense row of bytes: code i at bit i * bits."""
    words = to_numpy(codes, "uint8").reshape(-1)
    out = numpy().empty((words.size * bits + 7) // 8, "uint8")
    _library.call("tw_codes_pack", bits, pointer(words), ctypes.c_size_t(words.size), pointer(out))
    return like(out, codes)


def unpack(packed: Any, bits: int, count: int | None = None) -> Any:
    """`count` codes of packed bytes; all that are there without it."""
    words = to_numpy(packed, "uint8").reshape(-1)
    wanted: int = words.size * 8 // bits if count is None else count
    if not 0 <= wanted * bits <= words.size * 8:
        raise InvalidArgument(f"unpack: {wanted} codes of {bits} bits in {words.size} bytes")
    words = words[:(wanted * bits + 7) // 8]
    out = numpy().empty(wanted, "uint8")
    _library.call("tw_codes_unpack", bits, pointer(words), ctypes.c_size_t(wanted), pointer(out))
    return like(out, packed)
