"""cache_leftpad of caches in pages, or by index: the keys behind it as pages of one key each."""

from __future__ import annotations

import torch
from torch import Tensor

from tilewright import Reason

from ._common import count, reason


def _rows_of_page(cache: Tensor) -> int | None:
    """Rows from page to page; None if a page does not begin at a row."""
    if cache.shape[0] <= 1:
        return cache.shape[1]
    page, row = cache.stride(0), cache.stride(1)
    if cache.shape[1] <= 1:
        return 1
    return None if row == 0 or page % row or page < cache.shape[1] * row else page // row


def padding_reasons(k_cache: Tensor, v_cache: Tensor) -> list[Reason]:
    """Why rows of both caches have no common numbers; empty if they have."""
    rows = _rows_of_page(k_cache)
    if rows is None or rows != _rows_of_page(v_cache) or rows * k_cache.shape[0] >= 2**31:
        rule = (
            "with cache_leftpad and pages, or indices, fewer than 2^31 rows of pages that lie equally "
            "many rows apart in both caches"
        )
        fix = "pass contiguous caches"
        return [reason("k_cache.stride()", k_cache.stride(), rule, fix)]
    return []


def behind_padding(
    k_cache: Tensor, v_cache: Tensor, page_table: Tensor, lengths: Tensor, leftpad: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Caches in pages of one key, a table of the keys behind the padding, and their numbers."""
    count("leftpad")
    size, of_page = k_cache.shape[1], _rows_of_page(k_cache)
    assert of_page is not None
    room = size * page_table.shape[1]
    keys = torch.arange(room, dtype=torch.int32, device=leftpad.device) + leftpad[:, None]
    pages = page_table.gather(1, (keys // size).clamp_(0, max(page_table.shape[1] - 1, 0)).long())
    table = pages * of_page + keys % size
    flat = (_flat(cache, of_page) for cache in (k_cache, v_cache))
    return (*flat, table, (lengths - leftpad).clamp_(min=0))  # type: ignore[return-value]


def _flat(cache: Tensor, of_page: int) -> Tensor:
    """All rows of a cache, those between pages included."""
    pages, size, heads, dim = cache.shape
    step = cache.stride(0) if size <= 1 else cache.stride(1)
    rows = (pages - 1) * of_page + size if pages else 0
    shape, strides = (rows, 1, heads, dim), (step, step, cache.stride(2), cache.stride(3))
    return cache.as_strided(shape, strides)
