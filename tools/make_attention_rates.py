#!/usr/bin/env python3
"""Writes src/ops/attention/rates.h, what plan() chooses by, from a log of `tilewright ladder` on an H200, or of
`bench/attention_peers.py --dtype e4m3 --all-forms` for the forms of K7.

    tools/make_attention_rates.py bench/results/LOG.json [--as k6_trial=k6,k6=]

--as: what a kernel of the log is called since; nothing: it is gone. Lengths that the log lacks take the rate of
the nearest one; kernels and head dimensions that it lacks keep their rows.
"""

import argparse
import json
import pathlib
import re
import statistics

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = ROOT / "src/ops/attention/rates.h"
LENGTHS = [512, 1024, 2048, 4096, 8192, 16384]
ROW = re.compile(r'    \{"(\w+)", +(\d+), \{([^}]*)\}, \{([^}]*)\}\},')


def read_rates(log, new_names):
    """(kernel, head_dim) -> {False: {n: rate}, True: {n: rate}}, of widths that are not padded. "k6_v128": with
    values of 128"""
    rates = {}
    for sample in log["samples"]:
        if sample.get("source") != "tilewright" or not sample.get("samples_us") or sample["kernel"] == "auto":
            continue
        if "times the products" in (sample.get("plan") or ""):
            continue
        problem = sample["problem"]
        rate = sample["flops"] / statistics.median(sample["samples_us"]) * 1e-6
        value_dim = problem.get("value_dim", problem["head_dim"])
        values = "" if value_dim == problem["head_dim"] else f"_v{value_dim}"
        name = new_names.get(sample["kernel"], sample["kernel"])
        if not name:
            continue
        key = name + values, problem["head_dim"]
        rates.setdefault(key, {False: {}, True: {}})[problem["causal"]][problem["q_len"]] = rate
    return rates


def fill(by_length):
    nearest = [min(by_length, key=lambda n: abs(n.bit_length() - wanted.bit_length())) for wanted in LENGTHS]
    return [by_length[n] for n in nearest]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", type=pathlib.Path)
    parser.add_argument("--as", dest="new_names", default={}, metavar="OLD=NEW,...",
                        type=lambda text: dict(pair.split("=") for pair in text.split(",")))
    args = parser.parse_args()
    log = json.loads(args.log.read_text())
    if log["device"]["is_simulated"]:
        raise SystemExit(f"{args.log}: simulated, so it has no rates")
    text = HEADER.read_text()
    rows = {(m[1], int(m[2])): [m[3], m[4]] for m in ROW.finditer(text)}
    for key, of_mask in read_rates(log, args.new_names).items():
        row = rows.setdefault(key, [None, None])
        for causal, by_length in of_mask.items():
            if by_length:
                row[causal] = ", ".join(f"{float(f'{rate:.3g}'):g}" for rate in fill(by_length))
        for causal in (False, True):
            row[causal] = row[causal] or row[not causal]
    lines = [f'    {{"{kernel}", {dim}, {{{full}}}, {{{causal}}}}},'
             for (kernel, dim), (full, causal) in sorted(rows.items())]
    begin = text.index("kAttentionRates[] = {\n") + len("kAttentionRates[] = {\n")
    end = text.index("};\n// clang-format on")
    text = text[:begin] + "\n".join(lines) + "\n" + text[end:]
    names = f"//     --as {','.join(map('='.join, args.new_names.items()))}\n" if args.new_names else ""
    origin = (f"// Made by tools/make_attention_rates.py from\n// bench/results/{args.log.name}\n{names}"
              "// and logs before it, for what it lacks.")
    text = re.sub(r"(// TFLOP/s of .*\n//\n)(//.*\n)+", lambda m: m[1] + origin + "\n", text)
    HEADER.write_text(text)
    print(f"{len(lines)} rows in {HEADER.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
