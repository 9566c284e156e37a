"""DeepSeek-V4 in vLLM: the two functions of FlashMLA that its attention calls, and the two of DeepGEMM
that score its indexer's keys.

vLLM has no slot for another implementation: DeepseekV4FlashMLAAttention is no class that can be
replaced by name. Its modules call functions by names of their own, which install() sets.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tilewright.compat import _mqa_logits
from tilewright.compat import flash_mla as ours
from tilewright.integrations._replaced import Maker, Replaced

#: Modules that call them: V4 and V4.1 have the same calls.
MODULES = ("vllm.models.deepseek_v4.nvidia.flashmla", "vllm.models.deepseek_v41.nvidia.flashmla")
NAMES = ("flash_mla_with_kvcache", "flash_mla_sparse_fwd")
#: The indexer's, of V3.2 as well.
INDEXER = "vllm.model_executor.layers.sparse_attn_indexer"
INDEXER_NAMES = ("fp8_fp4_mqa_logits", "fp8_fp4_paged_mqa_logits")
_replaced = Replaced("vLLM", "TILEWRIGHT_VLLM")


def install() -> None:
    """Calls of these modules run on our kernels from now on. A second time changes nothing."""
    attention: dict[str, Maker] = {name: _always(getattr(ours, name)) for name in NAMES}
    indexer: dict[str, Maker] = dict(zip(INDEXER_NAMES, (_logits, _paged_logits), strict=True))
    _replaced.put({**dict.fromkeys(MODULES, attention), INDEXER: indexer})


def _always(function: Any) -> Maker:
    return lambda theirs: function


def _logits(theirs: Any) -> Any:
    def fp8_fp4_mqa_logits(
        q: Any, kv: Any, weights: Tensor, cu_seqlen_ks: Tensor, cu_seqlen_ke: Tensor, max_seqlen_k: int
    ) -> Any:
        """Theirs where we have no kernel."""
        scales = {"kv_scales": kv[1], "starts": cu_seqlen_ks, "ends": cu_seqlen_ke}
        if _mqa_logits.logits_reasons(q, kv[0], weights, **scales):
            return theirs(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke, max_seqlen_k)
        return _mqa_logits.fp8_fp4_mqa_logits(
            q, kv, weights, cu_seqlen_ks, cu_seqlen_ke, clean_logits=False, max_seqlen_k=max_seqlen_k
        )

    return fp8_fp4_mqa_logits


def _paged_logits(theirs: Any) -> Any:
    def fp8_fp4_paged_mqa_logits(
        q: Any,
        kv_cache: Tensor,
        weights: Tensor,
        context_lens: Tensor,
        block_tables: Tensor,
        schedule_metadata: Tensor,
        max_model_len: int,
        indices: Tensor | None = None,
    ) -> Any:
        """As fp8_fp4_mqa_logits."""
        given = (q, kv_cache, weights, context_lens, block_tables, schedule_metadata, max_model_len)
        if _mqa_logits.logits_reasons(q, kv_cache, weights, ends=context_lens, indices=indices):
            return theirs(*given, indices=indices)
        return _mqa_logits.fp8_fp4_paged_mqa_logits(*given)

    return fp8_fp4_paged_mqa_logits


def uninstall() -> None:
    """As before install()."""
    _replaced.undo()


def is_installed() -> bool:
    return bool(_replaced)
