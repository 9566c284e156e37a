"""What run_tests.py runs: test programs, checks of the tree, mutants and fuzzers, each by a function.

Lists of tests are files of lines PROGRAM PATTERN:
  tests/release_only.txt  what the sanitizers leave out
  tests/sample.txt        small tests that together launch every operator and family of kernels
"""

import fnmatch
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

import python_environment
import run_fuzzers

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPTIMISED_SIMULATOR = ROOT / "build/release/lib/sim/libcuda.so.1"


def read_list(name):
    """program -> patterns of tests/NAME."""
    patterns = {}
    for line in (ROOT / "tests" / name).read_text().splitlines():
        if line and not line.startswith("#"):
            program, pattern = line.split()
            patterns.setdefault(program, []).append(pattern)
    return patterns


RELEASE_ONLY = read_list("release_only.txt")
SAMPLE = read_list("sample.txt")


class Result:
    """One program: counts, the names of what was skipped and why, what failed, and its output if it did."""

    def __init__(self, name, build):
        self.name, self.build = name, build
        self.seconds = self.processor_seconds = 0.0  # by the clock; of processors, with those of its children
        self.passed = self.failed = 0
        self.skipped, self.failures, self.output = [], [], ""

    def fail(self, text):
        self.failed += 1
        self.failures.append(text)
        self.output += text + "\n"


def run_process(result, command, **options):
    """Runs a program: its output and its times go to the result. Returns its exit status."""
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options) as process:
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    result.seconds = time.monotonic() - begin
    result.processor_seconds = usage.ru_utime + usage.ru_stime
    result.output = output.decode(errors="replace")
    return process.returncode


class Run:
    """How a program is run: which tests, in which order, with which simulator.

    filter   gtest's filter, all tests if empty; `text` is what a user asked for, which may match no test
    part     of `parts` of the program's tests
    """

    def __init__(self, path, build, seed, note="", filter="", text="", part=0, parts=1, environment=None):
        self.path, self.build, self.seed, self.note = path, build, seed, note
        self.filter = f"*{text}*" if text else filter
        self.text, self.part, self.parts = text, part, parts
        self.environment = dict(environment or {})

    def name(self):
        words = [self.path.name.removesuffix("_tests")]
        words += [self.note] if self.note else []
        words += [f"{self.part + 1}/{self.parts}"] if self.parts > 1 else []
        return " ".join(words)


def run_gtest(run):
    result = Result(run.name(), run.build)
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [str(run.path), f"--gtest_output=json:{report}", "--gtest_shuffle",
                   f"--gtest_random_seed={run.seed}", "--gtest_brief=1"]
        if run.filter:
            command.append(f"--gtest_filter={run.filter}")
        environment = os.environ | run.environment
        if run.parts > 1:
            environment |= {"GTEST_TOTAL_SHARDS": str(run.parts), "GTEST_SHARD_INDEX": str(run.part)}
        status = run_process(result, command, cwd=folder, env=environment)
        read_report(report, result)
    if status != 0 and result.failed == 0:
        result.fail(f"{run.path.name} ended with status {status}")
    elif not run.text and result.passed + result.failed == 0 and not (run.note and result.skipped):
        result.fail(f"{run.path.name} ran no test")
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


def list_tests(path):
    """Names of all tests of a program; none if it cannot be run."""
    try:
        listing = subprocess.run([str(path), "--gtest_list_tests"], stdout=subprocess.PIPE, check=False)
    except OSError:
        return []
    suite, names = "", []
    for line in listing.stdout.decode().splitlines():
        if line.startswith("  "):
            names.append(suite + line.split()[0])
        elif line:
            suite = line.split()[0]
    return names


def other_chips(names, seed):
    """Of each test that there is for several simulated chips, the names that are left out if it runs on one of
    them, drawn by the seed."""
    chips = {}
    for name in names:
        test, _, chip = name.rpartition("/")
        if test.startswith("SimTest/"):
            chips.setdefault(test, []).append(chip)
    left_out = []
    for test, of_test in chips.items():
        drawn = random.Random(f"{seed} {test}").choice(of_test)
        left_out += [f"{test}/{chip}" for chip in of_test if chip != drawn and len(of_test) > 1]
    return left_out


