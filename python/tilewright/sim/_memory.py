"""Arrays of the host in simulated memory: the whole storage goes in, and comes back after the launch."""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._errors import InvalidArgument

if TYPE_CHECKING:
    from ._driver import Driver

# (reference to the array, first byte, bytes) of what uninitialised() has marked and no launch has taken yet.
_marked: list[tuple[weakref.ref[Any], int, int]] = []


@dataclass(frozen=True)
class Span:
    """Bytes of the host; `owner` keeps them alive."""

    begin: int
    size: int
    owner: Any
    is_writable: bool = True

    @property
    def end(self) -> int:
        return self.begin + self.size


def is_array(value: Any) -> bool:
    return is_torch_tensor(value) or (hasattr(value, "__array_interface__") and getattr(value, "shape", ()) != ())


def is_torch_tensor(value: Any) -> bool:
    return hasattr(value, "untyped_storage") and hasattr(value, "data_ptr")


def address_of(array: Any) -> int:
    """Of the first element."""
    return int(array.data_ptr() if is_torch_tensor(array) else array.__array_interface__["data"][0])


def _bounds(array: Any) -> tuple[int, int]:
    """First byte and end of an array with numpy's interface, whatever its strides."""
    begin = end = address_of(array)
    if 0 in array.shape:
        return begin, begin
    for extent, stride in zip(array.shape, array.strides):
        begin += min(0, (extent - 1) * stride)
        end += max(0, (extent - 1) * stride)
    return begin, end + array.itemsize


def own_span(array: Any) -> Span:
    """The bytes from an array's first element to its last."""
    if is_torch_tensor(array):
        last = sum((extent - 1) * stride for extent, stride in zip(array.shape, array.stride()))
        size = 0 if 0 in tuple(array.shape) else (last + 1) * array.element_size()
        return Span(array.data_ptr(), size, array)
    begin, end = _bounds(array)
    return Span(begin, end - begin, array, not array.__array_interface__["data"][1])


def storage_of(array: Any) -> Span:
    """All of the memory that an array is a view of."""
    if is_torch_tensor(array):
        if array.device.type != "cpu":
            raise InvalidArgument(f"a tensor on {array.device}; the simulator takes those of the CPU")
        storage = array.untyped_storage()
        return Span(storage.data_ptr(), storage.nbytes(), array)
    root = array
    while isinstance(getattr(root, "base", None), type(array)) and hasattr(root.base, "__array_interface__"):
        root = root.base
    begin, end = _bounds(root)
    return Span(begin, end - begin, root, not array.__array_interface__["data"][1])


def uninitialised(array: Any) -> Any:
    """Marks an array whose contents mean nothing until a kernel writes them, such as one made by `empty`: at its
    next launch the init check speaks of what the kernel reads of it. Returns the array."""
    span = own_span(array)
    _marked.append((weakref.ref(array), span.begin, span.size))
    return array


def _take_marked(spans: list[Span]) -> list[tuple[int, int]]:
    """(begin, end) of marked arrays inside of the spans; they are not marked any more."""
    _marked[:] = [mark for mark in _marked if mark[0]() is not None]
    taken = [mark for mark in _marked if any(s.begin <= mark[1] and mark[1] + mark[2] <= s.end for s in spans)]
    _marked[:] = [mark for mark in _marked if not any(mark is each for each in taken)]
    return sorted((begin, begin + size) for _, begin, size in taken)


class Memory:
    """Arrays of one launch on the device. Two views of one storage share their bytes there as well."""

    def __init__(self, driver: Driver, arrays: list[Any]) -> None:
        self._driver = driver
        self._addresses: list[tuple[Span, int]] = []
        self._scratch: list[int] = []
        spans = _joined([storage_of(array) for array in arrays])
        holes = _take_marked(spans)
        for span in spans:
            device = self._allocate(span.size)
            self._addresses.append((span, device))
            for begin, end in _without(span, holes):
                driver.call("cuMemcpyHtoD_v2", ctypes.c_uint64(device + begin - span.begin),
                            ctypes.c_void_p(begin), ctypes.c_size_t(end - begin))

    def _allocate(self, size: int) -> int:
        address = ctypes.c_uint64()
        self._driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        return address.value

    def scratch(self, size: int) -> int:
        """Bytes that nothing has written."""
        self._scratch.append(self._allocate(size))
        return self._scratch[-1]

    def device_address(self, array: Any) -> int:
        host = address_of(array)
        for span, device in self._addresses:
            if span.begin <= host <= span.end:
                return device + host - span.begin
        raise InvalidArgument("an array that is none of the launch's arguments")

    def copy_back(self) -> None:
        for span, device in self._addresses:
            if span.is_writable and span.size > 0:
                self._driver.call("cuMemcpyDtoH_v2", ctypes.c_void_p(span.begin), ctypes.c_uint64(device),
                                  ctypes.c_size_t(span.size))

    def free(self) -> None:
        """Of a context that is not broken."""
        for address in [device for _, device in self._addresses] + self._scratch:
            self._driver.call("cuMemFree_v2", ctypes.c_uint64(address))


def _joined(spans: list[Span]) -> list[Span]:
    """Spans that overlap are one."""
    out: list[Span] = []
    for span in sorted(spans, key=lambda s: s.begin):
        last = out[-1] if out else None
        if last is None or span.begin >= last.end:
            out.append(span)
        elif span.end > last.end or (span.is_writable and not last.is_writable):
            out[-1] = Span(last.begin, max(last.end, span.end) - last.begin, (last.owner, span.owner),
                           last.is_writable or span.is_writable)
    return out


def _without(span: Span, holes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is left of a span."""
    out, at = [], span.begin
    for begin, end in holes:
        if span.begin <= begin and end <= span.end:
            out.append((at, begin))
            at = max(at, end)
    return [(begin, end) for begin, end in [*out, (at, span.end)] if begin < end]
