#!/usr/bin/env python3
"""Making e4m3 operands of attention beside a copy of as many bytes, on a GPU: the same memory, one run.

    python3 bench/prepare_peers.py

Reads 16384 tokens of q, k and v in bf16 with 2048 numbers each, writes their codes: 3 bytes a number. `share` of a
sample is the time of torch's copy of as many bytes by its time. Checked: scores of some queries, of codes times
factors, against float64.
"""

import random
import statistics
import sys

import attention_peers
import peer_run

TOKENS, HIDDEN = 16384, 2048
QUERY_BLOCK, KEY_BLOCK = 64, 128
LIMIT = 8e-2  # of scores, relative rms: two operands of 3 fraction bits each


class Prepare:
    """One problem: run() makes the codes of q, k and v [batch, n, heads, dim]."""

    def __init__(self, torch, package, q, k, v, scales, is_rotated, rope):
        self.rope, self.kept = rope, (q, k, v)
        batch, n, heads, dim = q.shape
        problem = {"batch": batch, "q_len": n, "kv_len": n, "heads": heads, "kv_heads": heads, "head_dim": dim,
                   "scales": scales, "is_rotated": is_rotated, "rope": rope}
        table = {}
        if rope != "none":
            problem |= {"rotary_dim": dim, "rope_positions": n}
            frequencies = 1e4 ** (-torch.arange(0, dim, 2, device=q.device) / dim)
            angles = torch.arange(n, device=q.device)[:, None] * frequencies
            table["rope"] = torch.cat([angles.cos(), angles.sin()], 1).float().contiguous()
        self.op = package.AttentionPrepare(package.Device(peer_run.DEVICE), **problem)
        sizes, self.plan = self.op.sizes(), self.op.plan.text
        self.codes = [torch.zeros(sizes[f"{name}8_bytes"], dtype=torch.uint8, device=q.device) for name in "qkv"]
        self.descales = [torch.zeros(max(sizes[f"num_{name}"], 1), device=q.device)
                         for name in ("q_descales", "k_descales", "v_descales", "v_descale_max")]
        workspace = torch.zeros(max(sizes["workspace_bytes"], 1), dtype=torch.uint8, device=q.device)
        names = ("q", "k", "v", "q8", "k8", "v8", "q_descale", "k_descale", "v_descale", "v_descale_max")
        self.given = {**dict(zip(names, (q, k, v, *self.codes, *self.descales))), **table, "workspace": workspace}
        self.torch = torch

    def run(self):
        self.op.run(**self.given)

    def error(self, scales):
        """Relative rms of scores of 16 queries of a head; None with RoPE, whose codes the tests compare."""
        if self.rope != "none":
            return None
        torch, (q, k, _) = self.torch, self.kept
        batch, n, heads, dim = q.shape
        b, h = random.randrange(batch), random.randrange(heads)
        sums, wanted = [], []
        for operand, block, x in ((0, QUERY_BLOCK, q), (1, KEY_BLOCK, k)):
            codes = self.codes[operand][:q.numel()].view(torch.float8_e4m3fn).reshape(q.shape)[b, :, h].double()
            factor = self.descales[operand].double()
            if scales == "head":
                factor = factor.reshape(batch, heads)[b, h]
            elif scales == "block":
                factor = factor.reshape(batch, heads, -1)[b, h].repeat_interleave(block)[:n, None]
            sums.append(codes * factor)
            wanted.append(x[b, :, h].double())
        got, right = sums[0][:16] @ sums[1].T, wanted[0][:16] @ wanted[1].T
        return float((got - right).square().mean().sqrt() / right.square().mean().sqrt())


def run_shape(torch, args, package, log, dim, n):
    heads = HIDDEN // dim
    q, k, v = (torch.randn(TOKENS // n, n, heads, dim, device="cuda").bfloat16() for _ in range(3))
    num_bytes = 3 * 3 * TOKENS * HIDDEN
    source = torch.zeros(num_bytes // 2, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    found, prepares = {("copy", "", ""): lambda: target.copy_(source)}, {}
    for scales, is_rotated, rope in (("block", True, "none"), ("head", True, "none"), ("block", False, "none"),
                                     ("head", False, "none"), ("block", True, "halves"),
                                     ("block", True, "interleaved"), ("block", False, "halves")):
        one = Prepare(torch, package, q, k, v, scales, is_rotated, rope)
        key = (scales, "rotated" if is_rotated else "plain", rope)
        found[key], prepares[key] = one.run, one
        one.run()
        torch.cuda.synchronize()
    times = attention_peers.measure(torch, args, {name: (None, None, run) for name, run in found.items()})
    copy_us = statistics.median(times[("copy", "", "")])
    for key, samples in times.items():
        error = prepares[key].error(key[0]) if key in prepares else None
        us = statistics.median(samples)
        log["samples"].append({
            "source": "tilewright" if key in prepares else f"torch {torch.__version__}", "bytes": num_bytes,
            "problem": {"head_dim": dim, "rows": n, "heads": heads, "batch": TOKENS // n, "scales": key[0],
                        "is_rotated": key[1] == "rotated", "rope": key[2]},
            "samples_us": samples, "share": copy_us / us, "plan": prepares[key].plan if key in prepares else None,
            "error": {"relative_rms": error, "ok": error is None or error < LIMIT}})
        rates = f"{us:8.2f} us {num_bytes / us * 1e-3:6.0f} GB/s {100 * copy_us / us:5.0f} %"
        print(f"d{dim:<4} {' '.join(key):<26} {rates}" + ("" if error is None else f"  rms {error:.1e}"))


def main():
    parser = peer_run.begin_parser(__doc__, "prepare-peers.json")
    args = parser.parse_args()
    torch = peer_run.import_torch()
    package = peer_run.open_package(args)
    if package is None:
        sys.exit("prepare_peers: --no-tilewright leaves nothing to measure")
    log = peer_run.begin_log(torch, "attention_prepare", package,
                             cache="cold: 256 MiB are written before every timed run")
    for dim in (64, 128, 256):
        run_shape(torch, args, package, log, dim, 4096)
    return peer_run.end_run(log, args.out)


if __name__ == "__main__":
    sys.exit(main())
