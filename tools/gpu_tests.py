#!/usr/bin/env python3
"""The C++ tests that need a GPU, each in a process with a time limit of its own, over one or more GPUs.

    tools/gpu_tests.py --out DIR [--bin build/release/bin] [--gpus 4] [--jobs 14] [--limit 120] [--seconds 300]
                       [--known DIR/gpu_tests.json] [--match PATTERN]

Tests are those of ops_tests, kernels_tests, device_tests, hardware_tests and model_tests with Gpu in the name of
their suite, but not those of the simulator. What took longest the last time (--known) starts first. With two GPUs
or more the last one is for the tests of whole models, --models at a time, until they are done: beside others they
have run into limits.
DIR gets a line of gpu_tests.jsonl as each test ends, gpu_tests.json and gpu_tests.xml (JUnit) at the end, and the
output of each test that failed. --resume goes on where an earlier run stopped. Exit status 1 if a test failed, ran
into its limit or was not reached.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ("model_tests", "ops_tests", "kernels_tests", "device_tests", "hardware_tests")
#: Whole models: several minutes of one core each, and much memory.
ALONE = ("model_tests",)
OUTCOME = re.compile(r"^\[  (PASSED|SKIPPED|FAILED) +\] +(\d+) test", re.MULTILINE)
PASSED, FAILED, SKIPPED, LATE = "passed", "failed", "skipped", "ran into its limit"


def tests_of(program):
    """Names of a program's tests for a GPU."""
    listed = subprocess.run([program, "--gtest_list_tests"], stdout=subprocess.PIPE, text=True, check=True).stdout
    suite, names = "", []
    for line in listed.splitlines():
        word = line.split("#")[0].strip()
        if line.startswith("  "):
            names.append(suite + word)
        elif word.endswith("."):
            suite = word
    return [name for name in names if "Gpu" in name.split(".")[0] and not name.startswith("SimTest/")]


def read_outcome(text, status):
    counts = {word: int(count) for word, count in OUTCOME.findall(text)}
    if status != 0 or counts.get("FAILED"):
        return FAILED
    return SKIPPED if counts.get("SKIPPED") else PASSED if counts.get("PASSED") else FAILED


class Run:
    """Which tests wait, and what became of the others."""

    def __init__(self, options):
        self.options, self.lock = options, threading.Lock()
        self.lines = options.out / "gpu_tests.jsonl"
        self.done, self.models_that_run = {}, 0
        if options.resume and self.lines.exists():
            self.done = {row["test"]: row for row in map(json.loads, self.lines.read_text().splitlines())}
        else:
            self.lines.write_text("")
        known = {row["test"]: row["seconds"] for row in json.loads(options.known.read_text())["tests"]} \
            if options.known else {}
        self.all = [(program, name) for program in PROGRAMS if (options.bin / program).exists()
                    for name in tests_of(options.bin / program) if options.match in f"{program} {name}"]
        waiting = [test for test in self.all if " ".join(test) not in self.done]
        # What is not known may be long.
        waiting.sort(key=lambda test: -known.get(" ".join(test), 1000))
        self.alone = collections.deque(test for test in waiting if test[0] in ALONE)
        self.others = collections.deque(test for test in waiting if test[0] not in ALONE)

    def take(self, may_be_alone, may_be_other):
        """The next test for a worker, None if it has no more."""
        with self.lock:
            if time.monotonic() > self.options.end:
                return None
            if may_be_alone and self.alone:
                return self.alone.popleft()
            return self.others.popleft() if may_be_other and self.others else None

    def has_models(self):
        """Whether tests of models wait, or run."""
        with self.lock:
            return bool(self.alone) or self.models_that_run > 0

    def note(self, test, outcome, seconds, text):
        row = {"test": " ".join(test), "outcome": outcome, "seconds": round(seconds, 2)}
        if outcome not in (PASSED, SKIPPED):
            row["text"] = text[-3000:]
            (self.options.out / (re.sub(r"[^A-Za-z0-9]+", "_", row["test"]) + ".txt")).write_text(text)
        if outcome == SKIPPED:
            row["text"] = text[-300:]
        with self.lock:
            self.done[row["test"]] = row
            with self.lines.open("a") as out:
                out.write(json.dumps(row) + "\n")
            if outcome not in (PASSED, SKIPPED):
                print(f"{outcome}: {row['test']}", flush=True)


