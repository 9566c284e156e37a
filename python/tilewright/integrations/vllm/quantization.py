"""Linear layers and experts of quantised checkpoints: `--quantization tilewright`.

FP8 with one scale for 128 x 128, NVFP4 of ModelOpt, linear layers in MXFP4 of compressed-tensors and
experts in MXFP4 of checkpoints that have no other weights so run on our kernels, with activations in
bfloat16. Everything else of the checkpoint is left to vLLM's own configuration: layers that it
leaves unquantised, scales of caches, and layers that we have no kernel for.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from vllm.model_executor.layers.linear import (
    LinearBase,
    LinearMethodBase,
    UnquantizedLinearMethod,
    register_weight_loader_v2_supported_method,
)
from vllm.model_executor.layers.quantization import (
    get_quantization_config,
    register_quantization_config,
)
from vllm.model_executor.layers.quantization.base_config import QuantizationConfig
from vllm.model_executor.parameter import (
    BlockQuantScaleParameter,
    GroupQuantScaleParameter,
    ModelWeightParameter,
    PerTensorScaleParameter,
)

import tilewright
from tilewright._errors import InvalidArgument, Unsupported
from tilewright.torch import Linear, Weight

from . import experts

NAME = "tilewright"
#: What checkpoints call their format, by what vLLM calls the configuration of it.
CHECKPOINTS = {
    "fp8": "fp8",
    "modelopt_fp4": "nvfp4",
    "mxfp4": "mxfp4",
    "compressed-tensors": "mxfp4",
}
#: What compressed-tensors calls MXFP4, of its formats the one that is taken.
PACKED_MXFP4 = "mxfp4-pack-quantized"


def register() -> None:
    """Makes the name known to vLLM."""
    register_quantization_config(NAME)(Config)


class Config(QuantizationConfig):
    """vLLM's own configuration of the checkpoint, with our linear layers."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner
        self.format = CHECKPOINTS[inner.get_name()]
        #: compressed-tensors, whose configuration says which scheme a layer has
        self.has_schemes = hasattr(inner, "get_scheme_dict")
        block = getattr(inner, "weight_block_size", None)
        if self.format == "fp8" and list(block or ()) != [128, 128]:
            raise Unsupported(
                f"this FP8 checkpoint has weight_block_size {block}: Tilewright's linear layers "
                "want one scale for 128 x 128; leave --quantization to vLLM"
            )

    def get_name(self) -> str:
        return NAME

    def get_supported_act_dtypes(self) -> list[torch.dtype]:
        return [torch.bfloat16]

    @classmethod
    def get_min_capability(cls) -> int:
        return 90

    @staticmethod
    def get_config_filenames() -> list[str]:
        return ["hf_quant_config.json"]

    @classmethod
    def override_quantization_method(
        cls, hf_quant_cfg: dict[str, Any], user_quant: str | None, hf_config: Any = None
    ) -> str | None:
        """Only for those who ask for us by name."""
        return NAME if user_quant == NAME else None

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Config:
        name = _checkpoint(config)
        inner = get_quantization_config(name).from_config(config)
        if inner.get_name() not in CHECKPOINTS:
            raise Unsupported(_unknown(config))
        return cls(inner)

    def get_quant_method(self, layer: nn.Module, prefix: str) -> Any:
        self.inner.packed_modules_mapping = self.packed_modules_mapping
        if experts.is_experts(layer) and not (self.has_schemes or self._is_skipped(prefix)):
            method = experts.method_of(layer, self.format, prefix)
            return self.inner.get_quant_method(layer, prefix) if method is None else method
        if not isinstance(layer, LinearBase) or not self._is_ours(layer, prefix):
            return self.inner.get_quant_method(layer, prefix)
        if not self.has_schemes and self._is_skipped(prefix):
            return UnquantizedLinearMethod()
        method = linear_method(layer, self.format)
        return self.inner.get_quant_method(layer, prefix) if method is None else method

    def _is_ours(self, layer: nn.Module, prefix: str) -> bool:
        """Whether a linear layer is quantised in our format, unless it is skipped."""
        if self.has_schemes:
            scheme = self.inner.get_scheme_dict(layer, prefix) or {}
            weights = scheme.get("weights")
            return weights is not None and bool(self.inner._is_mxfp4(weights))
        return self.format != "mxfp4"  # of such checkpoints linear layers are not quantised

    def _is_skipped(self, prefix: str) -> bool:
        if self.format == "nvfp4":
            return bool(self.inner.is_layer_excluded(prefix))
        return is_ignored(self.inner, prefix)

    def apply_vllm_mapper(self, hf_to_vllm_mapper: Any) -> None:
        self.inner.apply_vllm_mapper(hf_to_vllm_mapper)

    def get_cache_scale_mapper(self) -> Any:  # type: ignore[override]
        return self.inner.get_cache_scale_mapper()


def _checkpoint(config: dict[str, Any]) -> str:
    """vLLM's name for the format of a checkpoint."""
    inner = config.get("quantization", config)
    algorithm = str(inner.get("quant_algo", "")).upper()
    method = str(config.get("quant_method", "")).lower()
    if "NVFP4" in algorithm:
        return "modelopt_fp4"
    if method in ("fp8", "mxfp4"):
        return method
    if method == "compressed-tensors" and config.get("format") == PACKED_MXFP4:
        return method
    raise Unsupported(_unknown(config))


def _unknown(config: dict[str, Any]) -> str:
    method = config.get("quant_method", config.get("quantization"))
    kind = f", format {config['format']}" if "format" in config else ""
    return (
        f"this checkpoint has quant_method {method}{kind}: --quantization tilewright is for FP8 with "
        f"blocks of 128 x 128, for ModelOpt's NVFP4, for MXFP4, and for compressed-tensors in "
        f"{PACKED_MXFP4}; leave --quantization to vLLM"
    )


