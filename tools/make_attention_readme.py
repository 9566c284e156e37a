#!/usr/bin/env python3
"""Writes src/kernels/attention/README.md from logs in bench/results.

They are of `tilewright ladder`, bench/attention_peers.py, Nsight Compute (tools/make_attention_profile.py) and
tools/measure_compile.py.

    tools/make_attention_readme.py            # from the logs that the tables below name
    tools/make_attention_readme.py --ladder LOG.json [MORE.json ...] --peers PEERS.json ...
"""

import argparse
import difflib
import json
import pathlib
import re
import statistics
import textwrap

import make_attention_profile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "src/kernels/attention"
RESULTS = ROOT / "bench/results"
LADDER = ("2026-11-23-attention-ladder-all-lengths.json",)
PROFILE = "2026-11-23-attention-profile.json"
PEERS = "2026-11-22-attention-peers.json"
COMPILE = "2026-11-23-attention-compile.json"
FP8 = "2026-11-23-attention-k7-forms.json"
RUNGS = json.loads((ROOT / "tools/attention_rungs.json").read_text())
FILES = {rung["kernel"]: rung["file"] for rung in RUNGS if "form_of" not in rung}
NOTES = {"the floors": "2026-11-21-attention", "K1": "2026-11-23-attention-k1", "K2": "2026-11-23-attention-k2",
         "K3": "2026-11-23-attention-k3", "K4.1": "2026-11-22-attention-k4-1",
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


def is_step(stem):
    """A rung that teaches one idea; forms that the library runs have folders of their own."""
    return "/" not in stem


def new_lines():
    """kernel -> lines of code that its file has and the one before it has not, of the steps."""
    steps = [(kernel, stem) for kernel, stem in FILES.items() if is_step(stem)]
    counts = {steps[0][0]: len(code_lines(steps[0][1]))}
    for (_, before), (kernel, stem) in zip(steps, steps[1:]):
        if stem != before:
            counts[kernel] = changed_lines(before, stem)
    return counts


def rates(samples):
    """(kernel, head_dim, causal, length) -> TFLOP/s; the last log that has one counts."""
    return {(s["kernel"], s["problem"]["head_dim"], s["problem"]["causal"], s["problem"]["q_len"]):
            s["flops"] / statistics.median(s["samples_us"]) * 1e-6 for s in samples if s.get("samples_us")}


def rungs(log, found):
    ideas = {k: header_sentence(stem) for k, stem in FILES.items()}
    yield "| rung | idea | code lines new | d = 128 full | causal | % of the ceiling |"
    yield "|---|---|---|---|---|---|"
    new = new_lines()
    for kernel, stem in FILES.items():
        full, causal = (found.get((kernel, 128, mask, SHOWN)) for mask in (False, True))
        measured = (f"{full:.0f} | {causal:.0f} | {100 * full / log['ceiling_tflops']:.1f}" if full and causal
                    else " |  | ")
        yield f"| [{kernel}]({stem}.cu) | {ideas[kernel]} | {new.get(kernel, '')} | {measured} |"


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


UPPER = (("k7", "k7/k7_fp8", "e4m3 operands: twice the products per cycle", "attention-k7"),
         ("k8", "k8/k8_prepare", "before it, a kernel that rotates, rounds, transposes", "attention-k8"),
         ("decode", "decode/decode_bf16", "a few queries over long caches", "attention-decode"))


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
    yield (f"The folder, decode attention included, compiles in {total:.0f} s of processor time (nvcc "
           f"{log['toolkit']}, {log['processor']}), which two cores do in about {on_two:.0f} s; `{longest}` alone "
           f"takes {files[longest]:.0f} s. Log: `bench/results/{name}`.")


def by_length(found, head_dim):
    """TFLOP/s of every rung at every length, full / causal."""
    lengths = sorted({key[3] for key in found if key[1] == head_dim})
    yield f"| d = {head_dim}, full / causal | " + " | ".join(f"n {n}" for n in lengths) + " |"
    yield "|---" * (len(lengths) + 1) + "|"
    measured = {key[0] for key in found if key[1] == head_dim}
    for kernel in (kernel for kernel in FILES if kernel in measured):
        cells = []
        for n in lengths:
            full, causal = (found.get((kernel, head_dim, mask, n), 0) for mask in (False, True))
            digits = 1 if full < 100 else 0
            cells.append(f"{full:.{digits}f} / {causal:.{digits}f}" if full and causal else "")
        yield f"| {kernel} | " + " | ".join(cells) + " |"


def prose(text):
    return textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False)


