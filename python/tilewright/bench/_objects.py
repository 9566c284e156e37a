"""What a call of an operator's object costs on the host."""

from __future__ import annotations

import importlib
import timeit
from collections.abc import Callable
from typing import Any

from .. import _core


def microseconds(call: Callable[[], object], number: int = 500, repeats: int = 200) -> float:
    """The least of many means, each of a time so short that some are without an interruption."""
    return min(timeit.repeat(call, number=number, repeat=repeats)) / number * 1e6


def _eight_tensors(device: _core.Device) -> tuple[_core.Attention, dict[str, Any]]:
    """An operator and eight of PyTorch's tensors for it, on its device or, if that is simulated, on the host."""
    torch = importlib.import_module("torch")
    op = _core.Attention(device, batch=2, heads=8, kv_heads=8, q_len=128, kv_len=128, head_dim=64, has_lse=True)
    place = "cpu" if device.is_simulated else device.spec
    rows = [torch.zeros(2, 128, 8, 64, dtype=torch.bfloat16, device=place) for _ in range(4)]
    small = [torch.zeros(2, 8, 128, device=place), torch.zeros(8, device=place)]
    lengths = [torch.zeros(3, dtype=torch.int32, device=place) for _ in range(2)]
    return op, dict(zip(("q", "k", "v", "out", "lse", "sink", "cu_q", "cu_kv"), (*rows, *small, *lengths)))


def overhead(device: _core.Device) -> list[tuple[str, float]]:
    """(what, microseconds) of ways to hand over eight tensors."""
    op, given = _eight_tensors(device)
    q, k, v, out, lse, sink, cu_q, cu_kv = given.values()
    read = _core.read_call
    found = [
        ("an empty Python call", microseconds(lambda: None)),
        ("tensor.data_ptr() eight times",
         microseconds(lambda: [t.data_ptr() for t in (q, k, v, out, lse, sink, cu_q, cu_kv)])),
        ("op.run(...) up to the call of the library",
         microseconds(lambda: read(op, q=q, k=k, v=v, out=out, lse=lse, sink=sink, cu_q=cu_q, cu_kv=cu_kv))),
        ("making an operator whose module is loaded",
         microseconds(lambda: _core.Attention(device, **op.problem), 50, 3)),
    ]
    if not device.is_simulated:
        torch = importlib.import_module("torch")
        space = torch.empty(op.workspace_bytes, dtype=torch.uint8, device=device.spec)
        run = op.run
        found.append(("op.run(...), launch included",
                      microseconds(lambda: run(q=q, k=k, v=v, out=out, lse=lse, workspace=space), 100, 20)))
        device.synchronize()
    return found
