"""What a call of torch's functions and of the drop-ins costs, beside torch's and the peers' own.

On a GPU calls are enqueued behind work that takes longer, so that nothing waits; a few hundred, then the
device is waited for. Without one, our calls stop before the kernel: what is timed is Python, the table of
operators and torch's allocator.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

import tilewright
import tilewright.torch as tt
from tilewright.compat import flash_attn_interface, flash_mla

from . import _peers

CALLS = 200
REPEATS = 25
#: Calls that are timed once more as a graph of one.
REPLAYED = ("torch: attention_decode, out given", "torch: attention_paged, out given")


class Row(NamedTuple):
    name: str
    microseconds: float | None
    note: str = ""


def _time(call: Callable[[], Any], is_gpu: bool) -> float:
    """Microseconds a call, the least of several series."""
    call()
    best = float("inf")
    for _ in range(REPEATS):
        if is_gpu:
            torch.cuda.synchronize()
            torch.cuda._sleep(20_000_000)  # type: ignore[no-untyped-call]
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - begin)
    if is_gpu:
        torch.cuda.synchronize()
    return best / CALLS * 1e6


def _decode(place: str) -> dict[str, Any]:
    batch, heads, kv_heads, d, length = 8, 16, 2, 128, 512
    bf16: dict[str, Any] = {"dtype": torch.bfloat16, "device": place}
    return {
        "q": torch.randn(batch, 1, heads, d, **bf16),
        "k_cache": torch.randn(batch, length, kv_heads, d, **bf16),
        "v_cache": torch.randn(batch, length, kv_heads, d, **bf16),
        "k": torch.randn(batch, 1, kv_heads, d, **bf16),
        "v": torch.randn(batch, 1, kv_heads, d, **bf16),
        "lengths": torch.full((batch,), 300, dtype=torch.int32, device=place),
        "out": torch.empty(batch, 1, heads, d, **bf16),
        "scale": d**-0.5,
    }


def _without_kernel() -> None:
    """Operators that the table has do nothing from now on, and known calls stop before theirs."""
    from tilewright.torch import _context

    for entry in _context.table.entries():
        entry.run = lambda **arguments: None
    for calls in _context.all_calls:
        calls.is_dry = True


def table(device: tilewright.Device) -> list[Row]:
    is_gpu = not device.is_simulated
    if not is_gpu:
        tt.set_device(device.description.split()[0])  # the spec may be "auto"
    x = _decode(device.spec if is_gpu else "cpu")
    with torch.inference_mode():
        rows = _ours(x, is_gpu) + _torch(x, is_gpu)
        if is_gpu:
            for name, call in _peers.calls(x):
                rows.append(_peer(name, call))
        return rows


def _ours(x: dict[str, Any], is_gpu: bool) -> list[Row]:
    rows = []
    q, caches = x["q"], (x["k_cache"], x["v_cache"])
    appended = {"lengths": x["lengths"], "k_new": x["k"], "v_new": x["v"], "scale": x["scale"]}

    def decode() -> Any:
        return tt.attention_decode(q, *caches, **appended)

    def into() -> Any:
        return tt.attention_decode(q, *caches, out=x["out"], **appended)

    def drop_in() -> Any:
        return flash_attn_interface.flash_attn_with_kvcache(
            q, *caches, x["k"], x["v"], cache_seqlens=x["lengths"], causal=True
        )

    def whole() -> Any:
        return tt.attention(q, *caches, scale=x["scale"])

    def whole_drop_in() -> Any:
        return flash_attn_interface.flash_attn_func(q, *caches)

    table = torch.arange(8 * 32, dtype=torch.int32, device=q.device).view(8, 32)
    pages = [cache.view(-1, 16, *cache.shape[2:]) for cache in caches]

    def paged() -> Any:
        return tt.attention_paged(
            q, *pages, page_table=table, kv_lengths=x["lengths"], causal=True, scale=x["scale"], out=x["out"]
        )

    op = torch.ops.tilewright.attention_decode_out.default
    given = [q, *caches, x["lengths"], None, x["k"], x["v"], None, None, True, None, None, None]
    given += [x["scale"], True, -1, 0.0, 0, "auto", x["out"], None]
    calls = {
        "torch: attention_decode": decode,
        "torch: attention_decode, out given": into,
        "torch: the operator attention_decode_out": lambda: op(*given),
        "torch: the same, under no_grad": _outside_inference_mode(lambda: op(*given)),
        "torch: attention_paged, out given": paged,
        "torch: attention": whole,
        "compat: flash_attn_with_kvcache": drop_in,
        "compat: flash_attn_func": whole_drop_in,
        "compat: flash_mla_with_kvcache": _flash_mla(q.device),
        **_layers(q.device),
    }
    for name, call in calls.items():
        call()
        if not is_gpu:
            _without_kernel()
        is_outside = hasattr(call, "is_outside")
        with torch.inference_mode(not is_outside), torch.no_grad():
            rows.append(Row(name, _time(call, is_gpu), "" if is_gpu else "no kernel"))
        if is_gpu and name in REPLAYED:
            rows.append(Row(f"{name}, as a CUDA graph", _time(_graph(call).replay, is_gpu)))
    return rows


def _graph(call: Callable[[], Any]) -> Any:
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph


def _outside_inference_mode(call: Callable[[], Any]) -> Callable[[], Any]:
    """A series of calls without gradients, where torch's dispatcher asks the autograd rule."""

    def run() -> Any:
        return call()

    run.is_outside = True  # type: ignore[attr-defined]
    return run