def profile_section(log, name):
    p = log["problem"]
    reasons = ("the largest reasons for waiting" if all("waits" in launch for launch in log["launches"]) else
               "the reasons for waiting that the profiler names, which are only those that stand out")
    clocks = [launch["sm_hz"] * 1e-9 for launch in log["launches"]]
    yield from ("## What the profiler says", "")
    yield from prose(
        f"Nsight Compute on an {log['device']}, one launch with d = {p['head_dim']}, causal, {p['heads']} heads, "
        f"n = {p['q_len']}. Issue slots, pipes, caches and memory are in % of what they could do in the cycles "
        "that passed; warps are those of an SM, of 64. \"No warp ready\" is the share of cycles in which a "
        f"scheduler had none to issue from. The last column has {reasons}, and their share of the waiting. The "
        f"clock differs from launch to launch, {min(clocks):.2f} to {max(clocks):.2f} GHz: compare shares here, "
        f"and times in the tables above. Log, with the command: `bench/results/{name}`.")
    yield ""
    yield from make_attention_profile.profile_table(log)


def readme(args):
    logs = [json.loads((RESULTS / name).read_text()) for name in args.ladder]
    found = {}
    for log in reversed(logs):
        found.update(rates(log["samples"]))
    peers, profile, compiled, fp8 = (json.loads((RESULTS / name).read_text())
                                     for name in (args.peers, args.profile, args.compile, args.fp8))
    sources = sorted({s["source"] for s in peers["samples"] if s["source"] != "tilewright"})
    names = ", ".join(f"`bench/results/{name}`" for name in args.ladder)
    notes = ", ".join(f"[{name}](../../../docs/notes/{stem}.md)" for name, stem in NOTES.items())
    return ["# The attention ladder", "",
            "One idea per rung; `ls` is the reading order. The header comment of each file explains it.", "",
            *prose(f"What was predicted, measured, kept and dropped: {notes}. The "
                   "instruction that K4.1 and all later rungs are about: [WGMMA](../../../docs/08-wgmma.md). "
                   "Made from logs by `tools/make_attention_readme.py`."), "",
            *prose(f"{logs[0]['device']['name']}, bf16, N(0,1) inputs, 16384 tokens, hidden size 2048, cold L2 "
                   f"cache, medians in TFLOP/s (causal counts visible scores only). n = {SHOWN}; the ceiling is "
                   f"{logs[0]['ceiling_tflops']} TFLOP/s. Log: {names}."),
            "", *rungs(logs[0], found), "",
            "![TFLOP/s of the rungs, on a logarithmic scale](../../../docs/images/rungs-d128-full.svg)", "",
            *prose(" ".join(compile_times(compiled, args.compile))), "",
            "## By length", "", "The same log, TFLOP/s.", "",
            "![TFLOP/s by length, full](../../../docs/images/lengths-d128-full.svg)", "",
            "![TFLOP/s by length, causal](../../../docs/images/lengths-d128-causal.svg)", "",
            *by_length(found, 64), "", *by_length(found, 128), "",
            *profile_section(profile, args.profile), "",
            "## Beside other libraries", "",
            *prose(f"TFLOP/s of the kernel that `plan()` chooses, and in brackets its ratio to "
                   f"cuDNN and to FlashAttention-3, interleaved in one run ({'; '.join(sources)}). "
                   f"Log: `bench/results/{args.peers}`."),
            "", *beside_peers(rates(peers["samples"])), "", *upper_rungs(), "",
            *prose("K7 in TFLOP/s, and in brackets its ratio to FlashAttention-3 in the same run. Then with "
                   "values in rows, which it transposes, and with sums of two levels. "
                   f"Log: `bench/results/{args.fp8}`."), "",
            *fp8_rates(rates(fp8["samples"])), ""]


def parse(words=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ladder", nargs="+", default=LADDER,
                        help="names of logs in bench/results; of results that several have, the first one's count")
    parser.add_argument("--peers", default=PEERS)
    parser.add_argument("--profile", default=PROFILE)
    parser.add_argument("--compile", default=COMPILE, help="log of tools/measure_compile.py")
    parser.add_argument("--fp8", default=FP8, help="log of attention_peers.py --dtype e4m3")
    return parser.parse_args(words)


def main():
    (FOLDER / "README.md").write_text("\n".join(readme(parse())))


if __name__ == "__main__":
    main()
