"""Attention as SGLang calls it, without SGLang: lengths and pages of a batch, and the two forwards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from tilewright._errors import Unsupported
from tilewright.integrations._paged import (
    Mask,
    PagedBatch,
    Scales,
    attend,
    attend_itself,
    cache_kind,
    decode_sizes,
    warn_of_gathering,
)

_OTHER = "; choose another one by --attention-backend"
_NO_GRAPH = (
    "and what stands in for it cannot be captured in a graph; --disable-cuda-graph runs without" + _OTHER
)


class Attention(ABC):
    """The part of a backend that needs none of SGLang's names.

    Token slots are numbered through all pages: slot s is row s % page_size of page s / page_size,
    and req_to_token [requests, tokens] says where each token of a request lies.
    """

    needs_cpu_seq_lens = True

    def __init__(self, model_runner: Any) -> None:
        _check_runner(model_runner)
        self.device = model_runner.device
        self.page_size = model_runner.page_size
        self.head_dim = int(model_runner.model_config.head_dim)
        self.max_pages = -(-model_runner.model_config.context_len // self.page_size)
        self.req_to_token = model_runner.req_to_token_pool.req_to_token
        self.token_to_kv_pool = model_runner.token_to_kv_pool
        self.cache_kind = cache_kind(getattr(self.token_to_kv_pool, "dtype", torch.bfloat16))
        warn_of_gathering(self.head_dim, self.cache_kind)
        self.forward_metadata: PagedBatch | None = None
        self._lengths: Tensor | None = None
        self._pages: Tensor | None = None
        self._one: Tensor | None = None
        self._sinks: dict[int, Tensor] = {}
        self._is_for_graphs = False  # the metadata

    @abstractmethod
    def write(self, layer: Any, forward_batch: Any, k: Tensor, v: Tensor) -> None:
        """Keys and values of the batch to their slots."""

    # Metadata

    def init_forward_metadata(self, forward_batch: Any) -> None:
        """Of a batch that runs outside of graphs."""
        mode, self._is_for_graphs = forward_batch.forward_mode, False
        if mode.is_idle():
            self.forward_metadata = None
            return
        _check_mode(forward_batch)
        bounds = forward_batch.seq_lens_cpu.tolist()
        queries = [1] * len(bounds) if mode.is_decode() else list(forward_batch.extend_seq_lens_cpu)
        pages = self._table(forward_batch.req_pool_indices, -(-max(bounds, default=1) // self.page_size))
        self.forward_metadata = _batch(queries, forward_batch.seq_lens.int(), pages, bounds)

    def init_cuda_graph_state(self, max_bs: int, max_num_tokens: int) -> None:
        """Tensors that graphs read."""
        if self.head_dim not in decode_sizes(self.cache_kind):
            raise Unsupported(
                f"a head size of {self.head_dim} has no decode attention over caches of "
                f"{self.cache_kind}, {_NO_GRAPH}"
            )
        given = {"dtype": torch.int32, "device": self.device}
        self._lengths = torch.ones(max_bs, **given)
        self._pages = torch.zeros(max_bs, self.max_pages, **given)

    def get_cuda_graph_seq_len_fill_value(self) -> int:
        """Of sequences that pad a graph."""
        return 1

    def init_forward_metadata_out_graph(self, forward_batch: Any, in_capture: bool = False) -> None:
        """Before a graph is captured, and before each replay: the same tensors with new values."""
        if self._lengths is None or self._pages is None:
            return self.init_forward_metadata(forward_batch)
        if not forward_batch.forward_mode.is_decode():
            raise Unsupported(
                "Tilewright's attention has graphs of decode alone; leave graphs of prefill off, "
                "or choose another one by --attention-backend"
            )
        _check_mode(forward_batch)
        self._is_for_graphs = True
        count = forward_batch.batch_size
        self._lengths[:count].copy_(forward_batch.seq_lens[:count])
        table = self._table(forward_batch.req_pool_indices[:count], self.max_pages)
        self._pages[:count].copy_(table)
        bounds = [self.max_pages * self.page_size] * count
        lengths, pages = self._lengths[:count], self._pages[:count]
        self.forward_metadata = _batch([1] * count, lengths, pages, bounds)
        return None

    def init_forward_metadata_in_graph(self, forward_batch: Any) -> None:
        """Nothing is left to do there."""

    def _table(self, requests: Tensor, pages: int) -> Tensor:
        """Pages of each request, int32 [requests, pages]."""
        slots: Tensor = self.req_to_token[requests, : pages * self.page_size : self.page_size]
        table: Tensor = (slots // self.page_size).int()
        return table

    # Layers

    def forward_decode(self, q: Tensor, k: Any, v: Any, layer: Any, forward_batch: Any,
                       save_kv_cache: bool = True, **others: Any) -> Tensor:
        return self._forward(q, k, v, layer, forward_batch, save_kv_cache, **others)

    def forward_extend(self, q: Tensor, k: Any, v: Any, layer: Any, forward_batch: Any,
                       save_kv_cache: bool = True, **others: Any) -> Tensor:
        return self._forward(q, k, v, layer, forward_batch, save_kv_cache, **others)

    def _forward(
        self,
        q: Tensor,
        k: Any,
        v: Any,
        layer: Any,
        forward_batch: Any,
        save_kv_cache: bool,
        sinks: Tensor | None = None,
        **others: Any,
    ) -> Tensor:
        """[tokens, heads * d] of q, k, v of any shape with as many elements."""
        _check_layer(layer, others)
        heads, kv_heads, d = layer.tp_q_head_num, layer.tp_k_head_num, layer.head_dim
        value_dim = layer.v_head_dim
        if self._is_for_graphs and value_dim != d:
            raise Unsupported(f"values of {value_dim} beside keys of {d} have no decode attention, {_NO_GRAPH}")
        q = q.contiguous().view(-1, heads, d)
        out = q.new_empty(q.shape[0], heads, value_dim)
        batch = self.forward_metadata
        if batch is None:
            return out.view(-1, heads * value_dim)
        new = None
        if k is not None:
            new = (k.view(-1, kv_heads, d), v.view(-1, kv_heads, value_dim))
            if save_kv_cache:
                self.write(layer, forward_batch, *new)
        sink, mask = self._sink(sinks), _mask(layer)
        if not mask.causal and new is not None and not save_kv_cache:
            attend_itself(batch, q, new, out, mask, sink)
            return out.view(-1, heads * value_dim)
        pool, shape = self.token_to_kv_pool, (-1, self.page_size, kv_heads)
        k_cache = pool.get_key_buffer(layer.layer_id).view(*shape, d)
        v_cache = pool.get_value_buffer(layer.layer_id).view(*shape, value_dim)
        scales = self._scales(layer) if k_cache.dtype is torch.float8_e4m3fn else None
        attend(batch, q, k_cache, v_cache, out, mask, sink=sink, scales=scales)
        return out.view(-1, heads * value_dim)

    def _scales(self, layer: Any) -> Scales:
        if layer.k_scale is not None and layer.v_scale is not None:
            return Scales(layer.k_scale, layer.v_scale, layer.k_scale_float, layer.v_scale_float)
        if self._one is None:
            self._one = torch.ones((), device=self.device)
        return Scales(self._one, self._one)

    def _sink(self, sinks: Tensor | None) -> Tensor | None:
        """fp32, made once for each layer's parameter."""
        if sinks is None or sinks.dtype is torch.float32:
            return sinks
        found = self._sinks.get(sinks.data_ptr())
        if found is None:
            found = self._sinks[sinks.data_ptr()] = sinks.detach().float()
        return found


