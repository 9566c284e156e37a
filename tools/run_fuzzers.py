#!/usr/bin/env python3
"""Runs the libFuzzer programs of build/fuzz for a number of seconds in all, and says what they found.

Each starts from the files of the tree named below and from its corpus in build/fuzz/corpus, which grows and is
kept. An input that breaks a promise is left in build/fuzz/crashes, and the command that runs it again is printed.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FUZZ = ROOT / "build" / "fuzz"

# name -> share of the time, folders of seeds, largest input in bytes
FUZZERS = {
    "ptx": (5, ["tests/ptx", "tests/ptx/good", "tests/golden/ptx"], 8192),
    "ptx_run": (8, ["tests/ptx", "tests/ptx/good", "tests/ptx/bad"], 8192),
    "fatbin": (2, ["tests/golden/fatbin"], 4096),
    "json": (1, ["tests/golden/io"], 4096),
    "npy": (1, ["tests/golden/io"], 4096),
    "safetensors": (1, ["tests/golden/io"], 4096),
    "tokenizer": (1, ["tests/golden/tokenizer/seeds"], 8192),
}


def built_fuzzers():
    return [name for name in FUZZERS if (FUZZ / "bin" / f"{name}_fuzz").exists()]


def seconds_each(names, total_seconds):
    shares = sum(FUZZERS[name][0] for name in names)
    return {name: max(1, total_seconds * FUZZERS[name][0] // shares) for name in names}


def run_fuzzer(name, seconds):
    """Returns whether all went well, one line about it, and what to show if it did not."""
    _, seeds, max_bytes = FUZZERS[name]
    program, corpus, crashes = FUZZ / "bin" / f"{name}_fuzz", FUZZ / "corpus" / name, FUZZ / "crashes"
    corpus.mkdir(parents=True, exist_ok=True)
    crashes.mkdir(parents=True, exist_ok=True)
    command = [str(program), f"-max_total_time={seconds}", f"-max_len={max_bytes}", "-timeout=20",
               "-rss_limit_mb=2048", f"-artifact_prefix={crashes}/{name}-", "-print_final_stats=1", str(corpus)]
    done = subprocess.run(command + [str(ROOT / seed) for seed in seeds], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, cwd=ROOT)
    output = done.stdout.decode(errors="replace")
    runs = re.search(r"stat::number_of_executed_units: (\d+)", output)
    line = f"{name}: {runs.group(1) if runs else 'unknown'} inputs in {seconds} s"
    if done.returncode == 0:
        return True, line, output
    found = re.search(r"Test unit written to (\S+)", output)
    again = f"\nended with status {done.returncode} and left no input"
    if found:
        again = f"\nto run this input again: {program.relative_to(ROOT)} {os.path.relpath(found.group(1), ROOT)}"
    return False, f"{name}: a promise is broken", "\n".join(output.splitlines()[-50:]) + again


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", type=int, nargs="?", default=60, help="time in all (default 60)")
    parser.add_argument("--only", choices=FUZZERS, help="one fuzzer")
    args = parser.parse_args()
    names = [args.only] if args.only else built_fuzzers()
    if not names:
        sys.exit("run_fuzzers: build/fuzz/bin holds no fuzzer; ./test --fuzz SECONDS builds them (needs clang)")
    is_good = True
    begin = time.monotonic()
    processors = min(len(names), os.cpu_count() or 1)
    times = seconds_each(names, args.seconds * processors)
    with concurrent.futures.ThreadPoolExecutor(processors) as pool:
        for good, line, output in pool.map(lambda name: run_fuzzer(name, times[name]), names):
            print(line if good else f"{output}\n{line}", flush=True)
            is_good &= good
    print(f"{'no input' if is_good else 'an input'} broke a promise ({time.monotonic() - begin:.0f} s)")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
