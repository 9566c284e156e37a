#!/usr/bin/env python3
"""Writes every measured number that the documents claim, from the logs in bench/results: docs/results.md, and the
short table of README.md between its marks.

    tools/make_results.py [--check]

--check writes nothing; exit status 1 if a document differs from what the logs say.
"""

import argparse
import json
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "bench/results"
BEGIN, END = "<!-- tools/make_results.py writes from here -->", "<!-- to here -->"


def load(name):
    return json.loads((LOGS / name).read_text())


def median(sample, key="samples_us"):
    return statistics.median(sample[key])


def span(values, digits=2):
    """"1.04 to 1.29", or one number where both ends print the same."""
    low, high = (f"{end(values):.{digits}f}" for end in (min, max))
    return low if low == high else f"{low} to {high}"


def pick(samples, **wanted):
    """Samples whose members, or members of their problem, are as wanted."""
    def value(sample, key):
        return sample[key] if key in sample else sample["problem"].get(key)
    return [s for s in samples if "samples_us" in s and all(value(s, k) == v for k, v in wanted.items())]


def speedups(ours, theirs, same, key="samples_us"):
    """Their time over ours, for samples that agree in what `same` gives."""
    times = {same(s): median(s, key) for s in theirs}
    return [times[same(s)] / median(s, key) for s in ours if same(s) in times]


def attention_shape(sample):
    p = sample["problem"]
    return p["head_dim"], p["causal"], p["q_len"]


def problem(sample):
    return json.dumps(sample["problem"], sort_keys=True)


def attention_ladder(log):
    rates = [s["flops"] / median(s) * 1e-6 for causal in (False, True)
             for s in pick(log["samples"], kernel="k6", head_dim=128, q_len=4096, causal=causal)]
    share = 100 * rates[0] / log["ceiling_tflops"]
    return f"{rates[0]:.0f} / {rates[1]:.0f} TFLOP/s, {share:.0f} % of {log['ceiling_tflops']}"


def attention_beside(peer, **which):
    def tell(log):
        ours = [s for s in pick(log["samples"], kernel="auto", **which) if s["problem"]["q_len"] >= 2048]
        return span(speedups(ours, pick(log["samples"], kernel=peer), attention_shape)) + " times its speed"
    return tell


def by_head_dim(log):
    """K7 in the faster of its forms for long and short sequences, which is the one that plan() takes."""
    def ratios(dim):
        fa3 = {attention_shape(s): median(s) for s in pick(log["samples"], kernel="fa3", head_dim=dim)}
        for shape, theirs in fa3.items():
            if shape[2] >= 2048:
                yield theirs / min(median(s) for kernel in ("k7", "k7_short")
                                   for s in pick(log["samples"], kernel=kernel) if attention_shape(s) == shape)
    return ", ".join(f"d {dim}: {span(list(ratios(dim)))}" for dim in (64, 128, 256)) + " times its speed"


def fp8_error(log):
    case = next(c for c in log["cases"] if c["name"] == "outlier, 4096 keys")
    rms = {(r["rounding"], r["sums"]): r["rmse"] for r in case["results"]}
    k8 = min(value for (rounding, _), value in rms.items() if "rotated" in rounding and "block" in rounding)
    return f"{1e2 * rms['per tensor', 'one level']:.2f}e-2 / {1e2 * k8:.2f}e-2 rms"


def value_dim(log):
    ours, theirs = (pick(log["samples"], kernel=kernel) for kernel in ("k6", "cudnn"))
    return f"{span(speedups(ours, theirs, problem))} times its speed"


def model_steps(log):
    """Of one step of a model: time, and the share of the floor's."""
    steps = pick(log["samples"], phase="decode")
    times = " / ".join(f"{median(s) * 1e-3:#.3g}".rstrip(".") for s in steps)  # 5.10, not 5.1
    shares = " / ".join(f"{100 * s['floor_us'] / median(s):.0f}" for s in steps)
    return f"{times} ms, {shares} % of the speed that the bytes allow"


def model_served(log):
    """Tokens of prompts and answers, by the requests that ended while it was measured."""
    served = log["samples"][0]
    tokens = served["requests"] * (served["input"] + served["output"])
    return f"{tokens / served['seconds']:,.0f} total tokens/s a GPU"


