"""Runs a program with a changed kernel on the simulator, and says what became of it."""

import dataclasses
import json
import os
import pathlib
import re
import resource
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FINDING = re.compile(r"^sim: .*\[(mem|init|sync|race|proxy|mma|tmem|strict)\]$", re.M)
PLACED = re.compile(r"^sim: (?!.* stands in for the module of ).*", re.M)
TIMINGS = ("eager", "late", "random")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """how: silent, named, wrong (values only), fault (stopped without a check's name), slow (never ended)"""

    how: str
    check: str = ""
    text: str = ""  # the first line of what was said


class Runner:
    """Programs of a build folder."""

    def __init__(self, build, cpu_seconds):
        self.bin = build / "bin"
        self.cpu_seconds = cpu_seconds

    def tool(self, *words):
        done = subprocess.run([self.bin / "tilewright", *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"tilewright {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def ptx(self, entry):
        return self.tool("kernels", "--ptx", entry)

    def _limit(self):
        resource.setrlimit(resource.RLIMIT_CPU, (self.cpu_seconds, self.cpu_seconds + 2))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def start(self, case, shape, ptx, *, checks, timing, report=""):
        """Status and everything said."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / f"{case.name}.ptx"
            file.write_text(ptx)
            own = {"CHECK": checks, "ASYNC": timing, "SEED": "1" if timing == "random" else "0",
                   "SMS": str(shape.sms), "THREADS": "1", "REPLACE": f"{case.entry}={file}"}
            if report:
                own["REPORT"] = report
            environment = {key: value for key, value in os.environ.items()
                           if not key.startswith(("TILEWRIGHT_", "GTEST_"))}
            environment |= {f"TILEWRIGHT_SIM_{key}": value for key, value in own.items()}
            program, *words = shape.command
            try:
                done = subprocess.run([self.bin / program, *words], stdout=subprocess.PIPE, cwd=folder,
                                      stderr=subprocess.STDOUT, env=environment, preexec_fn=self._limit,
                                      timeout=60 + 20 * self.cpu_seconds, check=False)
            except subprocess.TimeoutExpired as late:
                return -9, (late.stdout or b"").decode(errors="replace")
            return done.returncode, done.stdout.decode(errors="replace")

    def run(self, case, shape, ptx, *, checks="all", timing="eager"):
        status, said = self.start(case, shape, ptx, checks=checks, timing=timing)
        if " stands in for the module of " not in said:
            raise RuntimeError(f"{case.name}: the program did not load {case.entry}:\n{said}")
        if found := FINDING.search(said):
            return Outcome("named", found[1], found[0].removeprefix("sim: "))
        if "PTX" in said and "error:" in said:
            raise RuntimeError(f"{case.name}: the changed text is no PTX:\n{said}")
        if status < 0:
            return Outcome("slow")
        if status == 0:
            return Outcome("silent")
        if found := PLACED.search(said):
            return Outcome("fault", "", found[0].removeprefix("sim: "))
        return Outcome("wrong")

    def executed_lines(self, case, module):
        """Numbers of the PTX lines that run at the first shape. Errors   RuntimeError if it fails unchanged"""
        with tempfile.NamedTemporaryFile(suffix=".json") as report:
            status, said = self.start(case, case.shapes[0], module.text(), checks="none", timing="eager",
                                      report=report.name)
            if status != 0:
                raise RuntimeError(f"{case.name} fails unchanged:\n{said}")
            kernels = json.load(open(report.name, encoding="utf-8"))["kernels"]
        lines = {line["line"] for kernel in kernels if kernel["kernel"] == case.entry for line in kernel["lines"]}
        if not lines:
            names = ", ".join(kernel["kernel"] for kernel in kernels)
            raise RuntimeError(f"{case.name}: {case.entry} did not run, only {names}")
        return lines
