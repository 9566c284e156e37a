#!/usr/bin/env python3
"""Runs the test programs of build/release and build/asan and the checks of the tree, and sums up.

Programs run two at a time (or as many as there are processors), the longest first, each in a random order of
tests whose seed is printed. The last line reads "N passed, N failed, N skipped". Exit status 0 only if everything
that ran passed and every program ran to its end. CONTRIBUTING.md, "Tests", says what runs where.
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import sys
import time

import test_jobs
from test_jobs import OPTIMISED_SIMULATOR, RELEASE_ONLY, ROOT, SAMPLE, Result, Run, check_list, run_gtest

COLOR = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(code, text):
    return f"\x1b[{code}m{text}\x1b[0m" if COLOR else text


# (build, program) -> parts and seconds of a part on an idle processor. Programs that take long run in parts, and
# first, so that no processor waits for another at the end; those that are not named take seconds.
PARTS = {("release", "model_tests"): (1, 220), ("release", "ops_tests"): (2, 160),
         ("release", "cli_tests"): (1, 100),
         ("asan", "ops_tests"): (3, 50), ("asan", "model_tests"): (2, 50), ("asan", "sim_tests"): (2, 45),
         ("release", "layout_tests"): (1, 32), ("asan", "formats_tests"): (1, 29),
         ("release", "kernels_tests"): (3, 20), ("asan", "base_tests"): (1, 15)}
HOST_CODE = {"TILEWRIGHT_SIM_LIBRARY": str(OPTIMISED_SIMULATOR), "TILEWRIGHT_SIM_CHECK": "mem"}
MUTANT_SECONDS, SAMPLE_SECONDS, PTX_FUZZ_SECONDS, INSTALL_SECONDS, FAMILY_SECONDS = 90, 110, 31, 12, 17
# The same of files of tests/python and of checks of the tree; the others take less than PYTHON_SECONDS and 1.
PYTHON = {"package": 60, "transformers_v4": 30, "peers": 30, "torch_attention": 25, "triton": 20,
          "transformers_dense": 20, "attention": 17, "known_calls": 17, "compat_flash_attn": 17}
PYTHON_SECONDS = 14
COMMANDS = {"generated ptx": 20, "tools": 11, "format": 10}


# Programs of ./test --quick: host code whole, and of what launches kernels the sample. The tool's tests leave out
# the ladder, which launches every kernel; kernels_tests and hardware_tests are left out.
QUICK = {name + "_tests": "*" for name in ("arch", "base", "device", "formats", "layout", "reference", "sim")}
QUICK |= {name + "_tests": "*-SimTest/*:GpuTest/*:*Slips.*:ReferenceRunner.*" for name in ("ops", "model")}
QUICK["cli_tests"] = "*-AttentionTool.TakesPackedSequences:AttentionTool.Ladder*:EvalTool.*:Interrupted.*"


def programs(build):
    return sorted((ROOT / "build" / build / "bin").glob("*_tests"))


def without(filter, left_out):
    """A filter of gtest that leaves out further tests."""
    if not left_out:
        return filter
    return (filter or "*") + (":" if "-" in filter else "-") + ":".join(left_out)


def sample_run(path, build, seed, left_out=()):
    filter = without(":".join(SAMPLE[path.name]) + ":-GpuTest/*", left_out)
    return Run(path, build, seed, note="sample", filter=filter)


def release_jobs(seed, text):
    """(seconds, job) of every program of the release build."""
    for path in programs("release"):
        parts, seconds = (1, 1) if text else PARTS.get(("release", path.name), (1, 5))
        for part in range(parts):
            yield seconds, (run_gtest, Run(path, "release", seed, text=text, part=part, parts=parts))


def sanitized_jobs(seed, text, is_thorough):
    """Where kernels are launched, host code under the sanitizers runs them on the optimised simulator, and the
    sample on the one that is under the sanitizers, too. Tests that the release build runs on every chip are run on
    one here, drawn by the seed. With a text or is_thorough: everything on that simulator, on every chip.

    On the optimised simulator the release build has run the same kernels by the same tests with all checks of what
    kernels do, which are two thirds of the time: here addresses alone are checked, which the host gives."""
    for path in programs("asan"):
        patterns = RELEASE_ONLY.get(path.name, [])
        if "*" in patterns:
            continue
        parts, seconds = (1, 1) if text else PARTS.get(("asan", path.name), (1, 10))
        is_split = path.name in SAMPLE and not is_thorough and not text
        environment = HOST_CODE if is_split else {}
        others = test_jobs.other_chips(test_jobs.list_tests(path), seed) if is_split else []
        left_out = without("", patterns + others)
        for part in range(parts):
            run = Run(path, "asan", seed, filter=left_out, text=text, part=part, parts=parts,
                      environment=environment)
            yield seconds, (run_gtest, run)
        if is_split:
            yield SAMPLE_SECONDS, (run_gtest, sample_run(path, "asan", seed, others))


def list_jobs(build, lists):
    """The lists of tests name tests that there are."""
    for name, patterns in lists.items():
        for path in programs(build):
            if path.name in patterns and "*" not in patterns[path.name]:
                yield 0, (check_list, path, build, name, patterns[path.name])


def device_on_simulator(build, seed):
    """The tests that need a GPU, on the simulated H200."""
    path = ROOT / "build" / build / "bin/device_tests"
    if path.exists():
        yield 3, (run_gtest, Run(path, build, seed, note="on sim", filter="Gpu*",
                                 environment={"TILEWRIGHT_DEVICE": "sim:h200"}))


def python_jobs(text=""):
    for path in test_jobs.python_tests():
        yield PYTHON.get(path.stem.removesuffix("_test"), PYTHON_SECONDS), (test_jobs.run_pytest, path, text)


def command_jobs():
    for name, command in test_jobs.tree_checks().items():
        yield COMMANDS.get(name, 1), (test_jobs.run_command, name, command)


def quick_jobs(seed):
    for path in programs("release"):
        if path.name in QUICK:
            yield 5, (run_gtest, Run(path, "release", seed, filter=QUICK[path.name]))
        if path.name in SAMPLE:
            yield 10, (run_gtest, sample_run(path, "release", seed))
    yield from list_jobs("release", {"sample.txt": SAMPLE})
    yield from device_on_simulator("release", seed)
    yield from command_jobs()


def all_jobs(seed, is_thorough):
    yield from release_jobs(seed, "")
    yield from sanitized_jobs(seed, "", is_thorough)
    yield from list_jobs("asan", {"release_only.txt": RELEASE_ONLY, "sample.txt": SAMPLE})
    for build in ("release", "asan"):
        yield from device_on_simulator(build, seed)
    yield from command_jobs()
    yield MUTANT_SECONDS, (test_jobs.run_mutants,)
    yield INSTALL_SECONDS, (test_jobs.run_install,)
    yield FAMILY_SECONDS, (test_jobs.run_family,)
    yield from python_jobs()
    for job in test_jobs.fuzz_jobs():
        yield PTX_FUZZ_SECONDS if job[1] == "ptx" else 7, job


def collect(args):
    """Jobs, the longest first."""
    if not programs("release"):
        sys.exit("run_tests: build/release/bin holds no test program; run ./test, which builds first")
    if args.filter:
        jobs = [*release_jobs(args.seed, args.filter), *sanitized_jobs(args.seed, args.filter, True),
                *python_jobs(args.filter)]
    elif args.quick:
        jobs = list(quick_jobs(args.seed))
    else:
        jobs = list(all_jobs(args.seed, args.thorough))
    return [job for _, job in sorted(jobs, key=lambda timed: -timed[0])]


def closing_line(passed, failed, skipped):
    """The last line, alone and without colour: other programs read it."""
    return f"{passed} passed, {failed} failed, {skipped} skipped"


def without_skips(lines):
    """What gtest and its tests say, without the two lines of each test that was skipped: they hide what failed."""
    kept, is_reason = [], False
    for line in lines:
        if re.fullmatch(r"\S+:\d+: Skipped", line):
            is_reason = True
        elif not is_reason:
            kept.append(line)
        else:
            is_reason = False
    return kept


def print_summary(results, seed):
    for result in results:
        if result.failed:
            print(paint("31;1", f"\n{result.build} {result.name}"))
            print("\n".join(without_skips(result.output.splitlines())[-60:]))
    print(paint("1", f"\n{'suite':<26} {'build':<8} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8} "
                     f"{'processor':>10}"))
    for r in results:
        line = f"{r.name:<26} {r.build:<8} {r.passed:>7} {r.failed:>7} {len(r.skipped):>8} {r.seconds:>8.1f}"
        line += f" {r.processor_seconds:>10.1f}" if r.processor_seconds else ""
        print(paint("31", line) if r.failed else line)
    skipped = sorted({f"{r.name}: {name}" for r in results for name in r.skipped})
    gpu = [name for name in skipped if "Gpu" in name]
    other = [name for name in skipped if "Gpu" not in name]
    if gpu:
        print(f"\n{len(gpu)} tests need a GPU and were skipped:")
        print("\n".join(f"  {name}" for name in gpu))
    if other:
        print(f"\n{len(other)} other tests were skipped:")
        print("\n".join(f"  {name}" for name in other))
    failures = [f"{r.build} {r.name}: {name}" for r in results for name in r.failures]
    if failures:
        print(paint("31;1", "\nfailed:"))
        print("\n".join(f"  {name}" for name in failures))
    print(f"\n{sum(r.processor_seconds for r in results):.0f} seconds of processor time, without fuzzers")
    passed, failed = sum(r.passed for r in results), sum(r.failed for r in results)
    verdict = paint("31;1", "something failed") if failed else paint("32", "all passed")
    print(f"\n{verdict}, order seed {seed}")
    print(closing_line(passed, failed, len(skipped)))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("filter", nargs="?", default="", help="run only tests whose names contain this")
    parser.add_argument("--quick", action="store_true",
                        help="the release build's quick tests, and the checks of the tree")
    parser.add_argument("--thorough", action="store_true",
                        help="every sanitized test on the simulator under the sanitizers, not a sample")
    parser.add_argument("--seed", type=int, default=random.randrange(1, 99999), help="order of the tests")
    return parser.parse_args()


class Progress:
    """How far the run is: on a terminal one line that is written over, else a line a minute."""

    def __init__(self, total, stream, now=time.monotonic):
        self.total, self.stream, self.now = total, stream, now
        self.begin = self.due = now()

    def show(self, done):
        if self.stream.isatty():
            print(f"\r{done}/{self.total} suites\x1b[K", end="", file=self.stream, flush=True)
        elif self.now() >= self.due + 60:
            self.due = self.now()
            print(f"tilewright: {done} of {self.total} suites of tests after {self.due - self.begin:.0f} s",
                  file=self.stream, flush=True)

    def clear(self):
        if self.stream.isatty():
            print("\r\x1b[K", end="", file=self.stream)


def run_jobs(jobs):
    results = []
    progress = Progress(len(jobs), sys.stdout)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        waiting = {pool.submit(*job) for job in jobs}
        while waiting:
            done, waiting = concurrent.futures.wait(waiting, 60, concurrent.futures.FIRST_COMPLETED)
            results += [job.result() for job in done]
            progress.show(len(results))
    progress.clear()
    return results


def main():
    args = arguments()
    results = run_jobs(collect(args))
    results.sort(key=lambda r: ({"tree": 0, "release": 1, "asan": 2, "fuzz": 3}[r.build], r.name))
    print_summary(results, args.seed)
    if args.quick:
        print("quick: without kernels_tests, hardware_tests, most tests of the tool's ladder and of operators on "
              "the\nsimulator, sanitizers, mutants and fuzzers; ./test runs them all", file=sys.stderr)
    return 1 if any(r.failed for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
