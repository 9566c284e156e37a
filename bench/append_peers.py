#!/usr/bin/env python3
"""New keys and values to caches in pages beside FlashAttention-3's append of them and torch's, on a GPU: one run.

    python3 bench/append_peers.py --out append.json

Needs torch with CUDA and the Python package (./run builds it). FlashAttention-3 appends inside its attention (k
and v of flash_attn_with_kvcache): its append is the time of a call with new keys less that of a call over the
same keys, already there. vLLM's build of it (vllm.vllm_flash_attn) refuses new keys, which is a line then.
torch writes rows whose places it knows before (index_copy_), keys and values one behind the other, and turns
nothing. 32 query heads, 8 key heads of 128; pages of 64 in random order. Caches are bf16, and e4m3 by new keys
of bf16, which are divided by a scale, and of e4m3, which are codes. "turned": keys and queries are rotated by
angles that count from the lengths of the caches or, with left padding, from offsets of their own.

Protocol: as attention_pages.py: a cold L2 cache before every timed call, one call of each in random order,
again and again, times by events. `floor` of a sample is the bytes that must be moved at BANDWIDTH, `ratio` the
peer's time of appending by ours: FlashAttention-3's, or else torch's. The cache is compared with what torch
writes: bit by bit, and turned keys within 2^-7 in the norm, as both round them to bf16.
"""

import importlib
import statistics
import sys

import peer_run

DEVICE = "cuda"
HEADS, KV_HEADS, DIM, PAGE = 32, 8, 128, 64
BANDWIDTH = 3.35e6  # bytes a microsecond, of an H100
LIMIT = 2.0**-7
# title, sequences, keys before, new keys of each, packed in other numbers, left padding
SHAPES = (
    ("one token of 64 sequences", 64, 1024, 1, False, False),
    ("8 tokens of 64 sequences", 64, 1024, 8, False, False),
    ("512 tokens of 8 sequences", 8, 1024, 512, False, False),
    ("2048 tokens of 4 sequences", 4, 1024, 2048, False, False),
    ("1 to 256 tokens of 64 sequences", 64, 1024, 256, True, False),
    ("left padding, 32 tokens of 64 sequences", 64, 1024, 32, False, True),
)
TORCH = "torch's index_copy_"
WITH_KEYS, KEYS_THERE = "FlashAttention-3, with new keys", "FlashAttention-3, keys there"
KINDS = (("bf16", "bf16", False), ("bf16", "bf16", True), ("bf16", "e4m3", False), ("e4m3", "e4m3", False))


