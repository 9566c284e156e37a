"""Linear layers of quantised checkpoints in vLLM, against their own weights in float64."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("vllm", reason="vLLM's Python sources are not installed")
torch.set_num_threads(1)

from vllm.model_executor.layers.quantization import (  # noqa: E402
    QUANTIZATION_METHODS,
    get_quantization_config,
)

import tilewright  # noqa: E402
from tilewright.integrations.vllm import quantization  # noqa: E402
from tilewright.torch import Weight  # noqa: E402
from torch_reference import place, seeded  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
NVFP4 = {
    "quant_method": "modelopt",
    "quant_algo": "NVFP4",
    "kv_cache_quant_algo": None,
    "group_size": 16,
    "exclude_modules": ["lm_head"],
}
MXFP4 = {
    "quant_method": "compressed-tensors",
    "format": "mxfp4-pack-quantized",
    "ignore": ["lm_head", "re:.*self_attn.*"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "format": "mxfp4-pack-quantized",
            "weights": {
                "num_bits": 4,
                "type": "float",
                "strategy": "group",
                "group_size": 32,
                "symmetric": True,
                "dynamic": False,
                "scale_dtype": "torch.uint8",
            },
            "input_activations": None,
        }
    },
}
E2M1 = torch.tensor([0.0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], device=place())


def test_the_name_is_known() -> None:
    quantization.register()
    quantization.register()
    assert quantization.NAME in QUANTIZATION_METHODS
    assert get_quantization_config(quantization.NAME) is quantization.Config


@pytest.mark.parametrize(
    "config,format", [(FP8, "fp8"), (NVFP4, "nvfp4"), (MXFP4, "mxfp4")], ids=["fp8", "nvfp4", "mxfp4"]
)
def test_checkpoints(config: dict[str, Any], format: str) -> None:
    made = quantization.Config.from_config(config)
    assert (made.format, made.get_name()) == (format, "tilewright")
    override = quantization.Config.override_quantization_method
    assert override(config, "tilewright") == "tilewright"
    assert override(config, None) is None


@pytest.mark.parametrize(
    "config,text",
    [
        ({"quant_method": "awq"}, "quant_method awq"),
        ({**MXFP4, "format": "pack-quantized"}, "compressed-tensors, format pack-quantized"),
        ({**FP8, "weight_block_size": None}, "one scale for 128 x 128"),
        ({**FP8, "weight_block_size": [64, 64]}, r"weight_block_size \[64, 64\]"),
    ],
    ids=str,
)
def test_what_is_refused(config: dict[str, Any], text: str) -> None:
    with pytest.raises(tilewright.Unsupported, match=text):
        quantization.Config.from_config(config)


def nvfp4_values(weight: Weight) -> Any:
    """float64 [n, k] of codes, scales of 16 and the global one."""
    bytes_ = weight.values.long()
    codes = torch.stack([bytes_ & 15, bytes_ >> 4], -1).flatten(1)
    scales = weight.scales.view(torch.float8_e4m3fn).double().repeat_interleave(16, 1)
    return E2M1.double()[codes] * scales * weight.global_scale


@pytest.fixture
def one_rank(monkeypatch: Any) -> None:
    """vLLM's parameters ask for the rank in a group that only an engine makes."""
    for name, number in (("rank", 0), ("world_size", 1)):
        asked = f"vllm.model_executor.parameter.get_tensor_model_parallel_{name}"
        monkeypatch.setattr(asked, lambda number=number: number)


@pytest.mark.usefixtures("one_rank")
@pytest.mark.parametrize("parts", [[256], [128, 128], [128, 256]], ids=str)
def test_nvfp4(parts: list[int]) -> None:
    """Parts of a fused weight keep global scales of their own."""
    k = 128
    random = seeded(sum(parts))
    sizes = zip(parts, (1.0, 20.0), strict=False)
    stored = [
        Weight.quantize(scale * torch.randn(n, k, generator=random).bfloat16(), "nvfp4")
        for n, scale in sizes
    ]
    layer, method = torch.nn.Module(), quantization.TilewrightLinearMethod("nvfp4")
    method.create_weights(layer, k, parts, k, sum(parts), torch.bfloat16, weight_loader=print)
    layer.weight.data.copy_(torch.cat([w.values for w in stored]))
    layer.weight_scale.data = torch.cat(
        [w.scales.view(torch.float8_e4m3fn) for w in stored]
    )
    layer.weight_scale_2.data = torch.tensor([w.global_scale for w in stored])
    method.process_weights_after_loading(layer)
    assert not list(layer.parameters())
    x = torch.randn(5, k, generator=random).bfloat16()
    exact = x.double() @ torch.cat([nvfp4_values(w) for w in stored]).T
    check(method.apply(layer, x), exact)


