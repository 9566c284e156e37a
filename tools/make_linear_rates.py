#!/usr/bin/env python3
"""Writes src/ops/linear/rates.h, what plan() chooses by, from logs of bench/linear_peers.py --kernels all or of
`tilewright bench linear --kernels ...` on an H200.

    tools/make_linear_rates.py bench/results/LOG.json...

Later logs win. Rows (kernel, format, activations, n, k) that no log has are kept; times of kernels that exist no
longer are dropped with --fresh, which starts from nothing.
"""

import argparse
import json
import pathlib
import re
import statistics

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = ROOT / "src/ops/linear/rates.h"
ROWS = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192]
NAMES = {"w16": "bf16", "w8": "fp8", "w4mx": "mxfp4", "w4": "nvfp4"}
ROW = re.compile(r'    \{"(\w+)", "(\w+)", (true|false), (\d+), (\d+),\s*\{\{([^}]*)\}\}\},')


def read_log(path, table):
    log = json.loads(path.read_text())
    if log["device"]["is_simulated"]:
        raise SystemExit(f"{path}: simulated, so it has no times")
    for sample in log["samples"]:
        if sample.get("source") != "tilewright" or not sample.get("samples_us"):
            continue
        name = re.fullmatch(r"(w16|w8|w4mx|w4)(a16|a8)(?::\w+)?", sample["kernel"])
        kernel = sample["idea"].removeprefix("chosen: ")
        problem = sample["problem"]
        if name is None or problem["m"] not in ROWS:
            continue
        key = kernel, NAMES[name[1]], name[2] == "a8", problem["n"], problem["k"]
        us = statistics.median(sample["samples_us"])
        table.setdefault(key, [0.0] * len(ROWS))[ROWS.index(problem["m"])] = us


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", type=pathlib.Path, nargs="+")
    parser.add_argument("--fresh", action="store_true", help="forget the rows that are there")
    args = parser.parse_args()
    text = HEADER.read_text()
    table = {}
    if not args.fresh:
        for m in ROW.finditer(text):
            key = m[1], m[2], m[3] == "true", int(m[4]), int(m[5])
            table[key] = [float(x) for x in m[6].split(",")]
    for path in args.logs:
        read_log(path, table)
    lines = []
    for (kernel, fmt, is_fp8, n, k), us in sorted(table.items()):
        numbers = [f"{x:.4g}" for x in us]
        lines += [f'    {{"{kernel}", "{fmt}", {str(is_fp8).lower()}, {n}, {k},',
                  f'     {{{{{", ".join(numbers[:10])},', f'       {", ".join(numbers[10:])}}}}}}},']
    begin = text.index("inline constexpr std::array<LinearRates,")
    end = text.index("// clang-format on")
    text = (text[:begin] + f"inline constexpr std::array<LinearRates, {len(table)}> kLinearRates = {{{{\n" +
            "\n".join(lines) + "\n}};\n" + text[end:])
    origin = "".join(f"// bench/results/{path.name}\n" for path in args.logs)
    text = re.sub(r"// Made by tools/make_linear_rates.py[^#]*?#pragma once",
                  lambda _: "// Made by tools/make_linear_rates.py from\n" + origin +
                  ("" if args.fresh else "// and logs before, for what they lack.\n") + "#pragma once", text)
    HEADER.write_text(text)
    print(f"{len(table)} rows in {HEADER.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
