"""A layout as a value."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, Union

from .. import _library

# 8, (4, (2, 2)), None for a free mode.
IntTuple = Union[int, None, tuple["IntTuple", ...]]
# What divides and multiplies: a layout, a number, or a list with one of these for each mode.
Tiler = Union["Layout", int, None, tuple[Any, ...], list[Any], str]


class Drawing:
    """A picture as SVG, which a notebook shows."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: str | os.PathLike[str]) -> None:
        pathlib.Path(path).write_text(self.svg, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<Drawing: {len(self.svg)} characters of SVG>"

    def _repr_svg_(self) -> str:
        return self.svg


class Layout:
    """A map from coordinates to offsets: a text as CuTe prints it, the name of an atom, or shape and stride.

        Layout("(4,8):(8,1)"), Layout((4, 8), (8, 1)), Layout((4, 8)), Layout("Sw<3,4,3> o 0 o (8,64):(64,1)")

    Operators: a @ b is a after b, a / tiler the logical divide, a * tiler the logical product. a(2, 3) is an
    offset, a(2, None) the free mode at a coordinate.
    """

    def __init__(self, layout: Layout | str | IntTuple, stride: IntTuple = None) -> None:
        text = word_of(layout) if stride is None else f"{word_of(layout)}:{word_of(stride)}"
        self._facts = _evaluate("eval", text)
        self._source = text

    @classmethod
    def _of(cls, facts: dict[str, Any]) -> Layout:
        out = Layout.__new__(Layout)
        out._facts, out._source = facts, facts["text"]
        return out

    @property
    def shape(self) -> IntTuple:
        shape: IntTuple = _tuple(self._facts["shape"])
        return shape

    @property
    def stride(self) -> Any:
        """Numbers as the shape is nested; of a coordinate layout "1@0" and the like."""
        return _tuple(self._facts["stride"])

    @property
    def size(self) -> int:
        return int(self._facts["size"])

    @property
    def cosize(self) -> int | None:
        """One more than the largest offset; None for a coordinate layout."""
        cosize = self._facts.get("cosize")
        return None if cosize is None else int(cosize)

    @property
    def rank(self) -> int:
        return int(self._facts["rank"])

    @property
    def depth(self) -> int:
        return int(self._facts["depth"])

    @property
    def swizzle(self) -> str | None:
        """ "Sw<3,4,3>" """
        swizzle = self._facts["swizzle"]
        return None if swizzle is None else str(swizzle)

    def __str__(self) -> str:
        return str(self._facts["text"])

    def __repr__(self) -> str:
        return f"Layout({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        return iter(self.offsets())

    def offsets(self, begin: int = 0, count: int | None = None) -> list[int]:
        """Of linear coordinates, as they count up with the first mode fastest."""
        count = max(self.size - begin if count is None else count, 0)
        out = (ctypes.c_int64 * count)()
        _library.call("tw_layout_values", str(self).encode(), ctypes.c_int64(begin), ctypes.c_size_t(count), out)
        return list(out)

    def __call__(self, *coordinate: IntTuple) -> int | Layout:
        """The offset of a coordinate; where it has None, the layout of those modes."""
        at = coordinate[0] if len(coordinate) == 1 else coordinate
        return self.slice(at) if "_" in word_of(at) else self.offset(at)

    def offset(self, coordinate: IntTuple) -> int:
        return int(_evaluate("offset", str(self), word_of(coordinate))["value"])

    def __matmul__(self, other: Tiler) -> Layout:
        return self.composition(other)

    def __truediv__(self, tiler: Tiler) -> Layout:
        return self.logical_divide(tiler)

    def __mul__(self, tiler: Tiler) -> Layout:
        return self.logical_product(tiler)

    def _apply(self, operation: str, *operands: Any) -> Layout:
        return Layout._of(_evaluate(operation, str(self), *map(word_of, operands)))

    def slice(self, coordinate: IntTuple) -> Layout:
        """The free modes at a coordinate, and where they begin."""
        return self._apply("slice", coordinate)

    def composition(self, tiler: Tiler) -> Layout:
        """R(i) = self(tiler(i)); by mode for a list."""
        return self._apply("composition", tiler)

    def complement(self, bound: int) -> Layout:
        """The offsets below the bound that this layout leaves out."""
        return self._apply("complement", bound)

    def coalesce(self, profile: IntTuple = None) -> Layout:
        """The simplest layout with the same offsets, by mode if a profile is given."""
        return self._apply("coalesce") if profile is None else self._apply("coalesce_by", profile)

    def filter(self) -> Layout:
        """Without what visits no new offset."""
        return self._apply("filter")

    def flatten(self) -> Layout:
        return self._apply("flatten")

    def select(self, *modes: int) -> Layout:
        return self._apply("select", modes[0] if len(modes) == 1 else modes)

    def group(self, begin: int, end: int) -> Layout:
        """Modes begin to end - 1 as one."""
        return self._apply("group", begin, end)

    def append(self, other: Layout) -> Layout:
        return self._apply("append", other)

    def prepend(self, other: Layout) -> Layout:
        return self._apply("prepend", other)

    def with_shape(self, shape: IntTuple) -> Layout:
        return self._apply("with_shape", shape)

    def left_inverse(self) -> Layout:
        """R(self(i)) = i"""
        return self._apply("left_inverse")

    def right_inverse(self) -> Layout:
        """self(R(i)) = i"""
        return self._apply("right_inverse")

    def logical_divide(self, tiler: Tiler) -> Layout:
        """((tile, rest) for each mode)"""
        return self._apply("logical_divide", tiler)

    def zipped_divide(self, tiler: Tiler) -> Layout:
        """((tiles), (rests))"""
        return self._apply("zipped_divide", tiler)

    def tiled_divide(self, tiler: Tiler) -> Layout:
        """((tiles), rest, rest, ...)"""
        return self._apply("tiled_divide", tiler)

    def flat_divide(self, tiler: Tiler) -> Layout:
        """(tile, tile, ..., rest, rest, ...)"""
        return self._apply("flat_divide", tiler)

    def logical_product(self, tiler: Tiler) -> Layout:
        """(self, repetition)"""
        return self._apply("logical_product", tiler)

    def zipped_product(self, tiler: Tiler) -> Layout:
        return self._apply("zipped_product", tiler)

    def tiled_product(self, tiler: Tiler) -> Layout:
        return self._apply("tiled_product", tiler)

    def flat_product(self, tiler: Tiler) -> Layout:
        return self._apply("flat_product", tiler)

    def blocked_product(self, other: Layout) -> Layout:
        """Blocks of this layout side by side."""
        return self._apply("blocked_product", other)

    def raked_product(self, other: Layout) -> Layout:
        """Blocks of this layout interleaved."""
        return self._apply("raked_product", other)

    def tile_to_shape(self, shape: IntTuple, order: IntTuple) -> Layout:
        """Copies over a shape, the mode of order 0 first."""
        return self._apply("tile_to_shape", shape, order)

    def local_tile(self, tiler: Tiler, coordinate: IntTuple) -> Layout:
        return self._apply("local_tile", tiler, coordinate)

    def local_partition(self, threads: Layout, index: int) -> Layout:
        """What one thread holds."""
        return self._apply("local_partition", threads, index)

    def upcast(self, elements: int) -> Layout:
        return self._apply("upcast", elements)

    def downcast(self, elements: int) -> Layout:
        return self._apply("downcast", elements)

    def recast(self, old_bits: int, new_bits: int) -> Layout:
        """The same bytes as other elements."""
        return self._apply("recast", old_bits, new_bits)

    def max_common_vector(self, other: Layout) -> int:
        """Elements that are contiguous in both."""
        return int(_evaluate("max_common_vector", str(self), str(other))["value"])

    def draw(self, drawn_as: str | None = None, *, tile: tuple[int, int] | None = None, element_bits: int = 0,
             rows: tuple[int, int] | int | None = None, columns: tuple[int, int] | int | None = None) -> Drawing:
        """drawn_as   "offsets", "tv" (thread and value to an element of a `tile`), "memory" or "tmem"; without it
                      offsets, and for an atom what it means
        element_bits  4, 8, 16 or 32; for offsets: coloured by bank
        rows, columns a part: (begin, end) or how many"""
        extents = None if tile is None else (ctypes.c_int64 * 2)(*tile)
        window = (ctypes.c_int32 * 4)(*_range(rows), *_range(columns))
        kind = None if drawn_as is None else drawn_as.encode()
        return Drawing(_library.text("tw_layout_draw", self._source.encode(), kind, extents, element_bits, window))

    def _repr_svg_(self) -> str:
        return self.draw().svg


def identity(shape: IntTuple) -> Layout:
    """The layout of coordinates."""
    return Layout._of(_evaluate("identity", word_of(shape)))


def ordered(shape: IntTuple, order: IntTuple) -> Layout:
    """Compact, modes contiguous in the given order."""
    return Layout._of(_evaluate("ordered", word_of(shape), word_of(order)))


def word_of(value: Any) -> str:
    """An operand as text: (4, None) is "(4,_)", a list a tiler, "<4,8:2>"."""
    if isinstance(value, (str, Layout)):
        return str(value)
    if value is None:
        return "_"
    if isinstance(value, list):
        return f"<{','.join(map(word_of, value))}>"
    if isinstance(value, tuple):
        return f"({','.join(map(word_of, value))})"
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise TypeError(f"a {type(value).__name__} in a layout; expected numbers, tuples of them, layouts or text")


def _evaluate(operation: str, *operands: str) -> dict[str, Any]:
    words = (ctypes.c_char_p * len(operands))(*(word.encode() for word in operands))
    result: dict[str, Any] = json.loads(
        _library.text("tw_layout_evaluate", operation.encode(), words, ctypes.c_size_t(len(operands))))
    return result




def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def _range(part: Sequence[int] | int | None) -> tuple[int, int]:
    if part is None:
        return 0, -1
    begin, end = (0, part) if isinstance(part, int) else part
    return begin, end