class Batch:
    """Operands of a shape and kind."""

    def __init__(self, torch, shape, kind):
        self.torch = torch
        _, batch, before, new, packed, padded = shape
        self.dtype, self.kv_dtype, self.turned = kind
        self.batch, self.new, self.packed, self.padded = batch, new, packed, padded
        counts = torch.full((batch,), new, dtype=torch.int32)
        if packed:
            counts = torch.randint(1, new + 1, (batch,), dtype=torch.int32)
        self.total = int(counts.sum())
        self.cu = torch.cat([torch.zeros(1, dtype=torch.int32), counts.cumsum(0).to(torch.int32)]).to(DEVICE)
        self.lengths = torch.full((batch,), before, dtype=torch.int32, device=DEVICE)
        self.counts = counts.to(DEVICE)
        self.after = self.lengths + self.counts
        # A sequence of left padding begins behind it: its positions count from there.
        pads = torch.randint(0, 256, (batch,), dtype=torch.int32, device=DEVICE) if padded else 0
        self.offsets = self.lengths - pads
        self.capacity = (before + new + PAGE - 1) // PAGE * PAGE
        pages = batch * (self.capacity // PAGE)
        self.table = torch.randperm(pages, device=DEVICE).to(torch.int32).reshape(batch, -1)
        self.k, self.v = (self.cast(torch.randn(pages, PAGE, KV_HEADS, DIM, device=DEVICE), self.kv_dtype)
                          for _ in range(2))
        self.new_k, self.new_v = (self.cast(torch.randn(self.total, KV_HEADS, DIM, device=DEVICE), self.dtype)
                                  for _ in range(2))
        self.q = self.cast(torch.randn(self.total, HEADS, DIM, device=DEVICE), self.dtype)
        angles = torch.outer(torch.arange(self.capacity, device=DEVICE).float(),
                             10000.0 ** -(torch.arange(DIM // 2, device=DEVICE).float() / (DIM // 2)))
        self.cos, self.sin = angles.cos(), angles.sin()
        self.scale = torch.full((1,), 0.5, device=DEVICE)

    def cast(self, x, dtype):
        return x.to(self.torch.bfloat16 if dtype == "bf16" else self.torch.float8_e4m3fn)

    @property
    def bytes(self):
        """Read and written once."""
        one, kept = (2 if self.dtype == "bf16" else 1), (2 if self.kv_dtype == "bf16" else 1)
        of_keys = 2 * self.total * KV_HEADS * DIM * (one + kept)
        of_angles = int(self.counts.max()) * DIM * 4  # the table of the longest, once
        return of_keys + (2 * self.total * HEADS * DIM * 2 + of_angles if self.turned else 0)

    def ours(self, package):
        rows = {"is_packed": True, "total_new": self.total} if self.packed else {"new_len": self.new}
        given = {"new_k": self.new_k, "new_v": self.new_v, "k_cache": self.k.clone(), "v_cache": self.v.clone(),
                 "lengths": self.lengths, "block_table": self.table}
        if self.packed:
            given["cu_new"] = self.cu
        else:
            shape = (self.batch, self.new, KV_HEADS, DIM)
            given |= {name: given[name].reshape(shape) for name in ("new_k", "new_v")}
        if self.turned:
            self.turned_q = self.torch.empty_like(self.q)
            rows |= {"rotary": "halves", "rotary_dim": DIM, "max_position": self.cos.shape[0], "heads": HEADS,
                     "has_rotary_lengths": self.padded}
            rows |= {"is_q_packed": True, "total_q": self.total} if self.packed else {"q_len": self.new}
            q = (self.q, self.turned_q)
            if not self.packed:
                q = tuple(x.view(self.batch, self.new, HEADS, DIM) for x in q)
            given |= {"q": q[0], "turned_q": q[1], "cos": self.cos, "sin": self.sin}
            given |= {"cu_q": self.cu} if self.packed else {}
            given |= {"rotary_lengths": self.offsets} if self.padded else {}
        if self.dtype != self.kv_dtype:
            rows["descale"] = "tensor"
            given |= {"k_descale": self.scale, "v_descale": self.scale}
        op = package.CacheAppend(
            package.Device(peer_run.DEVICE), dtype=self.dtype, kv_dtype=self.kv_dtype, batch=self.batch,
            kv_heads=KV_HEADS, head_dim=DIM, page_size=PAGE, num_pages=self.k.shape[0],
            max_pages=self.table.shape[1], **rows)
        self.written = given["k_cache"], given["v_cache"]
        return lambda: op.run(**given)

    def peer(self, operators, appends):
        """Attention with new keys, or over them when they are there. Operands as vLLM's build has them."""
        torch = self.torch
        k, v = self.expected()
        rotary = (self.cos.bfloat16(), self.sin.bfloat16(), None) if self.turned and appends else (None,) * 3
        q, new_k, new_v = self.q, self.new_k, self.new_v
        cu = (self.cu, None, self.cu if appends else None)
        if not self.packed:
            q = q.reshape(self.batch, self.new, HEADS, DIM)
            new_k, new_v = (x.reshape(self.batch, self.new, KV_HEADS, DIM) for x in (new_k, new_v))
            cu = (None,) * 3
        new = (new_k, new_v) if appends else (None, None)
        scales = (torch.ones(self.batch, KV_HEADS, device=DEVICE),) * 3 if self.dtype == "e4m3" else (None,) * 3
        lengths = self.lengths if appends else self.after
        leftpad = (self.lengths - self.offsets).to(torch.int32) if self.padded else None
        given = (q, k, v, *new, None, None, *cu, None, lengths, self.new, self.capacity, self.table, None, leftpad,
                 *rotary, *scales, DIM**-0.5, True, -1, -1, 0.0, False, None, 0, None, 0, None, 1, 0, None)
        self.peer_cache = k, v
        return lambda: operators.fwd(*given)[0]

    def torch_call(self):
        """Rows of both caches, their places known."""
        torch = self.torch
        bits = torch.int16 if self.kv_dtype == "bf16" else torch.uint8
        sides = [(cache.clone().view(bits).view(-1, KV_HEADS, DIM), new)
                 for cache, new in ((self.k, self.new_k), (self.v, self.new_v))]
        self.written = [cache.view(self.k.dtype).view(self.k.shape) for cache, _ in sides]
        _, _, page, row = self.places()
        places = page * PAGE + row

        def run():
            for cache, new in sides:
                if self.dtype != self.kv_dtype:
                    new = (new / self.scale).to(torch.float8_e4m3fn)
                cache.index_copy_(0, places, new.view(bits))
        return run

    def places(self):
        """Of new tokens: sequence, row among its new ones, page and row of the page."""
        torch = self.torch
        tokens = torch.arange(self.total, device=DEVICE)
        batch = torch.bucketize(tokens, self.cu[1:], right=True)
        row = tokens - self.cu[batch]
        position = self.lengths[batch] + row
        return batch, row, self.table[batch, position // PAGE].long(), (position % PAGE).long()

    def expected(self):
        """Caches after appending, as torch writes them."""
        torch = self.torch
        found = []
        batch, row, page, of_page = self.places()
        for cache, new, is_key in ((self.k, self.new_k, True), (self.v, self.new_v, False)):
            x = new
            if self.turned and is_key:
                at = (self.offsets[batch] + row).long()
                c, s = self.cos[at][:, None], self.sin[at][:, None]
                a, b = new.float().chunk(2, -1)
                x = torch.cat([a * c - b * s, a * s + b * c], -1).bfloat16()
            elif self.dtype != self.kv_dtype:
                x = self.cast((new.float() / self.scale).clamp(-448, 448), self.kv_dtype)
            bits = torch.int16 if self.kv_dtype == "bf16" else torch.uint8
            written = cache.clone()
            written.view(bits)[page, of_page] = x.contiguous().view(bits)
            found.append(written)
        return found

    def error(self):
        """Of the caches that were written last, in the norm."""
        worst = 0.0
        for made, exact in zip(self.written, self.expected()):
            a, b = made.float(), exact.float()
            worst = max(worst, ((a - b).norm() / b.norm()).item())
        return worst


def peer_calls(batch, operators):
    calls = {} if batch.turned else {TORCH: batch.torch_call()}
    if operators is None or batch.dtype != batch.kv_dtype:
        return calls  # it has no such form
    for name, appends in ((WITH_KEYS, True), (KEYS_THERE, False)):
        try:
            call = batch.peer(operators, appends)
            call()
            batch.torch.cuda.synchronize()
            calls[name] = call
        except Exception as error:  # one that it refuses is a line
            print(f"without {name}: {type(error).__name__}: {str(error).splitlines()[0][-160:]}", flush=True)
            return calls
    return calls


def report(log, title, kind, batch, times, error):
    medians = {name: statistics.median(us) for name, us in times.items()}
    form = f"{kind[0]} to {kind[1]}{', turned' if kind[2] else ''}"
    peer = medians[WITH_KEYS] - medians[KEYS_THERE] if WITH_KEYS in medians else medians.get(TORCH)
    limit = LIMIT if kind[2] else 0.0
    for name, us in times.items():
        line = {"shape": title, "form": form, "source": name, "us": us, "bytes": batch.bytes,
                "floor": batch.bytes / BANDWIDTH, "error": {"difference": error, "ok": error <= limit}}
        beside = ""
        if name == "tilewright":
            beside = f"  floor {line['floor']:6.1f}"
            if peer is not None:
                line["ratio"] = peer / medians[name]
                beside += f"  peer {peer:6.1f}  ratio {line['ratio']:5.2f}"
            beside += "" if line["error"]["ok"] else f"  WRONG {error:.1e}"
        log["samples"].append(line)
        print(f"{title:40} {form:22} {name:32} {medians[name]:8.1f} us{beside}", flush=True)


def main():
    parser = peer_run.begin_parser(__doc__, "append.json")
    args = parser.parse_args()
    torch = peer_run.import_torch()
    package = peer_run.open_package(args)
    operators = None
    try:
        importlib.import_module("vllm.vllm_flash_attn")
        operators = torch.ops._vllm_fa3_C
    except Exception as error:  # without it ours stand alone
        print(f"without vLLM's FlashAttention-3: {type(error).__name__}: {str(error)[:200]}", flush=True)
    log = peer_run.begin_log(torch, "append_peers", package)
    peer_run.warm_up(torch)
    torch.seed()
    for shape in SHAPES:
        for kind in KINDS:
            batch = Batch(torch, shape, kind)
            calls = {} if package is None else {"tilewright": batch.ours(package)}
            for call in calls.values():
                call()
            torch.cuda.synchronize()
            error = batch.error() if package is not None else 0.0
            calls |= peer_calls(batch, operators)
            report(log, shape[0], kind, batch, peer_run.measure(torch, calls, args.samples), error)
    return peer_run.end_run(log, args.out)


if __name__ == "__main__":
    sys.exit(main())
