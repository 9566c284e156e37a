"""Memory of a device."""

from __future__ import annotations

from typing import Any

from . import _core


def empty(device: _core.Device, shape: int | tuple[int, ...], dtype: Any = "bf16") -> _core.Buffer:
    """Uninitialised memory of a device as a Buffer."""
    return _core.Buffer(device, shape, dtype)
