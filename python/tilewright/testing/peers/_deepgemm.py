"""DeepGEMM's tests/test_attention.py: its cases of the indexer's logits, without what it times."""

from __future__ import annotations

import functools
import importlib
import pathlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from tilewright import Reason, compat
from tilewright.compat import deep_gemm

from ._case import Case, import_from, meta

TESTS = ("prefill", "paged")
#: What the file gives of a case, in its order.
_NAMES = {
    "prefill": "is_fp4 logits_dtype weights_dtype compressed clean seq_len seq_len_kv heads head_dim "
    "no_cp",
    "paged": "is_varlen is_fp4 logits_dtype weights_dtype page lens_2d clean batch next_n max_tokens "
    "heads head_dim avg_kv",
}


def collect(folder: pathlib.Path, tests: list[str], through: str) -> Iterator[Case]:
    """The file's cases: what it hands to the function that picks some of them."""
    import_from(str(folder / "tests" if (folder / "tests").is_dir() else folder))
    compat.install("deep_gemm")
    # Helpers of the suite are modules of the peer's package, and look for its extension.
    sys.modules["deep_gemm"].__path__ = [str(folder / "deep_gemm")]
    sys.modules["deep_gemm._C"] = _Extension("deep_gemm._C")
    suite: Any = importlib.import_module("test_attention")
    suite.bench_kineto = _no_times
    found: dict[str, list[Any]] = {}

    def keep(name: str, cases: list[Any]) -> list[Any]:
        found[name] = cases
        return []

    suite.sample_mqa_cases = keep
    suite.test_mqa_logits()
    suite.test_paged_mqa_logits()
    for name in tests or TESTS:
        for place, values in enumerate(found[name]):
            case = dict(zip(_NAMES[name].split(), values, strict=True))
            run = functools.partial(_run, suite, name, place, values)
            reasons = _reasons(name, case)
            yield Case(name, {"place": place, **case}, run, reasons, _bytes(name, case))


def _run(suite: Any, name: str, place: int, values: Any) -> None:
    """One case, with its place as seed: the file draws what it likes."""
    torch.manual_seed(place)
    suite.sample_mqa_cases = lambda of, cases: [values] if of == name else []
    {"prefill": suite.test_mqa_logits, "paged": suite.test_paged_mqa_logits}[name]()


def _reasons(name: str, case: dict[str, Any]) -> list[Reason]:
    size = case["head_dim"] // (2 if case["is_fp4"] else 1)
    rows = (1, 1) if name == "paged" else (1,)
    dtype = torch.int8 if case["is_fp4"] else torch.float8_e4m3fn
    codes = meta(*rows, case["heads"], size, dtype=dtype)
    scales = meta(*rows, case["heads"], dtype=torch.int32) if case["is_fp4"] else None
    return deep_gemm.can_implement(
        "fp8_fp4_paged_mqa_logits" if name == "paged" else "fp8_fp4_mqa_logits",
        q=(codes, scales),
        weights=meta(1, case["heads"], dtype=case["weights_dtype"]),
        logits_dtype=case["logits_dtype"],
        indices=meta(1, dtype=torch.int32) if case.get("is_varlen") else None,
    )


def _bytes(name: str, case: dict[str, Any]) -> int:
    """Of a case: its logits several times, and keys in bf16, fp32 and codes."""
    if name == "prefill":
        return int(case["seq_len"] * case["seq_len_kv"] * 4 * 8)
    keys = case["batch"] * case["avg_kv"]
    return int(keys * (case["head_dim"] * 12 + case["next_n"] * 4 * 10))


def _no_times(run: Any, kernels: Any, *args: Any, **kwargs: Any) -> Any:
    """Stands for the suite's profiler, which knows kernels by the peer's names."""
    return (1.0,) * len(kernels) if isinstance(kernels, tuple) else 1.0


class _Extension(ModuleType):
    """Has a function of every name, and none of them is called."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _never


def _never(*args: Any) -> None:
    raise AssertionError("nothing of the peer's extension is called")
