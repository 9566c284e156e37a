"""DeepGEMM's tests/test_attention.py: its cases, each with the reason why it cannot be done yet."""

from __future__ import annotations

import importlib
import pathlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from tilewright import compat
from tilewright.compat import deep_gemm

from ._case import Case, import_from, meta

TESTS = ("prefill", "paged")
_FUNCTIONS = {"prefill": "fp8_fp4_mqa_logits", "paged": "fp8_fp4_paged_mqa_logits"}


def collect(folder: pathlib.Path, tests: list[str], through: str) -> Iterator[Case]:
    """The file's cases: what it hands to the function that picks some of them."""
    import_from(str(folder / "tests" if (folder / "tests").is_dir() else folder))
    compat.install("deep_gemm")
    # Helpers of the suite are modules of the peer's package, and look for its extension.
    sys.modules["deep_gemm"].__path__ = [str(folder / "deep_gemm")]
    sys.modules["deep_gemm._C"] = _Extension("deep_gemm._C")
    suite: Any = importlib.import_module("test_attention")
    found: dict[str, list[Any]] = {}

    def keep(name: str, cases: list[Any]) -> list[Any]:
        found[name] = cases
        return []

    suite.sample_mqa_cases = keep
    suite.test_mqa_logits()
    suite.test_paged_mqa_logits()
    for name in tests or TESTS:
        q = meta(1, 64, 128, dtype=torch.float8_e4m3fn)
        reasons = deep_gemm.can_implement(_FUNCTIONS[name], q=(q, None))
        for place, values in enumerate(found[name]):
            parameters = {"place": place, "values": "-".join(map(str, values))}
            yield Case(name, parameters, _never, reasons)


class _Extension(ModuleType):
    """Has a function of every name, and none of them is called."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _never


def _never(*args: Any) -> None:
    raise AssertionError("every case has a reason")
