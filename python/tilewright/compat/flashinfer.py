"""FlashInfer's plan and run over keys and values in pages, on Tilewright's kernels.

    from tilewright.compat.flashinfer import BatchPrefillWithPagedKVCacheWrapper

needs no FlashInfer. plan() makes tables of pages on the host, and waits for the device if what it
is given lies there, as FlashInfer's does.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tilewright.integrations._paged import (
    HEAD_STEP,
    MAX_HEAD_SIZE,
    Mask,
    PagedBatch,
    Scales,
    attend,
)

from ._common import reason, refuse

__all__ = [
    "BatchDecodeWithPagedKVCacheWrapper",
    "BatchPrefillWithPagedKVCacheWrapper",
]

#: What plan() takes and needs nothing done for: hints, and types that the tensors have.
_HINTS = frozenset(
    "q_data_type kv_data_type data_type o_data_type non_blocking fixed_split_size disable_split_kv "
    "seq_lens seq_lens_q block_tables max_token_per_sequence max_sequence_kv uniform_q_len "
    "use_fp16_qk_reduction rope_scale rope_theta enable_pdl".split()
)
#: What must have one of these values.
_ONLY: dict[str, tuple[Any, ...]] = {
    "pos_encoding_mode": ("NONE",),
    "custom_mask": (None,),
    "packed_custom_mask": (None,),
    "prefix_len_ptr": (None,),
    "token_pos_in_items_ptr": (None,),
    "token_pos_in_items_len": (0,),
    "max_item_len_ptr": (None,),
    "window_right": (0, -1),
    "kv_cache_sf": (None,),
    "skip_softmax_threshold_scale_factor": (None,),
}


def _check(function: str, given: dict[str, Any]) -> None:
    reasons = []
    for name, value in given.items():
        if name in _HINTS:
            continue
        if name not in _ONLY:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        if not any(value is one or value == one for one in _ONLY[name] if type(value) is type(one)):
            shown = f"{type(value).__name__}" if isinstance(value, Tensor) else repr(value)
            rule = f"expected {' or '.join(map(repr, _ONLY[name]))}: nothing else has a kernel"
            reasons.append(reason(name, shown, rule, "leave it out, or use FlashInfer's wrapper"))
    if reasons:
        refuse(function, reasons)


class _Shape(NamedTuple):
    """What a plan is for: heads, and the widths of keys and values."""

    heads: int
    kv_heads: int
    width: int
    value_width: int


def _is_width(columns: int) -> bool:
    return 0 < columns <= MAX_HEAD_SIZE and columns % HEAD_STEP == 0


class _Wrapper:
    """What both have: a layout, a plan, and a run of it."""

    def __init__(
        self,
        float_workspace_buffer: Tensor,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        **buffers: Any,
    ) -> None:
        name = type(self).__name__
        if kv_layout not in ("NHD", "HND"):
            raise ValueError(f"kv_layout={kv_layout!r}: expected 'NHD' or 'HND'")
        if use_cuda_graph:
            rule = "tables of pages are made anew by each plan, so a graph would read old ones"
            fix = "use_cuda_graph=False, or tilewright.torch.attention_decode with your own table"
            refuse(name, [reason("use_cuda_graph", True, rule, fix)])
        self._is_heads_first = kv_layout == "HND"
        self._device = float_workspace_buffer.device
        self._batch: PagedBatch | None = None
        self._mask = Mask(1.0)
        self._shape, self._page_size = _Shape(0, 0, 0, 0), 0

    def _plan(
        self,
        starts: list[int],
        indptr: Tensor,
        indices: Tensor,
        last_page_len: Tensor,
        page_size: int,
        shape: _Shape,
        mask: Mask,
    ) -> None:
        if shape.width > MAX_HEAD_SIZE:
            rule = f"up to {MAX_HEAD_SIZE}: no kernel has wider heads"
            fix = "use FlashInfer's wrapper"
            refuse(f"{type(self).__name__}.plan", [reason("head_dim", shape.width, rule, fix)])
        first, last = indptr.tolist(), last_page_len.tolist()
        counts = [end - begin for begin, end in zip(first, first[1:], strict=False)]
        lengths = [
            (count - 1) * page_size + tail if count else 0
            for count, tail in zip(counts, last, strict=True)
        ]
        table = torch.zeros(len(counts), max([1, *counts]), dtype=torch.int32)
        pages = indices.to("cpu", torch.int32)
        for b, (begin, count) in enumerate(zip(first, counts, strict=False)):
            table[b, :count] = pages[begin : begin + count]
        self._shape, self._page_size, self._mask = shape, page_size, mask

        def there(values: Any) -> Tensor:
            return torch.as_tensor(values, dtype=torch.int32).to(self._device)

        self._batch = PagedBatch(
            cu_q=there(starts),
            cu_q_on_host=starts,
            lengths=there(lengths),
            pages=there(table),
            rows=starts[-1],
            bounds=lengths,
        )

    def _caches(self, given: Any) -> tuple[Tensor, Tensor]:
        """[pages, page_size, kv_heads, d] of a pair, or of one tensor with both in dimension 1."""
        k, v = given if isinstance(given, tuple | list) else given.unbind(1)
        if self._is_heads_first:
            k, v = k.transpose(1, 2), v.transpose(1, 2)
        return k, v

    def run(
        self,
        q: Tensor,
        paged_kv_cache: Any,
        *,
        q_scale: float | None = None,
        k_scale: float | None = None,
        v_scale: float | None = None,
        out: Tensor | None = None,
        lse: Tensor | None = None,
        return_lse: bool = False,
        lse_base: str = "log2",
        lse_layout: str = "NH",
        window_left: int | None = None,
        sinks: Tensor | None = None,
        q_len_per_req: int | None = None,
        **others: Any,
    ) -> Any:
        """out of q [rows, heads, d], as wide as values, and with return_lse the lse [rows, heads].

        The lse is to base 2 by default.
        """
        batch = self._batch
        if batch is None:
            raise RuntimeError(f"{type(self).__name__}.run() before plan()")
        _check(f"{type(self).__name__}.run", others)
        k, v = self._caches(paged_kv_cache)
        heads, kv_heads, width, value_width = self._shape
        page = (self._page_size, kv_heads)
        expected = [(batch.rows, heads, width), (*page, width), (*page, value_width)]
        if [tuple(q.shape), *(tuple(x.shape[1:]) for x in (k, v))] != expected:
            of_k, of_v = (", ".join(map(str, shape)) for shape in expected[1:])
            raise ValueError(
                f"q {list(q.shape)}, pages {list(k.shape)} and {list(v.shape)}: planned for q "
                f"{list(expected[0])} and pages [..., {of_k}] and [..., {of_v}]; call plan() again"
            )
        mask, numbers = self._mask, (k_scale or 1.0, v_scale or 1.0)
        window = mask.window if window_left is None else _window(window_left, mask.causal)
        is_e4m3 = k.dtype is torch.float8_e4m3fn
        factor = (q_scale or 1.0) * (1.0 if is_e4m3 else numbers[0])
        mask = Mask(mask.scale * factor, mask.causal, window, mask.softcap)
        k_number, v_number = (torch.tensor(x, device=q.device) for x in numbers)
        scales = Scales(k_number, v_number, *numbers)
        out = q.new_empty(*q.shape[:2], value_width) if out is None else out
        sums = None
        if return_lse:
            sums = q.new_empty(q.shape[:2], dtype=torch.float32)
        sink = None if sinks is None else sinks.float().contiguous()
        attend(batch, q, k, v, out, mask, sink=sink, scales=scales, lse=sums)
        if v_scale is not None and not is_e4m3:
            out.mul_(v_scale)
        if sums is None:
            return out
        sums = sums * math.log2(math.e) if lse_base == "log2" else sums
        sums = sums.T.contiguous() if lse_layout == "HN" else sums
        return out, sums if lse is None else lse.copy_(sums)


def _window(left: int, causal: bool) -> tuple[int, int]:
    return left, 0 if causal and left >= 0 else -1


class BatchDecodeWithPagedKVCacheWrapper(_Wrapper):
    """q_len_per_req queries of each sequence, one by default, behind its other keys."""

    def plan(
        self,
        indptr: Tensor,
        indices: Tensor,
        last_page_len: Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        page_size: int,
        *,
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        sm_scale: float | None = None,
        q_len_per_req: int | None = None,
        **others: Any,
    ) -> None:
        """As FlashInfer's: pages of sequence b are indices[indptr[b] : indptr[b + 1]]."""
        _check("BatchDecodeWithPagedKVCacheWrapper.plan", others)
        scale = head_dim**-0.5 if sm_scale is None else sm_scale
        mask = Mask(scale, True, _window(window_left, True), logits_soft_cap or 0.0)
        each = q_len_per_req or 1
        starts = [each * b for b in range(indptr.shape[0])]
        shape = _Shape(num_qo_heads, num_kv_heads, head_dim, head_dim)
        self._plan(starts, indptr, indices, last_page_len, page_size, shape, mask)

    begin_forward = plan


