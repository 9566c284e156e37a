#!/usr/bin/env python3
"""Predicted times of every kernel for sm_100a that the library has, at the shapes of its tests:
bench/results/*-predicted-b200-tests.json. What `bench timing --b200` predicts are calls of operators; here are
also those kernels that no call of it launches: rungs of a ladder, steps that move rows, other types.

    tools/predict_tested_kernels.py                     runs the tests below on the simulated B200
    tools/predict_tested_kernels.py --only Sm100 Band   those whose filter has one of the words; the rest stays
    tools/predict_tested_kernels.py --check             kernels that neither log has; runs nothing

Tests that launch a kernel with any problem are enough: the report of a program has a prediction for each kernel,
and of each the mean over its launches is taken. Needs a build with tests and no GPU, and takes a quarter of an
hour of a core. Exit status 1: kernels lack a prediction.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "bench/results"
BASELINE = ROOT / "tests/golden/kernels/ptxas_baseline.json"
SUFFIX = "predicted-b200-tests"
TARGET = ".sm_100f"

# Kernels of the library that have no prediction, and why.
WITHOUT = {
    **{f"attention_k8_{step}_{form}": "tests draw which forms they launch; others of the same text have one"
       for step, form in (("amax", "bf16_d128_rope"), ("amax", "bf16_d256_rope"), ("amax", "f16_d256"),
                          ("amax", "f16_d256_rope"), ("prepare", "f16_d256"), ("prepare", "f16_d256_rope"))},
    **{f"latent_combine_{form}": "the same loop as the forms of 512 columns of bf16, which have one"
       for form in ("few_bf16_v256", "few_f16_v256", "few_f16_v512")},
    "attention_sm100_pages_f16_d192_v128": "the same machine code as the form of bf16 but for its conversions",
    **{f"linear_band_bf16_groups_{tile}": "rows of a band kernel that has one, found by a list of groups"
       for tile in ("n32", "n64")},
}

# Kernels of tests/kernels/probe begin so; no library has them.
OF_TESTS = ("block_reduction", "histogram", "layout_probe", "mma_sync_gemm", "multicast_copy", "naive_attention_",
            "ring_copy_", "row_math_", "steps_", "tensor_copy_probe", "tiled_sgemm", "warp_probe_")

# Programs and what of them launches kernels that no other line does: a filter of tests, or arguments.
RUNS = (
    ("kernels_tests", "Sim*/Sm100StageA.*/b200"),
    ("kernels_tests", "Sim*/Sm100StageB.Scores*/b200:Sim*/Sm100StageB.TheSimulatorNames*/b200"),
    ("kernels_tests", "Sim*/Sm100StageC.HeadDimsAndMasks/b200:Sim*/Sm100StageC.HeadsShare*/b200:"
                      "Sim*/Sm100StageC.Packed*/b200"),
    ("kernels_tests", "Sim*/Sm100StageD.DeepSeekPages/b200:Sim*/Sm100StageD.Eight*/b200:"
                      "Sim*/Sm100StageD.Queries*/b200"),
    ("kernels_tests", "Sim*/Sm100StageE.*/b200"),
    ("kernels_tests", "Sim*/Sm100StageF.PairsShareKeysAndValues/b200"),
    ("kernels_tests", "Sim*/Sm100StageG.DeepSeekPagesByPairs/b200:Sim*/Sm100StageG.Lists*/b200"),
    ("kernels_tests", "Sim*/Sm100BlockScaledGemm.OneTile/b200:Sim*/Sm100BlockScaledGemm.OneToken/b200"),
    ("kernels_tests", "Sim*/Band.EveryFormat*/b200:Sim*/Band.Experts/b200:Sim*/Band.Narrow/b200"),
    ("kernels_tests", "Sim*/Direct.EveryEntry*/b200"),
    ("kernels_tests", "Sim*/Moe*/b200-*AllTokens*"),
    ("kernels_tests", "Sim*/Quantize*/b200"),
    ("ops_tests", "Sim*/LayerRows*/b200:Sim*/PeerR*/b200:Sim*/CacheLists*/b200:Sim*/InverseRope*/b200"),
    ("ops_tests", "Sim*/Compressor*/b200:Sim*/MoeShare*/b200:Sim*/MaskLists*/b200:Sim*/AttentionMerge*/b200"),
    ("ops_tests", "Sim*/SampleTest.Greedy*/b200:Sim*/SampleTest.Gathers*/b200"),
    ("ops_tests", "Sim*/CacheAppend*/b200:Sim*/AttentionDecodeRunTest.NewTokens*/b200"),
    ("ops_tests", "Sim*/AttentionPrepareTest.*/b200"),
    ("ops_tests", "Sim*/HyperConnection*/b200-*ManyTokens*:*LargeSizes*"),
    ("ops_tests", "Sim*/IndexerTest.DecodesSeveral*/b200:Sim*/IndexerLogitsTest.RangesOf*/b200:"
                  "Sim*/IndexerTest.RaggedPrompts/b200"),
    ("ops_tests", "Sim*/LatentAttentionTest.*/b200"),
    ("ops_tests", "Sim*/AttentionPagedTest.EveryFormOfTheKernel/b200:Sim*/AttentionPagedTest.ValuesOf*/b200"),
    ("ops_tests", "Sim*/AttentionPagedE4m3Test.EveryFormOfWideQueries/b200"),
    ("ops_tests", "Sim*/AttentionValueDimTest.EveryOption/b200"),
    ("ops_tests", "Sim*/AttentionHeadDimTest.EveryKernelThatPads/b200"),
    ("ops_tests", "Sim*/SparseAttentionRunTest.EveryHeadCount/b200"),
    ("ops_tests", "Sim*/SparseAttentionRunTest.EveryCacheFormat/b200:"
                  "Sim*/SparseAttentionRunTest.NeighboursShare*/b200:"
                  "Sim*/SparseAttentionRunTest.SplitLists*/b200:"
                  "Sim*/SparseAttentionRunTest.MaximaOfEvery*/b200:"
                  "Sim*/SparseAttentionRunTest.RowsOf576/b200:Sim*/SparseAttentionRunTest.TilesOf*/b200"),
    ("ops_tests", "Sim*/MoeDirectTest.EveryFormat*/b200:Sim*/MoeRunTest.BandInEvery*/b200:"
                  "Sim*/MoeContiguousTest.*/b200"),
    ("ops_tests", "Sim*/CacheWriterTest.*/b200"),
    ("tilewright", "attention --inputs normal --shape 1,2,2,256,256,128 --dtype f16 --kernel sm100_c"),
    ("tilewright", "attention --inputs normal --shape 1,2,2,256,256,256 --dtype f16 --kernel sm100_c"),
    ("tilewright", "attention --inputs normal --shape 1,2,2,256,256,128 --dtype f16 --kernel sm100_e"),
    ("ops_tests", "Sim*/AttentionE4m3Test.*/b200"),
    ("ops_tests", "Sim*/LinearRunTest.Groups*/b200:Sim*/LinearRunTest.Prepares*/b200:"
                  "Sim*/LinearRunTest.Activations*/b200:Sim*/LinearRunTest.Spread*/b200:"
                  "Sim*/LinearStackTest.*/b200"),
)


def entries():
    """Names of the library's kernels for sm_100a, by what ptxas said of them."""
    known = json.loads(BASELINE.read_text())["kernels"]
    names = {name.removesuffix(TARGET) for name in known if name.endswith(TARGET)}
    return {name for name in names if not name.startswith(OF_TESTS)}