@pytest.mark.usefixtures("one_rank")
def test_fp8_with_a_bias() -> None:
    n, k = 208, 256  # the last block of rows is not whole
    random = seeded(3)
    stored = Weight.quantize(torch.randn(n, k, generator=random).bfloat16(), "fp8")
    layer, method = torch.nn.Module(), quantization.TilewrightLinearMethod("fp8")
    method.create_weights(layer, k, [n], k, n, torch.bfloat16, weight_loader=print)
    layer.weight.data.copy_(stored.values)
    layer.weight_scale_inv.data.copy_(stored.scales)
    method.process_weights_after_loading(layer)
    x = torch.randn(3, k, generator=random).bfloat16()
    bias = torch.randn(n, generator=random).bfloat16()
    scales = stored.scales.double().repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)
    product = x.double() @ (stored.values.double() * scales).T
    check(method.apply(layer, x, bias), product + bias.double(), product)


def check(found: Any, exact: Any, before: Any = 0.0) -> None:
    """Results are rounded to bfloat16, by 2^-8 of themselves, and so are those before a bias; sums
    in fp32 add less than 2^-12 of the largest."""
    limit = 2.0**-8 * (exact.abs() + abs(before)) + 2.0**-12 * exact.abs().max()
    assert ((found.double() - exact).abs() <= limit).all()


@pytest.mark.usefixtures("one_rank")
@pytest.mark.parametrize("parts", [[96], [64, 32, 32]], ids=str)
def test_mxfp4(parts: list[int]) -> None:
    """Parameters as compressed-tensors packs them: two codes a byte, the first in its low half."""
    n, k = sum(parts), 128
    random = seeded(n)
    stored = Weight.quantize(torch.randn(n, k, generator=random).bfloat16(), "mxfp4")
    layer, method = torch.nn.Module(), quantization.TilewrightLinearMethod("mxfp4")
    method.create_weights(layer, k, parts, k, n, torch.bfloat16, weight_loader=print)
    assert set(dict(layer.named_parameters())) == {"weight_packed", "weight_scale"}
    layer.weight_packed.data.copy_(stored.values)
    layer.weight_scale.data.copy_(stored.scales.view(torch.uint8))
    method.process_weights_after_loading(layer)
    assert not list(layer.parameters())
    bytes_, scales = stored.values.long(), stored.scales.view(torch.uint8).double()
    codes = torch.stack([bytes_ & 15, bytes_ >> 4], -1).flatten(1)
    exact = E2M1.double()[codes] * torch.exp2(scales - 127).repeat_interleave(32, 1)
    x = torch.randn(5, k, generator=random).bfloat16()
    check(method.apply(layer, x), x.double() @ exact.T)


@pytest.mark.usefixtures("one_rank")
def test_layers_of_an_mxfp4_checkpoint(monkeypatch: Any) -> None:
    """Those that its configuration leaves out are vLLM's, unquantised."""
    linear = pytest.importorskip("vllm.model_executor.layers.linear")
    for name in ("rank", "world_size"):
        asked = f"get_tensor_model_parallel_{name}"
        for module in (linear, "vllm.distributed.parallel_state"):
            target = module if isinstance(module, str) else module.__name__
            monkeypatch.setattr(f"{target}.{asked}", lambda number=name == "world_size": int(number))
    config = quantization.Config.from_config(MXFP4)
    layer = linear.ReplicatedLinear(128, 96, bias=False)
    ours = config.get_quant_method(layer, "model.layers.0.mlp.up_proj")
    assert isinstance(ours, quantization.TilewrightLinearMethod) and ours.format == "mxfp4"
    left = config.get_quant_method(layer, "model.layers.0.self_attn.o_proj")
    assert isinstance(left, linear.UnquantizedLinearMethod)
    plain = quantization.Config.from_config({"quant_method": "mxfp4"})
    left = plain.get_quant_method(layer, "model.layers.0.self_attn.o_proj")
    assert isinstance(left, linear.UnquantizedLinearMethod)


@pytest.mark.usefixtures("one_rank")
@pytest.mark.parametrize("format", ["fp8", "nvfp4", "mxfp4"])
def test_scales_that_were_not_loaded(format: str) -> None:
    layer, method = torch.nn.Module(), quantization.TilewrightLinearMethod(format)
    method.create_weights(layer, 128, [128], 128, 128, torch.bfloat16, weight_loader=print)
    with pytest.raises(tilewright.InvalidArgument, match="were not loaded"):
        method.process_weights_after_loading(layer)


@pytest.mark.parametrize(
    "format,sizes,k,is_possible",
    [
        ("fp8", [256, 128], 256, True),
        ("fp8", [100, 128], 256, False),
        ("fp8", [128], 192, False),
        ("nvfp4", [128, 64], 256, True),
        ("nvfp4", [128], 24, False),
        ("mxfp4", [96, 64], 256, True),
        ("mxfp4", [128], 48, False),
    ],
)
def test_sizes(format: str, sizes: list[int], k: int, is_possible: bool) -> None:
    assert quantization.can_implement(format, sizes, k) == is_possible
