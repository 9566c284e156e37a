"""Scales in the order in which Blackwell's tensor cores read them."""

from __future__ import annotations

from typing import Any

from .._errors import InvalidArgument
from ._formats import like, numpy, to_numpy

_ROWS, _COLS = 128, 4


def _tiles(rows: int, cols: int) -> tuple[int, int]:
    return -(-rows // _ROWS), -(-cols // _COLS)


def to_128x4(scales: Any) -> Any:
    """One-byte scales [..., rows, cols] as bytes [..., size], in tiles of 128 rows x 4 columns.

    A tile has 512 bytes, the scale of (row, col) at (row % 32) * 16 + (row % 128 // 32) * 4 + col % 4; tiles
    follow each other along the columns first. Rows and columns are padded with zeros to whole tiles.

    Source   cuBLAS, "1D block scaling factors layout"
    """
    values = _bytes(scales, "to_128x4")
    if values.ndim < 2:
        raise InvalidArgument(f"to_128x4: scales of {values.ndim} dimensions; expected [..., rows, cols]")
    *batch, rows, cols = values.shape
    down, across = _tiles(rows, cols)
    padded = numpy().zeros((*batch, down * _ROWS, across * _COLS), "uint8")
    padded[..., :rows, :cols] = values
    tiles = padded.reshape(*batch, down, 4, 32, across, 4)
    n = len(batch)
    order = (*range(n), n, n + 3, n + 2, n + 1, n + 4)
    return like(tiles.transpose(order).reshape(*batch, -1).copy(), scales)


def from_128x4(packed: Any, rows: int, cols: int) -> Any:
    """The scales [..., rows, cols] of to_128x4()."""
    values = _bytes(packed, "from_128x4")
    down, across = _tiles(rows, cols)
    size = down * across * _ROWS * _COLS
    if values.ndim < 1 or values.shape[-1] != size or rows < 1 or cols < 1:
        text = f"expected [..., {size}] for {rows} x {cols} scales"
        raise InvalidArgument(f"from_128x4: shape {values.shape}; {text}")
    batch, n = values.shape[:-1], values.ndim - 1
    tiles = values.reshape(*batch, down, across, 32, 4, 4)
    order = (*range(n), n, n + 3, n + 2, n + 1, n + 4)
    whole = tiles.transpose(order).reshape(*batch, down * _ROWS, across * _COLS)
    return like(whole[..., :rows, :cols].copy(), packed)


def _bytes(array: Any, name: str) -> Any:
    if getattr(array, "itemsize", 1) != 1:
        raise InvalidArgument(f"{name}: {array.dtype}; expected elements of one byte, as codes of ue8m0 or ue4m3")
    if hasattr(array, "untyped_storage"):
        array = array.view(getattr(__import__("torch"), "uint8"))
    elif hasattr(array, "view") and str(getattr(array, "dtype", "")) != "uint8":
        array = array.view("uint8")
    return to_numpy(array, "uint8")
