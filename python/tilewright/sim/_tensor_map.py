"""Tensor maps over arrays, for kernels that take one as a parameter."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from .._errors import InvalidArgument
from ._driver import driver
from ._memory import Memory, is_torch_tensor
from ._simulator import Placed

# Names of numpy's and torch's types -> CUtensorMapDataType.
_TYPES = {"uint8": 0, "uint16": 1, "uint32": 2, "int32": 3, "uint64": 4, "int64": 5, "float16": 6, "float32": 7,
          "float64": 8, "bfloat16": 9, "int8": 0, "bool": 0, "float8_e4m3fn": 0, "float8_e5m2": 0}
_SWIZZLES = {"none": 0, "32B": 1, "64B": 2, "128B": 3}
_FILLS = {"zeros": 0, "nan": 1}
_PROMOTION_128B = 2


def encode(address: int, word: int, dims: Sequence[int], strides_bytes: Sequence[int], box: Sequence[int],
           swizzle: int, fill: int) -> bytes:
    """The 128 bytes of a tiled map; dims, box and the strides of all but the first dimension innermost first."""
    rank = len(dims)
    out = (ctypes.c_uint8 * 192)()
    at = ctypes.addressof(out) + -ctypes.addressof(out) % 64  # the driver demands it aligned
    driver().call("cuTensorMapEncodeTiled", ctypes.c_void_p(at), word, rank, ctypes.c_void_p(address),
                  (ctypes.c_uint64 * rank)(*dims), (ctypes.c_uint64 * max(rank - 1, 1))(*strides_bytes),
                  (ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*[1] * rank), 0, swizzle,
                  _PROMOTION_128B, fill)
    return ctypes.string_at(at, 128)


def _strides_bytes(array: Any) -> list[int]:
    if is_torch_tensor(array):
        return [stride * array.element_size() for stride in array.stride()]
    return list(array.strides)


class TensorMap(Placed):
    """An argument of simulate()."""

    def __init__(self, array: Any, word: int, dims: Sequence[int], strides_bytes: Sequence[int],
                 box: Sequence[int], swizzle: int, fill: int) -> None:
        self.arrays = (array,)

        def make(memory: Memory) -> bytes:
            return encode(memory.device_address(array), word, dims, strides_bytes, box, swizzle, fill)

        super().__init__(make)


def tensor_map(array: Any, box: Sequence[int], *, swizzle: str = "none", fill: str = "zeros") -> TensorMap:
    """A tiled map over an array whose last dimension is contiguous; `box` is as the array's shape, outermost
    first. swizzle: "none", "32B", "64B", "128B"; fill, of what lies outside: "zeros", "nan"."""
    if swizzle not in _SWIZZLES or fill not in _FILLS:
        raise InvalidArgument(f"tensor_map: swizzle = {swizzle!r}, fill = {fill!r}; expected one of "
                              f"{', '.join(_SWIZZLES)}, and one of {', '.join(_FILLS)}")
    name = str(array.dtype).removeprefix("torch.")
    if name not in _TYPES:
        raise InvalidArgument(f"tensor_map: elements of type {name}; expected one of {', '.join(_TYPES)}")
    strides = _strides_bytes(array)
    size = array.element_size() if is_torch_tensor(array) else array.itemsize
    if len(box) != len(strides) or not strides or strides[-1] != size:
        raise InvalidArgument(f"tensor_map: a box of {len(box)} extents over an array of shape "
                              f"{tuple(array.shape)} and strides of {strides} bytes; expected one extent a "
                              "dimension, the last one contiguous")
    return TensorMap(array, _TYPES[name], list(array.shape)[::-1], strides[-2::-1], list(box)[::-1],
                     _SWIZZLES[swizzle], _FILLS[fill])
