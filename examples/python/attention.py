"""Causal attention from Python: on a GPU with PyTorch's tensors, else on the simulated H200 with numpy's.

    python examples/python/attention.py [--device sim:h200]
"""

import argparse

import tilewright


def run(q, k, v, out, device, **problem):
    op = tilewright.Attention(device, **problem)
    print(op)
    print(op.plan.text.splitlines()[1])
    workspace = tilewright.Buffer(device, op.workspace_bytes)
    workspace.fill(0xff)
    op.run(q=q, k=k, v=v, out=out, workspace=workspace)
    device.synchronize()


def on_gpu(device, batch, rows, heads, dim):
    import torch

    q, k, v = (torch.randn(batch, rows, heads, dim, device=device.spec, dtype=torch.bfloat16) for _ in range(3))
    out = torch.empty_like(q)
    run(q, k, v, out, device, batch=batch, heads=heads, kv_heads=heads, q_len=rows, kv_len=rows, head_dim=dim,
        causal=True)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *(t.float().transpose(1, 2) for t in (q, k, v)), is_causal=True).transpose(1, 2)
    return (out.float() - expected).abs().max().item()


def on_simulator(device, batch, rows, heads, dim):
    """numpy has no bf16, but fp16: arrays of the host are copied to simulated memory and back."""
    import numpy as np

    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((batch, rows, heads, dim)).astype(np.float16) for _ in range(3))
    out = np.empty_like(q)
    run(q, k, v, out, device, dtype="f16", batch=batch, heads=heads, kv_heads=heads, q_len=rows, kv_len=rows,
        head_dim=dim, causal=True)
    scores = np.einsum("bihd,bjhd->bhij", q, k, dtype=np.float64) * dim**-0.5
    scores = np.where(np.tri(rows, dtype=bool), np.exp(scores), 0)
    expected = np.einsum("bhij,bjhd->bihd", scores / scores.sum(-1, keepdims=True), v)
    return np.abs(out - expected).max()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto")
    device = tilewright.Device(parser.parse_args().device)
    print(device.description)
    error = on_simulator(device, 1, 100, 2, 64) if device.is_simulated else on_gpu(device, 2, 4096, 16, 128)
    print(f"largest error {error:.2g}")
    if not error < 0.05:
        raise SystemExit("the result is wrong")


if __name__ == "__main__":
    main()
