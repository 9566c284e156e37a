"""Memory of a device as arrays of the host."""

from __future__ import annotations

import importlib
from typing import Any

WORDS = {"f16": "float16", "f32": "float32", "f64": "float64", "u8": "uint8", "u16": "uint16", "u32": "uint32",
         "u64": "uint64", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "bool": "bool"}
ML_WORDS = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "e8m0": "float8_e8m0fnu"}


def numpy_dtype(word: str) -> Any:
    """numpy's type of elements; where that is ml_dtypes' and it is not installed, bytes or pairs of them."""
    np = importlib.import_module("numpy")
    if word in ML_WORDS:
        try:
            return np.dtype(getattr(importlib.import_module("ml_dtypes"), ML_WORDS[word]))
        except ImportError:
            return np.dtype("uint16" if word == "bf16" else "uint8")
    return np.dtype(WORDS.get(word, "uint8"))


def to_numpy(buffer: Any) -> Any:
    """A copy of a Buffer."""
    np = importlib.import_module("numpy")
    return np.frombuffer(buffer.download(), numpy_dtype(buffer.dtype)).reshape(buffer.shape)
