#!/usr/bin/env python3
"""Mixture-of-Experts layers in torch, as peers of `tilewright bench moe`, on a GPU.

    python3 bench/moe_peers.py --out peers.json
    tilewright bench moe --peers peers.json

bf16 weights, as torch has: `torch._grouped_mm` over experts where the installed torch knows it, and a
loop over the visited experts (which waits to learn them). Both sort, gather, multiply, apply SwiGLU,
multiply and add up. Shapes, numbers of tokens, uniform routing and 8 routings in turn are those of
`tilewright bench moe`; a sample is the mean of some calls. Each result is compared with float64 on two tokens.
"""

import argparse
import statistics
import sys

import peer_run

torch = peer_run.import_torch()

SHAPES = {"v3": (256, 8, 7168, 2048), "v4-flash": (256, 6, 4096, 2048), "small": (8, 2, 256, 128)}
ROUTINGS = 8


class Layer:
    """Weights [experts, out, in] of a shape; four experts differ, as in `tilewright bench moe`."""

    def __init__(self, name, device):
        self.name = name
        self.experts, self.topk, self.hidden, self.inter = SHAPES[name]
        generator = torch.Generator(device=device).manual_seed(1)

        def draw(n, k):
            few = torch.randn(4, n, k, device=device, generator=generator) / k**0.5
            return few.bfloat16().repeat(self.experts // 4, 1, 1)

        self.gate_up = draw(2 * self.inter, self.hidden)
        self.down = draw(self.hidden, self.inter)


def routing(layer, tokens, seed, device):
    generator = torch.Generator(device=device).manual_seed(seed)
    ids = torch.rand(tokens, layer.experts, device=device, generator=generator).topk(layer.topk).indices
    weights = torch.rand(tokens, layer.topk, device=device, generator=generator) + 0.1
    return ids, weights / weights.sum(1, keepdim=True)


def swiglu(gate_up):
    gate, up = gate_up.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


def run_grouped(layer, x, ids, weights):
    order = ids.flatten().argsort(stable=True)
    counts = torch.bincount(ids.flatten(), minlength=layer.experts)
    ends = counts.cumsum(0).to(torch.int32)
    rows = x[order // layer.topk]
    h = swiglu(torch._grouped_mm(rows, layer.gate_up.transpose(1, 2), offs=ends))
    y = torch._grouped_mm(h, layer.down.transpose(1, 2), offs=ends)
    y = y * weights.flatten()[order, None].bfloat16()
    return torch.zeros_like(x, dtype=torch.float32).index_add_(0, order // layer.topk, y.float()).bfloat16()


def run_loop(layer, x, ids, weights):
    out = torch.zeros_like(x, dtype=torch.float32)
    for expert in ids.unique().tolist():
        token, slot = (ids == expert).nonzero(as_tuple=True)
        h = swiglu(x[token] @ layer.gate_up[expert].T)
        out.index_add_(0, token, (h @ layer.down[expert].T).float() * weights[token, slot, None])
    return out.bfloat16()


def check(layer, x, ids, weights, out):
    error = norm = 0.0
    for t in {0, len(x) - 1}:
        exact = torch.zeros(layer.hidden, dtype=torch.float64, device=x.device)
        for i, expert in enumerate(ids[t].tolist()):
            h = swiglu(layer.gate_up[expert].double() @ x[t].double())
            exact += weights[t, i].double() * (layer.down[expert].double() @ h)
        error += (out[t].double() - exact).square().sum().item()
        norm += exact.square().sum().item()
    rms = (error / norm) ** 0.5
    return {"reference": "float64, two tokens", "relative_rms": rms, "ok": rms < 0.02}


def measure(run, layer, x, routings, samples):
    run(layer, x, *routings[0])
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    run(layer, x, *routings[1])
    end.record()
    end.synchronize()
    calls = max(1, min(16, int(2.0 / max(begin.elapsed_time(end), 1e-3))))
    times = []
    for _ in range(samples):
        begin.record()
        for i in range(calls):
            run(layer, x, *routings[i % ROUTINGS])
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / calls)
    return calls, times


def operators():
    found = {"torch bf16 loop": run_loop}
    if hasattr(torch, "_grouped_mm"):
        found["torch._grouped_mm bf16"] = run_grouped
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="peers.json")
    parser.add_argument("--shape", action="append", choices=SHAPES)
    parser.add_argument("--tokens", action="append", type=int)
    parser.add_argument("--samples", type=int, default=10)
    args = parser.parse_args()
    device = torch.device("cuda")
    tokens_of = args.tokens or [2**i for i in range(14)]
    log = peer_run.begin_log(torch, "moe")
    for name in args.shape or ["v3", "v4-flash"]:
        layer = Layer(name, device)
        everything = torch.randn(max(tokens_of), layer.hidden, device=device).bfloat16()
        for tokens in tokens_of:
            routings = [routing(layer, tokens, seed, device) for seed in range(ROUTINGS)]
            x = everything[:tokens]
            for kernel, run in operators().items():
                sample = {"shape": name, "kernel": kernel, "source": f"torch {torch.__version__}",
                          "format": "bf16", "activations": "bf16",
                          "problem": {"tokens": tokens, "topk": layer.topk, "experts": layer.experts,
                                      "hidden": layer.hidden, "inter": layer.inter, "shared": False}}
                try:
                    sample["error"] = check(layer, x, *routings[0], run(layer, x, *routings[0]))
                    sample["runs_per_sample"], sample["samples_us"] = measure(run, layer, x, routings,
                                                                              args.samples)
                except RuntimeError as error:  # what torch refuses, or memory
                    print(f"{name} T {tokens} {kernel}: {str(error).splitlines()[0]}", file=sys.stderr)
                    continue
                log["samples"].append(sample)
                median_us = statistics.median(sample["samples_us"])
                print(f"{name:9} T {tokens:5} {kernel:24} {median_us:10.1f} us, "
                      f"rms {sample['error']['relative_rms']:.1e}")
        del layer
        torch.cuda.empty_cache()
    peer_run.write_log(log, args.out)


if __name__ == "__main__":
    main()