def latent_beside(*selections, peer="flash_mla"):
    """Beside FlashMLA, of each selection: members of samples, and the fewest and most sequences."""
    def of(log, fewest=1, most=1 << 30, **which):
        ours, theirs = ([s for s in pick(log["samples"], source=source, **which)
                         if fewest <= s["problem"]["sequences"] <= most] for source in ("tilewright", peer))
        return span(speedups(ours, theirs, problem))

    def tell(log):
        return " / ".join(of(log, **which) for which in selections) + " times its speed"
    return tell


def pages_beside(head_dim, *groups):
    """Beside FlashAttention-3 over the same pages, of each group of page sizes."""
    def of(log, sizes):
        names = tuple(f"pages of {size}" for size in sizes)
        return span([s["by_peer"] for s in log["samples"]
                     if s["head_dim"] == head_dim and "by_peer" in s and s["form"].endswith(names)])

    def tell(log):
        return " / ".join(of(log, sizes) for sizes in groups) + " times its speed"
    return tell


def decode_rates(log):
    rates = [s["bytes"] / median(s) * 1e-6 for kv in ("BF16", "F8_E4M3")
             for s in pick(log["samples"], model="llama-8b", batch=64, keys=16384, kv=kv)]
    return " / ".join(f"{rate:.2f}" for rate in rates) + " TB/s"


def decode_beside(is_short):
    def tell(log):
        found = []
        for case in sorted({s["case"] for s in log["samples"]}):
            times = {s["kernel"]: median(s, "graph_samples_us") for s in log["samples"] if s["case"] == case}
            sequences, keys = (int(word) for word in case.split(",")[0].split(" x "))
            if (sequences == 1 and keys <= 4096) == is_short:
                found.append(min(times[k] for k in ("cudnn bf16", "flash bf16", "fa3 bf16")) /
                             times["tilewright bf16"])
        return span(found) + " times the fastest of cuDNN, torch's flash and FlashAttention-3"
    return tell


def linear_one(log):
    ours, = pick(log["samples"], kernel="w4a16", shape="square", m=1)
    theirs, = pick(log["samples"], kernel="bf16", shape="square", m=1)
    return f"{median(ours):.1f} us (lower bound {ours['floor_us']:.1f}; torch bf16 {median(theirs):.1f})"


def linear_many(ours, theirs, name, *shapes):
    def tell(log):
        return span(speedups([s for s in pick(log["samples"], kernel=ours)
                              if s["problem"]["m"] >= 1024 and s["problem"]["shape"] in shapes],
                             pick(log["samples"], kernel=theirs), problem)) + f" times {name}"
    return tell


def moe_floor(log):
    shares = [100 * s["floor_bf16_us"] / median(s)
              for s in pick(log["samples"], shape="v3", format="nvfp4", is_chosen=True, activations="bf16")
              if 8 <= s["problem"]["tokens"] <= 128]
    return span(shares, 0) + " % of the speed that the bytes allow"


def moe_beside(log):
    theirs = [s for s in pick(load("2026-11-22-moe-torch.json")["samples"], shape="v3",
                              kernel="torch._grouped_mm bf16") if s["problem"]["tokens"] == 4096]
    ours = [s for s in pick(log["samples"], shape="v3", format="nvfp4", is_chosen=True)
            if s["problem"]["tokens"] == 4096]
    return span([median(theirs[0]) / min(median(s) for s in ours)], 1) + " times torch's bf16 grouped product"


def sparse_beside(shapes, many):
    def tell(log):
        found = []
        for shape in shapes:
            ours = [s for s in pick(log["samples"], shape=shape, source="tilewright", is_chosen=True)
                    if (s["problem"]["batch"] >= 64) == many]
            found += speedups(ours, pick(log["samples"], shape=shape, source="FlashMLA"), problem)
        return span(found)
    return tell


def sparse_both(*pairs):
    return lambda log: " / ".join(sparse_beside(shapes, many)(log) for shapes, many in pairs) + " times its speed"


def indexer_beside(log):
    same = lambda s: (problem(s), s["format"])
    return span(speedups(pick(log["samples"], kernel="indexer", format="fp8"),
                         pick(log["samples"], kernel="DeepGEMM"), same)) + " times its speed"