def check_list(path, build, name, patterns):
    """Fails if a pattern of the list tests/NAME names no test of this program."""
    result = Result(f"{name.removesuffix('.txt')} of {path.name.removesuffix('_tests')}", build)
    names = list_tests(path)
    for pattern in patterns:
        if fnmatch.filter(names, pattern):
            result.passed += 1
        else:
            result.fail(f"tests/{name}: {path.name} has no test {pattern}")
    return result


def run_command(name, command):
    """A check of the tree: passes if it ends with status 0; lines "skipped: WHAT" are what it could not check."""
    result = Result(name, "tree")
    if run_process(result, command, cwd=ROOT) != 0:
        result.fail(" ".join(map(str, command)))
        return result
    result.skipped = [line.removeprefix("skipped: ") for line in result.output.splitlines()
                      if line.startswith("skipped: ")]
    result.passed = 0 if result.skipped else 1
    return result


def tree_checks():
    """name -> command of the checks that need no build."""
    python = sys.executable
    checks = {
        "includes": [python, ROOT / "tools/check_includes.py"],
        "format": [python, ROOT / "tools/check_format.py"],
        "results": [python, ROOT / "tools/make_results.py", "--check"],
        "peer counts": [python, ROOT / "bench/make_peer_counts.py", "--check"],
        "closures": [python, ROOT / "tools/reading_closures.py"],
        "notes index": [python, ROOT / "tools/make_notes_index.py", "--check"],
        "tools": [python, "-m", "unittest", "discover", "-s", "tests/tools", "-p", "*_test.py"],
    }
    for name in ("wgmma_wrappers", "tcgen05_wrappers", "c_api"):
        checks[f"generated {name}"] = [python, ROOT / f"tools/make_{name}.py", "--check"]
    for name in ("ptx", "rates", "golden"):
        checks[f"generated {name}"] = [python, ROOT / "tools/check_generated.py", name]
    return checks


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


def run_family():
    """Kernels for Blackwell assembled for each chip of the family: those that are not in the record."""
    return run_command("family", [sys.executable, ROOT / "tools/check_family.py", "--cpu-seconds", "20"])


def run_install():
    """The library installed in an empty folder, and programs outside the tree built with it."""
    return run_command("install", [sys.executable, ROOT / "tests/install/install_test.py"])


def python_tests():
    """Files of tests/python, one job each."""
    folder = ROOT / "tests/python"
    return sorted({*folder.rglob("*_test.py"), *folder.rglob("test_*.py")})


def run_pytest(path, text=""):
    """A file of tests/python with the interpreter of the build folder."""
    result = Result(f"python {path.stem.removesuffix('_test').removeprefix('test_')}", "release")
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.xml"
        command = [str(python_environment.interpreter()), "-m", "pytest", "-q", "-p", "no:cacheprovider",
                   f"--junitxml={report}", "-c", str(ROOT / "pyproject.toml"), str(path)]
        command += ["-k", text] if text else []
        environment = os.environ | {"PYTHONPATH": str(python_environment.PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            status = run_process(result, command, cwd=ROOT, env=environment)
        except FileNotFoundError:
            result.skipped = [f"{path.name} (no {command[0]})"]
            return result
        read_junit(report, result)
    if "No module named pytest" in result.output:
        result.skipped = [f"{path.name} (needs pytest)"]
    elif status not in (0, 5) and result.failed == 0:  # 5: no test, as where all of a file is skipped
        result.fail(f"pytest {path.name} ended with status {status}")
    return result


def read_junit(report, result):
    if not report.exists():
        return
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}"
        if case.find("failure") is not None or case.find("error") is not None:
            result.failed += 1
            result.failures.append(name)
        elif (skipped := case.find("skipped")) is not None:
            result.skipped.append(f"{name} ({skipped.get('message', '')})")
        else:
            result.passed += 1


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
