#!/usr/bin/env python3
"""Measures the simulator's checks: which mistakes in our own kernels do they name?

Takes the PTX of shipped kernels, finds every instruction that synchronises and runs at a small shape, and
changes one line at a time: a wait that falls through, a missing arrival, 16 bytes too few. The operator runs as
usual with the changed text (TILEWRIGHT_SIM_REPLACE) on the simulator with --check all, in eager, late and random
timing, and compares its results with float64. What nothing names at the first shape runs at others, and then
with strict.

  tools/mutate.py --json all.jsonl                     every kernel; may be stopped and started again
  tools/mutate.py --from all.jsonl --markdown          the tables of docs/03-simulator.md
  tools/mutate.py --sample 72 --seed 1 --quick         what ./test does
  tools/mutate.py --per-kind 20 --json some.jsonl      of each row of the table so many, drawn by the seed; the
                                                       scores are then estimates for all, with intervals of 95 %
  tools/mutate.py --kernel k5 --kind 'proxy*'          some of them
  tools/mutate.py --show k5:12345:delete               one mutant: the change, and all that is said

Verdicts: named by a check of `all` at the first shape; at another shape; by `strict`; values (wrong results, and
no check speaks); missed (nothing at all). Survivors of tools/mutation/known.txt are listed there with a reason as
equivalent, idle (nothing to order at these shapes), manual (only the manual demands it) or missed.

Exit status 1 if a mutant survives that is not in that list.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import hashlib
import json
import lzma
import pathlib
import random
import sys
import threading
import time

from mutation import judge, known, sites, table
from mutation.cases import CASES
from mutation.ptx import Module, Sources
from mutation.runner import ROOT, TIMINGS, Runner


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ", ".join(case.name for case in CASES)
    parser.add_argument("--kernel", action="append", metavar="NAME", default=[],
                        help=f"only this one; may be repeated, * stands for any text: {names}")
    parser.add_argument("--kind", default="*", metavar="WORDS", help="only sites of this row of the table")
    parser.add_argument("--descriptors", action="store_true",
                        help="bit fields of matrix and instruction descriptors instead; random ones with --sample")
    parser.add_argument("--places", action="store_true",
                        help="instead, where copies read and how far: the next page or row, a bound one off; "
                             "wrong results are enough, no check has to name such a mutant")
    parser.add_argument("--sample", type=int, metavar="N", help="N mutants, of every kernel as many")
    parser.add_argument("--per-kind", type=int, metavar="N", help="at most N mutants of each row of the table")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the sample (1)")
    parser.add_argument("--quick", action="store_true",
                        help="one timing that names a mutant is enough, and two of other shapes, one of strict")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time (1)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="log of the results, a JSON object a line; what is in it already is not run again")
    parser.add_argument("--named-in", type=pathlib.Path, action="append", default=[], metavar="FILE",
                        help="log of an older simulator: what it says a check of `all` names is not run again")
    parser.add_argument("--from", dest="logs", type=pathlib.Path, action="append", default=[],
                        metavar="FILE", help="run nothing; tables of these logs")
    parser.add_argument("--markdown", action="store_true", help="tables as Markdown")
    parser.add_argument("--survivors", action="store_true",
                        help="also list the listed ones, and entries of the list that are out of date")
    parser.add_argument("--list", action="store_true", help="list the mutants, run none")
    parser.add_argument("--show", metavar="MUTANT", help="one mutant, as a list or log names it, with all output")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", metavar="DIR",
                        help="where the tool, the tests and the simulator are (build/release)")
    parser.add_argument("--cpu-seconds", type=int, default=20, metavar="S",
                        help="a run that takes longer is ended (20)")
    return parser.parse_args()


class Plan:
    """The mutants of the chosen kernels."""

    def __init__(self, args, runner):
        self.args, self.runner = args, runner
        self.sources = Sources(ROOT)
        self.modules = {}
        self.population = collections.Counter()  # how many mutants there are of each kind

    def cases(self):
        patterns = [self.args.show.split(":")[0]] if self.args.show else self.args.kernel or ["*"]
        chosen = [case for case in CASES if any(known.like(p, case.name) for p in patterns)]
        if not chosen:
            sys.exit(f"mutate: no kernel {' or '.join(patterns)}; there are {', '.join(c.name for c in CASES)}")
        return chosen

    def all_of(self, case):
        """[(mutant, its empty result)]"""
        module = Module(self.runner.ptx(f"{case.entry}.{case.target}"), case.entry)
        self.modules[case.name] = module
        kinds = sites.KINDS
        if self.args.descriptors or self.args.places:
            kinds = sites.DESCRIPTOR_KINDS if self.args.descriptors else sites.PLACE_KINDS
        if self.args.show:
            kinds = (*sites.KINDS, *sites.DESCRIPTOR_KINDS, *sites.PLACE_KINDS)
        mutants = sites.mutants_of(module, self.runner.executed_lines(case, module), kinds)
        digest = hashlib.sha256(module.text().encode()).hexdigest()[:16]
        self.population.update(mutant.kind for mutant in mutants)
        pairs = [(mutant, judge.Result(case.name, mutant.index + 1, mutant.kind, mutant.action, mutant.op,
                                       self.sources.describe(module, mutant.place),
                                       self.sources.name(module, mutant.place), module=digest))
                 for mutant in mutants if known.like(self.args.kind, mutant.kind)]
        return pairs

    def chosen(self):
        """[(case, mutant, result)] after sampling, kernel by kernel or kind by kind."""
        if self.args.per_kind is not None:
            return self._chosen_per_kind()
        rest, cases, chosen = self.args.sample, self.cases(), []
        for position, case in enumerate(cases):
            pairs = self.all_of(case)
            if self.args.sample is not None:
                share = rest // (len(cases) - position)
                random.Random(f"{self.args.seed} {case.name}").shuffle(pairs)  # a larger sample has the smaller
                pairs = pairs[:share]
                rest -= len(pairs)
            chosen += [(case, *pair) for pair in pairs]
        return chosen

    def _chosen_per_kind(self):
        groups = collections.defaultdict(list)
        for case in self.cases():
            for mutant, result in self.all_of(case):
                groups[mutant.kind].append((case, mutant, result))
        for kind, group in groups.items():
            random.Random(f"{self.args.seed} {kind}").shuffle(group)
        return [each for group in groups.values() for each in group[:self.args.per_kind]]


class Log:
    """Results so far, in a file if there is one."""

    def __init__(self, path, simulator, population):
        self.path, self.results, self.lock = path, {}, threading.Lock()
        if path is None:
            return
        if path.exists():
            first, *lines = path.read_text(encoding="utf-8").splitlines() or ["{}"]
            if json.loads(first).get("simulator") != simulator:
                sys.exit(f"mutate: {path} is of another build of the simulator; expected a new file, or remove it")
            # A line that was cut off when the tool was stopped is run again.
            for result in filter(None, map(read_result, lines)):
                self.results[result.name, result.module] = result
        else:
            head = {"simulator": simulator, "population": population}
            path.write_text(json.dumps(head) + "\n", encoding="utf-8")

    def add(self, result):
        with self.lock:
            self.results[result.name, result.module] = result
            if self.path:
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(dataclasses.asdict(result)) + "\n")


def read_result(line):
    try:
        return judge.Result(**json.loads(line))
    except ValueError:
        return None


def read_text(path):
    """Of a log, which may be compressed by xz."""
    if path.suffix == ".xz":
        return lzma.decompress(path.read_bytes()).decode()
    return path.read_text(encoding="utf-8")


def read_logs(paths):
    """Results, and how many mutants there are of each kind: {} if a log does not say."""
    results, population = [], {}
    for path in paths:
        first, *lines = read_text(path).splitlines()
        population = json.loads(first).get("population", {})
        results += filter(None, map(read_result, lines))
    return list({result.name: result for result in results}.values()), population


def named_in(paths):
    """What older logs say is named, by mutant and by the text of the module that it was tried on."""
    return {(r.name, r.module): r for r in read_logs(paths)[0] if r.verdict in judge.FOUND}


class Progress:
    """A line that is written over on a terminal, one a minute elsewhere."""

    def __init__(self, total):
        self.total, self.done, self.begin, self.last = total, 0, time.monotonic(), time.monotonic()

    def step(self, result):
        self.done += 1
        now, is_terminal = time.monotonic(), sys.stderr.isatty()
        if not is_terminal and now - self.last < 60:
            return
        self.last = now
        left = (now - self.begin) / self.done * (self.total - self.done)
        line = f"{self.done}/{self.total} mutants, {left / 60:.0f} min left, now {result.kernel}"
        print(f"\r{line}\x1b[K" if is_terminal else f"{line}\n", end="", file=sys.stderr, flush=True)

    def close(self):
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr)


def run_all(args, runner):
    library = args.build / "lib/sim/libcuda.so.1"
    plan = Plan(args, runner)
    work = plan.chosen()
    log = Log(args.json, hashlib.sha256(library.read_bytes()).hexdigest()[:16], dict(plan.population))
    random.Random(args.seed).shuffle(work)  # a run that is stopped says something of all kernels
    older = named_in(args.named_in)
    judging = judge.Judge(runner, known.read(), args.quick, args.places)
    progress = Progress(len(work))

    def one(case, mutant, result):
        found = log.results.get((result.name, result.module))
        if found is None:
            found = older.get((result.name, result.module))
            if found is None:
                judging.judge(case, plan.modules[case.name], mutant, result)
            log.add(found or result)
        progress.step(found or result)
        return found or result

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        jobs = [pool.submit(one, *each) for each in work]
        try:
            results = [job.result() for job in jobs]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    progress.close()
    return results, plan.population


def show(args, runner):
    plan = Plan(args, runner)
    case = plan.cases()[0]
    found = [pair for pair in plan.all_of(case) if pair[1].name == args.show]
    if not found:
        sys.exit(f"mutate: no mutant {args.show}; --kernel {case.name} --list names them")
    mutant, result = found[0]
    module = plan.modules[case.name]
    print(f"{result.name}: {result.what}\nat {result.source}\n   {result.place}\n"
          f"- {module.lines[mutant.index].strip()}\n+ {mutant.line}\n")
    text = module.with_line(mutant.index, mutant.line)
    for number, shape in enumerate(case.shapes):
        for timing in TIMINGS:
            status, said = runner.start(case, shape, text, checks="all,strict", timing=timing)
            print(f"== shape {number + 1}, {timing}, all,strict: status {status}")
            print(f"{' '.join(shape.command)}\n{said}")


def stale_entries(results):
    """Entries of the list that fit something named, or nothing at all."""
    for entry in known.read():
        fitting = [r for r in results if entry.fits(r.kernel, r.what, r.place)]
        named = [r for r in fitting if r.verdict in ("named", "elsewhere", "strict")]
        if named and entry.name not in ("manual", "missed") and entry.shapes != "all":
            yield f"known.txt:{entry.line} calls {entry.name} what is {named[0].verdict}: {named[0].name}" \
                  f" [{named[0].check}] {named[0].text}"
        elif fitting and len(named) == len(fitting):
            yield f"known.txt:{entry.line} fits only what is named by now, such as {named[0].name}"
        elif not fitting:
            yield f"known.txt:{entry.line} fits no mutant of these"


def print_results(args, results, population=None):
    results = [result.listed(known.read()) for result in results]
    print((table.markdown if args.markdown else table.text)(results, population))
    survivors = [r for r in results if r.is_survivor and not (args.places and r.verdict == "values")]
    unlisted = [r for r in survivors if not r.because]
    for result in survivors if args.survivors else unlisted:
        print(f"{result.verdict}: {result.name}  {result.what}\n    at {result.source}\n       {result.place}")
        if result.because:
            print(f"    {result.because}")
    if unlisted:
        print(f"{len(unlisted)} survivors are not in tools/mutation/known.txt. To see one: "
              f"python3 tools/mutate.py --show {unlisted[0].name}")
    if args.survivors:
        print("\n".join(stale_entries(results)))
    return 1 if unlisted else 0


def main():
    args = parse_arguments()
    if args.logs:
        return print_results(args, *read_logs(args.logs))
    runner = Runner(args.build.resolve(), args.cpu_seconds)
    if args.show:
        return show(args, runner)
    if args.list:
        for _, _, result in Plan(args, runner).chosen():
            print(f"{result.name}  {result.what}\n    {result.source}\n    {result.place}")
        return 0
    return print_results(args, *run_all(args, runner))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, ValueError, OSError) as error:
        sys.exit(f"mutate: {error}")
    except KeyboardInterrupt:
        sys.exit("\nmutate: stopped; the same command goes on where --json FILE ends")
