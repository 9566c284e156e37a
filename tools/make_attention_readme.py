#!/usr/bin/env python3
"""Writes src/kernels/attention/README.md from logs of `tilewright ladder` and bench/attention_peers.py.

    tools/make_attention_readme.py bench/results/LADDER.json [MORE.json ...] --peers bench/results/PEERS.json \\
        --compile bench/results/COMPILE.json
"""

import argparse
import difflib
import json
import pathlib
import re
import statistics

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "src/kernels/attention"
FILES = {"k1": "k1_naive", "k2": "k2_online_softmax", "k3_1": "k3_tma", "k3_2": "k3_tma", "k3_3": "k3_tma",
         "k4_1": "k4_1_wgmma_qk", "k4_2": "k4_2_wgmma", "k5": "k5_warp_specialized", "k6": "k6_pingpong"}
NOTES = {"the floors": "2026-11-21-attention", "K4.1": "2026-11-22-attention-k4-1",
         "K4.2": "2026-11-22-attention-k4-2", "K5": "2026-11-22-attention-k5", "K6": "2026-11-22-attention-k6"}
SHOWN = 4096  # length of the first table, which every rung has


def code_lines(stem):
    text = re.sub(r"//.*", "", (FOLDER / f"{stem}.cu").read_text())
    return [line.strip() for line in text.splitlines() if line.strip()]


def header_sentence(stem):
    """"K5: loads and products go to different warps" -> what stands after the colon."""
    text = " ".join(line[2:].strip() for line in (FOLDER / f"{stem}.cu").read_text().splitlines()
                    if line.startswith("//"))
    return re.search(r"K[\d.]+[:,] (.*?)[.:]( |$)", text).group(1)


def changed_lines(before, after):
    diff = difflib.unified_diff(code_lines(before), code_lines(after), n=0)
    return sum(line.startswith("+") and not line.startswith("+++") for line in diff)


def rates(samples):
    """(kernel, head_dim, causal, length) -> TFLOP/s; the last log that has one counts."""
    return {(s["kernel"], s["problem"]["head_dim"], s["problem"]["causal"], s["problem"]["q_len"]):
            s["flops"] / statistics.median(s["samples_us"]) * 1e-6 for s in samples if s.get("samples_us")}


def rungs(log, found):
    ideas = {k: header_sentence(stem) for k, stem in FILES.items()}
    yield "| rung | idea | code lines new | d = 128 full | causal | % of the ceiling |"
    yield "|---|---|---|---|---|---|"
    before = None
    for kernel, stem in FILES.items():
        full, causal = (found[kernel, 128, mask, SHOWN] for mask in (False, True))
        new = "" if before == stem else len(code_lines(stem)) if before is None else changed_lines(before, stem)
        yield (f"| [{kernel}]({stem}.cu) | {ideas[kernel]} | {new} | {full:.0f} | {causal:.0f} | "
               f"{100 * full / log['ceiling_tflops']:.1f} |")
        before = stem


def beside_peers(found):
    lengths = sorted({key[3] for key in found})
    yield "| | " + " | ".join(f"n {n}" for n in lengths) + " |"
    yield "|---" * (len(lengths) + 1) + "|"
    for dim in (64, 128, 256):
        for causal in (False, True):
            cells = []
            for n in lengths:
                ours, cudnn, fa3 = (found.get((k, dim, causal, n)) for k in ("auto", "cudnn", "fa3"))
                is_whole = ours and cudnn and fa3
                cells.append(f"{ours:.0f} ({ours / cudnn:.2f}, {ours / fa3:.2f})" if is_whole else "")
            yield f"| d = {dim} {'causal' if causal else 'full'} | " + " | ".join(cells) + " |"


UPPER = (("k7", "k7_fp8", "e4m3 operands: twice the products a clock", "attention-k7"),
         ("k8", "k8_prepare", "before it, a kernel that rotates, rounds, transposes", "attention-k8"),
         ("decode", "decode_bf16", "a few queries over long caches", "attention-decode"))


def upper_rungs():
    yield from ("## Upper rungs", "", "| rung | idea |", "|---|---|")
    for name, stem, idea, note in UPPER:
        yield f"| [{name}]({stem}.cu) | {idea} ([note](../../../docs/notes/2026-11-22-{note}.md)) |"


