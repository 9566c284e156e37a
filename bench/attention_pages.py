#!/usr/bin/env python3
"""Attention over keys in pages beside the same keys in one piece, on a GPU: what pages cost, one run.

    python3 bench/attention_pages.py

Needs torch with CUDA and the Python package (./run builds it). FlashAttention-3 stands beside it where its
package (flash_attn_interface) or vLLM's build (vllm.vllm_flash_attn) can be imported, and torch's own
attention of keys in one piece (flash attention, and with --flex a compiled flex_attention) where all sequences
are equally long. A chunk of a prompt attends to all keys before it, bf16, causal, 32 heads over 8 key heads.
Pages lie in random order. "no lengths" is the operator without pages and with lengths that the host knows, "no
pages" the same keys in one piece by the kernel that reads pages. `share` of a sample is the time of "no
lengths" by its time, `by_peer` that of the faster FlashAttention-3 over the same pages by its time; in
`mixed` batches one sequence or two prefill and the others decode.

Protocol: N(0,1) inputs, other ones in each run; every timed call finds a cold L2 cache (256 MiB are written
before it) and is enqueued while the GPU waits; one call of each form in random order, again and again; times
by events. Results are compared with those of "no pages" bit by bit: a page changes where a key lies, and
nothing else. Those of another kernel, and the peer's, must be within 1 % of the norm: bf16 rounds weights and
results to 2^-9 of themselves. Of "no pages" some rows are compared with float64, in the norm within 2^-7.
"""

import importlib
import random
import statistics
import sys

import peer_run

NO_LENGTHS = -1  # in place of a page size
PAGE_SIZES = (0, NO_LENGTHS, 1, 2, 4, 8, 16, 32, 64, 128, 256)
PEER_PAGE_SIZES = (0, 1, 16, 64, 128, 256)
PEER_HEAD_DIMS = (64, 128, 192, 256)  # at 96 vLLM's build ends the context: an illegal instruction
LIMIT = 1e-2  # of the norm of a difference
EXACT_LIMIT = 2.0**-7  # beside float64
# name, head_dim, (queries, keys) of each sequence
SHAPES = (
    ("chunk of 2048 over 8192", 128, [(2048, 8192)] * 4),
    ("chunk of 512 over 32768", 128, [(512, 32768)] * 4),
    ("prompts of 4096", 128, [(4096, 4096)] * 4),
    ("mixed", 128, [(2048, 8192)] + [(1, 8192)] * 63),
    ("mixed, chunks last", 128, [(1, 8192)] * 30 + [(2048, 8192)] * 2),
    ("mixed, d64", 64, [(2048, 8192)] + [(1, 8192)] * 63),
    ("mixed, d192", 192, [(2048, 8192)] + [(1, 8192)] * 63),
    ("mixed, d256", 256, [(2048, 8192)] + [(1, 8192)] * 63),
    ("one query each", 128, [(1, 8192)] * 64),
    ("one query each, d64", 64, [(1, 8192)] * 64),
    ("chunk of 2048 over 8192, d64", 64, [(2048, 8192)] * 4),
    ("chunk of 2048 over 8192, d96", 96, [(2048, 8192)] * 4),
    ("chunk of 2048 over 8192, d192", 192, [(2048, 8192)] * 4),
    ("chunk of 2048 over 8192, d256", 256, [(2048, 8192)] * 4),
)
HEADS, KV_HEADS = 32, 8


def problem_tensors(torch, sequences, q, k, v, page_size):
    """Lengths of a batch, and its keys and values in pages that lie in random order; page_size 0: in one piece."""
    device, batch = q.device, len(sequences)
    longest = max(keys for _, keys in sequences)
    rooms = torch.tensor([0] + [queries for queries, _ in sequences], device=device)
    given = {"q": q, "out": torch.full_like(q, float("nan")), "cu_q": rooms.cumsum(0).to(torch.int32),
             "kv_lengths": torch.tensor([keys for _, keys in sequences], dtype=torch.int32, device=device)}
    if page_size <= 0:
        return given | {"k": k, "v": v,
                        "cu_kv": torch.arange(batch + 1, dtype=torch.int32, device=device) * longest}
    pages = longest // page_size
    order = torch.randperm(batch * pages, device=device)
    for name, x in (("k", k), ("v", v)):
        given[name] = torch.empty(batch * pages, page_size, *x.shape[1:], dtype=x.dtype, device=device)
        given[name][order] = x.reshape(given[name].shape)
    return given | {"block_table": order.to(torch.int32).reshape(batch, pages)}


