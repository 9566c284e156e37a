"""A suite in this process: which cases are run, and running them."""

from __future__ import annotations

import argparse
import importlib
import random
import time
from collections import Counter

import torch

import tilewright
from tilewright import compat

from . import _case, _host, _lines
from ._log import about


def run(options: argparse.Namespace, lines: _lines.Lines) -> None:
    """The cases of this process's share; what becomes of each goes to the lines."""
    if options.device:
        _host.use(options.device)
    elif not torch.cuda.is_available() and not options.cases:
        raise SystemExit("no CUDA device; --cases lists the cases, --device sim:h200 simulates one")
    number, of = map(int, options.shard.split("/")) if options.shard else (0, 1)
    counts: dict[str, Counter[str]] = {}
    refused: Counter[str] = Counter()
    drawn = _drawn(options, counts, refused)
    if number == 0:
        lines.add(collected=counts, refused=refused, about=about(options) | _versions(options.device))
    if options.cases:
        for case in drawn:
            print(case.name)
        return
    done = {entry["case"] for entry in _lines.read(options.lines) if "case" in entry}
    mine = [case for case in _share(drawn, number, of, options.gpus) if case.name not in done]
    _run(options, lines, mine)
    lines.add(worker=number, copies=compat.stats())


def _versions(simulated: str | None) -> dict[str, str]:
    found = {"torch": torch.__version__, "tilewright": tilewright.__version__}
    if simulated:
        found["device"] = simulated
    elif torch.cuda.is_available():
        found["device"] = torch.cuda.get_device_name()
    return found


def _share(cases: list[_case.Case], number: int, of: int, gpus: int) -> list[_case.Case]:
    """The cases of one worker. What needs much memory is for few of each GPU, so that it fits beside.

    Workers of a GPU are those with its place, its place + gpus and so on.
    """
    work = [0] * of
    mine = []
    for case in cases:
        few, weight = next((n, w) for limit, n, w in _case.SHARES if case.bytes <= limit)
        chosen = min(range(min(few * gpus, of)), key=work.__getitem__)
        work[chosen] += weight
        if chosen == number:
            mine.append(case)
    return mine


def _drawn(
    options: argparse.Namespace, counts: dict[str, Counter[str]], refused: Counter[str]
) -> list[_case.Case]:
    """The cases that are run, in their order; what is left out is counted."""
    suite = importlib.import_module(f"._{options.suite}", __package__)
    known = list(suite.TESTS)
    for test in options.tests:
        if test not in known:
            raise SystemExit(f"no test {test!r}; {options.suite} has {', '.join(known)}")
    chosen = []
    names: Counter[str] = Counter()
    for case in suite.collect(options.folder, options.tests, options.through):
        name = case.name
        case.repeats = names[name]
        names[name] += 1
        if options.match and options.match not in case.name:
            continue
        of_test = counts.setdefault(case.test, Counter())
        of_test["cases"] += 1
        if case.skips:
            of_test["skipped"] += 1
        elif case.reasons:
            of_test["refused"] += 1
            refused.update({f"{r.field}: {r.rule}" for r in case.reasons})
        else:
            of_test["in_scope"] += 1
            chosen.append(case)
    if options.sample is not None or options.deadline is not None:
        # Whatever time cuts off, what has been run is a sample.
        size = min(options.sample or len(chosen), len(chosen))
        chosen = random.Random(options.seed).sample(chosen, size)
    for case in chosen:
        counts[case.test]["drawn"] += 1
    return chosen


def _run(options: argparse.Namespace, lines: _lines.Lines, cases: list[_case.Case]) -> None:
    for case in cases:
        if time.time() > options.end:
            return
        outcome = _case.run(case)
        entry = {"case": case.name, "test": case.test, "seconds": round(outcome.seconds, 3)}
        if outcome.kind != "failed":
            lines.add(**entry, outcome=outcome.kind)
        else:
            lines.add(**entry, outcome="failed", text=outcome.text)
            if not _case.is_device_usable():
                lines.add(lost=f"the device is lost after {case.name}")
                return
        _case.release()
