#!/usr/bin/env python3
"""Attention whose values make scores too, by a second query `qv`, beside FlashAttention-3, on a GPU: one run.

    python3 bench/qv_peers.py --out qv.json

Needs torch with CUDA and the Python package (./run builds it). FlashAttention-3 is measured where vLLM's build
of it can be imported (vllm.vllm_flash_attn). Scores are q . k + qv . v, keys of 64 numbers, values of 512,
bf16, one key head, causal, both in pages of 64 that lie in random order.

Protocol: random inputs; every timed call finds a cold L2 cache (256 MiB are written before it), and is enqueued
while the GPU waits, so that times, by events, are the GPU's: of all that a call launches, making of schedules
included. One call of each in random order, again and again. `ratio` of a sample is the peer's median by ours.
Each result is compared with float64 on queries drawn at random: --rows of them, all their heads.
"""

import importlib
import random
import sys

import peer_run

DEVICE = "cuda"
NARROW, VALUES, PAGE = 64, 512, 64
SCALE = (NARROW + VALUES) ** -0.5
#: In the norm: weights and results are rounded to bf16, 2^-9 of themselves each.
LIMIT = 2.0**-7
PEER = "vllm.vllm_flash_attn"
# heads, sequences, queries of a sequence, keys of each
SHAPES = ((128, 128, 1, 4096), (128, 128, 2, 4096), (16, 128, 1, 4096), (128, 4, 512, 4096))


class Problem:
    """Operands of a shape."""

    def __init__(self, torch, heads, batch, queries, keys):
        self.torch, self.shape = torch, (heads, batch, queries, keys)
        pages = batch * (keys // PAGE)

        def drawn(*sizes):
            return torch.randn(*sizes, device=DEVICE).bfloat16()
        self.k, self.v = drawn(pages, PAGE, 1, NARROW), drawn(pages, PAGE, 1, VALUES)
        self.q, self.qv = drawn(batch, queries, heads, NARROW), drawn(batch, queries, heads, VALUES)
        self.table = torch.randperm(pages, device=DEVICE).to(torch.int32).reshape(batch, -1)
        self.lengths = torch.full((batch,), keys, dtype=torch.int32, device=DEVICE)

    def ours(self, module):
        """A function that enqueues one call and returns out [batch, queries, heads, 512]."""
        return lambda: module.latent_attention(self.q, self.k, self.v, self.lengths, qv=self.qv,
                                               page_table=self.table, scale=SCALE)

    def peer(self, operators):
        """By the operator below vLLM's function, which takes sequences as they lie; the function packs them."""
        _, _, queries, keys = self.shape
        given = (self.q, self.k, self.v, *[None] * 2, self.qv, *[None] * 5, self.lengths, queries, keys,
                 self.table, *[None] * 8, SCALE, True, -1, -1, 0.0, True, None, 0, None, 0, None, 1, 0, None)
        return lambda: operators.fwd(*given)[0]

    def error(self, out, count):
        """The norm of the difference from float64 by the norm, of some queries drawn at random."""
        heads, batch, queries, keys = self.shape
        wrong = total = 0.0
        for _ in range(count):
            b, i = random.randrange(batch), random.randrange(queries)
            named = self.table[b].long()
            seen = keys - queries + i + 1
            k, v = (x[named].flatten(0, 2)[:seen].double() for x in (self.k, self.v))
            scores = (self.q[b, i].double() @ k.T + self.qv[b, i].double() @ v.T) * SCALE
            right = scores.softmax(1) @ v
            wrong += (out[b, i].double() - right).square().sum().item()
            total += right.square().sum().item()
        return (wrong / total) ** 0.5

    def counts(self):
        """Products of visible keys, twice; and bytes read and written once."""
        heads, batch, queries, keys = self.shape
        seen = batch * (queries * keys - queries * (queries - 1) // 2)
        rows = batch * queries * heads
        return 2 * heads * seen * (NARROW + 2 * VALUES), 2 * (batch * keys * (NARROW + VALUES) +
                                                              rows * (NARROW + 2 * VALUES))

    def described(self):
        heads, batch, queries, keys = self.shape
        return {"heads": heads, "sequences": batch, "queries": queries, "keys": keys, "head_dim": NARROW,
                "value_dim": VALUES}


def calls_of(args, problem):
    """name -> function."""
    found = {}
    if peer_run.open_package(args) is not None:
        found["tilewright"] = problem.ours(importlib.import_module("tilewright.torch"))
    try:
        importlib.import_module(PEER)
        found["FlashAttention-3 of vLLM"] = problem.peer(problem.torch.ops._vllm_fa3_C)
    except Exception as error:  # one that does not work here is a line
        print(f"without {PEER}: {type(error).__name__}: {str(error)[:200]}", flush=True)
    return found


def run_shape(torch, args, shape, log):
    problem = Problem(torch, *shape)
    calls, errors = peer_run.results_of(
        calls_of(args, problem), shape, lambda got: problem.error(got, args.rows))
    title = f"{' '.join(map(str, shape)):20}"
    peer_run.time_beside(torch, log, calls, errors, LIMIT, problem, args.samples, title)


def main():
    args = peer_run.begin_parser(__doc__, "qv-peers.json", 8, "queries").parse_args()
    torch = peer_run.import_torch()
    package = peer_run.open_package(args)
    log = peer_run.begin_log(torch, "qv", package, cache="cold: 256 MiB are written before every timed run")
    peer_run.warm_up(torch)
    torch.seed()
    random.seed(torch.initial_seed())
    for shape in SHAPES:
        run_shape(torch, args, shape, log)
        torch.cuda.empty_cache()
    return peer_run.end_run(log, args.out)


if __name__ == "__main__":
    sys.exit(main())