class Form:
    """One page size of a shape: run() enqueues it."""

    def __init__(self, torch, package, dim, sequences, q, k, v, page_size):
        given = problem_tensors(torch, sequences, q, k, v, page_size)
        longest = max(keys for _, keys in sequences)
        problem = {"total_kv": len(sequences) * longest}
        if page_size > 0:
            problem = {"page_size": page_size, "num_pages": given["k"].shape[0],
                       "max_pages": given["block_table"].shape[1]}
        self.op = package.Attention(
            package.Device(peer_run.DEVICE), dtype="bf16", batch=len(sequences), heads=HEADS, kv_heads=KV_HEADS,
            q_len=max(queries for queries, _ in sequences), kv_len=longest, head_dim=dim, causal=True,
            is_packed=True, total_q=q.shape[0],
            has_kv_lengths=page_size != NO_LENGTHS, **problem)
        given["workspace"] = peer_run.workspace_of(torch, self.op, q)
        self.given, self.out, self.kernel = given, given["out"], self.op.plan.kernel
        self.name, self.page_size, self.is_peer = name_of(page_size), page_size, False

    def run(self):
        self.op.run(**self.given)


class Peer:
    """The same by FlashAttention-3: called as `make` calls its module."""

    def __init__(self, torch, title, make, module, dim, sequences, q, k, v, page_size):
        self.kernel, self.is_peer, self.page_size = "", True, page_size
        x = problem_tensors(torch, sequences, q, k, v, page_size)
        self.made, self.name = x["out"], f"{title}, {name_of(page_size)}"
        longest = max(queries for queries, _ in sequences), max(keys for _, keys in sequences)
        self.call = make(module, x, *longest)

    def run(self):
        self.made = self.call()

    @property
    def out(self):
        return self.made


def vllm_call(module, x, most_queries, most_keys):
    """As vLLM's engine calls its build."""
    keys = {"seqused_k": x["kv_lengths"], "block_table": x["block_table"]} if "block_table" in x else {
        "cu_seqlens_k": x["cu_kv"]}
    places = (x["q"], x["k"], x["v"], most_queries, x["cu_q"], most_keys)
    return lambda: module.flash_attn_varlen_func(*places, **keys, causal=True, out=x["out"], fa_version=3)


def published_call(module, x, most_queries, most_keys):
    """By FlashAttention-3's own interface."""
    if "block_table" in x:
        words = {"cache_seqlens": x["kv_lengths"], "page_table": x["block_table"], "cu_seqlens_q": x["cu_q"],
                 "max_seqlen_q": most_queries}
        return lambda: module.flash_attn_with_kvcache(x["q"], x["k"], x["v"], causal=True, **words)
    places = (x["q"], x["k"], x["v"], x["cu_q"], x["cu_kv"], most_queries, most_keys)

    def run():
        found = module.flash_attn_varlen_func(*places, causal=True)
        return found[0] if isinstance(found, (tuple, list)) else found
    return run


PEERS = (("FlashAttention-3", "flash_attn_interface", published_call),
         ("FlashAttention-3 of vLLM", "vllm.vllm_flash_attn", vllm_call))


def name_of(page_size):
    return f"pages of {page_size}" if page_size > 0 else "no pages" if page_size == 0 else "no lengths"


class Torch:
    """The same keys in one piece by torch: scaled_dot_product_attention, or flex_attention."""

    def __init__(self, torch, name, dim, sequences, q, k, v):
        batch, (queries, keys) = len(sequences), sequences[0]
        self.name, self.kernel, self.is_peer, self.page_size = f"torch's {name}, no pages", "", True, 0
        self.operands = [x.reshape(batch, -1, *x.shape[1:]).transpose(1, 2) for x in (q, k, v)]
        self.call = (flex_call if name == FLEX else flash_call)(torch, queries, keys)

    def run(self):
        self.made = self.call(*self.operands)

    @property
    def out(self):
        return self.made.transpose(1, 2).flatten(0, 1)


FLASH, FLEX = "scaled_dot_product_attention", "flex_attention"


def flash_call(torch, queries, keys):
    """Causal with the last query at the last key."""
    attend = torch.nn.functional.scaled_dot_product_attention
    if queries == keys:
        return lambda q, k, v: attend(q, k, v, is_causal=True, enable_gqa=True)
    bias = importlib.import_module("torch.nn.attention.bias").causal_lower_right(queries, keys)
    return lambda q, k, v: attend(q, k, v, attn_mask=bias, enable_gqa=True)


def flex_call(torch, queries, keys):
    flex = importlib.import_module("torch.nn.attention.flex_attention")
    before = keys - queries
    mask = flex.create_block_mask(lambda b, h, i, j: j <= i + before, None, None, queries, keys, device="cuda")
    compiled = torch.compile(flex.flex_attention, dynamic=False)
    return lambda q, k, v: compiled(q, k, v, block_mask=mask, enable_gqa=True)


def torch_forms(torch, names, dim, sequences, q, k, v):
    """Those that this torch has for this shape."""
    if len(set(sequences)) != 1:
        return
    for name in names:
        try:
            form = Torch(torch, name, dim, sequences, q, k, v)
            form.run()
            yield form
        except Exception as error:  # one that does not work here is a line
            print(f"without torch's {name}: {type(error).__name__}: {str(error)[:200]}", flush=True)


