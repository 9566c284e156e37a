"""The simulator's driver, lib/sim/libcuda.so.1, called by ctypes: what is launched here takes milliseconds."""

from __future__ import annotations

import ctypes
import functools
import json
import os
import pathlib
from typing import Any

from .._errors import DeviceError, Error, InvalidArgument, OutOfMemory, ParseError, Unsupported

# Compute capability of each simulated device, by which the driver's ordinals are found.
CAPABILITIES = {"h200": 90, "b200": 100, "b300": 103}
_KINDS: dict[int, type[Error]] = {1: InvalidArgument, 2: OutOfMemory, 209: Unsupported, 218: ParseError,
                                  801: Unsupported, 912: InvalidArgument}
_MAJOR, _MINOR = 75, 76  # CUdevice_attribute


def library_path() -> pathlib.Path:
    """The file that TILEWRIGHT_SIM_LIBRARY names, else the one of this package."""
    named = os.environ.get("TILEWRIGHT_SIM_LIBRARY")
    path = pathlib.Path(named) if named else pathlib.Path(__file__).parent.parent / "lib/sim/libcuda.so.1"
    if not path.is_file():
        raise DeviceError(f"there is no simulator at {path}; install the wheel of this machine's system, or set "
                          "TILEWRIGHT_SIM_LIBRARY to lib/sim/libcuda.so.1 of a build")
    return path


class Driver:
    """Functions of the driver that raise instead of returning a status."""

    def __init__(self, path: pathlib.Path) -> None:
        try:
            self.library = ctypes.CDLL(str(path))
        except OSError as error:
            raise DeviceError(f"the simulator cannot be loaded: {error}") from None
        if not hasattr(self.library, "tilewright_simulator_configure"):
            raise DeviceError(f"{path} is another CUDA driver or an older simulator; set TILEWRIGHT_SIM_LIBRARY "
                              "to lib/sim/libcuda.so.1 of this version")
        for name in ("configure", "take_findings", "take_report", "take_messages"):
            getattr(self.library, f"tilewright_simulator_{name}").restype = ctypes.c_char_p
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: Any) -> None:
        """Errors have what the driver said, else the name of its status."""
        status = self.status(name, *arguments)
        if status != 0:
            raise self.error(name, status)

    def status(self, name: str, *arguments: Any) -> int:
        return int(getattr(self.library, name)(*arguments))

    def error(self, name: str, status: int, said: str = "") -> Error:
        text = ctypes.c_char_p()
        self.library.cuGetErrorName(status, ctypes.byref(text))
        said = said or self.text("take_messages").strip()
        word = (text.value or b"").decode()
        return _KINDS.get(status, DeviceError)(said.removeprefix("sim: ") or f"{name}: {word}")

    def text(self, name: str, *arguments: Any) -> str:
        value: bytes = getattr(self.library, f"tilewright_simulator_{name}")(*arguments)
        return value.decode(errors="replace")

    def configure(self, ordinal: int, settings: dict[str, Any]) -> dict[str, Any]:
        """What held before."""
        before: dict[str, Any] = json.loads(self.text("configure", ordinal, json.dumps(settings).encode()))
        if "error" in before:
            raise InvalidArgument(before["error"].removeprefix("settings: "))
        return before

    @functools.cached_property
    def ordinals(self) -> dict[int, int]:
        """Compute capability -> ordinal."""
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        return {self.attribute(i, _MAJOR) * 10 + self.attribute(i, _MINOR): i for i in range(count.value)}

    def attribute(self, ordinal: int, attribute: int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), attribute, ordinal)
        return value.value

    def ordinal(self, device: str) -> int:
        name = device.removeprefix("sim:")
        if name not in CAPABILITIES:
            raise InvalidArgument(f"device = {device!r}; expected one of {', '.join(CAPABILITIES)}")
        if CAPABILITIES[name] not in self.ordinals:
            raise DeviceError(f"this process shows no {name}: TILEWRIGHT_SIM_DEVICE = "
                              f"{os.environ.get('TILEWRIGHT_SIM_DEVICE', '')!r} leaves it out; unset it")
        return self.ordinals[CAPABILITIES[name]]


_NAME = "libcuda.so.1"


@functools.lru_cache(maxsize=None)
def _real_driver() -> ctypes.CDLL | None:
    """The loader matches a name against the names that loaded libraries bear, and the simulator bears the
    driver's. So whoever opens that by name later, as torch.cuda does, finds this one, which is loaded first."""
    try:
        return ctypes.CDLL(_NAME)
    except OSError:
        return None


@functools.lru_cache(maxsize=None)
def _simulator() -> Driver:
    return Driver(library_path())


def driver(stands_for_cuda: bool = False) -> Driver:
    """Loaded when it is first needed, and never unloaded.

    stands_for_cuda  libraries that open CUDA's driver by name from now on get the simulator
    """
    if not stands_for_cuda:
        _real_driver()
    return _simulator()
