#!/usr/bin/env python3
"""Counts of one kernel for a unit of work, from two reports of the simulator, into a log beside those of others.

    tilewright sim exec --device b200 --sms 2 --report few.json -- ./program 512    # anybody's
    tilewright sim exec --device b200 --sms 2 --report more.json -- ./program 1024
    python3 bench/peer_counts.py LOG few.json more.json --work "sparse decode, 128 heads"
        --unit "64 keys, a CTA of the pair" --units 16 --side peer --name "FlashMLA" --kernel flash_fwd
        --shape "..." --error "..."

The second run does `units` units of work more than the first: what a kernel does once drops out. `kernel` is a
regular expression for the name in the report. A sample of the same work, side and name is replaced. The table is
made by bench/make_peer_counts.py.
"""

import argparse
import json
import pathlib
import re
import sys

COUNTED = ("warp_instructions", "thread_instructions", "shared_wavefronts", "shared_bank_conflicts",
           "shared_async_bytes", "global_sectors", "bulk_bytes", "bulk_delivered_bytes", "atomics",
           "barrier_waits")


def counters(report, pattern):
    """Raw counters of all kernels whose names match, added up."""
    kernels = json.loads(pathlib.Path(report).read_text())["kernels"]
    kernels = [k for k in kernels if re.search(pattern, k["kernel"])]
    if not kernels:
        sys.exit(f"peer_counts: no kernel of {report} matches {pattern}")
    out = {name: sum(k["total"][name] for k in kernels) for name in COUNTED}
    out["touched_global_bytes"] = sum(k["touched_global_bytes"] for k in kernels)
    for name, member in (("tensor_flop", lambda k: k["tensor_flop_by_type"]),
                         ("warp_instructions_by_class",
                          lambda k: {c: v["warp_instructions"] for c, v in k["by_class"].items()})):
        out[name] = {}
        for kernel in kernels:
            for key, value in member(kernel).items():
                out[name][key] = out[name].get(key, 0) + value
    first = kernels[0]
    out["launch"] = {"kernel": first["kernel"][:120], "grid": first["grid"], "block": first["block"],
                     "cluster": first["cluster"], "dynamic_shared_bytes": first["dynamic_shared_bytes"]}
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("log")
    parser.add_argument("reports", nargs=2, help="of fewer and of more work")
    parser.add_argument("--work", required=True)
    parser.add_argument("--unit", required=True, help="what one unit is")
    parser.add_argument("--units", type=float, required=True, help="how many of them the second report has more")
    parser.add_argument("--side", choices=("ours", "peer"), required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--kernel", required=True, help="regular expression")
    parser.add_argument("--shape", required=True, help="of both runs, and the simulator's options")
    parser.add_argument("--error", required=True, help="what the comparison with float64 said")
    parser.add_argument("--tensor-share", type=float, default=1, help="0.5: M = 64 in one CTA, at half rate")
    parser.add_argument("--streams", action="store_true", help="all bytes are read once: HBM counts as well")
    args = parser.parse_args()
    path = pathlib.Path(args.log)
    log = {"kind": "peer_counts", "device": "b200", "samples": []}
    if path.exists():
        log = json.loads(path.read_text())
    sample = {name: getattr(args, name) for name in ("work", "unit", "units", "side", "name", "shape", "error",
                                                     "tensor_share", "streams")}
    sample |= {name: counters(report, args.kernel) for name, report in zip(("fewer", "more"), args.reports)}
    key = ("work", "side", "name")
    log["samples"] = [s for s in log["samples"] if any(s[k] != sample[k] for k in key)] + [sample]
    path.write_text(json.dumps(log, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
