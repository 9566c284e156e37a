"""DeepSeek-V4 in SGLang: FlashMLA's two functions that its attention calls, and the two of DeepGEMM
that score its indexer's keys.

SGLang has no slot for another implementation of either: its backend takes them from a module of its
own and from the package deep_gemm when it calls them, by names which install() sets.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from tilewright.compat import _mqa_logits, flash_mla
from tilewright.integrations._replaced import Replaced

__all__ = ["install", "is_installed", "uninstall"]

#: SGLang's functions in front of the package flash_mla; its backends look them up here.
ATTENTION = "sglang.kernels.ops.attention.flash_mla_interface"
#: Imported in the functions that score keys, each time that they are called.
INDEXER = "deep_gemm"
_replaced = Replaced("SGLang", "TILEWRIGHT_SGLANG")


def install() -> None:
    """Calls run on our kernels from now on where there are kernels for them, else on what was there.
    For backends that are made afterwards. A second time changes nothing."""
    _replaced.put({
        ATTENTION: {"flash_mla_with_kvcache": _decode, "flash_mla_sparse_fwd": _prefill},
        INDEXER: {"fp8_fp4_mqa_logits": _logits, "fp8_fp4_paged_mqa_logits": _paged_logits},
    })


def uninstall() -> None:
    """As before install()."""
    _replaced.undo()


def is_installed() -> bool:
    return bool(_replaced)


def _decode(theirs: Any) -> Any:
    def flash_mla_with_kvcache(
        q: Tensor,
        k_cache: Tensor,
        block_table: Tensor | None,
        cache_seqlens: Tensor | None,
        head_dim_v: int,
        tile_scheduler_metadata: Any,
        num_splits: Tensor | None = None,
        softmax_scale: float | None = None,
        causal: bool = False,
        descale_q: Tensor | None = None,
        descale_k: Tensor | None = None,
        is_fp8_kvcache: bool = False,
        indices: Tensor | None = None,
        attn_sink: Tensor | None = None,
        extra_k_cache: Tensor | None = None,
        extra_indices_in_kvcache: Tensor | None = None,
        topk_length: Tensor | None = None,
        extra_topk_length: Tensor | None = None,
        kv_format: str | None = None,
        *,
        use_legacy: bool = True,
    ) -> Any:
        """Theirs for formats of V4.1, calls without lists, and schedules that are tensors."""
        lists: dict[str, Any] = {
            "indices": indices,
            "attn_sink": attn_sink,
            "extra_k_cache": extra_k_cache,
            "extra_indices_in_kvcache": extra_indices_in_kvcache,
            "topk_length": topk_length,
            "extra_topk_length": extra_topk_length,
        }
        first = (q, k_cache, block_table, cache_seqlens, head_dim_v, tile_scheduler_metadata)
        is_other = (
            not use_legacy
            or indices is None
            or not hasattr(tile_scheduler_metadata, "have_initialized")
            or any(x is not None for x in (kv_format, descale_q, descale_k, num_splits))
        )
        extra = () if extra_k_cache is None else (extra_k_cache,)
        if is_other or any(
            flash_mla.decode_reasons(
                q, cache, head_dim_v, causal=causal, is_fp8_kvcache=is_fp8_kvcache, indices=indices
            )
            for cache in (k_cache, *extra)
        ):
            more = (num_splits, softmax_scale, causal, descale_q, descale_k, is_fp8_kvcache)
            return theirs(*first, *more, kv_format=kv_format, use_legacy=use_legacy, **lists)
        return flash_mla.flash_mla_with_kvcache(*first, None, softmax_scale, causal, True, **lists)

    return flash_mla_with_kvcache


def _prefill(theirs: Any) -> Any:
    def flash_mla_sparse_fwd(
        q: Tensor,
        kv: Tensor,
        indices: Tensor,
        sm_scale: float,
        d_v: int = 512,
        attn_sink: Tensor | None = None,
        topk_length: Tensor | None = None,
        *,
        use_legacy: bool = True,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The largest logits and the lse to base 2 with use_legacy, else natural, as theirs."""
        given = (q, kv, indices, sm_scale, d_v, attn_sink, topk_length)
        if flash_mla.prefill_reasons(q, kv, d_v):
            done: tuple[Tensor, Tensor, Tensor] = theirs(*given, use_legacy=use_legacy)
            return done
        out, largest, lse = flash_mla.flash_mla_sparse_fwd(*given)
        if use_legacy:
            largest, lse = largest * math.log2(math.e), lse * math.log2(math.e)
        return out, largest, lse

    return flash_mla_sparse_fwd


def _logits(theirs: Any) -> Any:
    def fp8_fp4_mqa_logits(
        q: Any,
        kv: Any,
        weights: Tensor,
        cu_seq_len_k_start: Tensor,
        cu_seq_len_k_end: Tensor,
        clean_logits: bool = True,
        max_seqlen_k: int = 0,
        logits_dtype: torch.dtype = torch.float32,
        **others: Any,
    ) -> Any:
        """Theirs where we have no kernel, and with arguments that we do not know."""
        given = (q, kv, weights, cu_seq_len_k_start, cu_seq_len_k_end, clean_logits, max_seqlen_k)
        ends: dict[str, Any] = {"starts": cu_seq_len_k_start, "ends": cu_seq_len_k_end}
        if others or _mqa_logits.logits_reasons(
            q, kv[0], weights, kv_scales=kv[1], logits_dtype=logits_dtype, **ends
        ):
            return theirs(*given, logits_dtype=logits_dtype, **others)
        return _mqa_logits.fp8_fp4_mqa_logits(*given, logits_dtype=logits_dtype)

    return fp8_fp4_mqa_logits


def _paged_logits(theirs: Any) -> Any:
    def fp8_fp4_paged_mqa_logits(
        q: Any,
        kv_cache: Tensor,
        weights: Tensor,
        context_lens: Tensor,
        block_table: Tensor,
        schedule_meta: Any,
        max_context_len: int,
        clean_logits: bool = False,
        logits_dtype: torch.dtype = torch.float32,
        indices: Tensor | None = None,
        **others: Any,
    ) -> Any:
        """As fp8_fp4_mqa_logits."""
        given = (q, kv_cache, weights, context_lens, block_table, schedule_meta, max_context_len)
        if others or _mqa_logits.logits_reasons(
            q, kv_cache, weights, logits_dtype=logits_dtype, ends=context_lens, indices=indices
        ):
            rest = {"clean_logits": clean_logits, "logits_dtype": logits_dtype, **others}
            return theirs(*given, **rest, **({} if indices is None else {"indices": indices}))
        return _mqa_logits.fp8_fp4_paged_mqa_logits(*given, clean_logits, logits_dtype)

    return fp8_fp4_paged_mqa_logits
