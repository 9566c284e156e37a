"""The attention backend: vLLM's classes around integrations/_paged.py."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionCGSupport,
    AttentionImpl,
    AttentionMetadataBuilder,
    AttentionType,
    CommonAttentionMetadata,
    MultipleOf,
)

from tilewright._errors import Unsupported
from tilewright.integrations._paged import (
    MAX_DECODE,
    Mask,
    PagedBatch,
    Scales,
    attend,
    attend_itself,
    cache_kind,
    decode_sizes,
    warn_of_gathering,
    write_cache,
)

from . import predicates

_ENCODERS = (AttentionType.ENCODER, AttentionType.ENCODER_ONLY)


class Backend(AttentionBackend):
    """Registered as CUSTOM."""

    supported_dtypes: ClassVar[list[torch.dtype]] = list(predicates.DTYPES)
    supported_kv_cache_dtypes: ClassVar[list[Any]] = list(predicates.CACHE_DTYPES)
    forward_includes_kv_cache_update: bool = False

    @staticmethod
    def get_name() -> str:
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type[Impl]:
        return Impl

    @staticmethod
    def get_builder_cls() -> type[Builder]:
        return Builder

    @classmethod
    def get_supported_head_sizes(cls) -> list[int]:
        return list(predicates.head_sizes())

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec: Any = None) -> list[int | MultipleOf]:
        return [MultipleOf(1)]

    @classmethod
    def supports_sink(cls) -> bool:
        return True

    @classmethod
    def supports_sliding_window(cls) -> bool:
        return True

    @classmethod
    def supports_non_causal(cls) -> bool:
        return True

    @classmethod
    def supports_device_cpu_query_lens_mismatch(cls) -> bool:
        return False  # which sequences decode is decided on the host

    @classmethod
    def supports_attn_type(cls, attn_type: str) -> bool:
        return attn_type in (AttentionType.DECODER, *_ENCODERS)

    @classmethod
    def supports_compute_capability(cls, capability: Any) -> bool:
        return (capability.major, capability.minor) in predicates.DEVICES

    @classmethod
    def supports_combination(
        cls,
        head_size: int,
        dtype: torch.dtype,
        kv_cache_dtype: Any,
        block_size: int | None,
        use_mla: bool,
        has_sink: bool,
        use_sparse: bool,
        use_mm_prefix: bool,
        device_capability: Any,
    ) -> str | None:
        capability = (device_capability.major, device_capability.minor)
        return predicates.reason_against(
            capability, head_size, dtype, kv_cache_dtype, block_size, has_sink
        )


@dataclass
class Metadata:
    """Of one group of layers with the same pages."""

    num_actual_tokens: int
    batch: PagedBatch
    slot_mapping: Tensor
    causal: bool


class Builder(AttentionMetadataBuilder[Metadata]):
    _cudagraph_support: ClassVar[AttentionCGSupport] = AttentionCGSupport.UNIFORM_BATCH
    supports_update_block_table: bool = True
    supports_draft_decode_metadata_update: bool = True

    def __init__(
        self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: torch.device
    ) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        self._init_reorder_batch_threshold(1, supports_spec_as_decode=True)
        self.decode_limit = min(self.reorder_batch_threshold or 1, MAX_DECODE)

    @classmethod
    def get_cudagraph_support(cls, vllm_config: Any, kv_cache_spec: Any) -> AttentionCGSupport:
        sizes = decode_sizes(cache_kind(getattr(kv_cache_spec, "dtype", torch.bfloat16)))
        if getattr(kv_cache_spec, "head_size", min(sizes)) not in sizes:
            return AttentionCGSupport.NEVER  # keys are gathered, as many as the host says
        speculation = getattr(vllm_config, "speculative_config", None)
        drafted = getattr(speculation, "num_speculative_tokens", None) or 0
        if 1 + drafted > MAX_DECODE:
            return AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE
        return cls._cudagraph_support

    def build(
        self,
        common_prefix_len: int,
        common_attn_metadata: CommonAttentionMetadata,
        fast_build: bool = False,
    ) -> Metadata:
        common = common_attn_metadata
        if isinstance(common.causal, Tensor):
            raise Unsupported(
                "causal differs between the sequences of a batch, which Tilewright's attention "
                "cannot do; choose another backend by --attention-backend"
            )
        count = common.num_reqs
        starts: list[int] = common.query_start_loc_cpu[: count + 1].tolist()
        bounds = [common.max_seq_len] * count
        if common.seq_lens_cpu_upper_bound is not None:
            bounds = common.seq_lens_cpu_upper_bound[:count].tolist()
        batch = PagedBatch(
            cu_q=common.query_start_loc[: count + 1],
            cu_q_on_host=starts,
            lengths=common.seq_lens[:count],
            pages=common.block_table_tensor[:count],
            rows=common.num_actual_tokens,
            bounds=bounds,
            decode_limit=self.decode_limit,
        )
        return Metadata(common.num_actual_tokens, batch, common.slot_mapping, common.causal)

    def update_block_table(
        self, metadata: Metadata, blk_table: Tensor, slot_mapping: Tensor
    ) -> Metadata:
        new = copy.copy(metadata)
        new.batch = metadata.batch.with_pages(blk_table[: metadata.batch.sequences])
        new.slot_mapping = slot_mapping
        return new

    def update_draft_decode_metadata(self, metadata: Metadata) -> None:
        """Nothing to do: lengths and pages are vLLM's own tensors."""


