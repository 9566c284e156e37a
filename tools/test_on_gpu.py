#!/usr/bin/env python3
"""All that the Python package has for a GPU, in a time that is given: what calls cost, then its tests beside the
suites of other libraries, in many processes.

    tools/test_on_gpu.py --out DIR [--package build/release/python] [--suites DIR] [--peers DIR] [--seconds 300]
                         [--jobs 13]

--suites names a folder with fa3 (FlashAttention's hopper/, and flash_attn/ for rotary cases), flashmla and
deepgemm as they were published; without it they are left out. --peers names a folder from which other libraries
can be imported, whose calls get a row in the table of costs. Needs torch, pytest and einops for the Python that
runs this, and rich for flashmla. DIR gets a log of each part as it goes, so that a kill loses nothing.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests/python"
# Processes of tests, each with files that take about as long as the others'.
GROUPS = (("torch_gpu_test", "torch_attention_test", "bad_input_test", "torch_ops_test", "known_calls_test"),
          ("torch_paged_test", "attention/merge_test", "attention/latent_test", "plugins/jax_test"),
          ("sdpa_test", "compat_flash_attn_test", "compat_deepseek_test", "torch_layers_test"),
          ("transformers_v4_test", "transformers_dense_test", "transformers_experts_test", "arrays_test"))
SUITES = ("fa3", "flashmla", "deepgemm")
# What runs first has the machine for itself.
OVERHEAD_SECONDS = 90


class Part:
    """A process with a log; what it prints goes there as it comes."""

    def __init__(self, name, command, options, limit, *folders):
        self.name, self.begin, self.limit = name, time.monotonic(), limit
        self.log = (options.out / f"{name}.txt").open("wb")
        path = [str(options.package.resolve()), str(TESTS), *map(str, folders), os.environ.get("PYTHONPATH", "")]
        # JAX takes most of the memory when it starts, unless it is told not to.
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "2",
                       "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONPATH": os.pathsep.join(filter(None, path))}
        self.process = subprocess.Popen([sys.executable, *map(str, command)], stdout=self.log,
                                        stderr=subprocess.STDOUT, env=environment, cwd=ROOT,
                                        start_new_session=True)

    def wait(self):
        """What its end was, in a line."""
        try:
            ended = self.process.wait(max(1.0, self.begin + self.limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)  # its workers, too
            ended = f"killed after {self.limit:.0f} s"
        self.log.close()
        return f"{self.name}: {ended}, {time.monotonic() - self.begin:.0f} s"


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--package", type=pathlib.Path, default=ROOT / "build/release/python")
    parser.add_argument("--suites", type=pathlib.Path, help="folder with fa3, flashmla, deepgemm")
    parser.add_argument("--peers", type=pathlib.Path, help="folder from which other libraries are imported")
    parser.add_argument("--seconds", type=float, default=300, help="for all of it; suites stop in time")
    parser.add_argument("--jobs", type=int, default=13, help="processes of the suites")
    parser.add_argument("--device", default="cuda:0", help="sim:h200 tries this out without a GPU")
    parser.add_argument("--sample", type=int, help="so many cases of each suite")
    return parser.parse_args()


def suite_command(options, suite, jobs, seconds):
    command = ["-m", "tilewright.testing.peers", suite, "--folder", options.suites / suite]
    command += ["--log", options.out / f"{suite}.json", "--jobs", jobs, "--deadline", round(seconds, 1)]
    command += [] if options.device == "cuda:0" else ["--device", options.device]
    return command + ([] if options.sample is None else ["--sample", options.sample])


def tests_command(options, group):
    files = [TESTS / f"{name}.py" for name in group if (TESTS / f"{name}.py").exists()]
    command = ["-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", "--durations=8", *files]
    return command + (["-k", "Gpu or gpu"] if options.device != "cuda:0" else [])


def main():
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + options.seconds
    print(Part("doctor", ["-m", "tilewright", "doctor"], options, 60).wait(), flush=True)
    overhead = ["-m", "tilewright.bench", "overhead", "--device", options.device, "--log",
                options.out / "overhead.json"]
    peers = [options.peers.resolve()] if options.peers else []
    print(Part("overhead", overhead, options, OVERHEAD_SECONDS, *peers).wait(), flush=True)
    left = end - time.monotonic()
    parts = [Part(f"tests-{i}", tests_command(options, group), options, left) for i, group in enumerate(GROUPS)]
    if options.suites:
        # FlashMLA's cases take longer; DeepGEMM's are few, and large.
        share = max(1, options.jobs // 2)
        jobs = {"fa3": share, "flashmla": max(1, options.jobs - share), "deepgemm": 1}
        parts += [Part(suite, suite_command(options, suite, jobs[suite], left - 25), options, left)
                  for suite in SUITES]
    ends = [part.wait() for part in parts]
    for suite in SUITES if options.suites else ():
        if not (options.out / f"{suite}.json").exists():  # it was killed; its lines are there
            command = ["-m", "tilewright.testing.peers", suite, "--sum-up", "--log", options.out / f"{suite}.json"]
            ends.append(Part(f"{suite}-summary", command, options, 30).wait())
    print("\n".join(ends), flush=True)
    for part in parts:
        text = (options.out / f"{part.name}.txt").read_text(errors="replace")
        print(f"---- {part.name}\n{text[-1500:]}", flush=True)
    return 0 if all(": 0," in line for line in ends) else 1


if __name__ == "__main__":
    sys.exit(main())