def _batch(queries: list[int], lengths: Tensor, pages: Tensor, bounds: list[int]) -> PagedBatch:
    starts = [0]
    for count in queries:
        starts.append(starts[-1] + count)
    cu_q = torch.tensor(starts, dtype=torch.int32).to(lengths.device)
    return PagedBatch(cu_q=cu_q, cu_q_on_host=starts, lengths=lengths, pages=pages, rows=starts[-1],
                      bounds=bounds)


def _mask(layer: Any) -> Mask:
    causal = str(getattr(layer.attn_type, "value", layer.attn_type)) == "decoder"
    left = layer.sliding_window_size
    window = (left, (0 if causal else left) if left >= 0 else -1)
    return Mask(float(layer.scaling), causal, window, float(layer.logit_cap or 0.0))


def _check_runner(runner: Any) -> None:
    """What is known when the server starts."""
    pool = type(runner.token_to_kv_pool).__name__
    if getattr(runner, "use_mla_backend", False):
        raise Unsupported(f"this model has MLA, which Tilewright's backend has no kernel for{_OTHER}")
    if runner.model_config.is_encoder_decoder:
        raise Unsupported(f"Tilewright's backend has no cross-attention{_OTHER}")
    if pool != "MHATokenToKVPool":
        raise Unsupported(
            f"keys and values lie in a {pool}, and Tilewright's backend reads MHATokenToKVPool: "
            f"one pool for all layers, of 16 bits or e4m3{_OTHER}, or --disable-hybrid-swa-memory"
        )


def _check_mode(forward_batch: Any) -> None:
    mode = forward_batch.forward_mode
    if mode.is_target_verify() or mode.is_draft_extend_v2():
        raise Unsupported(f"Tilewright's backend does not verify drafted tokens{_OTHER}")


def _check_layer(layer: Any, others: dict[str, Any]) -> None:
    names = sorted(name for name, value in others.items() if value is not None)
    if names:
        raise Unsupported(f"this model gives attention {', '.join(names)}, unknown to us{_OTHER}")
    if layer.is_cross_attention:
        raise Unsupported(f"cross-attention has no kernel{_OTHER}")
    if layer.logit_cap and layer.logit_capping_method != "tanh":
        raise Unsupported(f"logits are capped by {layer.logit_capping_method}, and ours by tanh{_OTHER}")
    if layer.xai_temperature_len > 0 or layer.pos_encoding_mode != "NONE":
        raise Unsupported(f"this layer scales or turns q inside of attention{_OTHER}")
