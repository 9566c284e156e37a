"""Memory of a device."""

from __future__ import annotations

from collections.abc import Sequence

from . import _core


def empty(device: _core.Device, shape: int | Sequence[int], dtype: _core.DType | str = "bf16") -> _core.Buffer:
    """Uninitialised memory of a device as a Buffer."""
    return _core.Buffer(device, shape, dtype)