class Impl(AttentionImpl[Metadata]):
    """One layer."""

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int | None = None,
        alibi_slopes: list[float] | None = None,
        sliding_window: int | None = None,
        kv_cache_dtype: str = "auto",
        logits_soft_cap: float | None = None,
        attn_type: str = AttentionType.DECODER,
        kv_sharing_target_layer_name: str | None = None,
        sinks: Tensor | None = None,
    ) -> None:
        if alibi_slopes is not None:
            raise Unsupported(
                "this model biases its logits (ALiBi), which Tilewright's attention cannot do; "
                "choose another backend by --attention-backend"
            )
        warn_of_gathering(head_size, "e4m3" if kv_cache_dtype.startswith("fp8") else "bf16")
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads or num_heads
        self.head_size = head_size
        self.scale = float(scale)
        self.kv_cache_dtype = kv_cache_dtype
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name
        self.attn_type = attn_type
        self.sinks = sinks
        self._sink: Tensor | None = None
        left = -1 if sliding_window is None else sliding_window - 1
        softcap = logits_soft_cap or 0.0
        self.causal_mask = Mask(self.scale, True, (left, 0 if left >= 0 else -1), softcap)
        self.full_mask = Mask(self.scale, False, (left, left), softcap)

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        if self.sinks is not None:
            self._sink = self.sinks.detach().float().contiguous()

    def sink(self) -> Tensor | None:
        """fp32, as the kernels have it."""
        if self.sinks is not None and self._sink is None:
            self.process_weights_after_loading(self.sinks.dtype)
        return self._sink

    def caches(self, kv_cache: Tensor) -> tuple[Tensor, Tensor]:
        """K and V [pages, page_size, kv_heads, d] of [pages, kv_heads, page_size, 2 d]."""
        both, d = kv_cache.transpose(1, 2), self.head_size
        k, v = both[..., :d], both[..., d:]
        if self.kv_cache_dtype.startswith("fp8"):
            return k.view(torch.float8_e4m3fn), v.view(torch.float8_e4m3fn)
        return k, v

    def scales(self, layer: Any) -> Scales | None:
        if not self.kv_cache_dtype.startswith("fp8"):
            return None
        return Scales(layer._k_scale, layer._v_scale, layer._k_scale_float, layer._v_scale_float)

    def forward(
        self,
        layer: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        kv_cache: Tensor,
        attn_metadata: Metadata,
        output: Tensor,
        output_scale: Tensor | None = None,
        output_block_scale: Tensor | None = None,
    ) -> Tensor:
        """output of query [tokens, heads, d], after do_kv_cache_update() of key and value."""
        if output_scale is not None or output_block_scale is not None:
            raise Unsupported(
                "results of Tilewright's attention are not quantised; switch the fusion off by "
                "-cc.pass_config.fuse_attn_quant=false"
            )
        if attn_metadata is None:  # memory is being measured
            return output.fill_(0)
        rows, batch = attn_metadata.num_actual_tokens, attn_metadata.batch
        q, out = (x[:rows].view(rows, self.num_heads, self.head_size) for x in (query, output))
        if self.attn_type in _ENCODERS:
            shape = (rows, self.num_kv_heads, self.head_size)
            keys = (key[:rows].view(shape), value[:rows].view(shape))
            attend_itself(batch, q, keys, out, self.full_mask, self.sink())
            return output
        new = None
        if self.kv_sharing_target_layer_name is None and key is not None:
            new = (key[:rows], value[:rows])
        k_cache, v_cache = self.caches(kv_cache)
        mask = self.causal_mask if attn_metadata.causal else self.full_mask
        attend(batch, q, k_cache, v_cache, out, mask,
               sink=self.sink(), scales=self.scales(layer), new=new)
        return output

    def do_kv_cache_update(
        self, layer: Any, key: Tensor, value: Tensor, kv_cache: Tensor, slot_mapping: Tensor
    ) -> None:
        """Writes the keys and values of the batch to their slots."""
        if self.attn_type in _ENCODERS:
            return
        k_cache, v_cache = self.caches(kv_cache)
        if key.is_cuda:
            from vllm._custom_ops import reshape_and_cache_flash

            as_bytes = torch.uint8 if self.kv_cache_dtype.startswith("fp8") else k_cache.dtype
            reshape_and_cache_flash(
                key,
                value,
                k_cache.view(as_bytes),
                v_cache.view(as_bytes),
                slot_mapping,
                self.kv_cache_dtype,
                layer._k_scale,
                layer._v_scale,
            )
            return
        count = slot_mapping.shape[0]
        shape = (count, self.num_kv_heads, self.head_size)
        write_cache(key[:count].view(shape), value[:count].view(shape), k_cache, v_cache,
                    slot_mapping, self.scales(layer))