class BatchPrefillWithPagedKVCacheWrapper(_Wrapper):
    """Packed queries, those of a sequence behind its other keys."""

    def plan(
        self,
        qo_indptr: Tensor,
        paged_kv_indptr: Tensor,
        paged_kv_indices: Tensor,
        paged_kv_last_page_len: Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        page_size: int,
        head_dim_vo: int | None = None,
        *,
        causal: bool = False,
        sm_scale: float | None = None,
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        **others: Any,
    ) -> None:
        """As FlashInfer's: queries of sequence b are rows qo_indptr[b] to qo_indptr[b + 1]."""
        name = "BatchPrefillWithPagedKVCacheWrapper.plan"
        _check(name, others)
        value_width = head_dim_qk if head_dim_vo is None else head_dim_vo
        if value_width != head_dim_qk and not _is_width(value_width):
            rule = f"values are as wide as keys, {head_dim_qk}, or a multiple of {HEAD_STEP} up to"
            rule += f" {MAX_HEAD_SIZE}"
            refuse(name, [reason("head_dim_vo", head_dim_vo, rule, "pad with zeros")])
        scale = head_dim_qk**-0.5 if sm_scale is None else sm_scale
        mask = Mask(scale, causal, _window(window_left, causal), logits_soft_cap or 0.0)
        shape = _Shape(num_qo_heads, num_kv_heads, head_dim_qk, value_width)
        packed = (paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len)
        self._plan(qo_indptr.tolist(), *packed, page_size, shape, mask)

    begin_forward = plan
