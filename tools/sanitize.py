#!/usr/bin/env python3
"""Runs every rung of the attention ladder, flash decode and tests of the other operators under NVIDIA's
compute-sanitizer, on a GPU.

  tools/sanitize.py [--tools memcheck,initcheck,synccheck,racecheck] [--kernels k7,decode,tests] [--jobs 8]
                    [--tests PATTERN,PATTERN] [--out FOLDER]

Shapes are small and ragged, and every result is checked against float64. `tests` are those of tests/sample.txt,
which launch every operator, and of MORE_TESTS below. A table is printed; FOLDER gets the output of each run and
summary.json. Exit status 1 if anything was found or a result is wrong.

What racecheck's words are worth here (NVIDIA's release notes of compute-sanitizer; FlashAttention's notes on it):
- It sees shared memory only. Tensor copies (cp.async.bulk.tensor) are attributed to no thread, so that it misses
  races with them; plain bulk copies (cp.async.bulk) it follows since 2024.4, and blames those that mbarriers order
  in loops across warps. --racecheck-memcpy-async=no changes neither: it is about cp.async of sm_80.
- Order by mbarriers brought false alarms that were mended in 2025.3 (the one of CUDA 13.0), 2025.4 and, of
  complete_tx, 2026.3; those of warpgroups on Hopper in 2026.1. Before believing a hazard between a store of one
  warp and a wgmma or a copy of another, try the newest version, and the simulator (TILEWRIGHT_SIM_CHECK=all),
  which knows both. A race between plain loads and stores is the kind racecheck is right about.
- Parts of a CTA that meet at named barriers of their own (bar.sync 1 and 2, say) an unequal number of times make
  2025.3 report hazards behind the barriers of the whole CTA that follow: 10 rounds against 9 do, 10 against 10 do
  not. Decode's teams therefore meet equally often.
- A ring filled by cp.async whose slots one lane releases for its warp (reads, __syncwarp, an mbarrier arrival; the
  producer waits for it before it copies) makes 2025.3 report that the next copy overwrites what other lanes read.
  Sparse attention with 8 to 32 heads is such a kernel: no hazard while its ring is not used again, some as soon as
  it is. The simulator, which follows mbarriers and __syncwarp, has none.
- What 2026.4 still reports of tests of operators, each looked at (bench/results/2026-11-27-operators-sanitizers-
  h100.json): sums that CTAs of a cluster store into each other's shared memory before an arrival there
  (mbarrier.arrive.release.cluster; also if every lane arrives for itself, so that it is the remote arrival that
  is not followed; the same with st.async, which counts bytes, is clean), and what a warp's lanes store before one
  of them arrives for all behind __syncwarp (ids in MoE's direct kernels, references in attention over 576).
- Of attention over lists of 576 and latent attention over pages 2025.3 reports four pairs of places, looked at
  one by one. Each is ordered; the first three are what lanes store or read beside the one that arrives for its
  warp: `references` of LatentConsumer (hand_on, follow_other), factors of the weights (hand_on of the score
  consumer, take of the value consumer), and words of valid keys (store_valid, hide_missing), each in both
  directions. Store, __syncwarp, lane 0 arrives at `full`, all threads wait for it, load; load, __syncwarp, lane
  0 arrives at `empty`, the writers wait for it, store. The sizes say that it is this: 8 lanes of each of 4
  warps store 128 bytes, and all hazards of `references` are multiples of 112 bytes, those of the 7 lanes that
  do not arrive; the lane that arrives is in none. Where a load comes before the next store it is all 128: each
  row is also read by 3 lanes that do not arrive; hazards of factors are sums of both.
  The fourth is sums of rows in LatentConsumer::finish: stored, bar.sync 3 of both consumers, loaded; stored
  again two pieces later (piece_parity_), behind the bar.sync 3 of the piece between. Hazards are whole warps
  (32 bytes), so that it is no matter of lanes but the barrier is not followed: consumers meet at bar.sync 1 and
  2 in clear_values() an unequal number of times, as above.
- Of attention over gathered pages with tiles of 192 rows 2025.3 reports zeros that clear_values() stores behind
  the last key, and the cp.async that fills the stage next. Between them are a bar.sync of all consumers, behind
  which one lane of each warp arrives at `empty`, and the wait of the warp that copies: what the other lanes
  stored is not followed, as above. The simulator has no finding.
- synccheck takes one barrier that warps of different roles pass at different instructions (bar.sync with the
  same number and count: band, hyper-connections, attention over 576) for a divergent block, and ends the kernel.
  PTX wants all threads of a warp at the same instruction, not all warps. Of MoE's direct kernels it says that an
  mbarrier at shared address 0 is initialized twice, which the source does not do and the simulator, which knows
  that rule, does not see; why it does is not known.
"""

