"""New keys and values of flash_attn_with_kvcache that decode attention does not append itself."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tilewright import Reason
from tilewright.torch import cache_append

from ._common import count, fit, packed, reason, shape_of
from ._flash_attn import E4M3

#: Pairs turn in chunks of 16 bytes.
ROTARY_UNIT = 16


def turns_as_one(
    q: Tensor, room: int, causal: bool, window: Any, chunk: int, max_q: int | None
) -> bool:
    """Whether all queries of a sequence turn by the position of its first, as the peer has it where no
    mask counts from them."""
    queries = (max_q or q.shape[0]) if q.dim() == 3 else q.shape[1]
    left, right = int(window[0]), int(window[1])
    is_open = (left < 0 or left >= room - 1) and (right < 0 or right >= queries - 1)
    return queries > 1 and is_open and not causal and not chunk


def is_apart(
    q: Tensor,
    k: Tensor | None,
    *,
    beyond: bool,
    is_one_position: bool,
    rotary_cos: Tensor | None,
    rotary_seqlens: Tensor | None,
    cu_seqlens_k_new: Tensor | None,
    has_scales: bool,
) -> bool:
    """Whether new tokens are written by a call before that of attention.

    beyond      attention is not decode attention, or over keys that it does not have in place
    has_scales  new tokens in e4m3 are codes of the cache, and its scales are not applied to them
    """
    if k is None:
        return False
    if beyond or cu_seqlens_k_new is not None or (q.dtype == E4M3 and has_scales):
        return True
    if k.dim() != 4 or k.shape[1] != q.shape[1]:
        return True
    return rotary_cos is not None and (is_one_position or rotary_seqlens is not None)


def append_reasons(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    k: Tensor,
    v: Tensor | None,
    *,
    rotary_cos: Tensor | None,
    cu_seqlens_k_new: Tensor | None,
    over_pages: bool,
) -> list[Reason]:
    """Why the tokens cannot be written; empty if they can."""
    reasons: list[Reason] = []
    dims = "[batch, tokens, heads, head_dim]"
    if cu_seqlens_k_new is not None:
        dims = "[tokens, heads, head_dim] with cu_seqlens_k_new"
    shapes = [k_cache.shape[2:], v_cache.shape[2:]]
    is_right = v is not None and k.dtype == v.dtype == k_cache.dtype
    is_right = is_right and k.dim() == (4 if cu_seqlens_k_new is None else 3)
    if not is_right or v is None or [k.shape[-2:], v.shape[-2:]] != shapes:
        given = f"{shape_of(k)}, {shape_of(v)}"
        reasons.append(reason("k, v", given, f"{dims}, heads and dtype as the caches have", "convert them"))
    if rotary_cos is None:
        return reasons
    if q.dtype == E4M3 and over_pages:
        rule = "codes are not turned, where products are of e4m3"
        reasons.append(reason("rotary_cos", shape_of(rotary_cos), rule, "turn q and k before they are rounded"))
    if 2 * rotary_cos.shape[-1] % ROTARY_UNIT:
        rule = f"an even number of pairs, rotary_dim a multiple of {ROTARY_UNIT}"
        reasons.append(reason("rotary_cos", shape_of(rotary_cos), rule, "turn q and k before the call"))
    return reasons


def append(
    q: Tensor,
    caches: tuple[Tensor, Tensor],
    new: tuple[Tensor, Tensor],
    lengths: Tensor,
    page_table: Tensor | None,
    cu: tuple[Tensor | None, Tensor | None],
    turning: tuple[Tensor | None, Tensor | None, Tensor | None],
    interleaved: bool,
    is_one_position: bool,
) -> tuple[Tensor, Tensor]:
    """Writes new tokens to the caches; q, turned if it is to be, and the lengths after that.

    cu       where packed queries, and packed new tokens, begin
    turning  cosines, sines, and from where positions count, if not from lengths
    """
    cos, sin, offsets = turning
    if cos is not None and new[0].dtype == E4M3:
        count("converted")
        new = (new[0].to(q.dtype), new[1].to(q.dtype))
    if page_table is None:  # of caches with room for more sequences
        caches = (caches[0][: lengths.shape[0]], caches[1][: lengths.shape[0]])
    grown, turned = cache_append(
        *caches,
        fit(new[0]),
        fit(new[1]),
        lengths=lengths,
        page_table=page_table,
        cu_new=packed(cu[1]),
        q=None if cos is None else fit(q),
        cu_q=None if cos is None else packed(cu[0]),
        rotary_cos=cos,
        rotary_sin=sin,
        rotary_lengths=None if cos is None else packed(offsets),
        interleaved=interleaved,
        is_one_position=cos is not None and is_one_position,
    )
    return q if turned is None else turned, grown
