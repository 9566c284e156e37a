"""A suite in this process: which cases are run, and running them."""

from __future__ import annotations

import argparse
import importlib
import random
import time

import torch

import tilewright
from tilewright import compat

from . import _case, _host
from ._log import Log


def run(options: argparse.Namespace) -> Log:
    log = Log.of(options)
    if options.device:
        _host.use(options.device)
    elif not torch.cuda.is_available() and not options.cases:
        raise SystemExit("no CUDA device; --cases lists the cases, --device sim:h200 simulates one")
    log.about |= {"torch": torch.__version__, "tilewright": tilewright.__version__}
    if torch.cuda.is_available():
        log.about["device"] = torch.cuda.get_device_name()
    drawn = _drawn(options, log)
    if options.cases:
        for case in drawn:
            print(case.name)
        return log
    if options.shard:
        number, of = map(int, options.shard.split("/"))
        drawn = _share(drawn, number, of)
    _run(options, log, drawn)
    log.stats.update(compat.stats())
    return log


def _share(cases: list[_case.Case], number: int, of: int) -> list[_case.Case]:
    """The cases of one worker. What needs much memory is for few of them, so that it fits beside."""
    work = [0] * of
    mine = []
    for case in cases:
        few, weight = next((n, w) for limit, n, w in _case.SHARES if case.bytes <= limit)
        chosen = min(range(min(few, of)), key=work.__getitem__)
        work[chosen] += weight
        if chosen == number:
            mine.append(case)
    return mine


def _drawn(options: argparse.Namespace, log: Log) -> list[_case.Case]:
    """The cases that are run, in their order; what is left out goes to the log."""
    suite = importlib.import_module(f"._{options.suite}", __package__)
    known = list(suite.TESTS)
    for test in options.tests:
        if test not in known:
            raise SystemExit(f"no test {test!r}; {options.suite} has {', '.join(known)}")
    chosen = []
    for case in suite.collect(options.folder, options.tests, options.through):
        if options.match and options.match not in case.name:
            continue
        log.count(case.test, "cases")
        if case.skips:
            log.count(case.test, "skipped")
        elif case.reasons:
            log.count(case.test, "refused")
            for text in sorted({f"{r.field}: {r.rule}" for r in case.reasons}):
                log.refused[text] += 1
        else:
            log.count(case.test, "in_scope")
            chosen.append(case)
    if options.sample is not None or options.max_seconds is not None:
        # Whatever time cuts off, what has been run is a sample.
        size = min(options.sample or len(chosen), len(chosen))
        chosen = random.Random(options.seed).sample(chosen, size)
    for case in chosen:
        log.count(case.test, "drawn")
    return chosen


def _run(options: argparse.Namespace, log: Log, cases: list[_case.Case]) -> None:
    is_usable = True
    for case in cases:
        if not is_usable or time.monotonic() > options.deadline:
            log.count(case.test, "remaining")
            continue
        outcome = _case.run(case)
        if outcome.kind == "failed":
            log.fail(case.test, case.name, outcome.text)
            is_usable = _case.is_device_usable()
        else:
            log.count(case.test, outcome.kind)
        _case.release()
