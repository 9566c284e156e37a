#!/usr/bin/env python3
"""Writes the table of our Blackwell kernels beside public ones into docs/10-blackwell.md, from the log of
bench/peer_counts.py.

    bench/make_peer_counts.py [--check]

--check writes nothing; exit status 1 if the document differs from what the log says.
"""

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOG = "bench/results/2026-11-24-peers-counts-b200.json"
PAGE = "docs/10-blackwell.md"
BEGIN, END = "<!-- bench/make_peer_counts.py writes from here -->", "<!-- to here -->"

# What an SM of a B200 does in a cycle: src/sim/model/device_model.cpp.
TENSOR = {"f16": 8192, "bf16": 8192, "tf32": 4096, "f8f6f4": 16384, "mxf8f6f4": 16384, "mxf4": 32768,
          "mxf4nvf4": 32768}
SPECIAL_WARPS, FMA_WARPS, ISSUED_WARPS = 0.5, 4, 4
SHARED_BYTES, L2_BYTES, HBM_BYTES = 128, 64, 8e12 / 148 / 1.965e9
SECTOR = 32


def cycles(sample):
    """Cycles of an SM that each unit needs for a unit of work, and bytes of shared memory."""
    def more(name, member=None):
        few, many = sample["fewer"][name], sample["more"][name]
        return (many.get(member, 0) - few.get(member, 0) if member else many - few) / sample["units"]

    def warps(name):
        return more("warp_instructions_by_class", name)

    tensor = sum(more("tensor_flop", kind) / TENSOR[kind] for kind in sample["more"]["tensor_flop"])
    shared = more("shared_wavefronts") + more("shared_async_bytes") / SHARED_BYTES
    out = {"tensor": tensor / sample["tensor_share"], "special": warps("special function") / SPECIAL_WARPS,
           "FMA": (warps("float") + warps("half")) / FMA_WARPS,
           "issue": (more("warp_instructions") - warps("move")) / ISSUED_WARPS, "shared": shared,
           "L2": (more("global_sectors") * SECTOR + more("bulk_delivered_bytes")) / L2_BYTES}
    if sample["streams"]:
        out["HBM"] = more("touched_global_bytes") / HBM_BYTES
    return out


def table(log):
    heads = ("work, unit", "kernel", "tensor", "special", "FMA", "issue", "shared memory", "L2", "HBM", "busiest",
             "ours by it", "shared memory, ours by it")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for work in dict.fromkeys(s["work"] for s in log["samples"]):
        group = [s for s in log["samples"] if s["work"] == work]
        ours = min((cycles(s) for s in group if s["side"] == "ours"), key=lambda units: max(units.values()))
        for i, sample in enumerate(sorted(group, key=lambda s: s["side"] != "ours")):
            units = cycles(sample)
            most = max(units.values())
            cells = [f"{units[u]:.0f}" if u in units else "" for u in
                     ("tensor", "special", "FMA", "issue", "shared", "L2", "HBM")]
            ratios = ["", ""]
            if sample["side"] == "peer":
                ratios = [f"{max(ours.values()) / most:.2f}", f"{ours['shared'] / units['shared']:.2f}"]
            name = sample["name"]
            if sample["side"] == "ours":  # the kernel, and where it is used
                kernel, *rest = name.split(", ")
                name = ", ".join([f"`{kernel}`", *rest])
            label = "" if i else f"{work}; {sample['unit']}"
            lines.append(f"| {' | '.join([label, name, *cells, f'{most:.0f}', *ratios])} |")
    return "\n".join(lines) + "\n"


def page(log):
    text = (ROOT / PAGE).read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return f"{text[:begin]}\n{table(log)}{text[end:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs")
    args = parser.parse_args()
    text = page(json.loads((ROOT / LOG).read_text()))
    if (ROOT / PAGE).read_text() == text:
        return 0
    if args.check:
        print(f"{PAGE}: not what {LOG} says; run bench/make_peer_counts.py")
        return 1
    (ROOT / PAGE).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
