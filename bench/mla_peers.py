#!/usr/bin/env python3
"""Attention over rows of 576 numbers (DeepSeek-V3, R1, V3.2) beside FlashMLA, on a GPU: the same memory, one run.

    python3 bench/mla_peers.py --out mla.json

Needs torch with CUDA and the Python package (./run builds it). FlashMLA is measured as far as it can be
imported: as `flash_mla`, and as `vllm.third_party.flashmla.flash_mla_interface` of vLLM's wheel. Ours is
called through `tilewright.compat.flash_mla`, with the same arguments. Three functions: all keys of bf16 pages
of 64 ("dense"), lists of FP8 records ("lists"), and prefill over lists of bf16 rows ("prefill").

Protocol: random inputs, lengths that differ (N(mean, mean / 4), one seed for all); schedules are made before;
every timed call finds a cold L2 cache (256 MiB are written before it), and is enqueued while the GPU waits, so
that times, by events, are the GPU's: of all that a call launches. One call of each in random order, again and
again. `ratio` of a sample is the peer's median by ours. Each result is compared with float64 on queries drawn
at random: --rows of them, all their heads.
"""

import importlib
import inspect
import random
import sys

import peer_run

DEVICE = "cuda"
WIDTH, VALUES, PAGE = 576, 512, 64
RECORD = VALUES + 16 + 2 * (WIDTH - VALUES)  # bytes: codes, 4 scales, columns of positions
SCALE = WIDTH**-0.5
#: In the norm: weights and results are rounded to bf16, 2^-9 of themselves each, and so are products before.
LIMIT = 2.0**-7
PEERS = ("flash_mla", "vllm.third_party.flashmla.flash_mla_interface")
# kind, heads, queries of a sequence, sequences, keys of a sequence (in the mean), length of lists
SHAPES = (
    ("dense", 128, 1, 128, 4096, 0),
    ("dense", 128, 2, 128, 4096, 0),
    ("dense", 128, 1, 128, 16384, 0),
    ("dense", 128, 2, 128, 16384, 0),
    ("dense", 64, 1, 128, 4096, 0),
    ("dense", 16, 1, 128, 4096, 0),
    ("dense", 128, 1, 8, 16384, 0),
    ("lists", 64, 1, 2, 32768, 2048),
    ("lists", 64, 2, 2, 32768, 2048),
    ("lists", 64, 1, 8, 32768, 2048),
    ("lists", 128, 1, 2, 32768, 2048),
    ("lists", 128, 2, 2, 32768, 2048),
    ("lists", 128, 1, 8, 32768, 2048),
    ("lists", 128, 2, 64, 32768, 2048),
    ("lists", 128, 2, 74, 32768, 2048),
    ("lists", 128, 2, 128, 32768, 2048),
    ("lists", 128, 1, 128, 32768, 2048),
    ("lists", 64, 1, 128, 32768, 2048),
    ("lists", 64, 2, 148, 32768, 2048),
    ("lists", 64, 2, 148, 32768, 16384),
    ("lists", 128, 2, 148, 32768, 16384),
    ("prefill", 128, 4096, 1, 8192, 2048),
    ("prefill", 128, 4096, 1, 32768, 2048),
    ("prefill", 128, 4096, 1, 131072, 2048),
    ("prefill", 64, 4096, 1, 8192, 2048),
    ("prefill", 64, 4096, 1, 131072, 2048),
)


