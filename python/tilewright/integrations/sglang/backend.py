"""SGLang's class of attention backends around attention.py."""

from __future__ import annotations

from typing import Any

from sglang.srt.layers.attention.base_attn_backend import AttentionBackend
from sglang.srt.mem_cache.memory_pool import KVWriteLoc
from torch import Tensor

from .attention import Attention


class Backend(Attention, AttentionBackend):
    """What --attention-backend tilewright makes."""

    def write(self, layer: Any, forward_batch: Any, k: Tensor, v: Tensor) -> None:
        place = KVWriteLoc.for_layer(forward_batch, layer, swa_loc=None)
        pool = self.token_to_kv_pool
        pool.set_kv_buffer(layer, place, k, v, layer.k_scale, layer.v_scale)
