"""A context on a simulated device, and launches in it."""

from __future__ import annotations

import ctypes
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._errors import Error, InvalidArgument
from ._driver import Driver, driver
from ._memory import Memory, is_array
from ._ptx import Param, chosen_entry, packed
from ._report import Finding, Report

# The settings of a device are those of whoever launches: one at a time.
_lock = threading.RLock()

_MAX_DYNAMIC_SHARED, _NON_PORTABLE_CLUSTER = 8, 14  # CUfunction_attribute
_COOPERATIVE, _CLUSTER, _DEPENDENT = 2, 4, 6        # CUlaunchAttributeID


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint32 * 16)]


class _Config(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared_bytes", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("num_attributes", ctypes.c_uint)]


class Placed:
    """An argument that is known once the arrays have addresses: `make` gets the launch's memory."""

    def __init__(self, make: Callable[[Memory], bytes]) -> None:
        self.make = make


class Simulator:
    """A context of its own on a simulated device. Whatever breaks it, the next launch has a fresh one.

    device     "h200", "b200", "b300"
    check      what is checked, "all,-race"; `default` are mem, init and sync
    seed       another order of warps and CTAs
    timing     when copies and MMAs take effect: "eager", "late", "random"
    exact_mma  exact sums instead of the tensor cores'
    """

    def __init__(self, device: str = "b200", *, check: str = "all", seed: int = 0, timing: str = "eager",
                 exact_mma: bool = False) -> None:
        self.device = device.removeprefix("sim:")
        self.settings = {"check": check, "seed": seed, "async": timing, "exact_mma": exact_mma}
        self._driver: Driver = driver()
        self._ordinal = self._driver.ordinal(device)
        self._context: ctypes.c_void_p | None = None
        self._modules: dict[str, ctypes.c_void_p] = {}
        with self._configured():  # wrong settings are refused here
            pass

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives its memory and modules back."""
        with _lock:
            if self._context is not None:
                self._driver.call("cuCtxDestroy_v2", self._context)
            self._context, self._modules = None, {}

    @contextmanager
    def _configured(self) -> Iterator[None]:
        settings = {**self.settings, "report_only": True, "report": True, "quiet": True}
        with _lock:
            before = self._driver.configure(self._ordinal, settings)
            try:
                yield
            finally:
                self._driver.configure(self._ordinal, before)

    @contextmanager
    def _current(self) -> Iterator[None]:
        if self._context is None:
            self._context = ctypes.c_void_p()
            self._driver.call("cuCtxCreate_v2", ctypes.byref(self._context), 0, self._ordinal)
        else:
            self._driver.call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self._driver.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def launch(self, ptx: str, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], *,
               kernel: str | None = None, cluster: Sequence[int] = (), shared_bytes: int = 0,
               is_cooperative: bool = False, is_dependent: bool = False) -> Report:
        """Runs a kernel of a PTX text. Arrays among `args` are copied in before and, if they can be written, back
        after the launch, unless it stopped."""
        name, params = chosen_entry(ptx, kernel)
        if len(args) != len(params):
            listed = ", ".join(f".{param.word} {param.name}" for param in params)
            raise InvalidArgument(f"{name}: {len(args)} arguments for {len(params)} parameters ({listed})")
        grid3, block3 = _extents(grid, "grid"), _extents(block, "block")
        attributes = _attributes(cluster, is_cooperative, is_dependent)
        with self._configured(), self._current():
            self._forget()
            function = self._function(ptx, name)
            memory = Memory(self._driver, _arrays(args))
            values = [self._value(arg, param, f"{name}: {param.name}", memory) for arg, param in zip(args, params)]
            config = _Config((ctypes.c_uint * 3)(*grid3), (ctypes.c_uint * 3)(*block3), shared_bytes, None,
                             ctypes.cast(attributes, ctypes.c_void_p), len(attributes))
            self._prepare(function, shared_bytes, bool(cluster))
            fault = self._run(function, config, values)
            if not fault:
                memory.copy_back()
                memory.free()
            report = self._report(name, grid3, block3, fault)
        if fault:
            self.close()
        return report

    def function_attributes(self, ptx: str, name: str, attributes: Sequence[int]) -> list[int]:
        """CUfunction_attribute of a kernel."""
        out = []
        with self._configured(), self._current():
            function, value = self._function(ptx, name), ctypes.c_int()
            for attribute in attributes:
                self._driver.call("cuFuncGetAttribute", ctypes.byref(value), attribute, function)
                out.append(value.value)
        return out

    def device_attribute(self, attribute: int) -> int:
        """CUdevice_attribute."""
        return self._driver.attribute(self._ordinal, attribute)

    def _value(self, arg: Any, param: Param, at: str, memory: Memory) -> Any:
        if isinstance(arg, Placed):
            raw = arg.make(memory)
        elif is_array(arg):
            if param.size != 8:
                raise TypeError(f"{at}: an array for a parameter of type .{param.word}; expected a number")
            raw = memory.device_address(arg).to_bytes(8, "little")
        else:
            raw = packed(arg, param, at)
        return ctypes.create_string_buffer(raw, max(len(raw), 1))

    def _forget(self) -> None:
        for name in ("take_findings", "take_report"):
            self._driver.text(name, self._ordinal)
        self._driver.text("take_messages")

    def _function(self, ptx: str, name: str) -> ctypes.c_void_p:
        function = ctypes.c_void_p()
        self._driver.call("cuModuleGetFunction", ctypes.byref(function), self._module(ptx), name.encode())
        return function

    def _module(self, ptx: str) -> ctypes.c_void_p:
        if ptx not in self._modules:
            module, log = ctypes.c_void_p(), ctypes.create_string_buffer(8192)
            keys = (ctypes.c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER and its size
            values = (ctypes.c_void_p * 2)(ctypes.addressof(log), ctypes.sizeof(log))
            status = self._driver.status(
                "cuModuleLoadDataEx", ctypes.byref(module), ptx.encode() + b"\0", 2, keys, values)
            if status != 0:
                raise self._driver.error("cuModuleLoadDataEx", status, log.value.decode(errors="replace").strip())
            self._modules[ptx] = module
        return self._modules[ptx]

    def _prepare(self, function: ctypes.c_void_p, shared_bytes: int, has_cluster: bool) -> None:
        if shared_bytes > 48 << 10:  # if that is too much, the launch says so
            self._driver.status("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, shared_bytes)
        if has_cluster:
            self._driver.call("cuFuncSetAttribute", function, _NON_PORTABLE_CLUSTER, 1)

    def _run(self, function: ctypes.c_void_p, config: _Config, values: list[Any]) -> str:
        """Why it stopped; "" if it did not. Errors: a launch that the device refuses."""
        params = (ctypes.c_void_p * max(len(values), 1))(*map(ctypes.addressof, values))
        status = self._driver.status("cuLaunchKernelEx", ctypes.byref(config), function, params, None)
        if status != 0:
            raise self._refused(config, status)
        status = self._driver.status("cuCtxSynchronize")
        return str(self._driver.error("cuCtxSynchronize", status)) if status != 0 else ""

    def _refused(self, config: _Config, status: int) -> Error:
        """A launch that could not begin: the driver, like the device's, gives a status and no reason."""
        attributes = ctypes.cast(config.attributes, ctypes.POINTER(_Attribute))[:config.num_attributes]
        clusters = [f", clusters of {list(each.value[:3])}" for each in attributes if each.id == _CLUSTER]
        return self._driver.error(
            f"the {self.device} refuses a grid of {list(config.grid)} CTAs of {list(config.block)} threads with "
            f"{config.shared_bytes} bytes of dynamic shared memory{''.join(clusters)}; a CTA has at most 1024 "
            "threads, or as many as the kernel says, and clusters divide the grid", status)

    def _report(self, name: str, grid: tuple[int, ...], block: tuple[int, ...], fault: str) -> Report:
        findings = [Finding.of(each) for each in json.loads(self._driver.text("take_findings", self._ordinal))]
        counted = json.loads(self._driver.text("take_report", self._ordinal) or "{}").get("kernels", [])
        return Report(self.device, name, grid, block, findings, fault, counted[0] if counted else {})


def _arrays(args: Sequence[Any]) -> list[Any]:
    return [arg for arg in args if is_array(arg)] + [
        array for arg in args if isinstance(arg, Placed) for array in getattr(arg, "arrays", ())]


def _extents(extents: Sequence[int] | int, what: str) -> tuple[int, int, int]:
    given = (extents,) if isinstance(extents, int) else tuple(extents)
    if not 1 <= len(given) <= 3 or any(extent < 1 for extent in given):
        raise InvalidArgument(f"{what} = {extents}; expected one to three whole numbers above 0")
    x, y, z = (*given, 1, 1)[:3]
    return int(x), int(y), int(z)


def _attributes(cluster: Sequence[int], is_cooperative: bool, is_dependent: bool) -> ctypes.Array[_Attribute]:
    listed = []
    if cluster:
        listed.append(_Attribute(_CLUSTER, 0, (ctypes.c_uint32 * 16)(*_extents(cluster, "cluster"))))
    if is_cooperative:
        listed.append(_Attribute(_COOPERATIVE, 0, (ctypes.c_uint32 * 16)(1)))
    if is_dependent:
        listed.append(_Attribute(_DEPENDENT, 0, (ctypes.c_uint32 * 16)(1)))
    return (_Attribute * len(listed))(*listed)

