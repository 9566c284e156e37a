"""Triton on the simulator: a driver that takes ordinary `kernel[grid](cpu_tensors, ...)` launches.

    with tilewright.sim.triton.driver("b200", check="all") as active:
        add[(4,)](x, y, out, n, BLOCK=256)
    active.reports[0].by_line()

Nothing of the kernel or of its caller changes but where the tensors lie: on the CPU.
"""

from __future__ import annotations

import importlib
import os
import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._errors import Unsupported
from ._driver import CAPABILITIES
from ._memory import is_array
from ._report import Report
from ._simulator import Placed, Simulator
from ._tensor_map import TensorMap

# What a driver is asked for is no public interface of Triton: each version is tried before it is listed here.
SUPPORTED = ("3.6", "3.9")
_INTEGERS = {"i1": "<b", "i8": "<b", "i16": "<h", "i32": "<i", "i64": "<q", "u1": "<B", "u8": "<B", "u16": "<H",
             "u32": "<I", "u64": "<Q"}
_FLOATS = {"fp16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d"}
# CUtensorMapDataType by the type that descriptors made on the device have.
_DEVICE_TO_HOST_TYPES, _TF32 = {8: 10, 9: 8, 10: 9}, 11
_SHARED_BYTES, _SMS, _WARP, _CLOCK, _MEMORY_CLOCK, _BUS = 97, 16, 10, 13, 36, 37  # CUdevice_attribute
_THREADS, _REGISTERS = 0, 4                                                       # CUfunction_attribute


class _Scratch(Placed):
    """Memory for a launch alone; nothing if no bytes are wanted."""

    def __init__(self, size: int) -> None:
        super().__init__(lambda memory: (memory.scratch(size) if size else 0).to_bytes(8, "little"))


def launch(simulator: Simulator, ptx: str, metadata: Any, grid: tuple[int, int, int],
           args: Sequence[Any]) -> Report:
    """`args` are those of the entry but for the two pointers to scratch memory that stand behind them."""
    ctas = getattr(metadata, "num_ctas", 1)
    count = grid[0] * grid[1] * grid[2] * ctas
    scratch = [_Scratch(count * getattr(metadata, f"{kind}_scratch_size", 0)) for kind in ("global", "profile")]
    return simulator.launch(
        ptx, (grid[0] * ctas, *grid[1:]), (32 * metadata.num_warps,), [*args, *scratch], kernel=metadata.name,
        cluster=(ctas,) if ctas > 1 else (), shared_bytes=metadata.shared,
        is_cooperative=bool(getattr(metadata, "launch_cooperative_grid", False)),
        is_dependent=bool(getattr(metadata, "launch_pdl", False)))


def _bf16(value: float) -> bytes:
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 if value == value else 0x7FFF)


def _parameters(kind: Any, arg: Any, maps: Iterator[Any]) -> list[Any]:
    """The entry's parameters for one argument of the kernel."""
    if isinstance(kind, tuple):
        return [part for k, a in zip(kind, arg) for part in _parameters(k, a, maps)]
    if kind == "constexpr":
        return []
    if kind.startswith("tensordesc"):
        return _descriptor(arg, next(maps, None))
    if kind[0] == "*":
        return [arg if is_array(arg) else struct.pack("<Q", arg or 0)]
    if kind == "bf16":
        return [_bf16(arg)]
    return [struct.pack(_FLOATS.get(kind) or _INTEGERS[kind], arg)]


def _descriptor(arg: Any, meta: dict[str, Any] | None) -> list[Any]:
    """A TensorDescriptor of the host: with its map, or in parts where the kernel does without one."""
    sizes = [struct.pack("<i", extent) for extent in arg.shape] + [struct.pack("<q", s) for s in arg.strides]
    is_nan = arg.padding == "nan"
    rounds = getattr(arg, "round_f32_to_tf32", None)  # there since 3.7
    if meta is None:
        flags = [is_nan] if rounds is None else [is_nan, rounds]
        return [arg.base, *(struct.pack("<q", value) for value in (*arg.shape, *arg.strides)),
                *(struct.pack("<b", flag) for flag in flags), *sizes]
    if meta.get("is_im2col"):
        raise Unsupported("an im2col descriptor of the host; make it on the device, or use a tiled one")
    shape = list(arg.shape)
    if meta["fp4_padded"]:
        shape[-1] *= 2
    strides = [stride * meta["elem_size"] for stride in arg.strides]
    word: Any = _TF32 if rounds else _DEVICE_TO_HOST_TYPES.get(meta["elem_type"], meta["elem_type"])
    return [TensorMap(arg.base, word, shape[::-1], strides[-2::-1], list(meta["block_size"])[::-1],
                      meta["swizzle"], int(is_nan)), *sizes]