import argparse
import array
import collections
import concurrent.futures
import dataclasses
import itertools
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = ("memcheck", "initcheck", "synccheck", "racecheck")
# Automatic detection of how many mbarriers a CTA has runs out of room with loops over them. 16 warps with rings of
# 8 stages have 128; with too few, barriers are "already initialized", and races are reported.
OPTIONS = {"synccheck": ["--num-cuda-barriers", "256"], "racecheck": ["--num-cuda-barriers", "256"]}
# Tests ask the driver for what a device may lack; memcheck would take a refusal for a finding.
TEST_OPTIONS = {"memcheck": ["--report-api-errors", "no"], "initcheck": ["--report-api-errors", "no"]}
# Beside the sample: kernels with several roles, rings and clusters, of which it launches one form.
MORE_TESTS = (
    "ops_tests AttentionPagedTest.EveryFormOfTheKernel", "ops_tests AttentionPagedTest.GatheredAndCopied*",
    "ops_tests AttentionPagedE4m3Test.EveryForm*", "ops_tests AttentionPagedE4m3Test.PagesOfAnySize",
    "ops_tests LatentAttentionTest.EveryFormAndType", "ops_tests LinearStackTest.OneWeightOfEveryFormat",
    "ops_tests MoeDirectTest.OneToEightTokens", "ops_tests MoeDirectTest.RoutedAndSharedExperts*",
    "ops_tests MoeRunTest.WideInEveryFormat", "ops_tests MoeRunTest.Wide8InEveryFormat",
    "ops_tests HyperConnectionTest.RoutesInTheSameLaunch")
SECONDS = 300  # of a run
SUMMARY = re.compile(r"ERROR SUMMARY: (\d+) error")
ALL_PASSED = re.compile(r"\[  PASSED  \] [1-9]")
NO_FINDING = re.compile(r" ?(COMPUTE-SANITIZER|\w+ SUMMARY|Target application)")
PLACE = re.compile(r"\w[\w.]*\.(?:h|cu):\d+")
HAZARDS = re.compile(r"RACECHECK SUMMARY: \d+ hazards? displayed \((\d+) errors?, (\d+) warnings?\)")


@dataclasses.dataclass(frozen=True)
class Case:
    """A kernel on one shape: rows of q and of k, heads of each, further arguments of `tilewright attention`.
    "decode": tensors are drawn, and all arguments are those of `tilewright decode`."""
    kernel: str
    head_dim: int
    rows: tuple = (200, 300)
    heads: tuple = (4, 2)
    arguments: tuple = ("--causal",)

    @property
    def name(self):
        switches = [word[2:] for word in self.arguments if word.startswith("--")]
        if self.kernel == "decode" or "--dtype" in self.arguments:  # of those the values tell cases apart
            switches = [word for word in self.arguments if word[0].isalpha()]
        return " ".join([f"{self.kernel} d{self.head_dim}"] + switches)


@dataclasses.dataclass(frozen=True)
class TestCase:
    """Tests of a program of the build, on the GPU: those whose names fit the pattern."""
    program: str
    pattern: str
    kernel: str = "tests"

    @property
    def name(self):
        return self.pattern.rstrip("*")


def make_test_cases(patterns=()):
    """Of the lines of tests/sample.txt those whose tests run on a GPU as well, and MORE_TESTS; or others."""
    lines = [f"ops_tests {pattern}" for pattern in patterns]
    if not lines:
        sample = (ROOT / "tests/sample.txt").read_text().splitlines()
        lines = [line.replace(" *", " ") for line in sample if not line.startswith("#") and " *" in line]
        lines += MORE_TESTS
    return [TestCase(*line.split()) for line in lines]


