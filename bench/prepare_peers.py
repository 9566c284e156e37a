#!/usr/bin/env python3
"""Making e4m3 operands of attention beside a copy of as many bytes, on a GPU: the same memory, one run.

    python3 bench/prepare_peers.py

Reads 16384 tokens of q, k and v in bf16 with 2048 numbers each, writes their codes: 3 bytes a number. `share` of a
sample is the time of torch's copy of as many bytes by its time. Checked: scores of some queries, of codes times
factors, against float64.
"""

import ctypes
import random
import statistics
import sys

import attention_peers
import peer_run
import tilewright_c as tw

TOKENS, HIDDEN = 16384, 2048
QUERY_BLOCK, KEY_BLOCK = 64, 128
SCALES = {"tensor": tw.TW_SCALE_SHARING_TENSOR, "head": tw.TW_SCALE_SHARING_HEAD,
          "block": tw.TW_SCALE_SHARING_BLOCK}
ROPE = {"none": tw.TW_ROTARY_PAIRS_NONE, "interleaved": tw.TW_ROTARY_PAIRS_INTERLEAVED,
        "halves": tw.TW_ROTARY_PAIRS_HALVES}
LIMIT = 8e-2  # of scores, relative rms: two operands of 3 fraction bits each


class Prepare:
    """One problem: run() makes the codes of q, k and v [batch, n, heads, dim]."""

    def __init__(self, torch, tilewright, q, k, v, scales, is_rotated, rope):
        lib, self.check, self.rope = tilewright.lib, tilewright.check, rope
        problem = tilewright.make(tw.tw_attention_prepare_problem)
        problem.batch, problem.q_len, problem.heads, problem.head_dim = q.shape
        problem.kv_len, problem.kv_heads = problem.q_len, problem.heads
        problem.scales, problem.is_rotated, problem.rope = SCALES[scales], int(is_rotated), ROPE[rope]
        n, dim = q.shape[1], q.shape[3]
        if rope != "none":
            problem.rotary_dim, problem.rope_positions = dim, n
            frequencies = 1e4 ** (-torch.arange(0, dim, 2, device="cuda") / dim)
            angles = torch.arange(n, device="cuda")[:, None] * frequencies
            self.table = torch.cat([angles.cos(), angles.sin()], 1).float().contiguous()
        self.handle = ctypes.c_void_p()
        self.check(lib.tw_attention_prepare_create(tilewright.device, ctypes.byref(problem),
                                                   ctypes.byref(self.handle)))
        sizes = tilewright.make(tw.tw_attention_operand_sizes)
        self.check(lib.tw_attention_prepare_sizes(self.handle, ctypes.byref(sizes)))
        self.plan = lib.tw_attention_prepare_plan_text(self.handle).decode()
        self.codes = [torch.zeros(size, dtype=torch.uint8, device="cuda")
                      for size in (sizes.q8_bytes, sizes.k8_bytes, sizes.v8_bytes)]
        self.descales = [torch.zeros(max(count, 1), device="cuda")
                         for count in (sizes.num_q_descales, sizes.num_k_descales, sizes.num_v_descales,
                                       sizes.num_v_descale_max)]
        self.workspace = torch.zeros(max(sizes.workspace_bytes, 1), dtype=torch.uint8, device="cuda")
        names = ("q", "k", "v", "q8", "k8", "v8", "q_descale", "k_descale", "v_descale", "v_descale_max")
        addresses = (x.data_ptr() for x in (q, k, v, *self.codes, *self.descales))
        a = self.arguments = tilewright.make(tw.tw_attention_prepare_arguments, **dict(zip(names, addresses)))
        a.rope = self.table.data_ptr() if rope != "none" else None
        a.workspace, self.torch, self.lib, self.kept = self.workspace.data_ptr(), torch, lib, (q, k, v)

    def run(self):
        self.arguments.stream = self.torch.cuda.current_stream().cuda_stream
        self.check(self.lib.tw_attention_prepare_run(self.handle, ctypes.byref(self.arguments)))

    def close(self):
        self.lib.tw_attention_prepare_destroy(self.handle)

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


def run_shape(torch, args, tilewright, log, dim, n):
    heads = HIDDEN // dim
    q, k, v = (torch.randn(TOKENS // n, n, heads, dim, device="cuda").bfloat16() for _ in range(3))
    num_bytes = 3 * 3 * TOKENS * HIDDEN
    source = torch.zeros(num_bytes // 2, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    found, prepares = {("copy", "", ""): lambda: target.copy_(source)}, {}
    for scales, is_rotated, rope in (("block", True, "none"), ("head", True, "none"), ("block", False, "none"),
                                     ("head", False, "none"), ("block", True, "halves"),
                                     ("block", True, "interleaved"), ("block", False, "halves")):
        one = Prepare(torch, tilewright, q, k, v, scales, is_rotated, rope)
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
    for one in prepares.values():
        one.close()


def main():
    parser = peer_run.begin_parser(__doc__, "prepare-peers.json", 0, "unused: 16 queries a head are")
    args = parser.parse_args()
    torch = peer_run.import_torch()
    tilewright = peer_run.open_library(args, peer_run.Library)
    if tilewright is None:
        sys.exit("prepare_peers: --no-tilewright leaves nothing to measure")
    log = peer_run.begin_log(torch, "attention_prepare", tilewright,
                             cache="cold: 256 MiB are written before every timed run")
    for dim in (64, 128, 256):
        run_shape(torch, args, tilewright, log, dim, 4096)
    return peer_run.end_run(log, args.out)


if __name__ == "__main__":
    sys.exit(main())