def is_ignored(config: Any, prefix: str) -> bool:
    """Whether a configuration of vLLM says that the checkpoint has this layer unquantised."""
    ignored = getattr(config, "ignored_layers", None)
    if not ignored:
        return False
    from vllm.model_executor.layers.quantization.utils.quant_utils import is_layer_skipped

    return bool(
        is_layer_skipped(
            prefix=prefix,
            ignored_layers=ignored,
            fused_mapping=config.packed_modules_mapping,
            match_mode=config.ignored_layers_match_mode,
        )
    )


def linear_method(layer: Any, format: str) -> TilewrightLinearMethod | None:
    """Our method for a linear layer; None if we have no kernel for its sizes."""
    sizes = getattr(layer, "output_partition_sizes", None) or [
        getattr(layer, "output_size_per_partition", layer.output_size)
    ]
    k = getattr(layer, "input_size_per_partition", layer.input_size)
    return TilewrightLinearMethod(format) if can_implement(format, sizes, k) else None


def can_implement(format: str, sizes: list[int], k: int) -> bool:
    """Whether our linear layer takes a weight of these parts. One scale spans 128 rows, so parts
    of an FP8 weight begin at multiples of that."""
    if format == "fp8" and (k % 128 or any(n % 128 for n in sizes[:-1])):
        return False
    if format == "mxfp4" and k % 32:
        return False
    weight = {"format": format, "activations": "bf16", "n": sum(sizes), "k": k}
    return all(
        bool(tilewright.can_implement("Linear", "h200", weight={**weight, "n": n}, m=1))
        for n in {sum(sizes), *(sizes if format == "nvfp4" else ())}
    )


#: Of the checkpoint; none of them is needed once a layer is prepared.
_PARAMETERS = (
    *("weight", "weight_packed", "weight_scale", "weight_scale_inv", "weight_scale_2"),
    "input_scale",
)


@register_weight_loader_v2_supported_method
class TilewrightLinearMethod(LinearMethodBase):
    """Parameters as the checkpoint has them; they go once the layer is prepared."""

    def __init__(self, format: str) -> None:
        self.format = format

    def create_weights(
        self,
        layer: Any,
        input_size_per_partition: int,
        output_partition_sizes: list[int],
        input_size: int,
        output_size: int,
        params_dtype: torch.dtype,
        **extra_weight_attrs: Any,
    ) -> None:
        n, k = sum(output_partition_sizes), input_size_per_partition
        layer.logical_widths = output_partition_sizes
        layer.input_size_per_partition = k
        layer.output_size_per_partition = n
        loader = extra_weight_attrs.get("weight_loader")
        matrix = {"input_dim": 1, "output_dim": 0, "weight_loader": loader}
        if self.format == "fp8":
            layer.weight_block_size = [128, 128]
            values = torch.empty(n, k, dtype=torch.float8_e4m3fn)
            scales = torch.full((-(-n // 128), k // 128), torch.nan)
            layer.register_parameter("weight", ModelWeightParameter(data=values, **matrix))
            layer.register_parameter(
                "weight_scale_inv", BlockQuantScaleParameter(data=scales, **matrix)
            )
            return
        parts = len(output_partition_sizes)
        values = torch.empty(n, k // 2, dtype=torch.uint8)
        if self.format == "mxfp4":  # 255 is the NaN of these scales
            scales = torch.full((n, k // 32), 255, dtype=torch.uint8)
            layer.register_parameter("weight_packed", ModelWeightParameter(data=values, **matrix))
            layer.register_parameter("weight_scale", GroupQuantScaleParameter(data=scales, **matrix))
            return
        scales = torch.full((n, k // 16), torch.nan).to(torch.float8_e4m3fn)
        layer.register_parameter("weight", ModelWeightParameter(data=values, **matrix))
        layer.register_parameter("weight_scale", ModelWeightParameter(data=scales, **matrix))
        for name in ("weight_scale_2", "input_scale"):
            number = PerTensorScaleParameter(
                data=torch.full((parts,), torch.nan), weight_loader=loader
            )
            layer.register_parameter(name, number)

    def process_weights_after_loading(self, layer: Any) -> None:
        parts = self._parts(layer)
        for name in _PARAMETERS:
            if hasattr(layer, name):
                delattr(layer, name)
        layer.tilewright = nn.ModuleList(Linear(part) for part in parts)

    def _parts(self, layer: Any) -> list[Weight]:
        """One weight, or one for each part where parts have global scales of their own."""
        scales = layer.weight_scale_inv if self.format == "fp8" else layer.weight_scale
        stored = layer.weight_packed if self.format == "mxfp4" else layer.weight
        is_absent = scales == 255 if self.format == "mxfp4" else scales.float().isnan()
        if bool(is_absent.any()):
            raise InvalidArgument(
                f"scales of a weight {list(stored.shape)} were not loaded: the checkpoint "
                "has this layer unquantised, and does not name it among those that it leaves out"
            )
        values, scales = stored.data, scales.data
        if self.format != "nvfp4":
            return [Weight(values, scales, self.format)]
        numbers = layer.weight_scale_2.data.float().tolist()
        if len(set(numbers)) == 1:
            return [Weight(values, scales, "nvfp4", numbers[0])]
        widths = layer.logical_widths
        split = zip(values.split(widths), scales.split(widths), numbers, strict=True)
        return [Weight(rows, codes, "nvfp4", number) for rows, codes, number in split]

    def apply(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        parts = [part(x) for part in layer.tilewright]
        out = parts[0] if len(parts) == 1 else torch.cat(parts, -1)
        return out if bias is None else out + bias