def run_test(run, test, gpu):
    program, name = test
    left = max(1.0, run.options.end - time.monotonic())
    begin = time.monotonic()
    is_model = program in ALONE
    with run.lock:
        run.models_that_run += is_model
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": gpu, "OMP_NUM_THREADS": "1"}
    try:
        command = [str(run.options.bin / program), f"--gtest_filter={name}"]
        ended = subprocess.run(command, env=environment, text=True, errors="replace", stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, timeout=min(run.options.limit, left))
        outcome, text = read_outcome(ended.stdout, ended.returncode), ended.stdout
    except subprocess.TimeoutExpired as late:
        if left < run.options.limit:
            return  # not reached: the time for all is over
        outcome, text = LATE, (late.stdout or b"").decode(errors="replace")
    finally:
        with run.lock:
            run.models_that_run -= is_model
    run.note(test, outcome, time.monotonic() - begin, text)


def work(run, place, gpus):
    """A worker: of GPU place % gpus, where it is number place // gpus. Few of the last GPU do tests of models."""
    gpu, number = place % len(gpus), place // len(gpus)
    is_last = gpu == len(gpus) - 1
    may_be_alone = is_last and number < run.options.models
    while time.monotonic() < run.options.end:
        is_kept_free = is_last and len(gpus) > 1 and run.has_models()
        test = run.take(may_be_alone, not is_kept_free)
        if test is not None:
            run_test(run, test, gpus[gpu])
        elif is_kept_free and run.others:
            time.sleep(0.2)
        else:
            return


def write_junit(rows, path):
    suites = xml.etree.ElementTree.Element("testsuites")
    of_program = {}
    for row in rows:
        program, _, name = row["test"].partition(" ")
        if program not in of_program:
            of_program[program] = xml.etree.ElementTree.SubElement(suites, "testsuite", name=program)
        case = xml.etree.ElementTree.SubElement(of_program[program], "testcase", classname=name.rpartition(".")[0],
                                                name=name.rpartition(".")[2], time=str(row["seconds"]))
        if row["outcome"] == SKIPPED:
            xml.etree.ElementTree.SubElement(case, "skipped")
        elif row["outcome"] != PASSED:
            failure = xml.etree.ElementTree.SubElement(case, "failure", message=row["outcome"])
            failure.text = re.sub(r"[^\t\n -~]", "?", row.get("text", ""))
    xml.etree.ElementTree.ElementTree(suites).write(path)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--gpus", type=int, default=1, help="of those in CUDA_VISIBLE_DEVICES, or from 0 on")
    parser.add_argument("--jobs", type=int, default=14, help="tests at the same time on each GPU")
    parser.add_argument("--models", type=int, default=4, help="tests of models at the same time")
    parser.add_argument("--limit", type=float, default=120, help="seconds of a test")
    parser.add_argument("--seconds", type=float, default=1e9, help="for all of it")
    parser.add_argument("--known", type=pathlib.Path, help="gpu_tests.json of an earlier run")
    parser.add_argument("--match", default="", help="only tests whose program and name contain this")
    parser.add_argument("--resume", action="store_true", help="tests that have ended are not run again")
    options = parser.parse_args()
    options.end = time.monotonic() + options.seconds
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def main():
    options = parse()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = (visible.split(",") if visible else [str(i) for i in range(options.gpus)])[:options.gpus]
    begin = time.monotonic()
    run = Run(options)
    threads = [threading.Thread(target=work, args=(run, place, gpus)) for place in range(options.jobs * len(gpus))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = sorted(run.done.values(), key=lambda row: -row["seconds"])
    missing = [" ".join(test) for test in run.all if " ".join(test) not in run.done]
    counts = collections.Counter(row["outcome"] for row in rows)
    found = {"seconds": round(time.monotonic() - begin, 1), "gpus": len(gpus), "jobs": options.jobs,
             "counts": dict(counts), "not_reached": missing, "tests": rows}
    (options.out / "gpu_tests.json").write_text(json.dumps(found, indent=1) + "\n")
    write_junit(rows, options.out / "gpu_tests.xml")
    for program in PROGRAMS:
        of = collections.Counter(row["outcome"] for row in rows if row["test"].startswith(program + " "))
        if of:
            print(f"{program:15}", ", ".join(f"{n} {outcome}" for outcome, n in sorted(of.items())))
    print(f"{len(rows)} of {len(run.all)} tests ran in {found['seconds']} s; longest:",
          ", ".join(f"{row['test'].split()[1]} {row['seconds']} s" for row in rows[:6]))
    bad = len(missing) + sum(n for outcome, n in counts.items() if outcome not in (PASSED, SKIPPED))
    if missing:
        print(f"{len(missing)} not reached, such as {', '.join(missing[:4])}")
    return 1 if bad or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
