#!/usr/bin/env python3
"""Attention over caches of e4m3 in pages, on a GPU: queries of e4m3 and of bf16, one run.

    python3 bench/attention_e4m3_pages.py

Needs torch with CUDA and the Python package (./run builds it). The FP8 form of FlashAttention-3 stands beside it
where vLLM's build (vllm.vllm_flash_attn) can be imported: operands of e4m3 as vLLM's engine gives them to it, with
scales [batch, kv_heads]. Shapes and protocol are those of attention_pages.py: chunks of prompts, causal, 32 heads
over 8 key heads, pages in random order. Forms: "e4m3" has queries of e4m3, "bf16 queries" widens the codes of the
cache to bf16, "bf16 cache" is attention over bf16 pages, for what codes save. `by_peer` is the peer's time over
the same pages by the form's. Of each form some rows are compared with float64 results of the numbers that codes
and scales stand for: in the norm within 0.06 where weights are rounded to e4m3 (a rounding is uniform in at most
2^-4, 0.036 in the root mean square, and the tensor core keeps 13 bits of sums), within 2^-7 elsewhere.
"""

import importlib
import statistics
import sys

import attention_pages as pages
import peer_run

PAGE_SIZES = (1, 16, 64, 128, 256)
SHAPES = (
    ("chunk of 2048 over 8192", 128, [(2048, 8192)] * 4),
    ("chunk of 512 over 32768", 128, [(512, 32768)] * 4),
    ("prompts of 4096", 128, [(4096, 4096)] * 4),
    ("mixed", 128, [(2048, 8192)] + [(1, 8192)] * 63),
    ("one query each", 128, [(1, 8192)] * 64),
    ("mixed, d64", 64, [(2048, 8192)] + [(1, 8192)] * 63),
    ("chunk of 2048 over 8192, d64", 64, [(2048, 8192)] * 4),
    ("chunk of 2048 over 8192, d256", 256, [(2048, 8192)] * 4),
)
SCALES = {"q": 0.9, "k": 0.8, "v": 1.1}


def in_pages(torch, sequences, x, page_size, order):
    """Keys or values of all sequences in pages; bytes, for torch has no indices of e4m3."""
    longest = max(keys for _, keys in sequences)
    count = len(sequences) * longest // page_size
    made = torch.empty(count, page_size, *x.shape[1:], dtype=x.dtype, device=x.device)
    as_bytes = (lambda t: t.view(torch.uint8)) if x.element_size() == 1 else (lambda t: t)
    as_bytes(made)[order] = as_bytes(x).reshape(made.shape)
    return made


class Batch:
    """Operands of a shape: numbers, codes, and lengths."""

    def __init__(self, torch, dim, sequences):
        self.torch, self.dim, self.sequences = torch, dim, sequences
        self.longest = max(keys for _, keys in sequences)
        self.most_queries = max(queries for queries, _ in sequences)
        rows = {"q": (sum(queries for queries, _ in sequences), pages.HEADS)}
        rows["k"] = rows["v"] = (len(sequences) * self.longest, pages.KV_HEADS)
        self.codes, self.exact, self.rounded, self.descales = {}, {}, {}, {}
        for name, shape in rows.items():
            self.codes[name] = torch.randn(*shape, dim, device="cuda").to(torch.float8_e4m3fn)
            self.exact[name] = self.codes[name].float() * SCALES[name]
            self.rounded[name] = self.exact[name].bfloat16()
            self.descales[name] = torch.full((len(sequences), pages.KV_HEADS), SCALES[name], device="cuda")
        starts = torch.tensor([0] + [queries for queries, _ in sequences], device="cuda")
        self.cu_q = starts.cumsum(0).to(torch.int32)
        self.lengths = torch.tensor([keys for _, keys in sequences], dtype=torch.int32, device="cuda")
        self.orders, self.made = {}, {}

    def pages(self, kind, name, page_size):
        """Of codes or of rounded numbers."""
        if page_size not in self.orders:
            count = len(self.sequences) * self.longest // page_size
            self.orders[page_size] = self.torch.randperm(count, device="cuda")
        key = kind, name, page_size
        if key not in self.made:
            x = (self.codes if kind == "e4m3" else self.rounded)[name]
            self.made[key] = in_pages(self.torch, self.sequences, x, page_size, self.orders[page_size])
        return self.made[key]

    def table(self, page_size):
        return self.orders[page_size].to(self.torch.int32).reshape(len(self.sequences), -1)