def tokenizer_beside(what, *sources):
    """Of each text the least time of the library, whichever call it is, over ours."""
    def tell(log):
        def ms(text, kind, *names):
            return min(median(s, "samples_ms") for s in log["samples"] if s["text"] == text and
                       s["source"] in names and s["what"].partition(",")[0] == kind)
        texts = dict.fromkeys(s["text"] for s in log["samples"])
        return span([ms(text, what, "tokenizers") / ms(text, what, *sources) for text in texts], 1) + \
            " times its speed"
    return tell


def tokenizer_equal(log):
    compared = log["compared"]
    return f"{compared['texts'] - compared['different']:,} of {compared['texts']:,} equal, " \
        f"{1e-6 * compared['tokens']:.1f} million tokens"


def sanitizers(log):
    runs = [run for case in log["cases"] for run in case["results"].values()]
    clean = sum(run["errors"] == 0 and run["warnings"] == 0 and run["is_right"] for run in runs)
    return f"{clean} of {len(runs)} runs clean"


WIDE = ("flash_wq_b", "flash_wo_b", "flash_gate_up", "pro_wo_b")
FLASH, PRO = ("flash", "flash-len"), ("pro", "pro-len")
PEERS = "2026-11-22-attention-peers.json"
K7 = "2026-11-23-attention-k7-forms.json"
LINEAR = "2026-11-22-linear-peers.json"
SPARSE = "2026-11-22-sparse-attention.json"
MLA = "2026-11-27-mla-peers-h200.json"
VLLM_MLA = "vllm.third_party.flashmla.flash_mla_interface"
DECODE_PEERS = "2026-11-23-decode-peers.json"
TOKENIZER = "2026-11-26-tokenizer-peers.json"
# Section, claim, log, what computes the result from it, whether the README has it.
ROWS = [
    ("Attention", "K6, d 128, n 4096, full / causal", "2026-11-23-attention-ladder-all-lengths.json",
     attention_ladder, False),
    ("Attention", "attention, bf16, n >= 2048, beside cuDNN", PEERS, attention_beside("cudnn"), True),
    ("Attention", "attention, bf16, n >= 2048, beside FlashAttention-3", PEERS, attention_beside("fa3"), True),
    ("Attention", "d 128 causal alone, beside FlashAttention-3", PEERS,
     attention_beside("fa3", head_dim=128, causal=True), False),
    ("Attention", "attention, bf16, keys of 192 and values of 128, n 1024 to 16384, beside cuDNN",
     "2026-11-26-attention-value-dim.json", value_dim, True),
    ("Attention", "attention, bf16, head_dim 192, n 512 to 16384, beside cuDNN, on an H100",
     "2026-11-26-attention-192.json", value_dim, False),
    ("Attention", "attention, e4m3 (K7), n >= 2048, beside FlashAttention-3", K7, by_head_dim, True),
    ("Attention", "attention, bf16, heads of 96, n >= 2048, beside FlashAttention-3, on an H100",
     "2026-11-27-attention-96-peers-h100.json", attention_beside("fa3 vllm"), False),
    ("Attention", "the same on an H100, heads of 192", "2026-11-27-attention-192-peers-h100.json",
     attention_beside("fa3 vllm"), False),
    ("Attention", "the same on an H100, heads of 192 with values of 128",
     "2026-11-27-attention-192-128-peers-h100.json",
     attention_beside("fa3 vllm"), False),
    ("Attention", "packed queries over pages of 1 / 16 to 256, bf16, heads of 128, beside FlashAttention-3, "
     "on an H100",
     "2026-11-28-attention-pages-turns-h100.json", pages_beside(128, (1,), (16, 64, 128, 256)), False),
    ("Attention", "the same on an H200", "2026-11-28-attention-pages-lines-h200.json",
     pages_beside(128, (1,), (16, 64, 128, 256)), False),
    ("Attention", "the same on an H200, heads of 64", "2026-11-28-attention-pages-lines-h200.json",
     pages_beside(64, (1,), (16, 64, 128, 256)), False),
    ("Attention", "the same on an H100, heads of 192", "2026-11-28-attention-pages-turns-h100.json",
     pages_beside(192, (1,), (16, 64, 128, 256)), False),
    ("Attention", "the same on an H100, all in e4m3, heads of 128", "2026-11-28-attention-e4m3-turns-h100.json",
     pages_beside(128, (1,), (16, 64, 128, 256)), False),
    ("Attention", "the same on an H100, all in e4m3, heads of 64", "2026-11-28-attention-e4m3-turns-h100.json",
     pages_beside(64, (1,), (16, 64, 128, 256)), False),
    ("Attention", "e4m3 on outliers, 4096 keys: per tensor / rotated, per block (K8)",
     "2026-11-22-fp8-accuracy.json", fp8_error, False),
    ("Attention", "every rung under compute-sanitizer's four tools", "2026-11-22-attention-sanitizers.json",
     sanitizers, False),
    ("Decode attention", "decode attention, 64 sequences of 16384 keys, bf16 / e4m3",
     "2026-11-23-decode.json", decode_rates, True),
    ("Decode attention", "decode attention, one sequence of up to 4096 keys, in CUDA graphs",
     DECODE_PEERS, decode_beside(True),
     True),
    ("Decode attention", "decode attention, longer or more sequences, in CUDA graphs",
     DECODE_PEERS, decode_beside(False), True),
    ("Linear and MoE layers", "linear layer, NVFP4 x bf16, 7168 x 7168, one token", LINEAR, linear_one, True),
    ("Linear and MoE layers", "linear layer, NVFP4 x bf16, 7168 x 7168, from 1024 rows", LINEAR,
     linear_many("w4a16", "bf16", "cuBLAS bf16", "square"), True),
    ("Linear and MoE layers", "the same, four of DeepSeek-V4's shapes", LINEAR,
     linear_many("w4a16", "bf16", "cuBLAS bf16", *WIDE), False),
    ("Linear and MoE layers", "the same, 1024 x 4096, too narrow to fill the GPU", LINEAR,
     linear_many("w4a16", "bf16", "cuBLAS bf16", "flash_wq_a"), False),
    ("Linear and MoE layers", "linear layer, NVFP4 x FP8 given, 7168 x 7168, from 1024 rows", LINEAR,
     linear_many("w4a8_given", "fp8_tensor_fast", "cuBLASLt FP8", "square"), False),
    ("Linear and MoE layers", "the same, four of DeepSeek-V4's shapes", LINEAR,
     linear_many("w4a8_given", "fp8_tensor_fast", "cuBLASLt FP8", *WIDE), False),
    ("Linear and MoE layers", "the same, 1024 x 4096", LINEAR,
     linear_many("w4a8_given", "fp8_tensor_fast", "cuBLASLt FP8", "flash_wq_a"), False),
    ("Linear and MoE layers", "MoE layer in NVFP4, 256 experts of 7168 / 2048, top 8, 8 to 128 tokens",
     "2026-11-22-moe.json",
     moe_floor, True),
    ("Linear and MoE layers", "the same at 4096 tokens", "2026-11-22-moe.json", moe_beside, False),
    ("DeepSeek-V4", "sparse attention, FP8 caches, 64 / 128 heads, from 64 sequences, beside FlashMLA", SPARSE,
     sparse_both((FLASH, True), (PRO, True)), True),
    ("DeepSeek-V4", "the same with 2 sequences", SPARSE, sparse_both((FLASH, False), (PRO, False)), False),
    ("DeepSeek-V4", "sparse attention, 8 / 16 heads, which FlashMLA pads to 64, from 64 sequences", SPARSE,
     sparse_both((("flash8",), True), (("flash16",), True)), True),
    ("DeepSeek-V4", "the indexer's logits over FP8 keys, beside DeepGEMM", "2026-11-22-indexer.json",
     indexer_beside, False),
    ("DeepSeek-V4", "step of V4-Flash's first 22 layers on one GPU, context 1024, batch 1",
     "2026-11-27-model-22-layers-h200-trips.json", model_steps, False),
    ("DeepSeek-V4", "step of V4-Flash's first 22 layers on one GPU, context 8192, batch 2 / 4 / 8 / 64",
     "2026-11-26-model-22-layers-h200-stack-batches.json", model_steps, True),
    ("DeepSeek-V4", "step of all V4-Flash on two GPUs, one stream, context 1024 / 8192",
     "2026-11-27-model-tensor-2xh200-spread.json", model_steps, True),
    ("DeepSeek-V4", "step of all V4-Flash on two GPUs, context 8192, batch 1 / 64 a GPU",
     "2026-11-27-model-expert-2xh200-spread.json", model_steps, True),
    ("DeepSeek-V4", "all V4-Flash on two GPUs, 32 sequences a GPU of 8192 tokens in and 1024 out, steady state",
     "2026-11-27-serve-2xh200-spread.json", model_served, True),
    ("DeepSeek-V3", "decoding over all keys of pages of 576, from 128 sequences, beside FlashMLA",
     MLA, latent_beside({"kind": "dense", "sequences": 128}), False),
    ("DeepSeek-V3", "prefill over lists, 128 / 64 heads", MLA,
     latent_beside({"kind": "prefill", "heads": 128}, {"kind": "prefill", "heads": 64}), False),
    ("DeepSeek-V3", "decoding over all keys, from 8 sequences, beside FlashMLA of vLLM 0.33, on an H100",
     "2026-11-27-mla-dense-vllm-h100.json", latent_beside({"kind": "dense"}, peer=VLLM_MLA), False),
    ("DeepSeek-V3", "decoding over lists of FP8 records, 128 heads / 64 heads, from 64 sequences / "
     "2 to 8 sequences, beside the same",
     "2026-11-28-mla-lists-code-h200.json",
     latent_beside({"kind": "lists", "heads": 128, "fewest": 64}, {"kind": "lists", "heads": 64, "fewest": 64},
                   {"kind": "lists", "most": 8}, peer=VLLM_MLA), False),
    ("DeepSeek-V3", "prefill over lists, 128 / 64 heads, beside the same, on an H100",
     "2026-11-27-mla-prefill-vllm-h100.json",
     latent_beside({"kind": "prefill", "heads": 128}, {"kind": "prefill", "heads": 64}, peer=VLLM_MLA), False),
    ("Tokenizer", "DeepSeek-V4's `tokenizer.json`: loading, one core, beside the library tokenizers", TOKENIZER,
     tokenizer_beside("load", "tilewright"), False),
    ("Tokenizer", "encoding English, code, ten scripts", TOKENIZER, tokenizer_beside("encode", "tilewright"),
     False),
    ("Tokenizer", "the same from Python, as `tilewright.Tokenizer`", TOKENIZER,
     tokenizer_beside("encode", "tilewright.Tokenizer"), False),
    ("Tokenizer", "decoding", TOKENIZER, tokenizer_beside("decode", "tilewright"), False),
    ("Tokenizer", "random Unicode texts, ids and decoded text", TOKENIZER, tokenizer_equal, False),
]