def import_peers():
    """(title, how it is called, module) of those that there are."""
    found = []
    for title, name, make in PEERS:
        try:
            found.append((title, make, importlib.import_module(name)))
        except Exception as error:  # one that does not work here is a line
            print(f"without {name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
    return found


def peer_forms(torch, peers, *shape):
    """Those that take this shape."""
    for title, make, module in peers:
        for size in PEER_PAGE_SIZES:
            try:
                form = Peer(torch, title, make, module, *shape, size)
                form.run()
                torch.cuda.synchronize()
                yield form
            except Exception as error:
                print(f"{title}, {name_of(size)}: {type(error).__name__}: {str(error)[:200]}", flush=True)


def flops_of(dim, sequences):
    """Of the visible scores."""
    seen = sum(queries * (2 * keys - queries + 1) // 2 for queries, keys in sequences)
    return 4 * dim * HEADS * seen


def error_of_rows(dim, sequences, q, k, v, out, count):
    """The norm of the difference from float64 by the norm, of `count` rows drawn at random."""
    longest = max(keys for _, keys in sequences)
    total, wrong = 0.0, 0.0
    for _ in range(count):
        batch, head = random.randrange(len(sequences)), random.randrange(HEADS)
        queries, keys = sequences[batch]
        query = random.randrange(queries)
        row = sum(count for count, _ in sequences[:batch]) + query
        seen = keys - queries + query + 1
        at = slice(batch * longest, batch * longest + seen)
        kv_head = head // (HEADS // KV_HEADS)
        weights = (k[at, kv_head].double() @ q[row, head].double() * dim**-0.5).softmax(0)
        exact = weights @ v[at, kv_head].double()
        total += exact.norm().item() ** 2
        wrong += (out[row, head].double() - exact).norm().item() ** 2
    return (wrong / total) ** 0.5


def report(torch, log, shape, forms, times, error):
    title, dim, sequences = shape
    medians = {form.name: statistics.median(times[form.name]) for form in forms}
    exact = forms[0].out.float()
    for form in forms:
        us = medians[form.name]
        difference = ((form.out.float() - exact).norm() / exact.norm()).item()
        is_right = difference < LIMIT if form.is_peer or form.kernel != forms[0].kernel else difference == 0
        share = medians["no lengths"] / us
        line = {"shape": title, "head_dim": dim, "sequences": sequences, "form": form.name, "kernel": form.kernel,
                "us": times[form.name], "share": share, "tflops": flops_of(dim, sequences) / us * 1e-6,
                "error": {"difference": difference, "ok": is_right}}
        peers = [medians[f"{title}, {name_of(max(form.page_size, 0))}"] for title, _, _ in PEERS
                 if f"{title}, {name_of(max(form.page_size, 0))}" in medians]
        if form is forms[0]:
            line["error"]["float64"] = error
            line["error"]["ok"] = is_right = error < EXACT_LIMIT
        peer = min(peers) if peers and not form.is_peer else None
        if peer:
            line["by_peer"] = peer / us
        log["samples"].append(line)
        beside = f"  by peer {peer / us:5.3f}" if peer else ""
        print(f"{title:30} {form.name:30} {form.kernel:9} {us:9.1f} us {line['tflops']:6.0f} TFLOP/s  share "
              f"{share:5.3f}{beside}{'' if is_right else '  WRONG'}", flush=True)


def main():
    parser = peer_run.begin_parser(__doc__, "pages.json", 48, "rows")
    parser.add_argument("--flex", action="store_true", help="flex_attention, too; compiled once a shape")
    args = parser.parse_args()
    torch = peer_run.import_torch()
    package = peer_run.open_package(args)
    if package is None:
        sys.exit("attention_pages: shares are of our time without lengths: leave out --no-tilewright")
    peers = import_peers()
    log = peer_run.begin_log(torch, "attention_pages", package)
    peer_run.warm_up(torch)
    torch.seed()
    for title, dim, sequences in SHAPES:
        longest = max(keys for _, keys in sequences)
        total_q = sum(queries for queries, _ in sequences)
        q = torch.randn(total_q, HEADS, dim, dtype=torch.bfloat16, device="cuda")
        k, v = (torch.randn(len(sequences) * longest, KV_HEADS, dim, dtype=torch.bfloat16, device="cuda")
                for _ in range(2))
        forms = [Form(torch, package, dim, sequences, q, k, v, size) for size in PAGE_SIZES]
        if dim in PEER_HEAD_DIMS:
            forms += peer_forms(torch, peers, dim, sequences, q, k, v)
        forms += torch_forms(torch, (FLASH, FLEX) if args.flex else (FLASH,), dim, sequences, q, k, v)
        for form in forms:
            form.run()
        torch.cuda.synchronize()
        error = error_of_rows(dim, sequences, q, k, v, forms[0].out, args.rows)
        times = peer_run.measure(torch, {form.name: form.run for form in forms}, args.samples)
        report(torch, log, (title, dim, sequences), forms, times, error)
    return peer_run.end_run(log, args.out)


if __name__ == "__main__":
    sys.exit(main())
