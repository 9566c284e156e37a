"""SGLang's kit of attention tests, which its wheel has, on our backend by the name that it is registered under.

The folder is the one that has the package `sglang`: that of installed packages, or a checkout. SGLang's own files
hand each backend the same lists of cases; what they are compared with is attention in float32.
"""

from __future__ import annotations

import functools
import importlib
import os
import pathlib
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import torch

from tilewright import Reason
from tilewright.integrations import sglang as ours

from ._case import Case, import_from

TESTS = ("dense", "layouts", "windows", "graphs")
_KIT = "sglang.test.kits.attention_unittest"
#: As the kit's users have it for kernels that want such heads: its default is heads of 16.
_SIZES = {"head_dim": 64, "hidden_size": 256}
#: Where tokens lie, beside the kit's default of pages in any order.
_LAYOUTS = ("interleaved_pages", "non_monotonic_extend")
_ORDER = Reason(
    "loc_layout",
    "non_monotonic_extend",
    "the tokens of a page lie in their order",
    "pages as SGLang hands them out",
)


def collect(folder: pathlib.Path, tests: list[str], through: str) -> Iterator[Case]:
    """The kit's lists with our name in them."""
    import_from(str(folder / "python" if (folder / "python" / "sglang").is_dir() else folder))
    os.environ["TILEWRIGHT_SGLANG"] = "1"
    ours.register()
    kit: Any = importlib.import_module(f"{_KIT}.attention_methods.dense_attention")
    dense = kit.make_dense_cases(ours.NAME)
    for test in tests or TESTS:
        if test == "layouts":
            yield from _layouts(kit, dense)
        elif test == "graphs":
            yield from _graphs([case for case in dense if case.forward_mode.is_decode()])
        else:
            cases = dense
            if test == "windows":
                cases = kit.make_swa_no_prefix_input_config_cases(ours.NAME)
                cases += kit.make_swa_prefix_input_config_cases(ours.NAME)
            for case in cases:
                run = functools.partial(_run, kit.run_dense_attention_case, case)
                yield Case(test, {"name": case.name}, run)


def _layouts(kit: Any, cases: Any) -> Iterator[Case]:
    for layout in _LAYOUTS:
        for case in cases:
            is_moved = layout == "non_monotonic_extend"
            skips = "nothing moves" if is_moved and case.forward_mode.is_decode() else ""
            reasons = [_ORDER] if is_moved and not skips else []
            run = functools.partial(_run, kit.run_dense_attention_case, case, loc_layout=layout)
            yield Case("layouts", {"name": case.name, "layout": layout}, run, reasons, skips=skips)


def _graphs(cases: list[Any]) -> Iterator[Case]:
    skips = "" if torch.cuda.is_available() else "graphs need a GPU"
    for case in cases:
        yield Case("graphs", {"name": case.name}, functools.partial(_graph, case), skips=skips)


def _graph(case: Any) -> None:
    runner: Any = importlib.import_module(f"{_KIT}.runner_modes.cuda_graph_decode_runner")
    _run(runner.run_dense_cuda_graph_decode_case, case)


def _run(run: Callable[..., Any], case: Any, **options: Any) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.no_grad():
        run(unittest.TestCase(), case, device=device, **_SIZES, **options)
