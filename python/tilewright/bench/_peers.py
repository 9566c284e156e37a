"""Calls of other libraries, as far as they can be imported: the same work as ours beside them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

Call = Callable[[], Any]


def calls(x: dict[str, Any]) -> Iterator[tuple[str, Call | str]]:
    """(library and function, the call, or why there is none)."""
    device = x["q"].device
    rows: tuple[tuple[str, str, Callable[[Any], Call]], ...] = (
        ("flash_attn", "flash_attn_with_kvcache", lambda module: _with_kvcache(module, x)),
        ("flash_attn_interface", "flash_attn_with_kvcache", lambda module: _with_kvcache(module, x)),
        ("vllm.vllm_flash_attn", "flash_attn_varlen_func", lambda module: _vllm_varlen(module, x)),
        ("flash_mla", "flash_mla_with_kvcache", lambda module: flash_mla_call(module, device)),
        ("vllm.third_party.flashmla.flash_mla_interface", "flash_mla_with_kvcache",
         lambda module: flash_mla_call(module, device)),
        ("flashinfer", "single_decode_with_kv_cache", lambda module: _single(module, x)),
        ("flashinfer", "BatchDecodeWithPagedKVCacheWrapper.run", lambda module: _batch(module, x)),
    )
    for name, function, make in rows:
        try:
            module = importlib.import_module(name)
            version = getattr(module, "__version__", "")
            yield " ".join(filter(None, (name, version, function))), _called(make(module))
        except Exception as error:  # a library that does not work here is a line of the table
            yield f"{name} {function}", f"{type(error).__name__}: {error}"[:200]


def _called(call: Call) -> Call:
    call()
    return call


def flash_mla_call(module: Any, device: torch.device) -> Call:
    """One query of 8 sequences with 64 heads over lists of 128, of pages whose stride FlashMLA takes, too."""
    q = torch.randn(8, 1, 64, 512, dtype=torch.bfloat16, device=device)
    pages = torch.zeros(16, 65 * 576, dtype=torch.uint8, device=device)
    cache = pages[:, : 64 * 584].view(16, 64, 1, 584)
    indices = torch.arange(8 * 128, dtype=torch.int32, device=device).view(8, 1, 128)
    schedule, _ = module.get_mla_metadata()
    return lambda: module.flash_mla_with_kvcache(
        q, cache, None, None, 512, schedule, is_fp8_kvcache=True, indices=indices
    )


def _with_kvcache(module: Any, x: dict[str, Any]) -> Call:
    return lambda: module.flash_attn_with_kvcache(
        x["q"], x["k_cache"], x["v_cache"], x["k"], x["v"], cache_seqlens=x["lengths"], causal=True
    )


def _pages(cache: torch.Tensor) -> torch.Tensor:
    """The same cache in pages of 16 keys."""
    return cache.view(-1, 16, *cache.shape[2:])


def _vllm_varlen(module: Any, x: dict[str, Any]) -> Call:
    """As its decode backend calls it: queries packed, caches in pages, the result given."""
    batch, _, heads, d = x["q"].shape
    q, out = x["q"].view(batch, heads, d), x["out"].view(batch, heads, d)
    k, v = _pages(x["k_cache"]), _pages(x["v_cache"])
    starts = torch.arange(batch + 1, dtype=torch.int32, device=q.device)
    table = torch.arange(k.shape[0], dtype=torch.int32, device=q.device).view(batch, -1)
    return lambda: module.flash_attn_varlen_func(
        q, k, v, 1, starts, 512, seqused_k=x["lengths"], causal=True, block_table=table, out=out, fa_version=3
    )


def _single(module: Any, x: dict[str, Any]) -> Call:
    """Of one sequence."""
    return lambda: module.single_decode_with_kv_cache(x["q"][0, 0], x["k_cache"][0], x["v_cache"][0])


def _batch(module: Any, x: dict[str, Any]) -> Call:
    """The call behind a plan that was made before."""
    batch, _, heads, d = x["q"].shape
    k, v = _pages(x["k_cache"]), _pages(x["v_cache"])
    each = k.shape[0] // batch
    wrapper = module.BatchDecodeWithPagedKVCacheWrapper(
        torch.empty(64 << 20, dtype=torch.uint8, device=k.device), "NHD"
    )
    wrapper.plan(
        torch.arange(batch + 1, dtype=torch.int32) * each,
        torch.arange(k.shape[0], dtype=torch.int32, device=k.device),
        torch.full((batch,), 16, dtype=torch.int32),
        heads, k.shape[2], d, 16, q_data_type=torch.bfloat16, kv_data_type=torch.bfloat16,
    )
    q, out = x["q"][:, 0], x["out"][:, 0]
    return lambda: wrapper.run(q, (k, v), out=out)
