"""FlashAttention-3's flash_attn_interface on Tilewright's kernels; forward only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

from tilewright import Reason
from tilewright.torch import merge_attention

from ._common import fit
from ._flash_attn import forward, forward_reasons
from ._flash_caches import cache_calls, cache_reasons, with_cache

__all__ = [
    "can_implement",
    "flash_attn_combine",
    "flash_attn_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_with_kvcache",
    "get_scheduler_metadata",
]

Window = tuple[int, int]


def flash_attn_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    softmax_scale: float | None = None,
    causal: bool = False,
    qv: Tensor | None = None,
    q_descale: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
    window_size: Window = (-1, -1),
    attention_chunk: int = 0,
    softcap: float = 0.0,
    num_splits: int = 1,
    pack_gqa: bool | None = None,
    deterministic: bool = False,
    sm_margin: int = 0,
    return_attn_probs: bool = False,
) -> Any:
    """[batch, tokens, heads, head_dim] each; the result, or it and the lse [batch, heads, tokens].

    num_splits, pack_gqa and sm_margin are hints that nothing here depends on; results are always
    deterministic.
    """
    out, lse = forward(
        "flash_attn_func",
        q,
        k,
        v,
        qv=qv,
        descales=(q_descale, k_descale, v_descale),
        softmax_scale=softmax_scale,
        causal=causal,
        window=window_size,
        attention_chunk=attention_chunk,
        softcap=softcap,
        return_lse=return_attn_probs,
    )
    return (out, lse) if return_attn_probs else out


def flash_attn_varlen_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    seqused_q: Tensor | None = None,
    seqused_k: Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    qv: Tensor | None = None,
    q_descale: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
    window_size: Window = (-1, -1),
    attention_chunk: int = 0,
    softcap: float = 0.0,
    num_splits: int = 1,
    pack_gqa: bool | None = None,
    deterministic: bool = False,
    sm_margin: int = 0,
    return_attn_probs: bool = False,
) -> Any:
    """[rows, heads, head_dim] each; the result, or it and the lse [heads, rows].

    seqused_q and seqused_k are read by the kernel; where none does, the rows in use are packed first,
    which copies them.
    """
    out, lse = forward(
        "flash_attn_varlen_func",
        q,
        k,
        v,
        qv=qv,
        cu_seqlens_q=cu_seqlens_q,
        cu_seqlens_k=cu_seqlens_k,
        seqused_q=seqused_q,
        seqused_k=seqused_k,
        max_seqlen_q=max_seqlen_q,
        max_seqlen_k=max_seqlen_k,
        descales=(q_descale, k_descale, v_descale),
        softmax_scale=softmax_scale,
        causal=causal,
        window=window_size,
        attention_chunk=attention_chunk,
        softcap=softcap,
        return_lse=return_attn_probs,
    )
    return (out, lse) if return_attn_probs else out


def flash_attn_qkvpacked_func(
    qkv: Tensor,
    softmax_scale: float | None = None,
    causal: bool = False,
    q_descale: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
    window_size: Window = (-1, -1),
    attention_chunk: int = 0,
    softcap: float = 0.0,
    deterministic: bool = False,
    num_heads_q: int | None = None,
    sm_margin: int = 0,
    return_attn_probs: bool = False,
) -> Any:
    """q, k and v as views of [..., 3, heads, head_dim], or of [..., heads of all, head_dim]."""
    if qkv.dim() == 5:
        q, k, v = qkv.unbind(-3)
    else:
        if num_heads_q is None:
            raise ValueError("num_heads_q: expected for qkv of 4 dimensions, [b, s, heads, d]")
        kv_heads = (qkv.shape[2] - num_heads_q) // 2
        q, k, v = torch.split(qkv, [num_heads_q, kv_heads, kv_heads], dim=-2)
    return flash_attn_func(
        q,
        k,
        v,
        softmax_scale=softmax_scale,
        causal=causal,
        q_descale=q_descale,
        k_descale=k_descale,
        v_descale=v_descale,
        window_size=window_size,
        attention_chunk=attention_chunk,
        softcap=softcap,
        return_attn_probs=return_attn_probs,
    )


def flash_attn_with_kvcache(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    k: Tensor | None = None,
    v: Tensor | None = None,
    qv: Tensor | None = None,
    rotary_cos: Tensor | None = None,
    rotary_sin: Tensor | None = None,
    cache_seqlens: Tensor | int | None = None,
    cache_batch_idx: Tensor | None = None,
    cache_leftpad: Tensor | None = None,
    page_table: Tensor | None = None,
    cu_seqlens_q: Tensor | None = None,
    cu_seqlens_k_new: Tensor | None = None,
    max_seqlen_q: int | None = None,
    rotary_seqlens: Tensor | None = None,
    q_descale: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: Window = (-1, -1),
    attention_chunk: int = 0,
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    scheduler_metadata: Tensor | None = None,
    num_splits: int = 0,
    pack_gqa: bool | None = None,
    sm_margin: int = 0,
    return_softmax_lse: bool = False,
) -> Any:
    """Queries over caches; with new keys and values, k and v, which are written behind those that are
    there: any number of them, packed with cu_seqlens_k_new, turned by positions from rotary_seqlens on.

    More than 16 queries, packed ones (cu_seqlens_q with max_seqlen_q) and windows to the right are
    for attention over pages, products of e4m3 where q and the caches are.
    Keys of 64 with values of 256 or 512, and qv beside them, have kernels of their own, for any number of
    queries: scores are q k^T + qv v^T.
    With return_softmax_lse four values, as the peer has: the result, the lse, and two empty
    tensors in place of partial results.
    """
    known: tuple[Any, ...] = ()
    is_usual = qv is cache_batch_idx is cache_leftpad is cu_seqlens_q is cu_seqlens_k_new is None
    if is_usual and rotary_seqlens is q_descale is None and not attention_chunk and not is_compiling():
        known = (q, k_cache, v_cache, k, v, rotary_cos, rotary_sin, cache_seqlens, page_table)
        known += (k_descale, v_descale, None, None, softmax_scale, causal, *window_size, softcap)
        known += (rotary_interleaved, num_splits, return_softmax_lse)
        if (found := cache_calls.run(*known)) is not None:
            return (*found, *_no_partials(q)) if return_softmax_lse else found
    out, lse = with_cache(
        "flash_attn_with_kvcache",
        q,
        k_cache,
        v_cache,
        k,
        v,
        qv=qv,
        rotary_cos=rotary_cos,
        rotary_sin=rotary_sin,
        cache_seqlens=cache_seqlens,
        cache_batch_idx=cache_batch_idx,
        cache_leftpad=cache_leftpad,
        page_table=page_table,
        cu_seqlens_q=cu_seqlens_q,
        max_seqlen_q=max_seqlen_q,
        cu_seqlens_k_new=cu_seqlens_k_new,
        rotary_seqlens=rotary_seqlens,
        descales=(q_descale, k_descale, v_descale),
        softmax_scale=softmax_scale,
        causal=causal,
        window=window_size,
        attention_chunk=attention_chunk,
        softcap=softcap,
        rotary_interleaved=rotary_interleaved,
        num_splits=num_splits,
        return_lse=return_softmax_lse,
        known=known,
    )
    return (out, lse, *_no_partials(q)) if return_softmax_lse else out


def _no_partials(q: Tensor) -> tuple[Tensor, Tensor]:
    """Where the peer has partial results: without elements."""
    return q.new_empty(0, dtype=torch.float32), q.new_empty(0, dtype=torch.float32)


def flash_attn_combine(
    out_partial: Tensor,
    lse_partial: Tensor,
    out: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> tuple[Tensor, Tensor]:
    """Results of [splits, batch, tokens, heads, d] with lse [splits, batch, tokens, heads] as one."""
    done: tuple[Tensor, Tensor] = merge_attention(
        fit(out_partial),
        lse_partial.transpose(-1, -2),
        out_dtype=out_dtype,
        out=out,
        return_lse=True,
    )
    return done[0], done[1].transpose(-1, -2)


def get_scheduler_metadata(
    batch_size: int,
    max_seqlen_q: int,
    max_seqlen_k: int,
    num_heads_q: int,
    num_heads_kv: int,
    headdim: int,
    cache_seqlens: Tensor,
    qkv_dtype: torch.dtype = torch.bfloat16,
    headdim_v: int | None = None,
    cu_seqlens_q: Tensor | None = None,
    cu_seqlens_k_new: Tensor | None = None,
    cache_leftpad: Tensor | None = None,
    page_size: int | None = None,
    max_seqlen_k_new: int = 0,
    causal: bool = False,
    window_size: Window = (-1, -1),
    attention_chunk: int = 0,
    has_softcap: bool = False,
    num_splits: int = 0,
    pack_gqa: bool | None = None,
    sm_margin: int = 0,
) -> Tensor:
    """int32 of the size that FlashAttention-3 has on Hopper; nothing here reads it."""
    is_open = int(window_size[0]) < 0 and int(window_size[1]) < 0
    is_local = not is_open and not (int(window_size[0]) < 0 and int(window_size[1]) == 0)
    is_local = (is_local or attention_chunk > 0) and not (causal and int(window_size[0]) < 0)
    lists = 2 + (not is_local) + (causal or is_local)
    rounded = -(-batch_size // 4) * 4
    return torch.zeros(lists * rounded + 1, dtype=torch.int32, device=cache_seqlens.device)


_CALLS: dict[str, tuple[Callable[..., list[Reason]], tuple[str, ...]]] = {
    "flash_attn_func": (
        forward_reasons,
        ("q", "k", "v", "qv", "attention_chunk", "causal", "softcap"),
    ),
    "flash_attn_varlen_func": (
        forward_reasons,
        ("q", "k", "v", "qv", "cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k")
        + ("attention_chunk", "causal", "softcap"),
    ),
    "flash_attn_with_kvcache": (
        cache_reasons,
        ("q", "k_cache", "v_cache", "k", "v", "qv", "rotary_cos", "cache_seqlens")
        + ("cache_batch_idx", "cache_leftpad", "page_table", "cu_seqlens_q", "cu_seqlens_k_new")
        + ("seqused_q", "rotary_seqlens", "causal", "attention_chunk", "num_splits")
        + ("softcap",),
    ),
}


def can_implement(function: str, **arguments: Any) -> list[Reason]:
    """Why a call of `function` with these arguments cannot be done; empty if it can.

    Only shapes, dtypes and presence count: tensors on the meta device will do.
    """
    ask, names = _CALLS[function]
    known = {name: arguments[name] for name in names if name in arguments}
    if "window_size" in arguments:
        known["window"] = arguments["window_size"]
    return ask(**known)
