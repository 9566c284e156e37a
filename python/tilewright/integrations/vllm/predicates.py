"""What vLLM asks of an attention backend, answered by the plans of our operators; without vLLM."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch

import tilewright
from tilewright.integrations._paged import HEAD_STEP, MAX_DECODE, MAX_HEAD_SIZE, decode_sizes

DTYPES = {torch.bfloat16: "bf16", torch.float16: "f16"}
CACHE_DTYPES = ("auto", "float16", "bfloat16", "fp8", "fp8_e4m3")
#: The device whose plans answer for a compute capability.
DEVICES = {(9, 0): "h200", (10, 0): "b200", (10, 3): "b300"}


@lru_cache(maxsize=None)
def head_sizes() -> tuple[int, ...]:
    """Those of packed attention. What decode attention does not have among them is gathered."""
    problem: dict[str, Any] = {"q_len": 1, "kv_len": 1, "scale": 1.0}
    sizes = range(HEAD_STEP, MAX_HEAD_SIZE + 1, HEAD_STEP)
    return tuple(d for d in sizes if tilewright.can_implement("Attention", "h200", head_dim=d, **problem))


def cache_dtype(dtype: torch.dtype, kv_cache_dtype: str | None) -> str:
    """Of the cache, as our problems have it."""
    if kv_cache_dtype in (None, "auto"):
        return DTYPES[dtype]
    return {"float16": "f16", "bfloat16": "bf16"}.get(str(kv_cache_dtype), "e4m3")


@lru_cache(maxsize=None)
def reason_against(
    capability: tuple[int, int],
    head_size: int,
    dtype: torch.dtype,
    kv_cache_dtype: str | None,
    block_size: int | None,
    has_sink: bool,
) -> str | None:
    """The first thing that stands in the way of decode or packed attention, or None."""
    device = DEVICES.get(capability)
    if device is None:
        return f"Tilewright has kernels for compute capabilities 9.0, 10.0 and 10.3, not {capability}"
    if dtype not in DTYPES:
        return f"Tilewright computes attention of bfloat16 and float16, not {dtype}"
    if kv_cache_dtype is not None and kv_cache_dtype not in CACHE_DTYPES:
        return f"Tilewright reads caches of {', '.join(CACHE_DTYPES)}, not {kv_cache_dtype}"
    kind = cache_dtype(dtype, kv_cache_dtype)
    page = 16 if block_size is None else block_size
    common: dict[str, Any] = {"heads": 8, "kv_heads": 1, "head_dim": head_size, "has_sink": has_sink}
    common |= {"dtype": DTYPES[dtype], "causal": True, "batch": 1, "scale": 1.0}
    # Sequences of other head sizes do not decode; all else that decode attention lacks is said.
    sizes = decode_sizes("e4m3" if kind == "e4m3" else "bf16")
    size = head_size if head_size in sizes else min(sizes)
    strides = {"batch": 2 * page * size, "row": 2 * size, "head": 2 * page * size}
    decode = tilewright.can_implement(
        "AttentionDecode",
        device=device,
        kv_dtype=kind,
        q_len=MAX_DECODE,
        page_size=page,
        num_pages=2,
        max_pages=1,
        cache_strides=strides,
        descale="tensor" if kind == "e4m3" else "none",
        **{**common, "head_dim": size},
    )
    packed = tilewright.can_implement(
        "Attention",
        device=device,
        q_len=32,
        kv_len=64,
        is_packed=True,
        total_q=32,
        total_kv=64,
        **common,
    )
    for name, answer in (("decode attention", decode), ("packed attention", packed)):
        if not answer:
            rules = [reason.rule for reason in answer.reasons]
            own = [rule for rule in rules if not rule.startswith("is for sm_")] or rules
            return f"Tilewright's {name}: {own[0]}"
    return None