EVERYTHING = ("--cu-seqlens-q", "0,0,70,200", "--cu-seqlens-k", "0,5,200,300", "--window", "50,20",
              "--softcap", "8")


def make_rung_cases():
    """The rungs of 16 bits, which tools/attention_rungs.json lists."""
    cases = []
    for rung in json.loads((ROOT / "tools/attention_rungs.json").read_text()):
        kernel, dims, is_form = rung["kernel"], rung["head_dims"], "form_of" in rung
        rows = (200, 700) if kernel == "k6_long" else (200, 300)  # more than a step of its keys
        cases += [Case(kernel, dim, rows=rows) for dim in dims]
        if rung["has_everything"] and not is_form:
            cases += [Case(kernel, dim, arguments=EVERYTHING) for dim in dims]
            cases.append(Case(kernel, 128, arguments=("--dtype", "f16")))
    return cases


def make_cases():
    cases = make_rung_cases() + [Case("k4_2", 128, arguments=("--dtype", "f16"))]
    # K7 with what K8's kernels make of 16 bits; operands of e4m3 with every kind of factor, layout and sum.
    cases += [Case(kernel, dim) for kernel in ("k7", "k8") for dim in (64, 128, 256)]
    cases += [Case("k7", dim, arguments=EVERYTHING) for dim in (64, 128, 256)]
    cases += [Case("k7", 128, arguments=("--dtype", "e4m3", "--scales", scales, "--v-layout", layout,
                                         "--accumulation", sums))
              for scales, layout, sums in (("tensor", "rows", "one_level"), ("head", "columns", "two_level"),
                                           ("block", "rows", "two_level"), ("block", "columns", "one_level"))]
    return cases + make_decode_cases()


def make_decode_cases():
    shape = ("--batch", "3", "--heads", "8", "--kv-heads", "2", "--keys", "300", "--lengths", "random")
    forms = {"bf16": ("--kv", "bf16"), "f16": ("--dtype", "f16", "--kv", "f16"),
             "e4m3": ("--kv", "e4m3", "--page", "16", "--rotary", "halves", "--q-len", "3")}
    return [Case("decode", dim, arguments=(*forms[form], "--kernel", kernel, *shape))
            for form in forms for dim in (64, 128, 256) for kernel in ("r16", "r16_tma", "r64")]


