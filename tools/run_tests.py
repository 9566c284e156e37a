#!/usr/bin/env python3
"""Runs every test program of build/release and build/asan and the checks of the tree, and sums up.

Programs run two at a time (or as many as there are processors), each in a random order of tests whose seed
is printed. The last line reads "N passed, N failed, N skipped". Exit status 0 only if everything that ran
passed and every program ran to its end.
"""

import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import run_fuzzers

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLOR = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(code, text):
    return f"\x1b[{code}m{text}\x1b[0m" if COLOR else text


def read_release_only():
    """program -> patterns of tests/release_only.txt."""
    patterns = {}
    for line in (ROOT / "tests/release_only.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            program, pattern = line.split()
            patterns.setdefault(program, []).append(pattern)
    return patterns


RELEASE_ONLY = read_release_only()


def release_only_job(path):
    """Fails if a pattern of the list names no test of this program."""
    result = Result(f"list of {path.name.removesuffix('_tests')}", "asan")
    listing = subprocess.run([str(path), "--gtest_list_tests"], stdout=subprocess.PIPE, check=False)
    suite, names = "", []
    for line in listing.stdout.decode().splitlines():
        if line.startswith("  "):
            names.append(suite + line.split()[0])
        else:
            suite = line.split()[0]
    for pattern in RELEASE_ONLY[path.name]:
        if fnmatch.filter(names, pattern):
            result.passed += 1
        else:
            result.failed += 1
            result.failures.append(f"tests/release_only.txt: {path.name} has no test {pattern}")
            result.output += result.failures[-1] + "\n"
    return result


class Result:
    """One program: counts, the names of what was skipped and why, what failed, and its output if it did."""

    def __init__(self, name, build):
        self.name, self.build, self.seconds = name, build, 0.0
        self.passed = self.failed = 0
        self.skipped, self.failures, self.output = [], [], ""


def run_on_simulator(path, build, filter_text, seed):
    """The tests that need a GPU, on the simulated H200."""
    result = run_gtest(path, build, filter_text, seed, simulated=True)
    result.name += " on sim"
    return result


def run_gtest(path, build, filter_text, seed, simulated=False, part=0, parts=1):
    """Part number `part` of `parts` of a program's tests."""
    result = Result(path.name.removesuffix("_tests"), build)
    if parts > 1:
        result.name += f" {part + 1}/{parts}"
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [str(path), f"--gtest_output=json:{report}", "--gtest_shuffle", f"--gtest_random_seed={seed}",
                   "--gtest_brief=1"]
        environment = dict(os.environ)
        if parts > 1:
            environment |= {"GTEST_TOTAL_SHARDS": str(parts), "GTEST_SHARD_INDEX": str(part)}
        if simulated:
            environment["TILEWRIGHT_DEVICE"] = "sim:h200"
            command.append("--gtest_filter=Gpu*")
        elif filter_text:
            command.append(f"--gtest_filter=*{filter_text}*")
        elif build == "asan" and path.name in RELEASE_ONLY:
            command.append("--gtest_filter=*-" + ":".join(RELEASE_ONLY[path.name]))
        begin = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder,
                              env=environment)
        result.seconds = time.monotonic() - begin
        result.output = done.stdout.decode(errors="replace")
        read_report(report, result)
    crashed = done.returncode != 0 and result.failed == 0
    nothing_ran = not filter_text and result.passed + result.failed == 0
    if crashed or nothing_ran:
        result.failed += 1
        result.failures.append(f"{path.name} ended with status {done.returncode}" if crashed
                               else f"{path.name} ran no test")
    return result


def read_report(report, result):
    if not report.exists():
        return
    for suite in json.loads(report.read_text())["testsuites"]:
        for test in suite["testsuite"]:
            name = f"{suite['name']}.{test['name']}"
            if test.get("failures"):
                result.failed += 1
                result.failures.append(name)
            elif test["result"] == "SKIPPED":
                result.skipped.append(name)
            elif test["status"] == "RUN":
                result.passed += 1


def run_command(name, command):
    """A check of the tree: passes if it ends with status 0."""
    result = Result(name, "tree")
    begin = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT)
    result.seconds = time.monotonic() - begin
    result.output = done.stdout.decode(errors="replace")
    result.passed, result.failed = (1, 0) if done.returncode == 0 else (0, 1)
    result.failures = [] if done.returncode == 0 else [" ".join(map(str, command))]
    return result


def run_mutants():
    """Mistakes in our kernels that the simulator's checks have to name: a sample."""
    command = [sys.executable, ROOT / "tools/mutate.py", "--sample", "72", "--seed", "1", "--quick"]
    tool = ROOT / "build/release/bin/tilewright"
    info = subprocess.run([tool, "--json", "info"], stdout=subprocess.PIPE, check=False)
    if info.returncode == 0 and not json.loads(info.stdout)["kernels"]:
        result = Result("mutants", "tree")
        result.skipped = ["built without kernels"]
        return result
    return run_command("mutants", command)


