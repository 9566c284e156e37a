"""tilewright.simulate()."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._errors import InvalidArgument
from ._memory import Memory, is_array, is_torch_tensor
from ._ptx import text_of
from ._report import Report
from ._simulator import Placed, Simulator


def simulate(kernel: Any, grid: Sequence[int] | int, block: Sequence[int] | int | None = None,
             args: Sequence[Any] = (), device: str = "b200", check: str = "all", *, entry: str | None = None,
             cluster: Sequence[int] = (), shared_bytes: int = 0, is_cooperative: bool = False, seed: int = 0,
             timing: str = "eager", exact_mma: bool = False) -> Report:
    """Runs a kernel once on a simulated GPU, in a context of its own.

    kernel   PTX text, a pathlib.Path to it, a compiled kernel of Triton, a kernel of numba.cuda with one
             signature, or object code of NVRTC
    args     one for each parameter: arrays of numpy or tensors of the CPU, which go in and come back; numbers;
             bytes for structs; tensor_map(). Of a kernel of Triton those that are no constexpr, of numba as it
             is called
    entry    the kernel's name, if the text has several

    A finding raises nothing: see Report.findings and Report.raise_if_failed(). After a fault arrays are as before.
    """
    ptx = text_of(kernel)
    metadata = getattr(kernel, "metadata", None)
    with Simulator(device, check=check, seed=seed, timing=timing, exact_mma=exact_mma) as simulator:
        if metadata is not None and hasattr(metadata, "num_warps"):
            from .triton import launch
            return launch(simulator, ptx, metadata, _three(grid), list(args))
        if hasattr(kernel, "inspect_asm"):
            args = [part for arg in args for part in _numba_parts(arg)]
        if block is None:
            raise InvalidArgument("simulate: block is missing; expected the threads of a CTA, 256 or (32, 8)")
        return simulator.launch(ptx, _tuple(grid), _tuple(block), args, kernel=entry, cluster=cluster,
                                shared_bytes=shared_bytes, is_cooperative=is_cooperative)


def _tuple(extents: Sequence[int] | int) -> tuple[int, ...]:
    return (extents,) if isinstance(extents, int) else tuple(extents)


def _three(extents: Sequence[int] | int) -> tuple[int, int, int]:
    x, y, z = (*_tuple(extents), 1, 1)[:3]
    return x, y, z


class _Data(Placed):
    """The address of an array."""

    def __init__(self, array: Any) -> None:
        self.arrays = (array,)

        def make(memory: Memory) -> bytes:
            return memory.device_address(array).to_bytes(8, "little")

        super().__init__(make)


def _numba_parts(arg: Any) -> list[Any]:
    """An array is several parameters there: two owners, elements, bytes of one, data, shape, strides in bytes."""
    if not is_array(arg):
        return [arg]
    size = arg.element_size() if is_torch_tensor(arg) else arg.itemsize
    strides = [stride * size for stride in arg.stride()] if is_torch_tensor(arg) else list(arg.strides)
    count = 1
    for extent in arg.shape:
        count *= extent
    return [0, 0, count, size, _Data(arg), *arg.shape, *strides]
