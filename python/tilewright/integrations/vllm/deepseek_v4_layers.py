"""DeepSeek-V4's linear layers and experts in vLLM, on our kernels.

V4 has a configuration of its own, which --quantization does not replace: it says which method owns
a layer. install() sets that one function of it.

What a linear layer's weight is read by, beside its method, stays vLLM's: wo_a goes to a product in
groups with its weight, projections of compressors to torch.mm with theirs.
"""

from __future__ import annotations

from typing import Any

from vllm.model_executor.layers.linear import LinearBase

from tilewright._errors import Unsupported

from . import experts
from .quantization import is_ignored, linear_method

#: Last names of linear layers that nobody but their method looks at: the first projection, queries
#: (of attention and of the indexer), the second of the output, and the shared expert.
LAYERS = ("fused_wqa_wkv", "wq_b", "wo_b", "gate_up_proj", "down_proj")
_originals: list[Any] = []


def install() -> None:
    """Models that are made from now on have our layers. A second time changes nothing."""
    if _originals:
        return
    config = _config()
    if "get_quant_method" not in vars(config):
        raise Unsupported(
            f"{config.__module__}: {config.__name__} has no get_quant_method of its own: this vLLM "
            "chooses V4's layers in another way; leave deepseek_v4_layers out of TILEWRIGHT_VLLM"
        )
    inner = config.get_quant_method

    def get_quant_method(self: Any, layer: Any, prefix: str) -> Any:
        method = method_of(self, layer, prefix)
        return inner(self, layer, prefix) if method is None else method

    _originals.append(inner)
    config.get_quant_method = get_quant_method


def uninstall() -> None:
    """As before install(), for models that are made from now on."""
    if _originals:
        _config().get_quant_method = _originals.pop()


def is_installed() -> bool:
    return bool(_originals)


def method_of(config: Any, layer: Any, prefix: str) -> Any:
    """Our method for a layer of a model with vLLM's configuration of V4; None: vLLM's."""
    if is_ignored(config, prefix):
        return None
    if experts.is_experts(layer):
        return experts.method_of(layer, _format_of_experts(config), prefix)
    is_ours = isinstance(layer, LinearBase) and prefix.rpartition(".")[2] in LAYERS
    if not is_ours or list(config.weight_block_size or ()) != [128, 128]:
        return None
    return linear_method(layer, "fp8")


def _format_of_experts(config: Any) -> str:
    if config.expert_dtype == "fp8":
        return "fp8"
    return "nvfp4" if config.moe_quant_algo == "NVFP4" else "mxfp4"


def _config() -> Any:
    from vllm.models.deepseek_v4.quant_config import DeepseekV4FP8Config

    return DeepseekV4FP8Config