def run_fuzzer(name, seconds):
    result = Result(f"fuzz {name}", "fuzz")
    begin = time.monotonic()
    is_good, line, result.output = run_fuzzers.run_fuzzer(name, seconds)
    result.seconds = time.monotonic() - begin
    result.passed, result.failed = (1, 0) if is_good else (0, 1)
    result.failures = [] if is_good else [line]
    return result


FUZZ_SECONDS = 60  # of all fuzzers together; ./test --fuzz SECONDS takes longer


def fuzz_jobs():
    names = [name for name in run_fuzzers.built_fuzzers() if name != "ptx_run"]
    return [(run_fuzzer, name, seconds) for name, seconds in
            run_fuzzers.seconds_each(names, FUZZ_SECONDS).items()]


def tree_checks():
    """name -> command of the checks that need no build."""
    python = sys.executable
    return {
        "includes": [python, ROOT / "tools/check_includes.py"],
        "format": [python, ROOT / "tools/check_format.py"],
        "generated wgmma": [python, ROOT / "tools/make_wgmma_wrappers.py", "--check"],
        "results": [python, ROOT / "tools/make_results.py", "--check"],
        "notes index": [python, ROOT / "tools/make_notes_index.py", "--check"],
        "generated tcgen05": [python, ROOT / "tools/make_tcgen05_wrappers.py", "--check"],
        "tools": [python, "-m", "unittest", "discover", "-s", "tests/tools", "-p", "*_test.py"],
    }


# Programs that take minutes run in parts, and first, so that no processor waits for another at the end.
PARTS = {("asan", "ops_tests"): 6, ("asan", "model_tests"): 3, ("asan", "sim_tests"): 2,
         ("release", "kernels_tests"): 3, ("release", "ops_tests"): 2}


def is_run(build, path):
    return build != "asan" or "*" not in RELEASE_ONLY.get(path.name, [])


def collect(filter_text, seed):
    programs = [(build, path) for build in ("release", "asan")
                for path in sorted((ROOT / "build" / build / "bin").glob("*_tests")) if is_run(build, path)]
    programs.sort(key=lambda program: -PARTS.get((program[0], program[1].name), 1))
    jobs = []
    for build, path in programs:
        parts = 1 if filter_text else PARTS.get((build, path.name), 1)
        jobs += [(run_gtest, path, build, filter_text, seed, False, part, parts) for part in range(parts)]
        if build == "asan" and path.name in RELEASE_ONLY and not filter_text:
            jobs.append((release_only_job, path))
        if path.name == "device_tests" and not filter_text:
            jobs.append((run_on_simulator, path, build, filter_text, seed))
    if not any(job[0] is run_gtest and job[2] == "release" for job in jobs):
        sys.exit("run_tests: build/release/bin holds no test program; run ./test, which builds first")
    if not filter_text:
        jobs += [(run_command, name, command) for name, command in tree_checks().items()]
        jobs.append((run_mutants,))
        jobs += fuzz_jobs()
    return jobs


def closing_line(passed, failed, skipped):
    """The last line, alone and without colour: other programs read it."""
    return f"{passed} passed, {failed} failed, {skipped} skipped"


def print_summary(results, seed):
    for result in results:
        if result.failed:
            print(paint("31;1", f"\n{result.build} {result.name}"))
            print("\n".join(result.output.splitlines()[-60:]))
    print(paint("1", f"\n{'suite':<14} {'build':<8} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8}"))
    for r in results:
        line = f"{r.name:<14} {r.build:<8} {r.passed:>7} {r.failed:>7} {len(r.skipped):>8} {r.seconds:>8.1f}"
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
    passed, failed = sum(r.passed for r in results), sum(r.failed for r in results)
    verdict = paint("31;1", "something failed") if failed else paint("32", "all passed")
    print(f"\n{verdict}, order seed {seed}")
    print(closing_line(passed, failed, len(skipped)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("filter", nargs="?", default="", help="run only tests whose names contain this")
    parser.add_argument("--seed", type=int, default=random.randrange(1, 99999), help="order of the tests")
    args = parser.parse_args()
    results = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(*job) for job in collect(args.filter, args.seed)]
        for job in concurrent.futures.as_completed(jobs):
            results.append(job.result())
            if sys.stdout.isatty():
                print(f"\r{len(results)}/{len(jobs)} suites\x1b[K", end="", flush=True)
    if sys.stdout.isatty():
        print("\r\x1b[K", end="")
    results.sort(key=lambda r: ({"tree": 0, "release": 1, "asan": 2, "fuzz": 3}[r.build], r.name))
    print_summary(results, args.seed)
    return 1 if any(r.failed for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
