"""Experts of quantised checkpoints in vLLM, which has no slot for kernels of others: a method of our
own owns the layer, from its parameters on."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import torch
from torch import Tensor, nn
from vllm.model_executor.layers.fused_moe.fused_moe_method_base import FusedMoEMethodBase
from vllm.model_executor.utils import set_weight_attrs

from tilewright.integrations._experts import Experts, parameters, reasons_against

#: Modules and classes of layers with experts; a release has one of them or both.
_LAYERS = (("routed_experts", "RoutedExperts"), ("layer", "FusedMoE"))


def is_experts(layer: nn.Module) -> bool:
    """Whether a layer is one of experts."""
    for module, name in _LAYERS:
        try:
            found = importlib.import_module(f"vllm.model_executor.layers.fused_moe.{module}")
        except ImportError:
            continue
        kind = getattr(found, name, None)
        if isinstance(kind, type) and isinstance(layer, kind):
            return True
    return False


def method_of(layer: Any, format: str, prefix: str) -> Any:
    """Our method for a layer; None, with a warning that has all reasons, if vLLM's has to serve."""
    reasons = reasons_against(layer, format)
    if reasons:
        warnings.warn(f"{prefix}: experts are left to vLLM: {'; '.join(reasons)}", stacklevel=2)
        return None
    return TilewrightMoEMethod(layer.moe_config, format)


class TilewrightMoEMethod(FusedMoEMethodBase):
    """Parameters as the checkpoint has them; they go once the experts are prepared."""

    def __init__(self, moe: Any, format: str) -> None:
        super().__init__(moe)
        self.format = format

    def create_weights(
        self,
        layer: Any,
        num_experts: int,
        hidden_size: int,
        intermediate_size_per_partition: int,
        params_dtype: torch.dtype,
        **extra_weight_attrs: Any,
    ) -> None:
        loader = extra_weight_attrs.get("weight_loader")
        made = parameters(self.format, num_experts, hidden_size, intermediate_size_per_partition)
        for name, (data, scales) in made.items():
            parameter = nn.Parameter(data, requires_grad=False)
            layer.register_parameter(name, parameter)
            # What the loader asks a parameter: by whom, and how scales are shared.
            set_weight_attrs(parameter, {"weight_loader": loader, "quant_method": scales or None})

    def process_weights_after_loading(self, layer: Any) -> None:
        layer.tilewright = Experts(layer, self.format)
        for name in parameters(self.format, 1, 128, 128):
            delattr(layer, name)

    def get_fused_moe_quant_config(self, layer: Any) -> None:
        return None

    def maybe_make_prepare_finalize(self, *arguments: Any, **named: Any) -> None:
        """There is no exchange between ranks in front of or behind our kernels."""
        return None

    def apply(
        self, layer: Any, x: Tensor, topk_weights: Tensor, topk_ids: Tensor, *shared: Any, **named: Any
    ) -> Tensor:
        """Of routed experts alone: shared ones are their own layers."""
        out: Tensor = layer.tilewright(x, topk_weights, topk_ids)
        return out
