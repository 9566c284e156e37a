"""A suite in this process: which cases are run, and running them."""

from __future__ import annotations

import argparse
import importlib
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch

import tilewright
from tilewright import compat

from . import _case, _host, _lines
from ._claims import Claims
from ._log import about


def run(options: argparse.Namespace, lines: _lines.Lines) -> None:
    """The cases of this process's share; what becomes of each goes to the lines."""
    _use_device(options)
    number, of = map(int, options.shard.split("/")) if options.shard else (0, 1)
    if not options.plan.exists():
        make_plan(options)
    drawn, made = _drawn(options)
    if number == 0:
        said = about(options) | _versions(options.device)
        lines.add(collected=made["counts"], refused=made["refused"], about=said)
    if options.cases:
        for case in drawn:
            print(case.name)
        return
    done = {entry["case"] for entry in _lines.read(options.lines) if "case" in entry}
    workers = -(-of // options.gpus)
    for case in _mine(drawn, number // options.gpus, options):
        if case.name in done:
            continue
        if time.time() > options.end or not _run(lines, case):
            break
        _case.release(workers)
    lines.add(worker=number, copies=compat.stats())


def _mine(
    cases: list[_case.Case], place: int, options: argparse.Namespace
) -> Iterator[_case.Case]:
    """The cases of one worker, which has this place among those of its GPU, as it claims them.

    What needs much memory is for few of each GPU, so that it fits beside.
    """
    classes: list[dict[Any, list[_case.Case]]] = [{} for _ in _case.SHARES]
    for i, case in enumerate(cases):
        size = next(k for k, (limit, _) in enumerate(_case.SHARES) if case.bytes <= limit)
        classes[size].setdefault(case.group or i, []).append(case)
    groups = [list(of_size.values()) for of_size in classes]
    path = options.lines.with_suffix(".claims") if options.shard else None
    claims = Claims(path, [len(of_size) for of_size in groups])
    allowed = [place < few for _, few in _case.SHARES]
    while claimed := claims.next(allowed):
        yield from groups[claimed[0]][claimed[1]]


def plan(options: argparse.Namespace) -> None:
    """make_plan() in a process that runs no case itself."""
    _use_device(options)
    make_plan(options)


def _use_device(options: argparse.Namespace) -> None:
    if options.device:
        _host.use(options.device)
    elif not torch.cuda.is_available() and not options.cases:
        raise SystemExit("no CUDA device; --cases lists the cases, --device sim:h200 simulates one")


def _versions(simulated: str | None) -> dict[str, str]:
    found = {"torch": torch.__version__, "tilewright": tilewright.__version__}
    if simulated:
        found["device"] = simulated
    elif torch.cuda.is_available():
        found["device"] = torch.cuda.get_device_name()
    return found


def make_plan(options: argparse.Namespace) -> None:
    """Writes which cases are run, in their order, and what is left out, counted: workers do not ask again."""
    counts: dict[str, Counter[str]] = {}
    refused: Counter[str] = Counter()
    chosen = []
    for i, case in enumerate(_collect(options)):
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
            chosen.append((i, case.test, case.bytes))
    if options.sample is not None or options.deadline is not None:
        # Whatever time cuts off, what has been run is a sample.
        size = min(options.sample or len(chosen), len(chosen))
        chosen = random.Random(options.seed).sample(chosen, size)
    for _, test, _ in chosen:
        counts[test]["drawn"] += 1
    plan = {"counts": counts, "refused": refused, "cases": [(i, size) for i, _, size in chosen]}
    options.plan.write_text(json.dumps(plan))


def _drawn(options: argparse.Namespace) -> tuple[list[_case.Case], dict[str, Any]]:
    """The cases of the plan, and the plan."""
    plan = json.loads(options.plan.read_text())
    cases = _collect(options, asks=False)
    drawn = []
    for place, size in plan["cases"]:
        cases[place].bytes = size
        drawn.append(cases[place])
    return drawn, plan


def _collect(options: argparse.Namespace, asks: bool = True) -> list[_case.Case]:
    suite = importlib.import_module(f"._{options.suite}", __package__)
    known = list(suite.TESTS)
    for test in options.tests:
        if test not in known:
            raise SystemExit(f"no test {test!r}; {options.suite} has {', '.join(known)}")
    more: dict[str, bool] = {}
    if options.suite == "fa3":
        more = {"as_published": options.as_published, "asks": asks}
    cases = list(suite.collect(options.folder, options.tests, options.through, **more))
    names: Counter[str] = Counter()
    for case in cases:
        name = case.name
        case.repeats = names[name]
        names[name] += 1
    return cases


def _run(lines: _lines.Lines, case: _case.Case) -> bool:
    """Whether the device is left."""
    outcome = _case.run(case)
    entry = {"case": case.name, "test": case.test, "seconds": round(outcome.seconds, 3)}
    if outcome.kind != "failed":
        lines.add(**entry, outcome=outcome.kind)
        return True
    lines.add(**entry, outcome="failed", text=outcome.text)
    if _case.is_device_usable():
        return True
    lines.add(lost=f"the device is lost after {case.name}")
    return False