def pages_of(torch, rows):
    """[pages, 64, 1, 576] bf16 that lie in random order, and the order: page p of the rows is pages[order[p]]."""
    order = torch.randperm(rows.shape[0] // PAGE, device=rows.device)
    pages = torch.empty(len(order), PAGE, 1, WIDTH, dtype=rows.dtype, device=rows.device)
    pages[order] = rows.reshape(pages.shape)
    return pages, order


def records_of(torch, rows):
    """FP8 records [rows, 656] of bf16 rows, with powers of two as scales."""
    values = rows[:, :VALUES].float().reshape(-1, 4, 128)
    scales = torch.exp2((values.abs().amax(2) / 448).clamp_min(2.0**-60).log2().ceil())
    codes = (values / scales[:, :, None]).to(torch.float8_e4m3fn).flatten(1)
    return torch.cat([x.view(torch.uint8) for x in (codes, scales, rows[:, VALUES:].contiguous())], 1)


def values_of(torch, records):
    """What records stand for, in float64."""
    codes, scales, rest = records.split((VALUES, 16, RECORD - VALUES - 16), 1)
    scales = scales.contiguous().view(torch.float32).repeat_interleave(128, 1)
    codes, rest = codes.contiguous().view(torch.float8_e4m3fn), rest.contiguous().view(torch.bfloat16)
    return torch.cat([codes.double() * scales.double(), rest.double()], 1)


def lists_into(torch, queries, length, keys):
    """int32 [queries, length]: distinct keys below `keys`, -1 where there are no more."""
    found = torch.full((queries, length), -1, dtype=torch.int32, device=DEVICE)
    for row in found:
        some = torch.randperm(keys, device=DEVICE)[:length]
        row[: len(some)] = some
    return found


class Problem:
    """Operands of a shape."""

    def __init__(self, torch, kind, heads, queries, batch, mean, length):
        self.torch, self.kind, self.heads, self.mean = torch, kind, heads, mean
        self.queries, self.batch = queries, batch
        chooser = random.Random(1)
        self.lengths = [mean if kind == "prefill" else max(queries, int(chooser.gauss(mean, mean / 4)))
                        for _ in range(batch)]
        self.q = torch.randn(batch, queries, heads, WIDTH, device=DEVICE).div_(2).clamp_(-4, 4).bfloat16()
        self.length = length
        getattr(self, f"_make_{kind}")()

    def _rows(self, count):
        return self.torch.randn(count, WIDTH, device=DEVICE).div_(2).bfloat16()

    def _make_dense(self):
        torch, blocks = self.torch, -(-max(self.lengths) // PAGE)
        self.pages, order = pages_of(torch, self._rows(self.batch * blocks * PAGE))
        self.table = order.to(torch.int32).reshape(self.batch, blocks)
        self.cache_lengths = torch.tensor(self.lengths, dtype=torch.int32, device=DEVICE)

    def _make_lists(self):
        torch, rooms = self.torch, -(-max(self.lengths) // PAGE) * PAGE
        self.pages = torch.cat([records_of(torch, self._rows(rooms)) for _ in range(self.batch)])
        self.pages = self.pages.reshape(-1, PAGE, 1, RECORD)
        lists = (lists_into(torch, self.queries, self.length, keys) for keys in self.lengths)
        self.indices = torch.stack([torch.where(own < 0, own, own + b * rooms) for b, own in enumerate(lists)])

    def _make_prefill(self):
        self.rows = self._rows(self.mean)
        found = self.torch.rand(self.queries, self.mean, device=DEVICE).topk(self.length, sorted=False).indices
        self.indices = found.to(self.torch.int32).reshape(self.queries, 1, self.length)

    def call(self, module):
        """A function that enqueues one call and returns out [batch, queries, heads, 512]."""
        if self.kind == "prefill":
            function = module.flash_mla_sparse_fwd
            words = legacy(function)
            return lambda: function(self.q[0], self.rows[:, None], self.indices, SCALE, **words)[0][None]
        function = module.flash_mla_with_kvcache
        words = legacy(function) | {"softmax_scale": SCALE}
        schedule, _ = module.get_mla_metadata()
        if self.kind == "dense":
            places = (self.q, self.pages, self.table, self.cache_lengths, VALUES, schedule)
            return lambda: function(*places, causal=True, is_fp8_kvcache=False, **words)[0]
        places = (self.q, self.pages, None, None, VALUES, schedule)
        return lambda: function(*places, is_fp8_kvcache=True, indices=self.indices, **words)[0]

    def seen(self, b, i):
        """The rows that query i of sequence b sees, in float64."""
        if self.kind == "dense":
            places = self.torch.arange(self.lengths[b] - self.queries + i + 1, device=DEVICE)
            named = self.table[b, places // PAGE].long() * PAGE + places % PAGE
            return self.pages.reshape(-1, WIDTH)[named].double()
        named = self.indices[b, i] if self.kind == "lists" else self.indices[i, 0]
        named = named[named >= 0].long()
        if self.kind == "prefill":
            return self.rows[named].double()
        return values_of(self.torch, self.pages.reshape(-1, RECORD)[named])

    def error(self, out, queries):
        """The norm of the difference from float64 by the norm, of some queries drawn at random."""
        wrong = total = 0.0
        for _ in range(queries):
            b, i = random.randrange(self.batch), random.randrange(self.queries)
            seen = self.seen(b, i)
            weights = (self.q[b, i].double() @ seen.T * SCALE).softmax(1)
            right = weights @ seen[:, :VALUES]
            wrong += (out[b, i].double() - right).square().sum().item()
            total += right.square().sum().item()
        return (wrong / total) ** 0.5

    def counts(self):
        """Products of visible keys, twice; and bytes read and written once."""
        if self.kind == "dense":
            seen = sum(self.queries * keys - self.queries * (self.queries - 1) // 2 for keys in self.lengths)
            stored = sum(self.lengths) * 2 * WIDTH
        else:
            seen = int((self.indices >= 0).sum())
            stored = seen * RECORD if self.kind == "lists" else self.mean * 2 * WIDTH
        rows = self.batch * self.queries * self.heads
        return 2 * self.heads * seen * (WIDTH + VALUES), stored + 2 * rows * (WIDTH + VALUES)

    def described(self):
        return {"kind": self.kind, "heads": self.heads, "queries": self.queries, "sequences": self.batch,
                "keys": self.mean, "list": self.length, "head_dim": WIDTH, "value_dim": VALUES}


def legacy(function):
    """A fork keeps the kernels for Hopper behind a switch."""
    return {"use_legacy": True} if "use_legacy" in inspect.signature(function).parameters else {}


def modules(args):
    """name -> module."""
    found = {}
    if peer_run.open_package(args) is not None:
        found["tilewright"] = importlib.import_module("tilewright.compat.flash_mla")
    for name in PEERS:
        try:
            found[name] = importlib.import_module(name)
        except Exception as error:  # one that does not work here is a line
            print(f"without {name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
    return found


def run_shape(torch, args, found, shape, log):
    problem = Problem(torch, *shape)
    made = {name: lambda module=module: problem.call(module)() for name, module in found.items()}
    works, errors = peer_run.results_of(made, shape, lambda got: problem.error(got, args.rows))
    calls = {name: problem.call(found[name]) for name in works}
    title = f"{' '.join(map(str, shape)):34}"
    peer_run.time_beside(torch, log, calls, errors, LIMIT, problem, args.samples, title)


def main():
    parser = peer_run.begin_parser(__doc__, "mla-peers.json", 8, "queries")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=["dense", "lists", "prefill"])
    args = parser.parse_args()
    torch = peer_run.import_torch()
    found = modules(args)
    package = importlib.import_module("tilewright") if "tilewright" in found else None
    log = peer_run.begin_log(torch, "mla", package, cache="cold: 256 MiB are written before every timed run")
    peer_run.warm_up(torch)
    torch.seed()
    random.seed(torch.initial_seed())
    for shape in SHAPES:
        if shape[0] in args.kinds:
            run_shape(torch, args, found, shape, log)
            torch.cuda.empty_cache()
    return peer_run.end_run(log, args.out)


if __name__ == "__main__":
    sys.exit(main())
