"""FlashAttention-3's `qv`, and values of 256 and 512 beside keys of 64."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewright import Reason
from tilewright.torch import _latent

from ._common import fit, packed, reason, shape_of

DTYPES = (torch.bfloat16, torch.float16)
#: What to do without.
_WITHOUT = {
    "cu_seqlens_q": "pass q as [batch, tokens, heads, 64]",
    "cu_seqlens_k": "pass k and v as [batch, tokens, heads, dims]",
    "seqused_q": "leave it out, and the results of other queries unread",
    "seqused_k": "flash_attn_with_kvcache with cache_seqlens",
    "cache_leftpad": "move the keys, or enter the pages behind the padding in page_table",
}
#: Pages that tensor copies take 64 keys of, beside multiples of 64.
SMALL_PAGES = (8, 16, 32)


def is_latent(q: Tensor, v: Tensor, qv: Tensor | None, is_over_caches: bool) -> bool:
    """Whether a call is for the kernels of narrow keys and wide values.

    Whole sequences with values of 256 have another way, which knows windows and softcaps.
    """
    least = 256 if is_over_caches else 257
    return qv is not None or (
        q.shape[-1] == _latent.KEY_DIM and v.shape[-1] in _latent.VALUE_DIMS and v.shape[-1] >= least
    )


def over_caches(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, qv: Tensor | None, /, **asked: Any
) -> list[Reason] | None:
    """Why those kernels cannot do a call over caches, as latent_reasons() says it; None if the call is
    not for them. Values of 256 without qv have another way, attention over pages, to what they lack."""
    if not is_latent(q, v_cache, qv, is_over_caches=True):
        return None
    reasons = latent_reasons(q, k_cache, v_cache, qv, **asked)
    return None if reasons and qv is None and v_cache.shape[-1] == 256 else reasons


def fits_page(size: int) -> bool:
    return size in SMALL_PAGES or (size > 0 and size % 64 == 0)


def latent_reasons(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    qv: Tensor | None,
    /,
    *,
    page_table: Tensor | None = None,
    cache_batch_idx: Tensor | None = None,
    causal: bool = False,
    window: Any = (-1, -1),
    softcap: float = 0.0,
    attention_chunk: int = 0,
    **others: Any,
) -> list[Reason]:
    """Why they cannot do it; empty if they can. Of `others` none may be given."""
    reasons: list[Reason] = []
    if q.dtype not in DTYPES or q.dtype != k.dtype or k.dtype != v.dtype:
        given = ", ".join(map(shape_of, (q, k, v)))
        rule = "bfloat16 or float16, all alike, with qv or values of 512"
        reasons.append(reason("q, k, v", given, rule, "convert with .to()"))
    if q.shape[-1] != _latent.KEY_DIM or k.shape[-1] != _latent.KEY_DIM:
        rule = f"keys of {_latent.KEY_DIM} with qv"
        reasons.append(reason("q.shape[-1]", q.shape[-1], rule, "pad q and k with zeros"))
    if v.shape[-1] not in _latent.VALUE_DIMS:
        rule = f"values of 256 or 512 beside keys of {_latent.KEY_DIM}, with qv"
        reasons.append(reason("v.shape[-1]", v.shape[-1], rule, "pad v and qv with zeros"))
    if qv is not None and (qv.shape != (*q.shape[:-1], v.shape[-1]) or qv.dtype != q.dtype):
        rule = "rows of q, as wide as values, of the same dtype"
        reasons.append(reason("qv", shape_of(qv), rule, "reshape or convert it"))
    left, right = int(window[0]), 0 if causal else int(window[1])
    room = k.shape[1] if k.dim() == 4 else 0
    room *= 1 if page_table is None else page_table.shape[1]
    if 0 <= left < room - 1 or right > 0:
        rule = "no windows with qv or values of 512"
        reasons.append(reason("window_size", tuple(window), rule, "(-1, -1), with causal or not"))
    for name, value in (("softcap", softcap), ("attention_chunk", attention_chunk)):
        if value:
            reasons.append(reason(name, value, "none with qv or values of 512", f"{name}=0"))
    paged = page_table is not None or cache_batch_idx is not None
    if paged and not fits_page(k.shape[1]):
        rule = "with qv or values of 512 pages of 8, 16, 32 or a multiple of 64 keys"
        fix = "index the caches before the call" if page_table is None else "other pages"
        reasons.append(reason("k_cache.shape[1]", k.shape[1], rule, fix))
    for name, given in others.items():
        if given is not None:
            rule = "whole sequences, or caches with cache_seqlens, with qv or values of 512"
            reasons.append(reason(name, shape_of(given), rule, _WITHOUT[name]))
    return reasons


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    qv: Tensor | None,
    lengths: Tensor,
    page_table: Tensor | None,
    *,
    causal: bool,
    window: Any,
    softmax_scale: float | None,
    out: Tensor | None,
    return_lse: bool,
) -> tuple[Tensor, Tensor | None]:
    """A call for which there are no reasons."""
    inputs = (fit(q), fit(k), fit(v), lengths, None if qv is None else fit(qv), packed(page_table), None)
    options = (causal or int(window[1]) == 0, softmax_scale, "auto", False)
    done = _latent.attend(inputs, options, out, return_lse)
    return done if return_lse else (done, None)


def whole_lengths(k: Tensor) -> Tensor:
    """Of sequences without padding."""
    return torch.full(k.shape[:1], k.shape[1], dtype=torch.int32, device=k.device)
