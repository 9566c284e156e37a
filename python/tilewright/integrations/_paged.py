"""Packed queries over keys and values in pages, as inference engines call attention.

One batch has sequences that decode and such that prefill. Those at its front that have equally many
queries, 16 at most, go to decode attention; the others to packed attention, over pages where the
device has a kernel for that, and else over keys that are gathered from their pages first.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

import tilewright
import tilewright.torch as ops
from tilewright.torch._paged import reasons_against

#: Queries of a sequence that decode attention takes.
MAX_DECODE = 16
#: Queries of a sequence times the heads that share keys up to which codes of e4m3 are widened by the
#: kernel. It does so for each 128 of these rows; gathered keys are widened once. Where both took as
#: long when that took 2.4 times the time of 16-bit pages; now it takes 1.7.
MAX_WIDENED_ROWS = 512
#: What head sizes are multiples of, and the largest.
HEAD_STEP, MAX_HEAD_SIZE = 8, 256


@lru_cache(maxsize=None)
def decode_sizes(kv_dtype: str = "bf16") -> frozenset[int]:
    """Head sizes of decode attention over caches of that dtype, on all chips.

    Sequences with others are gathered to decode: e4m3 whose rows are no multiples of 16 bytes.
    """
    problem: dict[str, Any] = {"max_len": 1, "scale": 1.0, "kv_dtype": kv_dtype}
    problem["dtype"] = "f16" if kv_dtype == "f16" else "bf16"
    sizes = range(HEAD_STEP, MAX_HEAD_SIZE + 1, HEAD_STEP)
    return frozenset(
        d
        for d in sizes
        if all(
            tilewright.can_implement("AttentionDecode", device, head_dim=d, **problem)
            for device in ("h200", "b200")
        )
    )


def cache_kind(dtype: torch.dtype) -> str:
    """Of a cache, as decode_sizes() has it. Engines keep codes as bytes, too."""
    return "e4m3" if dtype.itemsize == 1 else "bf16"


def warn_of_gathering(head_size: int, kv_dtype: str) -> None:
    """Once for each head size that decode attention does not have."""
    if head_size not in decode_sizes(kv_dtype):
        warnings.warn(
            f"Tilewright has no decode attention for a head size of {head_size} over caches of "
            f"{kv_dtype}: every step copies all keys of its sequences from their pages, which is "
            "slow; multiples of 16 up to 256 have it",
            stacklevel=3,
        )


@lru_cache(maxsize=None)
def warn_of_prompts(head_size: int, kv_dtype: str) -> None:
    """Once for each head size whose pages no kernel of the device reads for prompts."""
    warnings.warn(
        f"Tilewright has no attention over pages for prompts with a head size of {head_size} over "
        f"caches of {kv_dtype} on this device: parts of prompts with keys before them copy all keys of "
        "their sequences from their pages in each layer, which is slow; caches of 16 bits are read in "
        "place",
        stacklevel=3,
    )


@dataclass(frozen=True)
class Mask:
    """What the layers of a model may differ in. window: visible keys before and behind; -1: all."""

    scale: float
    causal: bool = True
    window: tuple[int, int] = (-1, -1)
    softcap: float = 0.0


@dataclass(frozen=True)
class Scales:
    """What the codes of e4m3 caches are multiplied by: on the device, and the same on the host."""

    k: Tensor
    v: Tensor
    k_number: float = 1.0
    v_number: float = 1.0


class PagedBatch:
    """Lengths and pages of a batch. It is planned on the host, and waits for no device.

    cu_q      int32 [sequences + 1]: the row of q at which each begins; the same on the host
    lengths   int32 [sequences]: keys of each, those of its queries included; on the device alone
    pages     int32 [sequences, max_pages]: pages of each
    rows      of q; more than cu_q has stand for sequences that pad a graph
    bounds    at least the keys of each sequence, on the host
    """

    def __init__(
        self,
        *,
        cu_q: Tensor,
        cu_q_on_host: list[int],
        lengths: Tensor,
        pages: Tensor,
        rows: int,
        bounds: list[int],
        decode_limit: int = MAX_DECODE,
    ) -> None:
        self.cu_q, self.lengths, self.pages = cu_q, lengths, pages
        self._starts, self._bounds = cu_q_on_host, bounds
        self.rows = rows
        self.decodes, self.decode_len = _count_decodes(cu_q_on_host, rows, decode_limit)
        self._limit = decode_limit
        self._parts: dict[int, _Part] = {}

    def with_pages(self, pages: Tensor) -> PagedBatch:
        """The same with other pages: of layers whose caches are in another group."""
        return PagedBatch(
            cu_q=self.cu_q,
            cu_q_on_host=self._starts,
            lengths=self.lengths,
            pages=pages,
            rows=self.rows,
            bounds=self._bounds,
            decode_limit=self._limit,
        )

    @property
    def sequences(self) -> int:
        return len(self._starts) - 1

    def part(self, first: int) -> _Part | None:
        """The sequences from `first` on, if they have queries."""
        if self._starts[-1] == self._starts[first]:
            return None
        if first not in self._parts:
            self._parts[first] = _Part(self, first)
        return self._parts[first]


def _count_decodes(starts: list[int], rows: int, limit: int) -> tuple[int, int]:
    """Sequences at the front with equally many queries, and how many.

    Sequences without queries behind them pad a graph, and count as long as q has rows for them.
    """
    lens = [end - begin for begin, end in zip(starts, starts[1:], strict=False)]
    each = lens[0] if lens else 0
    if not 0 < each <= min(limit, MAX_DECODE):
        return 0, 0
    equal = next((i for i, n in enumerate(lens) if n != each), len(lens))
    if not any(lens[equal:]):
        equal = max(equal, min(len(lens), rows // each))
    return equal, each


class _Part:
    """The sequences of a batch that prefill."""

    def __init__(self, batch: PagedBatch, first: int) -> None:
        starts = batch._starts[first:]
        self.begin, self.end = starts[0], starts[-1]
        self.cu_q = batch.cu_q[first:] - self.begin if self.begin else batch.cu_q[first:]
        self.lengths, self.pages = batch.lengths[first:], batch.pages[first:]
        self.max_q = max(end - begin for begin, end in zip(starts, starts[1:], strict=False))
        self.bounds = batch._bounds[first:]
        self._gatherings: dict[tuple[int, int], tuple[Tensor, Tensor, Tensor]] = {}

    @property
    def has_no_past(self) -> bool:
        """Whether the host knows that all keys are those of the queries."""
        return sum(self.bounds) == self.end - self.begin

    def gathering(self, num_pages: int, page_size: int) -> tuple[Tensor, Tensor, Tensor]:
        """cu_kv, and the page and the row in it of each key, one sequence behind the other.

        There are as many keys as the bounds say; those behind the last one are any.
        """
        found = self._gatherings.get((num_pages, page_size))
        if found is None:
            cu_kv = torch.zeros_like(self.cu_q)
            torch.cumsum(self.lengths, 0, out=cu_kv[1:])
            row = torch.arange(sum(self.bounds), dtype=torch.int32, device=cu_kv.device)
            sequence = torch.bucketize(row, cu_kv[1:], right=True)
            sequence = sequence.clamp_(max=len(self.bounds) - 1)
            position = row - cu_kv[sequence]
            column = (position // page_size).clamp_(max=self.pages.shape[1] - 1)
            page = self.pages[sequence, column].long().clamp_(0, num_pages - 1)
            found = cu_kv, page, (position % page_size).long()
            self._gatherings[num_pages, page_size] = found
        return found


def attend(
    batch: PagedBatch,
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    out: Tensor,
    mask: Mask,
    *,
    sink: Tensor | None = None,
    scales: Scales | None = None,
    new: tuple[Tensor, Tensor] | None = None,
    lse: Tensor | None = None,
) -> None:
    """out = attention of q [rows, heads, d] over caches [pages, page_size, kv_heads, d].

    q and out are bfloat16 or float16, caches the same or float8_e4m3fn with scales. Values, and out,
    may be of another width; decode attention has no such form, packed attention has. The last query
    of a sequence stands at its last key. sink is fp32 [heads]. new: keys and values of the queries
    themselves, [rows, kv_heads, d], where they need not be read from the cache that has them, too.
    lse [rows, heads] takes the natural logarithms of the sums.
    """
    caches = (_with_true_strides(k_cache), _with_true_strides(v_cache))
    scales = scales if k_cache.dtype is torch.float8_e4m3fn else None
    call = _Call(q, caches, out, mask, sink, scales, lse)
    decodes = batch.decodes if mask.window[1] <= 0 or mask.causal else 0
    can_decode = (
        q.shape[2] in decode_sizes(cache_kind(k_cache.dtype)) and v_cache.shape[3] == q.shape[2]
    )
    decodes = decodes if can_decode else 0
    if decodes:
        call.rows(0, decodes * batch.decode_len).decode(batch)
    part = batch.part(decodes) if decodes < batch.sequences else None
    if part is None:
        return
    call = call.rows(part.begin, part.end)
    if call.over_pages(part):
        return
    if scales is None and new is not None and part.has_no_past:
        k, v = (x[part.begin : part.end] for x in new)
        call.packed(part, k, v, part.cu_q, part.max_q)
    else:
        call.gathered(part)


def attend_itself(
    batch: PagedBatch,
    q: Tensor,
    keys: tuple[Tensor, Tensor],
    out: Tensor,
    mask: Mask,
    sink: Tensor | None = None,
) -> None:
    """The same without caches: the keys of a sequence are those beside its queries, as in encoders."""
    part = batch.part(0)
    if part is not None:
        k, v = (x[: part.end] for x in keys)
        call = _Call(q, None, out, mask, sink).rows(0, part.end)
        call.packed(part, k, v, part.cu_q, part.max_q)


def _with_true_strides(cache: Tensor) -> Tensor:
    """A dimension of one element may have any stride in torch; in a tensor map it may not."""
    step, found = 1, list(cache.stride())
    for i in range(cache.dim() - 1, -1, -1):
        if cache.shape[i] == 1:
            found[i] = max(step, cache.shape[-1])
        step = found[i] * cache.shape[i]
    return cache if tuple(found) == cache.stride() else cache.as_strided(cache.shape, found)


class _Call:
    """What a call of attend() is given, for some of its rows, and the ways to do them."""

    __slots__ = ("q", "caches", "out", "mask", "sink", "scales", "lse")

    def __init__(
        self,
        q: Tensor,
        caches: tuple[Tensor, Tensor] | None,
        out: Tensor,
        mask: Mask,
        sink: Tensor | None,
        scales: Scales | None = None,
        lse: Tensor | None = None,
    ) -> None:
        self.q, self.caches, self.out, self.mask = q, caches, out, mask
        self.sink, self.scales, self.lse = sink, scales, lse

    def rows(self, begin: int, end: int) -> _Call:
        lse = None if self.lse is None else self.lse[begin:end]
        q, out = self.q[begin:end], self.out[begin:end]
        return _Call(q, self.caches, out, self.mask, self.sink, self.scales, lse)

    def decode(self, batch: PagedBatch) -> None:
        """The sequences at the front that have equally many queries."""
        assert self.caches is not None
        count, mask, scales = batch.decodes, self.mask, self.scales
        shape = (count, batch.decode_len, *self.q.shape[1:])
        done = ops.attention_decode(
            self.q.view(shape),
            *self.caches,
            lengths=batch.lengths[:count],
            page_table=batch.pages[:count],
            sink=self.sink,
            k_descale=scales.k if scales else None,
            v_descale=scales.v if scales else None,
            scale=mask.scale,
            causal=mask.causal,
            window=mask.window[0],
            softcap=mask.softcap,
            out=self.out.view(shape),
            return_lse=self.lse is not None,
        )
        if self.lse is not None:
            self.lse.copy_(done[1].transpose(1, 2).flatten(0, 1))

    def over_pages(self, part: _Part) -> bool:
        """Packed attention that reads the pages; False where no kernel does, or gathering is faster.

        Codes of e4m3 become numbers of q's dtype in the kernel, exactly.
        """
        assert self.caches is not None
        (k, v), q, scales = self.caches, self.q, self.scales
        sizes = (q.shape[1], k.shape[2], k.shape[3], v.shape[3])
        rows = q.shape[0] * q.shape[1] // k.shape[2]
        if scales is not None and rows > MAX_WIDENED_ROWS * (part.cu_q.shape[0] - 1):
            return False
        if reasons_against(q.device, q.dtype, *sizes, None if scales is None else k.dtype):
            warn_of_prompts(q.shape[2], cache_kind(k.dtype))
            return False
        done = ops.attention_paged(
            q,
            k,
            v,
            page_table=part.pages,
            kv_lengths=part.lengths,
            cu_q=part.cu_q,
            max_q=part.max_q,
            k_descale=scales.k if scales else None,
            v_descale=scales.v if scales else None,
            **self._options(),
        )
        self._keep(None if self.lse is None else done[1])
        return True

    def packed(self, part: _Part, k: Tensor, v: Tensor, cu_kv: Tensor, max_kv: int) -> None:
        """Over keys and values that lie one sequence behind the other."""
        done = ops.attention_varlen(
            self.q,
            k,
            v,
            cu_q=part.cu_q,
            cu_kv=cu_kv,
            max_q=part.max_q,
            max_kv=max_kv,
            **self._options(),
        )
        self._keep(None if self.lse is None else done[1])

    def gathered(self, part: _Part) -> None:
        """Over keys that are copied from their pages.

        Codes are exact in 16 bits; the scale of K goes into the logits', that of V into the result.
        """
        assert self.caches is not None
        k, v = self.caches
        cu_kv, page, row = part.gathering(*k.shape[:2])
        k, v = (_gather(cache, page, row, self.q.dtype) for cache in (k, v))
        if self.scales is not None:
            mask = self.mask
            self.mask = Mask(mask.scale * self.scales.k_number, mask.causal, mask.window, mask.softcap)
        self.packed(part, k, v, cu_kv, max(part.bounds))
        if self.scales is not None and self.scales.v_number != 1.0:
            self.out.mul_(self.scales.v_number)

    def _options(self) -> dict[str, Any]:
        """Of packed attention, wherever its keys are."""
        mask = self.mask
        return {
            "scale": mask.scale,
            "causal": mask.causal,
            "window": mask.window,
            "softcap": mask.softcap,
            "sink": self.sink,
            "out": self.out,
            "return_lse": self.lse is not None,
        }

    def _keep(self, sums: Tensor | None) -> None:
        """The lse [heads, rows] of packed attention."""
        if self.lse is not None and sums is not None:
            self.lse.copy_(sums.T)


def _gather(cache: Tensor, page: Tensor, row: Tensor, dtype: torch.dtype) -> Tensor:
    if cache.dtype is dtype:
        return cache[page, row]
    return cache.view(torch.uint8)[page, row].view(cache.dtype).to(dtype)


def write_cache(
    k: Tensor,
    v: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    slots: Tensor,
    scales: Scales | None = None,
) -> None:
    """Row i of k and v [rows, kv_heads, d] goes to slot slots[i] of all pages in a row; below 0: nowhere.

    In torch, for engines' own kernels do not run on a simulated device.
    """
    rows = torch.nonzero(slots >= 0).flatten()
    used = slots[rows]
    page, slot = used // k_cache.shape[1], used % k_cache.shape[1]
    for new, cache, name in ((k, k_cache, "k"), (v, v_cache, "v")):
        values = new[rows]
        if cache.dtype is torch.float8_e4m3fn:
            number = 1.0 if scales is None else getattr(scales, name)
            codes = (values.float() / number).clamp(-448.0, 448.0).to(cache.dtype)
            cache.view(torch.uint8)[page, slot] = codes.view(torch.uint8)
        else:
            cache[page, slot] = values.to(cache.dtype)