def write_npy(path, shape, seed):
    """float32 values of a smooth function: no NumPy is needed."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    values = array.array("f", (math.sin(0.37 * i + seed) for i in range(math.prod(shape))))
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + values.tobytes())


def decode_arguments(case):
    return ["decode", "--head-dim", str(case.head_dim), *case.arguments, "--check-sequences", "3"]


def attention_arguments(case, folder):
    inputs = {"q": (case.rows[0], case.heads[0]), "k": (case.rows[1], case.heads[1]),
              "v": (case.rows[1], case.heads[1])}
    for seed, (name, extents) in enumerate(inputs.items()):
        write_npy(folder / f"{name}.npy", extents + (case.head_dim,), seed)
    tensors = [word for name in inputs for word in (f"--{name}", str(folder / f"{name}.npy"))]
    return ["attention", *tensors, "--kernel", case.kernel, *case.arguments]


def test_command(case, tool, args):
    program = args.tilewright.parent / case.program
    return [args.sanitizer, "--tool", tool, *OPTIONS.get(tool, []), *TEST_OPTIONS.get(tool, []), "--print-limit",
            "20", str(program), f"--gtest_filter=GpuTest/{case.name}*"]


def command_of(case, tool, args, folder):
    if isinstance(case, TestCase):
        return test_command(case, tool, args)
    of_tool = decode_arguments(case) if case.kernel == "decode" else attention_arguments(case, folder)
    return [args.sanitizer, "--tool", tool, *OPTIONS.get(tool, []), "--print-limit", "20", str(args.tilewright),
            "--device", args.device, *of_tool, "--runs", "0", "--check"]


def read_output(text, status):
    """Findings and warnings of a run, None without its end, and whether the result was right."""
    errors, warnings = None, 0
    if match := HAZARDS.search(text):
        errors, warnings = int(match[1]), int(match[2])
    elif match := SUMMARY.search(text):
        errors = int(match[1])
    is_right = "check      correct" in text or bool(ALL_PASSED.search(text) and "[  FAILED  ]" not in text)
    return {"errors": errors, "warnings": warnings, "is_right": is_right, "status": status,
            "places": count_places(text)}


def count_places(text):
    """The most frequent findings: the lines of source that each names, in its order."""
    findings, places = [], collections.Counter()
    for line in text.splitlines():
        if not line.startswith("========="):
            continue
        said = line.lstrip("=")
        if said.strip() and not said.startswith("  ") and not NO_FINDING.match(said):
            findings.append("")
        if findings and "Host Frame" not in said:
            findings[-1] += said
    for finding in findings:
        places[" and ".join(dict.fromkeys(PLACE.findall(finding)[:2])) or finding.strip()[:80]] += 1
    return dict(places.most_common(8))


def is_clean(result):
    return result["errors"] == 0 and result["warnings"] == 0 and result["is_right"]


def word_of(result):
    if result["errors"] is None:
        return f"ended with {result['status']}"
    words = [] if result["is_right"] else ["wrong"]
    if result["errors"] or result["warnings"]:
        words.append(f"{result['errors']} + {result['warnings']}")
    return ", ".join(words) or "clean"


def run_case(case, tool, args, gpu):
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(command_of(case, tool, args, pathlib.Path(folder)), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace", timeout=SECONDS,
                                  env={**os.environ, **gpu})
            text, status = done.stdout, done.returncode
        except subprocess.TimeoutExpired as late:
            text, status = (late.stdout or b"").decode(errors="replace"), f"no end in {SECONDS} s"
    if args.out:
        (args.out / f"{re.sub(r'[^a-z0-9]+', '_', case.name.lower())}.{tool}.txt").write_text(text)
    return read_output(text, status)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", default=",".join(TOOLS), help="default: all four")
    parser.add_argument("--kernels", default="", help="only these: rungs, decode, tests; default: all")
    parser.add_argument("--tests", default="", help="only these of ops_tests: filters of gtest after GpuTest/")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--gpus", type=int, default=1, help="over which runs are spread; others are left alone")
    parser.add_argument("--out", type=pathlib.Path, help="folder for summary.json and the output of each run")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--tilewright", type=pathlib.Path, default=ROOT / "build/release/bin/tilewright")
    parser.add_argument("--sanitizer", default=shutil.which("compute-sanitizer") or
                        os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/bin/compute-sanitizer")
    args = parser.parse_args()
    args.tools, args.tests = args.tools.split(","), list(filter(None, args.tests.split(",")))
    for tool in args.tools:
        if tool not in TOOLS:
            parser.error(f"--tools {tool}; there are {', '.join(TOOLS)}")
    for program in (args.sanitizer, args.tilewright):
        if not pathlib.Path(program).exists():
            parser.error(f"{program} does not exist")
    return args


def main():
    args = parse_arguments()
    wanted = set(filter(None, args.kernels.split(","))) or ({"tests"} if args.tests else set())
    cases = [case for case in make_cases() + make_test_cases(args.tests) if not wanted or case.kernel in wanted]
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([args.sanitizer, "--version"], stdout=subprocess.PIPE, text=True).stdout.strip()
    print(version.splitlines()[-1] if version else args.sanitizer)
    print("errors + warnings:", *(f"{tool:>14}" for tool in args.tools))
    rows = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        places = itertools.cycle(range(args.gpus))
        gpus = ({"CUDA_VISIBLE_DEVICES": str(place)} if args.gpus > 1 else {} for place in places)
        runs = [{tool: pool.submit(run_case, case, tool, args, next(gpus)) for tool in args.tools}
                for case in cases]
        for case, futures in zip(cases, runs):
            results = {tool: future.result() for tool, future in futures.items()}
            rows.append({"case": case.name, "results": results})
            print(*(f"{word_of(results[tool]):>14}" for tool in args.tools), "", case.name, flush=True)
    if args.out:
        (args.out / "summary.json").write_text(json.dumps({"sanitizer": version, "cases": rows}, indent=1) + "\n")
    unclean = sum(not is_clean(result) for row in rows for result in row["results"].values())
    print(f"{len(rows) * len(args.tools)} runs, {unclean} not clean")
    return 1 if unclean or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