class Form:
    """Ours: `queries` and `cache` are "bf16" or "e4m3"."""

    def __init__(self, package, batch, name, queries, cache, page_size):
        torch = batch.torch
        given = {"q": batch.codes["q"] if queries == "e4m3" else batch.rounded["q"]}
        for operand in ("k", "v"):
            given[operand] = batch.pages(cache, operand, page_size)
        given |= {"block_table": batch.table(page_size), "cu_q": batch.cu_q, "kv_lengths": batch.lengths,
                  "out": torch.full(given["q"].shape, float("nan"), dtype=torch.bfloat16, device="cuda")}
        problem = {}
        if cache == "e4m3":
            given |= {"k_descale": batch.descales["k"], "v_descale": batch.descales["v"]}
            problem = {"fp8": {"scales": "head"}}
            if queries == "e4m3":
                given["q_descale"] = batch.descales["q"]
        self.op = package.Attention(
            package.Device(peer_run.DEVICE), dtype=queries, kv_dtype=cache, batch=len(batch.sequences),
            heads=pages.HEADS, kv_heads=pages.KV_HEADS, q_len=batch.most_queries, kv_len=batch.longest,
            head_dim=batch.dim, causal=True, is_packed=True, total_q=given["q"].shape[0], has_kv_lengths=True,
            page_size=page_size, num_pages=given["k"].shape[0], max_pages=batch.longest // page_size, **problem)
        given["workspace"] = peer_run.workspace_of(torch, self.op, given["out"])
        self.given, self.out, self.kernel, self.page_size = given, given["out"], self.op.plan.kernel, page_size
        self.name, self.is_peer = f"{name}, pages of {page_size}", False
        self.limit = 0.06 if queries == "e4m3" else 2.0**-7
        self.queries = (batch.exact if queries == "e4m3" else batch.rounded)["q"]
        self.keys = batch.exact if cache == "e4m3" else batch.rounded

    def run(self):
        self.op.run(**self.given)


class Peer:
    def __init__(self, module, batch, page_size):
        torch, self.kernel, self.is_peer, self.page_size = batch.torch, "", True, page_size
        self.name = f"FlashAttention-3 of vLLM, pages of {page_size}"
        k, v = (batch.pages("e4m3", name, page_size) for name in ("k", "v"))
        self.out = torch.full(batch.codes["q"].shape, float("nan"), dtype=torch.bfloat16, device="cuda")
        scales = {f"{name}_descale": scale for name, scale in batch.descales.items()}
        table = batch.table(page_size)
        self.call = lambda: module.flash_attn_varlen_func(
            batch.codes["q"], k, v, batch.most_queries, batch.cu_q, batch.longest, seqused_k=batch.lengths,
            block_table=table, causal=True, out=self.out, fa_version=3, **scales)
        self.limit, self.queries, self.keys = 0.06, batch.exact["q"], batch.exact

    def run(self):
        self.call()


def forms_of(torch, package, peer, batch):
    found = []
    for page_size in PAGE_SIZES:
        makers = []
        if package:
            makers += [lambda: Form(package, batch, "e4m3", "e4m3", "e4m3", page_size),
                       lambda: Form(package, batch, "bf16 queries", "bf16", "e4m3", page_size),
                       lambda: Form(package, batch, "bf16 cache", "bf16", "bf16", page_size)]
        if peer:
            makers.append(lambda: Peer(peer, batch, page_size))
        for make in makers:
            try:
                form = make()
                form.run()
                torch.cuda.synchronize()
                found.append(form)
            except Exception as error:  # one that does not work here is a line
                print(f"{batch.dim}, pages of {page_size}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    return found


def report(log, title, batch, forms, times, rows):
    medians = {form.name: statistics.median(times[form.name]) for form in forms}
    for form in forms:
        us = medians[form.name]
        error = pages.error_of_rows(batch.dim, batch.sequences, form.queries, form.keys["k"], form.keys["v"],
                                    form.out, rows)
        line = {"shape": title, "head_dim": batch.dim, "sequences": batch.sequences, "form": form.name,
                "kernel": form.kernel, "us": times[form.name],
                "tflops": pages.flops_of(batch.dim, batch.sequences) / us * 1e-6,
                "error": {"float64": error, "ok": error < form.limit}}
        peer = medians.get(f"FlashAttention-3 of vLLM, pages of {form.page_size}")
        if peer and not form.is_peer:
            line["by_peer"] = peer / us
        log["samples"].append(line)
        beside = f"  by peer {line['by_peer']:5.3f}" if "by_peer" in line else ""
        print(f"{title:30} {form.name:38} {form.kernel:9} {us:9.1f} us {line['tflops']:6.0f} TFLOP/s  error "
              f"{error:.1e}{beside}{'' if line['error']['ok'] else '  WRONG'}", flush=True)


def main():
    parser = peer_run.begin_parser(__doc__, "e4m3-pages.json", 48, "rows")
    args = parser.parse_args()
    torch = peer_run.import_torch()
    package = peer_run.open_package(args)
    try:
        peer = importlib.import_module("vllm.vllm_flash_attn")
    except Exception as error:  # without it ours stand alone
        print(f"without vLLM's FlashAttention-3: {type(error).__name__}: {str(error)[:200]}", flush=True)
        peer = None
    log = peer_run.begin_log(torch, "attention_e4m3_pages", package)
    peer_run.warm_up(torch)
    torch.seed()
    for title, dim, sequences in SHAPES:
        batch = Batch(torch, dim, sequences)
        forms = forms_of(torch, package, peer, batch)
        times = peer_run.measure(torch, {form.name: form.run for form in forms}, args.samples)
        report(log, title, batch, forms, times, args.rows)
    return peer_run.end_run(log, args.out)


if __name__ == "__main__":
    sys.exit(main())