# What is compared with what: claim, result, where it is checked.
COMPARED = [
    ("layout algebra against reference cases", "1800 of 1800", "`./run layout check`, `tests/layout`"),
    ("fragments, descriptors and swizzles against an H200", "71 of 71 recorded cases as predicted",
     "`tests/golden/hardware`, `tests/hardware`"),
    ("the same cases on the simulator", "71 of 71 bit-equal", "`tests/hardware`"),
    ("test kernels (attention, GEMMs by mma.sync and wgmma, TMA ring, multicast) on simulator and H200",
     "equal bits where arithmetic is specified", "`tests/kernels`"),
    ("mma.sync and wgmma of the simulator against recordings of an H200 and published results of a B200",
     "69 forms and 8 files, every bit", "`tests/golden/hardware/tensor_core`"),
    ("tensor maps against an H200's driver", "9,666 of 9,666 calls, verdict and bytes", "`tests/sim/driver`"),
    ("special functions of the simulator against an H200", "bit-equal",
     "[note](notes/2026-11-21-special-functions.md)"),
    ("mutants of our kernels named by the checks: `all` / with `strict` / `all` without what only the manual "
     "demands",
     "85.6 / 99.6 / 100 %, all 2449",
     "[how](03-simulator.md#how-far-the-checks-can-be-trusted)"),
    ("public suites through the Python drop-ins on an H200: FlashAttention-3 without rotary; FlashMLA",
     "8,680 of 8,680; 4,778 of 4,778; none failed, none sampled",
     "[FA3](../bench/results/2026-11-24-python-peers-fa3-h200.json), "
     "[FlashMLA](../bench/results/2026-11-24-python-peers-flashmla-h200.json)"),
    ("the same on an H100, with rotary",
     "10,261 of 10,264 (3 need more than 80 GB); 4,778 of 4,778",
     "[FA3](../bench/results/2026-11-24-python-peers-fa3.json), "
     "[FlashMLA](../bench/results/2026-11-24-python-peers-flashmla.json)"),
    ("on H100s and H200s, files of 2026: FlashAttention-3's `output` and `varlen` with all heads, windows and "
     "rotary; its `kvcache`; DeepGEMM's logits; vLLM's test of attention backends",
     "19,968 of 19,968; 65,376 of 65,376; 88 of 88; 115 of 115",
     "[FA3](../bench/results/2026-11-28-python-peers-fa3-all-heads-h100.json), "
     "[caches](../bench/results/2026-11-28-python-peers-fa3-kvcache-h200.json), "
     "[DeepGEMM](../bench/results/2026-11-28-python-peers-deepgemm-h100.json), "
     "[vLLM](../bench/results/2026-11-28-python-peers-vllm-h100.json)"),
    ("every operator of a DeepSeek-V4 layer on the simulated B200, against float64",
     "within Hopper's bounds; 147 of 147 tensors of the model's trace", "[Blackwell](10-blackwell.md)"),
    ("attention on Blackwell, simulated, against float64", "P7's grid within the bound, cosine >= 0.999996",
     "[stages](../src/kernels/attention_sm100/README.md); all of it in `./test`"),
    ("NVFP4 and MXFP8 x MXFP4 GEMM on Blackwell, simulated", "bit-equal where sums are exact, else in bound",
     "[linear](../src/kernels/linear/README.md)"),
    ("NVFP4 on N(0,1): relative rms error", "0.0951 (0.0870 with four over six)",
     "`tests/formats/block_accuracy_test.cpp`"),
    ("DeepSeek-V4 model on an H200, FP8 cache: divergence from float64; bits per byte",
     "1.2e-4 nats a byte (noise of bf16: 1.7e-4); 1.07841 (float64 1.07830)",
     "[log](../bench/results/2026-11-22-model-quality.json)"),
]