def fp8_rates(found):
    """K7 in the form that plan() chooses, or the fastest in a log without its choice: values in columns, one level
    of sums, beside FlashAttention-3; then rows, two levels."""
    def fastest(key, *kernels):
        return max(found[(kernel, *key)] for kernel in kernels if (kernel, *key) in found)

    lengths = sorted({key[3] for key in found})
    yield "| | " + " | ".join(f"n {n}" for n in lengths) + " |"
    yield "|---" * (len(lengths) + 1) + "|"
    for dim in (64, 128, 256):
        for causal in (False, True):
            cells = []
            for n in lengths:
                key = (dim, causal, n)
                k7 = found.get(("auto", *key)) or fastest(key, "k7", "k7_short")
                rows, two, fa3 = (fastest(key, *kernels)
                                  for kernels in (("k7_rows", "k7_rows_short"), ("k7_two_level",), ("fa3",)))
                cells.append(f"{k7:.0f} ({k7 / fa3:.2f}), {rows:.0f}, {two:.0f}")
            yield f"| d = {dim} {'causal' if causal else 'full'} | " + " | ".join(cells) + " |"


def compile_times(log, name):
    """Of tools/measure_compile.py. Its seconds are of one processor; the build runs the files side by side."""
    files = {entry["file"]: entry["nvcc_s"] + entry["ptxas_s"] for entry in log["files"]}
    total, longest = sum(files.values()), max(files, key=files.get)
    on_two = max(total / 2, files[longest])  # the longest file is one thread's
    yield (f"All of it compiles in {total:.0f} s of processor time (nvcc {log['toolkit']}, {log['processor']}), "
           f"which two cores do in about {on_two:.0f} s; `{longest}` alone takes {files[longest]:.0f} s. "
           f"Log: `bench/results/{name}`.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("logs", type=pathlib.Path, nargs="+")
    parser.add_argument("--peers", type=pathlib.Path, required=True)
    parser.add_argument("--compile", type=pathlib.Path, required=True, help="log of tools/measure_compile.py")
    parser.add_argument("--fp8", type=pathlib.Path, required=True, help="log of attention_peers.py --dtype e4m3")
    args = parser.parse_args()
    logs = [json.loads(path.read_text()) for path in args.logs]
    found = {}
    for log in reversed(logs):
        found.update(rates(log["samples"]))
    peers = json.loads(args.peers.read_text())
    sources = sorted({s["source"] for s in peers["samples"] if s["source"] != "tilewright"})
    names = ", ".join(f"`bench/results/{path.name}`" for path in args.logs)
    lines = ["# The attention ladder", "",
             "One idea a rung; `ls` is the reading order. Each file's header comment explains it.",
             "What was predicted, measured, kept and dropped: "
             + ", ".join(f"[{name}](../../../docs/notes/{stem}.md)" for name, stem in NOTES.items()) + ".",
             "Made from logs by `tools/make_attention_readme.py`.", "",
             f"{logs[0]['device']['name']}, bf16, N(0,1) inputs, 16384 tokens, hidden size 2048, cold L2 cache, "
             f"medians in TFLOP/s (causal counts what is visible). n = {SHOWN}; the ceiling is "
             f"{logs[0]['ceiling_tflops']} TFLOP/s. Log: {names}.",
             "", *rungs(logs[0], found), "",
             *compile_times(json.loads(args.compile.read_text()), args.compile.name), "",
             "## Beside other libraries", "",
             f"TFLOP/s of the kernel that `plan()` chooses, and in brackets how many times that of cuDNN and of "
             f"FlashAttention-3, interleaved in one run ({'; '.join(sources)}).",
             f"Log: `bench/results/{args.peers.name}`.",
             "", *beside_peers(rates(peers["samples"])), "", *upper_rungs(), "",
             "K7 in TFLOP/s, and in brackets how many times FlashAttention-3's in the same run; then with values "
             "in rows, which it transposes, and with sums of two levels. "
             f"Log: `bench/results/{args.fp8.name}`.", "",
             *fp8_rates(rates(json.loads(args.fp8.read_text())["samples"])), ""]
    (FOLDER / "README.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
