#!/usr/bin/env python3
"""Predicted times of kernels of others, beside those that a log of bench/results has of them.

    bench/public_times.py bench/results/2026-11-22-indexer.json --source DeepGEMM --kernel paged_mqa_logits
        --program "./deepgemm_logits {batch} {q_len} {keys}" --where key_page=64 --out predicted.json

The program is anybody's, built by nvcc with its PTX (`-gencode arch=compute_90a,code=[sm_90a,compute_90a]
-lineinfo -cudart shared`). It runs as `tilewright sim exec --device h200 -- PROGRAM` for each row of that source,
with members of the row's problem in place of {names}. `--kernel` is a regular expression: of the kernels of the
report that match, the predictions are added up. What the log timed in a graph the program must put into one. Rows
are left out whose problem differs from --where, or that took longer than --most-us. --out: a log, in which what it
had of that source is replaced.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def largest(parts, whole):
    name = max(parts, key=parts.get)
    return f"{name} {100 * parts[name] / whole:.0f} %"


def add_up(kernels):
    """One prediction of several kernels."""
    out = {"us": 0.0, "busy_us": {}, "wait_us": {}, "costs_from": kernels[0]["predicted"]["costs_from"]}
    for kernel in kernels:
        predicted = kernel["predicted"]
        if "problem" in predicted:
            sys.exit(f"public_times: {kernel['kernel']}: {predicted['problem']}")
        out["us"] += predicted["us"]
        for parts in ("busy_us", "wait_us"):
            for name, us in predicted[parts].items():
                out[parts][name] = out[parts].get(name, 0) + us
    return out


def predict(args, problem):
    command = args.program.format(**problem).split()
    environment = dict(os.environ, TILEWRIGHT_SIM_TIME="1", TILEWRIGHT_SIM_CHECK="none",
                       TILEWRIGHT_SIM_TIME_SAMPLE=str(args.sample))
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        done = subprocess.run([args.tilewright, "sim", "exec", "--device", args.device, "--report", report, "--",
                               *command], env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0 or not report.exists():
            sys.exit(f"public_times: {' '.join(command)}: exit {done.returncode}\n{done.stderr[-2000:]}")
        kernels = json.loads(report.read_text())["kernels"]
    found = [k for k in kernels if re.search(args.kernel, k["kernel"])]
    if not found:
        sys.exit(f"public_times: no kernel matches {args.kernel}; there are {[k['kernel'] for k in kernels]}")
    return add_up(found)


def rows_of(log, args):
    where = dict(pair.split("=", 1) for pair in args.where)
    for row in log["samples"]:
        if row.get("source") != args.source or "samples_us" not in row:
            continue
        if any(str(row["problem"].get(name)) != value for name, value in where.items()):
            continue
        us = statistics.median(row["samples_us"])
        if us <= args.most_us:
            yield row, us


def summary_of(points):
    errors = [point["error"] for point in points]
    return {"points": len(errors), "mean_absolute_error": statistics.mean(map(abs, errors)),
            "median_absolute_error": statistics.median(map(abs, errors)),
            "worst_error": max(errors, key=abs), "bias": statistics.mean(errors)}


def write(path, device, entry):
    """Into the log, in place of what it has of that source."""
    log = json.loads(path.read_text()) if path.exists() else {"device": device, "sources": []}
    log["sources"] = [old for old in log["sources"] if old["source"] != entry["source"]] + [entry]
    path.write_text(json.dumps(log, indent=1, sort_keys=True) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=pathlib.Path)
    parser.add_argument("--source", required=True, help="whose rows of the log")
    parser.add_argument("--kernel", required=True, help="a regular expression for names of the report")
    parser.add_argument("--program", required=True, help="with {names} of the row's problem")
    parser.add_argument("--where", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--most-us", type=float, default=100)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--sample", type=int, default=12, help="clusters of CTAs of a launch that are run")
    parser.add_argument("--about", default="", help="what was built, how: stands in the log")
    parser.add_argument("--tilewright", default=ROOT / "build/release/bin/tilewright")
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    points = []
    for row, measured in rows_of(json.loads(args.log.read_text()), args):
        predicted = predict(args, row["problem"])
        us = predicted["us"]
        shape = ", ".join(f"{name} {row['problem'][name]}" for name in re.findall(r"{(\w+)}", args.program))
        points.append({"shape": shape, "problem": row["problem"], "kernel": row["kernel"], "predicted_us": us,
                       "measured_us": measured, "error": us / measured - 1,
                       "busiest": largest(predicted["busy_us"], us),
                       "longest_wait": largest(predicted["wait_us"], us), "costs_from": predicted["costs_from"]})
        print(f"{points[-1]['shape']}: {us:.1f} us predicted, {measured:.1f} measured, "
              f"{100 * points[-1]['error']:+.1f} %", flush=True)
    if not points:
        sys.exit(f"public_times: {args.log} has no row of {args.source} that is wanted")
    summary = summary_of(points)
    print(f"{summary['points']} points: mean error {100 * summary['mean_absolute_error']:.1f} %, "
          f"worst {100 * summary['worst_error']:+.1f} %, bias {100 * summary['bias']:+.1f} %")
    if args.out:
        entry = {"source": args.source, "log": args.log.name, "about": args.about, "sample": args.sample,
                 "points": points, "summary": summary}
        write(args.out, args.device, entry)


if __name__ == "__main__":
    main()