def table(rows, links):
    yield "| what | measured | log |"
    yield "|---|---|---|"
    for _, claim, log, tell in rows:
        yield f"| {claim} | {tell(load(log))} | [log]({links}{log}) |"


def results_page():
    lines = ["# Measured results", "",
             "Every number above the last table is computed by `tools/make_results.py` from a log in",
             "`bench/results`. The device is an NVIDIA H200, or an H100 where the row says so; the tokenizer",
             "ran on one core of a host. Peers ran in the same process or the same run as our kernels, in",
             "random order with them, and their times are in the same log. \"1.04 times its speed\" is the",
             "peer's median time divided by ours. [Benchmarks](05-benchmarks.md) says how it was measured. The",
             "rungs of the ladder have [tables of their own](../src/kernels/attention/README.md).", ""]
    for section in dict.fromkeys(row[0] for row in ROWS):
        lines += [f"## {section}", "", *table([r[:4] for r in ROWS if r[0] == section], "../bench/results/"), ""]
    lines += ["## Compared with references", "", "| what | result | where it is checked |", "|---|---|---|",
              *(f"| {claim} | {result} | {where} |" for claim, result, where in COMPARED), ""]
    return "\n".join(lines)


def readme():
    text = (ROOT / "README.md").read_text()
    if BEGIN not in text or END not in text:
        sys.exit(f"make_results: README.md has no marks {BEGIN} and {END}")
    head, rest = text.split(BEGIN)
    rows = [row[:4] for row in ROWS if row[4]]
    return head + BEGIN + "\n" + "\n".join(table(rows, "bench/results/")) + "\n" + END + rest.split(END)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs")
    args = parser.parse_args()
    stale = []
    for name, text in (("docs/results.md", results_page()), ("README.md", readme())):
        path = ROOT / name
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if not args.check:
                path.write_text(text)
    if args.check and stale:
        print(f"{', '.join(stale)}: not what the logs say; run tools/make_results.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
