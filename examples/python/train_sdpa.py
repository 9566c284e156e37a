"""A small dense model trained twice: with torch's attention, and with our forward under torch's backward.

    python examples/python/train_sdpa.py --steps 30

Prints both loss curves. Needs a GPU, and torch 2.11 or later.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import attention
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from tilewright.integrations import sdpa

TEXT = Path(__file__).resolve().parents[1] / "models" / "tiny-dsv4" / "heldout.txt"
WIDTH, HEADS, KV_HEADS, LENGTH, BATCH = 256, 4, 2, 256, 16


class Block(nn.Module):
    """Attention with grouped heads of 64, and a feed-forward layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)])
        self.qkv = nn.Linear(WIDTH, (HEADS + 2 * KV_HEADS) * 64, bias=False)
        self.out = nn.Linear(HEADS * 64, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.qkv(self.norms[0](x)).unflatten(-1, (-1, 64)).transpose(1, 2)
        q, k, v = heads.split([HEADS, KV_HEADS, KV_HEADS], dim=1)
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        result: Tensor = x + self.down(nn.functional.gelu(self.up(self.norms[1](x))))
        return result


def train(implementation: str | None, steps: int, device: str = "cuda") -> list[float]:
    """Losses in nats a byte. The same weights and batches whatever attention is used."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Embedding(256, WIDTH), Block(), Block(), nn.RMSNorm(WIDTH), nn.Linear(WIDTH, 256)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    text = torch.frombuffer(bytearray(TEXT.read_bytes()), dtype=torch.uint8).long()
    if implementation is not None:
        sdpa.register()
        attention.activate_flash_attention_impl(implementation)
    losses = []
    try:
        for _ in range(steps):
            begins = torch.randint(len(text) - LENGTH - 1, (BATCH,))
            rows = torch.stack([text[b : b + LENGTH + 1] for b in begins]).to(device)
            with (
                torch.autocast(device, torch.bfloat16),
                attention.sdpa_kernel(attention.SDPBackend.FLASH_ATTENTION),
            ):
                loss = cross_entropy(model(rows[:, :-1]).flatten(0, 1).float(), rows[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
    finally:
        if implementation is not None:
            attention.restore_flash_attention_impl()
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=30)
    steps = parser.parse_args().steps
    print("step  torch   tilewright")
    curves = zip(train(None, steps), train(sdpa.NAME, steps), strict=True)
    for step, (theirs, ours) in enumerate(curves):
        print(f"{step:4}  {theirs:.4f}  {ours:.4f}")


if __name__ == "__main__":
    main()