def _layers(device: torch.device) -> dict[str, Callable[[], Any]]:
    """Modules, with what torch's __call__ of a module takes."""
    bf16: dict[str, Any] = {"dtype": torch.bfloat16, "device": device}
    x, matrix = torch.randn(8, 256, **bf16), torch.randn(128, 256, **bf16)
    linear = tt.Linear(matrix)
    experts = torch.randn(4, 128, 256, **bf16)
    moe = tt.Moe(experts, experts, experts.transpose(1, 2).contiguous())
    ids = torch.zeros(8, 2, dtype=torch.int32, device=device)
    weights = torch.ones(8, 2, device=device)
    return {
        "torch: quantize": lambda: tt.quantize(x),
        "torch: Linear": lambda: linear(x),
        "torch: Moe": lambda: moe(x, ids, weights),
    }


def _flash_mla(device: torch.device) -> Callable[[], Any]:
    return _peers.flash_mla_call(flash_mla, device)


def _torch(x: dict[str, Any], is_gpu: bool) -> list[Row]:
    q, k, v = (x[name].transpose(1, 2) for name in ("q", "k_cache", "v_cache"))
    attend = torch.nn.functional.scaled_dot_product_attention
    rows = [Row("torch.empty_like", _time(lambda: torch.empty_like(x["q"]), is_gpu))]
    if is_gpu:
        call = _time(lambda: attend(q, k, v, enable_gqa=True), is_gpu)
        rows.append(Row("torch: scaled_dot_product_attention", call))
    return rows


def _peer(name: str, call: Callable[[], Any] | str) -> Row:
    """Of a library that may not be there; its own failure is a line of the table."""
    if isinstance(call, str):
        return Row(name, None, call)
    try:
        return Row(name, _time(call, is_gpu=True))
    except Exception as error:
        return Row(name, None, f"{type(error).__name__}: {error}"[:200])


def data(rows: list[Row], device: str) -> dict[str, Any]:
    about = {"torch": torch.__version__, "python": platform.python_version(), "device": device}
    return {"about": about, "rows": [row._asdict() for row in rows]}


def text(rows: list[Row]) -> str:
    lines = [f"{'us a call':>10}"]
    for row in rows:
        number = "-" if row.microseconds is None else f"{row.microseconds:.2f}"
        lines.append(f"{number:>10}  {row.name}" + (f"  ({row.note})" if row.note else ""))
    return "\n".join(lines)