class _Utils:
    """What Triton asks of a driver's library."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator

    def load_binary(self, name: str, ptx: bytes, shared: int, device: int) -> tuple[Any, Any, int, int, int]:
        text = ptx.rstrip(b"\0").decode()
        threads, registers = self._simulator.function_attributes(text, name, (_THREADS, _REGISTERS))
        return text, text, registers, 0, threads

    def get_device_properties(self, device: int) -> dict[str, Any]:
        attribute = self._simulator.device_attribute
        return {"max_shared_mem": attribute(_SHARED_BYTES), "multiprocessor_count": attribute(_SMS),
                "max_num_regs": 65536, "warpSize": attribute(_WARP), "sm_clock_rate": attribute(_CLOCK),
                "mem_clock_rate": attribute(_MEMORY_CLOCK), "mem_bus_width": attribute(_BUS)}

    def set_printf_fifo_size(self, size: int) -> None:
        pass  # printf goes to standard output at once


class _Launcher:
    """Made once for a compiled kernel, which outlives a driver: it asks for the active one."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self.kinds, self.metadata = list(source.signature.values()), metadata

    def __call__(self, x: int, y: int, z: int, stream: int, ptx: str, packed: Any, launch_metadata: Any,
                 enter: Callable[[Any], None] | None, leave: Callable[[Any], None] | None, *args: Any) -> None:
        config = _config()
        if x * y * z == 0:
            return
        if enter is not None:
            enter(launch_metadata)
        maps = iter(getattr(self.metadata, "tensordesc_meta", None) or ())
        given = [part for kind, arg in zip(self.kinds, args) for part in _parameters(kind, arg, maps)]
        report = launch(config.active.simulator, ptx, self.metadata, (x, y, z), given)
        config.active.reports.append(report)
        if leave is not None:
            leave(launch_metadata)
        report.raise_if_failed()


def _no_benchmarks(*_: Any, **__: Any) -> Any:
    raise Unsupported("times of the simulator say nothing about a GPU; give @triton.autotune one configuration")


def _make_driver(simulator: Simulator) -> Any:
    base: Any = importlib.import_module("triton.backends.driver").DriverBase
    target = importlib.import_module("triton.backends.compiler").GPUTarget
    capability = CAPABILITIES[simulator.device]

    class SimulatedDriver(base):  # type: ignore[misc]
        """`reports` has one for each launch."""

        def __init__(self) -> None:
            super().__init__()
            self.reports: list[Report] = []
            self.simulator = simulator
            self.utils = _Utils(simulator)
            self.launcher_cls = _Launcher

        @classmethod
        def is_active(cls) -> bool:
            return True

        def get_current_target(self) -> Any:
            return target("cuda", capability, 32)

        # Kernels are kept by device: those of two simulated ones are apart.
        def get_current_device(self) -> int:
            return capability

        def set_current_device(self, device: int) -> None:
            pass

        def get_current_stream(self, device: int | None = None) -> int:
            return 0

        def get_active_torch_device(self) -> Any:
            return importlib.import_module("torch").device("cpu")

        def map_python_to_cpp_type(self, kind: str) -> str:
            return str(importlib.import_module("triton.backends.nvidia.driver").ty_to_cpp(kind))

        def get_benchmarker(self) -> Any:
            return _no_benchmarks

        def get_device_interface(self) -> Any:
            _no_benchmarks()

    return SimulatedDriver()


def _config() -> Any:
    """Which driver is active."""
    return importlib.import_module("triton.runtime").driver


def _check_version() -> None:
    version = str(importlib.import_module("triton").__version__)
    if not any(version.startswith(f"{known}.") for known in SUPPORTED):
        raise Unsupported(f"Triton {version} was not tried with the simulated driver; it knows "
                          f"{', '.join(SUPPORTED)}: pip install 'triton=={SUPPORTED[-1]}.*'")


def _hand_over_ptx(backend: Any = None, stages: dict[str, Any] | None = None, *_: Any) -> tuple[str, str]:
    """The last stage gives the text as it is; ptxas is not run. Newer versions ask without arguments for what such
    a hook adds to their key, and its hash."""
    if stages is not None:
        stages["cubin"] = lambda ptx, metadata: ptx.encode() + b"\0"
    return "tilewright-ptx", "0"


def _cache_folder() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    try:
        folder = os.path.join(base, "tilewright", "triton")
        os.makedirs(folder, exist_ok=True)
        return folder
    except OSError:
        return tempfile.mkdtemp(prefix="tilewright-triton-")


@contextmanager
def driver(device: str = "b200", *, check: str = "all", seed: int = 0, timing: str = "eager",
           exact_mma: bool = False) -> Iterator[Any]:
    """Makes the simulator Triton's driver. A launch with findings raises CheckFailed.

    Compiled kernels are kept in a cache folder of their own: Triton's key does not tell PTX from machine code.
    Errors   Unsupported for a version of Triton that is not in SUPPORTED"""
    _check_version()
    knobs = importlib.import_module("triton.knobs")
    settings: dict[str, Any] = {"check": check, "seed": seed, "timing": timing, "exact_mma": exact_mma}
    with Simulator(device, **settings) as simulator, knobs.cache.scope(), knobs.runtime.scope():
        config = _config()
        before = config._active
        knobs.cache.dir = _cache_folder()
        knobs.runtime.add_stages_inspection_hook = _hand_over_ptx
        active = _make_driver(simulator)
        config.set_active(active)
        try:
            yield active
        finally:
            config._active = before


__all__ = ["SUPPORTED", "driver", "launch"]
