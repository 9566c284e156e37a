"""Batches of sequences in pages, as engines have them, with their float64 references."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch_reference import attention, i32, seeded

from tilewright.integrations._paged import PagedBatch


class Case:
    """Sequences of (queries, keys): a cache whose pages are in no order, what lies in it unused is NaN.

    layout  how a page lies in memory: "NHD" tokens first, "HND" heads first; K and V of a token and
            head lie side by side in both
    value_dim  of values, as wide as keys by default
    """

    def __init__(
        self,
        sequences: list[tuple[int, int]],
        *,
        heads: int = 4,
        kv_heads: int = 2,
        d: int = 64,
        page: int = 16,
        dtype: torch.dtype = torch.bfloat16,
        cache_dtype: torch.dtype | None = None,
        layout: str = "HND",
        pad_sequences: int = 0,
        scale_k: float = 1.0,
        scale_v: float = 1.0,
        value_dim: int = 0,
    ) -> None:
        random = seeded(len(sequences) + 31 * d + page)
        self.sequences, self.d, self.page, self.dtype = sequences, d, page, dtype
        self.value_dim = value_dim or d
        self.heads, self.kv_heads, self.pad = heads, kv_heads, pad_sequences
        self.scale_k, self.scale_v = scale_k, scale_v
        self.rows = sum(n for n, _ in sequences)
        self.q = torch.randn(self.rows, heads, d, generator=random).to(dtype)
        self.k, self.v = (
            [torch.randn(n, kv_heads, width, generator=random).to(dtype) for _, n in sequences]
            for width in (d, self.value_dim)
        )
        counts = [-(-n // page) for _, n in sequences]
        order = (torch.randperm(sum(counts) + 1, generator=random) + 1).tolist()
        self.pages = torch.zeros(len(sequences) + pad_sequences, max(counts) + 1, dtype=torch.int32)
        for b, count in enumerate(counts):
            self.pages[b, :count] = i32([order.pop() for _ in range(count)])
        cache_dtype = cache_dtype or dtype
        self.cache = self._empty_cache(sum(counts) + 2, cache_dtype, layout)
        self.slots = self._slots()
        self.is_e4m3 = cache_dtype is torch.float8_e4m3fn

    def _empty_cache(self, pages: int, dtype: torch.dtype, layout: str) -> Tensor:
        """[pages, kv_heads, page, columns of keys and of values]."""
        columns = self.d + self.value_dim
        shape = (pages, self.kv_heads, self.page, columns)
        if layout == "NHD":
            shape = (pages, self.page, self.kv_heads, columns)
        if dtype is torch.float8_e4m3fn:
            made = torch.full(shape, 0x7F, dtype=torch.uint8)  # NaN
        else:
            made = torch.full(shape, math.nan, dtype=dtype)
        return made.transpose(1, 2) if layout == "NHD" else made

    def _slots(self) -> Tensor:
        """Of the queries' own keys, the last ones of each sequence."""
        found = []
        for b, (queries, keys) in enumerate(self.sequences):
            for position in range(keys - queries, keys):
                page = int(self.pages[b, position // self.page])
                found.append(page * self.page + position % self.page)
        return torch.tensor(found, dtype=torch.int64)

    def caches(self) -> tuple[Tensor, Tensor]:
        cache = self.cache.view(torch.float8_e4m3fn) if self.is_e4m3 else self.cache
        k, v = cache.transpose(1, 2).split([self.d, self.value_dim], dim=-1)
        return k, v

    def fill_past(self) -> None:
        """Keys and values before the queries' own ones."""
        for (queries, keys), b in zip(self.sequences, range(len(self.sequences)), strict=True):
            for position in range(keys - queries):
                page = int(self.pages[b, position // self.page])
                for cache, new, scale in zip(
                    self.caches(),
                    (self.k[b], self.v[b]),
                    (self.scale_k, self.scale_v),
                    strict=True,
                ):
                    place = cache[page, position % self.page]
                    row = new[position]
                    if self.is_e4m3:
                        codes = (row.float() / scale).to(torch.float8_e4m3fn)
                        place.view(torch.uint8).copy_(codes.view(torch.uint8))
                    else:
                        place.copy_(row)

    def new(self) -> tuple[Tensor, Tensor]:
        """Keys and values of the queries, packed."""
        used = list(zip(self.sequences, self.k, self.v, strict=True))
        return (
            torch.cat([k[keys - queries :] for (queries, keys), k, _ in used]),
            torch.cat([v[keys - queries :] for (queries, keys), _, v in used]),
        )

    def starts(self) -> list[int]:
        found = [0]
        for queries, _ in self.sequences:
            found.append(found[-1] + queries)
        return found + [found[-1]] * self.pad

    def lengths(self) -> list[int]:
        return [keys for _, keys in self.sequences] + [0] * self.pad

    def batch(self, bounds: list[int] | None = None, **options: Any) -> PagedBatch:
        given: dict[str, Any] = {
            "cu_q": i32(self.starts()),
            "cu_q_on_host": self.starts(),
            "lengths": i32(self.lengths()),
            "pages": self.pages,
            "rows": self.rows,
            "bounds": self.lengths() if bounds is None else bounds,
        }
        return PagedBatch(**{**given, **options})

    def expected(self, **options: Any) -> Tensor:
        """float64 [rows, heads, d]. Keys and values are those that the cache holds."""
        parts, begin = [], 0
        for b, (queries, keys) in enumerate(self.sequences):
            q = self.q[begin : begin + queries][None]
            k, v = (self._stored(b, keys, which) for which in (0, 1))
            parts.append(attention(q, k[None], v[None], **options)[0][0])
            begin += queries
        return torch.cat(parts)

    def _stored(self, b: int, keys: int, which: int) -> Tensor:
        cache = self.caches()[which]
        position = torch.arange(keys)
        page = self.pages[b, position // self.page].long()
        if not self.is_e4m3:
            return cache[page, position % self.page].double()
        codes = cache.view(torch.uint8)[page, position % self.page]
        return codes.view(cache.dtype).double() * (self.scale_v if which else self.scale_k)
