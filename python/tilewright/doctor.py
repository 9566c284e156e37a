"""`tilewright doctor`: what is here, what is missing, and what to do about it. Imports none of what it names."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import pathlib
import platform
import sys
from dataclasses import asdict, dataclass

from . import _core
from ._errors import Error

# With the oldest version that the package works with, where it matters.
PACKAGES = {"torch": "2.10", "triton": "3.6", "transformers": "5.17", "numpy": "", "ml_dtypes": "", "cupy": "",
            "jax": ""}


@dataclass(frozen=True)
class Finding:
    """A line of the report. What is not needed for anything is never wrong."""

    what: str
    value: str
    is_good: bool = True
    advice: str = ""


def _library() -> Finding:
    path = _core.library_path()
    others = [p for p in _core.loaded_libraries() if p != path]
    value = f"{_core.__version__}, commit {_core.COMMIT}, {path}"
    if others:
        return Finding("library", value, False, f"another copy is loaded from {', '.join(others)}: remove one")
    return Finding("library", value)


def _has_avx2() -> bool:
    try:
        flags = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return True
    return platform.machine() != "x86_64" or " avx2" in flags


def _open(spec: str) -> tuple[str, str]:
    """The description of a device, or why there is none."""
    try:
        with _core.Device(spec) as device:
            return device.description, ""
    except Error as error:
        return "", str(error)


def _simulator() -> Finding:
    if not _has_avx2():
        return Finding("simulator", "this processor has no AVX2", False, "the simulator is compiled for AVX2")
    found, problem = _open("sim:h200")
    return Finding("simulator", found or problem, bool(found), "" if found else "install the package again")


def _gpu() -> Finding:
    found, problem = _open("cuda:0")
    return Finding("GPU", found or f"none that can be used: {problem}")


def _kernels() -> Finding:
    try:
        with _core.Device("sim:h200") as device:
            _core.RmsNorm(device, rows=1, cols=128)
    except Error as error:
        return Finding("kernels", str(error), False, "build with TILEWRIGHT_KERNELS=ON")
    return Finding("kernels", "in the library")


def _package(name: str, wanted: str) -> Finding:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, "not installed; nothing here needs it")
    old = bool(wanted) and tuple(map(_number, version.split("."))) < tuple(map(_number, wanted.split(".")))
    return Finding(name, version, not old, f"tilewright.{name} is for {wanted} and later" if old else "")


def _number(text: str) -> int:
    digits = "".join(c for c in text if c.isdigit())
    return int(digits) if digits else 0


def findings() -> list[Finding]:
    """All that is worth knowing before a question is asked."""
    return [Finding("Python", f"{platform.python_version()}, {sys.executable}"), _library(), _gpu(), _simulator(),
            _kernels(), *(_package(name, wanted) for name, wanted in PACKAGES.items())]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tilewright doctor", description=__doc__)
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    found = findings()
    if parser.parse_args(arguments).json:
        print(json.dumps([asdict(finding) for finding in found], indent=1))
    else:
        for finding in found:
            print(f"{'ok ' if finding.is_good else 'BAD'}  {finding.what:<13} {finding.value}")
            if finding.advice:
                print(f"{'':<19}{finding.advice}")
    return 0 if all(finding.is_good for finding in found) else 1