def newest(suffix):
    found = sorted(LOGS.glob(f"????-??-??-{suffix}.json"))
    return found[-1] if found else None


def predicted():
    """Names of kernels that a log has a prediction of."""
    names = set()
    calls, tests = newest("predicted-b200"), newest(SUFFIX)
    for point in json.loads(calls.read_text())["points"] if calls else []:
        if "predicted_us" in point:
            names |= {kernel if isinstance(kernel, str) else kernel["kernel"] for kernel in point["kernels"]}
    return names | set(json.loads(tests.read_text())["kernels"] if tests else ())


def largest(parts, whole):
    name = max(parts, key=parts.get)
    return f"{name} {100 * parts[name] / whole:.0f} %"


def row_of(kernel, program):
    us, launches = kernel["predicted"]["us"], kernel["predicted"]["launches"]
    return {"us": float(f"{us / launches:.5g}"), "launches": launches,
            "ctas": float(f"{kernel['predicted']['ctas'] / launches:.5g}"),
            "busiest": largest(kernel["predicted"]["busy_us"], us),
            "longest_wait": largest(kernel["predicted"]["wait_us"], us),
            "costs_from": kernel["predicted"]["costs_from"], "program": program}


def command_of(build, program, tests):
    if program != "tilewright":
        return [build / "bin" / program, f"--gtest_filter={tests}"]
    tool = build / "bin/tilewright"
    return [tool, "sim", "exec", "--device", "b200", "--", tool, *tests.split(), "--device", "cuda"]


def run(build, program, tests, limit):
    """Kernel -> row, of what the tests launched until they ended or the limit came."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        environment = dict(os.environ, TILEWRIGHT_SIM_TIME="1", TILEWRIGHT_SIM_CHECK="none",
                           TILEWRIGHT_SIM_REPORT=str(report))
        try:
            done = subprocess.run(command_of(build, program, tests), env=environment, capture_output=True,
                                  text=True, check=False, timeout=limit)
            failed = done.returncode != 0
        except subprocess.TimeoutExpired:
            failed = True
        try:
            kernels = json.loads(report.read_text())["kernels"]
        except (OSError, ValueError):
            return {}, True
    problems = [k for k in kernels if "problem" in k.get("predicted", {})]
    for kernel in problems:
        print(f"{kernel['kernel']}: {kernel['predicted']['problem']}", file=sys.stderr)
    return {k["kernel"]: row_of(k, program) for k in kernels if "us" in k.get("predicted", {})}, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="WORD", default=[])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--limit", type=float, default=600, help="seconds of one run")
    args = parser.parse_args()
    if not args.check:
        path = newest(SUFFIX) or LOGS / f"{datetime.date.today()}-{SUFFIX}.json"
        log = json.loads(path.read_text()) if path.exists() else {"device": "b200", "kernels": {}}
        for program, tests in RUNS:
            if args.only and not any(word in tests for word in args.only):
                continue
            rows, failed = run(args.build, program, tests, args.limit)
            log["kernels"] |= {name: row for name, row in rows.items() if name in entries()}
            path.write_text(json.dumps(log, indent=1, sort_keys=True) + "\n")
            print(f"{program} {tests}: {len(rows)} kernels{', did not end well' if failed else ''}", flush=True)
    missing = sorted(entries() - predicted() - set(WITHOUT))
    for name in missing:
        print(f"{name}: no predicted time of a B200")
    print(f"predict_tested_kernels: {len(entries())} kernels, {len(missing)} without a predicted time")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
