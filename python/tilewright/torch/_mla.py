"""DeepSeek-V3's attention over all keys of paged caches.

Pages that tensor copies cannot take 64 keys of become lists of keys, and go to attention over lists.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import tilewright

from ._context import describe, device_of, expect_tensors, require, require_operand, signature, table
from ._latent import Schedule
from ._latent import attend as attend_latent
from ._ops import Done, define
from ._sparse import HEAD_DIM, MLA_DIM
from ._sparse import attend as attend_lists


def mla_decode(
    q: Tensor,
    cache: Tensor,
    page_table: Tensor,
    lengths: Tensor,
    *,
    causal: bool = True,
    scale: float | None = None,
    out: Tensor | None = None,
    return_lse: bool = False,
) -> Any:
    """Attention of q, bfloat16 [b, s, heads, 576], over the keys of each sequence; values are the first 512.

    cache       bfloat16 [pages, page_size, 576], or [pages, page_size, kv_heads, 576]
    page_table  int32 [b, blocks]: key j of a sequence is slot j % page_size of page
                page_table[b, j / page_size]
    lengths     int32 [b]: keys of a sequence, those of the s queries included
    causal      query i sees keys up to lengths - s + i; otherwise every query sees all

    Returns out [b, s, heads, 512], then the lse if wanted, fp32 [b, s, heads]. A query without a key has out 0
    and -inf as lse. Lengths are read on the device. Pages of 8, 16, 32 and multiples of 64 keys have a kernel of
    their own, which takes float16, too; of others the keys are listed first (4 bytes for each and query).
    """
    inputs = (q, cache, page_table, lengths, None)
    done, lse = attend_pages(inputs, (causal, scale, False), out, return_lse)
    return (done, lse.transpose(1, 2)) if lse is not None else done


def has_kernel(page_size: int) -> bool:
    """Whether tensor copies can take 64 keys of such pages."""
    return page_size in (8, 16, 32) or (page_size > 0 and page_size % 64 == 0)


def attend_pages(
    inputs: tuple[Any, ...],
    options: tuple[Any, ...],
    out: Tensor | None,
    return_lse: bool,
    schedule: Schedule | None = None,
) -> tuple[Tensor, Tensor | None]:
    """q, cache, page table, lengths, sink; causal, scale, whether an empty lse is +inf. lse [b, heads, s]."""
    q, cache, page_table, lengths, sink = inputs
    causal, scale, positive_empty_lse = options
    _expect(q, cache, page_table, lengths)
    if has_kernel(cache.shape[1]):
        rows = cache if cache.dim() == 4 else cache.unsqueeze(2)
        keys = (rows[..., HEAD_DIM:], rows[..., :HEAD_DIM], lengths)
        tensors = (q[..., HEAD_DIM:], *keys, q[..., :HEAD_DIM], page_table, sink)
        chosen = (causal, scale, "auto", positive_empty_lse)
        done = attend_latent(tensors, chosen, out, return_lse, schedule=schedule)
        return done if return_lse else (done, None)
    indices, visible = key_lists(q, cache, page_table, lengths, causal)
    given = (q, cache, indices, visible, None, None, None, sink, out, None, None)
    done = attend_lists((*given, return_lse, False, scale, "auto"), positive_empty_lse)
    return (done[0], done[1].transpose(1, 2)) if return_lse else (done, None)


def _expect(q: Tensor, cache: Tensor, page_table: Tensor, lengths: Tensor) -> None:
    expect_tensors("q cache page_table lengths", (q, cache, page_table, lengths), 4)
    dtypes = (torch.bfloat16, torch.float16)
    require(
        q.dim() == 4 and q.shape[3] == MLA_DIM and q.dtype in dtypes,
        f"{describe('q', q)}: expected bfloat16 [batch, tokens, heads, {MLA_DIM}]",
    )
    require(
        cache.dim() in (3, 4) and cache.shape[-1] == MLA_DIM and cache.dtype == q.dtype,
        f"{describe('cache', cache)}: expected [pages, page_size, {MLA_DIM}] of the dtype of q",
    )
    require(
        cache.dim() == 3 or cache.shape[2] == 1 or has_kernel(cache.shape[1]),
        f"{describe('cache', cache)}: expected one head of keys, or pages of 8, 16, 32 or a multiple of 64",
    )
    require_operand("lengths", lengths, q, torch.int32, (q.shape[0],))


def key_lists(
    q: Tensor, cache: Tensor, page_table: Tensor, lengths: Tensor, causal: bool
) -> tuple[Tensor, Tensor]:
    """Lists of the keys that each query sees, and how many: int32 [b, s, blocks * page_size], [b, s]."""
    require(
        q.dtype == torch.bfloat16,
        f"{describe('q', q)}: expected bfloat16 with pages of {cache.shape[1]} keys; others take pages "
        "of 8, 16, 32 and multiples of 64",
    )
    tokens = q.shape[1]
    found: tuple[Tensor, Tensor]
    found = _lists_op(page_table, lengths, tokens, cache.shape[1], cache.shape[0], causal)
    return found


def _check(page_table: Tensor, lengths: Tensor, tokens: int, page_size: int, pages: int) -> None:
    require(
        lengths.layout == torch.strided and lengths.dim() == 1 and lengths.dtype == torch.int32,
        f"{describe('lengths', lengths)}: expected int32 [batch]",
    )
    batch, device = lengths.shape[0], lengths.device
    require(
        page_table.layout == torch.strided
        and page_table.dim() == 2
        and page_table.shape[0] == batch
        and page_table.dtype == torch.int32
        and page_table.device == device
        and page_table.stride(1) == 1,
        f"{describe('page_table', page_table)}: expected int32 [{batch}, blocks] on {device}, rows contiguous",
    )
    sizes = f"tokens={tokens}, page_size={page_size}, pages={pages}"
    require(tokens >= 0 and page_size >= 1 and pages >= 0, f"{sizes}: expected sizes, page_size from 1 on")


def _lists(
    page_table: Tensor, lengths: Tensor, tokens: int, page_size: int, pages: int, causal: bool
) -> Done:
    _check(page_table, lengths, tokens, page_size, pages)
    indices, visible = _lists_fake(page_table, lengths, tokens, page_size, pages, causal)
    if indices.numel() == 0:
        return (indices, visible.zero_()), None
    # Each query is a sequence of its own: one before the first key of its sequence sees nothing, those behind do.
    last = lengths[:, None] - 1
    if causal and tokens > 1:
        last = last + torch.arange(1 - tokens, 1, dtype=torch.int32, device=lengths.device)
    last = last.expand(-1, tokens).reshape(-1).contiguous()
    if tokens > 1:
        page_table = page_table.repeat_interleave(tokens, 0)
    key = ("mla_lists", signature(page_table), tokens, page_size, pages)
    cache: Any = table.get(key)
    if cache is None:
        layout: dict[str, Any] = {"format": "bf16", "page_size": page_size, "num_pages": pages}
        cache = table.add(key, tilewright.KvCache(device_of(lengths.device), **layout))
    cache.list(
        kind="entries",
        tokens=visible.numel(),
        sequences={"batch": visible.numel(), "q_len": 1, "starts": last},
        table={"pages": page_table, "blocks": page_table.shape[1], "stride": page_table.stride(0)},
        ratio=1,
        list_len=indices.shape[2],
        lists=indices,
        lengths=visible,
    )
    return (indices, visible), None


def _lists_fake(
    page_table: Tensor, lengths: Tensor, tokens: int, page_size: int, pages: int, causal: bool
) -> tuple[Tensor, Tensor]:
    batch, blocks = page_table.shape
    indices = torch.empty((batch, tokens, blocks * page_size), dtype=torch.int32, device=lengths.device)
    return indices, torch.empty((batch, tokens), dtype=torch.int32, device=lengths.device)


_lists_op = define(
    "mla_lists",
    "(Tensor page_table, Tensor lengths, int tokens, int page_size, int pages, bool causal) -> (Tensor, Tensor)",
    _lists,
    _lists_fake,
)
