"""Experts of quantised checkpoints as vLLM loads and calls them, against float64 on the simulator. What vLLM is
asked for is stood in for: base classes, functions that register, and one that sets attributes."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

import tilewright  # noqa: E402
from tilewright.integrations import _experts  # noqa: E402
from tilewright.torch import Weight  # noqa: E402
from torch_reference import place, seeded  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")
HIDDEN, INTER, EXPERTS = 256, 128, 4
E2M1 = torch.tensor([0.0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], device=place()).double()


class Base:
    def __init__(self, moe: Any) -> None:
        self.moe, self.moe_kernel = moe, None


class Config:
    packed_modules_mapping: dict[str, list[str]] = {}


class Inner:
    """vLLM's own configuration of a checkpoint."""

    weight_block_size, ignored_layers_match_mode = [128, 128], "exact"

    def __init__(self, name: str, config: dict[str, Any]) -> None:
        self.name, self.ignored_layers = name, config.get("ignored", [])

    def get_name(self) -> str:
        return self.name

    def is_layer_excluded(self, prefix: str) -> bool:
        return prefix in self.ignored_layers

    def get_quant_method(self, layer: Any, prefix: str) -> str:
        return "vllm's"


class LinearBase(torch.nn.Module):
    input_size, output_size = 256, 128


class Unquantized:
    pass


class RoutedExperts(torch.nn.Module):
    """A layer as vLLM makes it, as far as it is asked for."""

    def __init__(self, **changed: Any) -> None:
        super().__init__()
        parallel = SimpleNamespace(use_all2all_kernels=False, enable_eplb=False)
        self.moe_config = SimpleNamespace(
            num_local_experts=EXPERTS, hidden_dim=HIDDEN, intermediate_size_per_partition=INTER,
            experts_per_token=2, activation=SimpleNamespace(value="silu"), has_bias=False,
            moe_parallel_config=parallel)
        self.swiglu_limit = self.swiglu_alpha = self.swiglu_beta = None
        self.apply_router_weight_on_input = False
        self._expert_map = None
        for name, value in changed.items():
            places = [x for x in (parallel, self.moe_config) if hasattr(x, name)]
            setattr(places[0] if places else self, name, value)


@pytest.fixture
def plugin(monkeypatch: Any) -> Any:
    """The module, imported over modules that stand in for vLLM's."""

    def set_weight_attrs(parameter: Any, attributes: dict[str, Any]) -> None:
        for name, value in attributes.items():
            setattr(parameter, name, value)

    def same(x: Any) -> Any:
        return x

    layers = "vllm.model_executor.layers"
    contents: dict[str, dict[str, Any]] = {
        "vllm": {}, "vllm.model_executor": {}, layers: {}, f"{layers}.fused_moe": {},
        f"{layers}.linear": {
            "LinearBase": LinearBase, "LinearMethodBase": object, "UnquantizedLinearMethod": Unquantized,
            "register_weight_loader_v2_supported_method": same},
        f"{layers}.quantization": {
            "get_quantization_config":
                lambda name: SimpleNamespace(from_config=lambda config: Inner(name, config)),
            "register_quantization_config": lambda name: same},
        f"{layers}.quantization.base_config": {"QuantizationConfig": Config},
        f"{layers}.quantization.utils": {},
        f"{layers}.quantization.utils.quant_utils": {
            "is_layer_skipped": lambda prefix, ignored_layers, **named: prefix in ignored_layers},
        "vllm.model_executor.parameter": dict.fromkeys(
            ("BlockQuantScaleParameter", "GroupQuantScaleParameter", "ModelWeightParameter",
             "PerTensorScaleParameter"), torch.nn.Parameter),
        f"{layers}.fused_moe.fused_moe_method_base": {"FusedMoEMethodBase": Base},
        f"{layers}.fused_moe.routed_experts": {"RoutedExperts": RoutedExperts},
        "vllm.model_executor.utils": {"set_weight_attrs": set_weight_attrs}}
    for name, members in contents.items():
        module = ModuleType(name)
        module.__path__ = []  # type: ignore[attr-defined]
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, module)
    package = importlib.import_module("tilewright.integrations.vllm")
    for name in ("experts", "quantization"):  # as if never imported, before and after
        monkeypatch.delitem(sys.modules, f"{package.__name__}.{name}", raising=False)
        monkeypatch.delattr(package, name, raising=False)
    yield importlib.import_module(f"{package.__name__}.experts")
    for name in ("experts", "quantization"):
        sys.modules.pop(f"{package.__name__}.{name}", None)
        vars(package).pop(name, None)


def exact(weight: Weight) -> Any:
    """float64 [n, k] of a weight in a format."""
    n, k = weight.shape
    if weight.format == "fp8":
        scales = weight.scales.double().repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]
        return weight.values.double() * scales
    bytes_ = weight.values.long()
    codes = E2M1[torch.stack([bytes_ & 15, bytes_ >> 4], -1).flatten(1)]
    if weight.format == "mxfp4":
        return codes * (weight.scales.view(torch.uint8).double() - 127).exp2().repeat_interleave(32, 1)
    scales = weight.scales.view(torch.float8_e4m3fn).double().repeat_interleave(16, 1)
    return codes * scales * weight.global_scale


def checkpoint(format: str) -> list[list[Weight]]:
    """Gate, up and down of each expert, of different sizes, so that global scales are."""
    random = seeded(5)
    shapes = ((INTER, HIDDEN, 1.0), (INTER, HIDDEN, 3.0), (HIDDEN, INTER, 0.5))
    return [[Weight.quantize((scale * (e + 1) * torch.randn(n, k, generator=random) / k**0.5).bfloat16(), format)
             for n, k, scale in shapes] for e in range(EXPERTS)]


def load(layer: Any, stored: list[list[Weight]], format: str) -> None:
    """As vLLM's loader fills the parameters: by what they say of their scales."""
    suffix = "weight_scale_inv" if format == "fp8" else "weight_scale"
    for e, (gate, up, down) in enumerate(stored):
        for name, parts in (("w13", [gate, up]), ("w2", [down])):
            layer.get_parameter(f"{name}_weight").data[e].copy_(torch.cat([w.values for w in parts]))
            scales = layer.get_parameter(f"{name}_{suffix}")
            assert scales.quant_method == "block"
            scales.data[e].copy_(torch.cat([w.scales.view(scales.dtype) for w in parts]))
            if format == "nvfp4":
                numbers = layer.get_parameter(f"{name}_weight_scale_2")
                assert numbers.quant_method == "tensor"
                numbers.data[e] = torch.tensor([w.global_scale for w in parts]).reshape(numbers.data[e].shape)


def reference(stored: list[list[Weight]], x: Any, weights: Any, ids: Any, limit: float | None) -> Any:
    """Of every token the sum over its experts, in float64, and what the products are rounded to."""
    out, size = torch.zeros(x.shape, dtype=torch.float64), torch.zeros(x.shape, dtype=torch.float64)
    for t, i in ((t, i) for t in range(ids.shape[0]) for i in range(ids.shape[1]) if ids[t, i] >= 0):
        gate, up, down = (exact(w) for w in stored[int(ids[t, i])])
        g, u = gate @ x[t].double(), up @ x[t].double()
        if limit is not None:
            g, u = g.clamp(max=limit), u.clamp(-limit, limit)
        h = torch.nn.functional.silu(g) * u
        out[t] += float(weights[t, i]) * (down @ h)
        size[t] += float(weights[t, i]) * (down.abs() @ h.abs())
    return out, size


@pytest.mark.parametrize("format, limit, is_shared", [
    ("fp8", None, False), ("nvfp4", None, True), ("mxfp4", 1.5, False)])
def test_experts(plugin: Any, format: str, limit: float | None, is_shared: bool) -> None:
    """is_shared: this rank has global experts 3 to 6, and tokens name others, too."""
    numbers = torch.tensor([-1, -1, -1, 0, 1, 2, 3, -1], dtype=torch.int32)
    layer = RoutedExperts(swiglu_limit=limit, _expert_map=numbers if is_shared else None)
    assert plugin.is_experts(layer) and not plugin.is_experts(torch.nn.Linear(2, 2))
    method = plugin.method_of(layer, format, "model.layers.0.mlp.experts")
    method.create_weights(layer, EXPERTS, HIDDEN, INTER, torch.bfloat16, weight_loader=print)
    assert all(p.weight_loader is print and not p.requires_grad for p in layer.parameters())
    stored = checkpoint(format)
    load(layer, stored, format)
    method.process_weights_after_loading(layer)
    assert not list(layer.parameters())
    assert method.get_fused_moe_quant_config(layer) is None
    assert method.maybe_make_prepare_finalize() is None
    random = seeded(7)
    x = torch.randn(3, HIDDEN, generator=random).bfloat16()
    weights = torch.rand(3, 2, generator=random)
    local = torch.tensor([[0, 3], [2, 1], [1, -1]])
    ids = local + 3 if is_shared else local
    ids[2, 1] = 7 if is_shared else -1  # an expert of another rank, or none
    out = method.apply(layer, x, weights, ids.long(), None, shared_experts_input=None)
    right, size = reference(stored, x, weights, local, limit)
    # The middle is rounded to bf16, by 2^-8 of each of its values at most (half a step of 2^-7), and the sum to
    # bf16 again; products are summed in fp32, which adds less than 2^-12 of the sum of sizes.
    assert ((out.double() - right).abs() <= (2.0**-8 + 2.0**-12) * size + 2.0**-8 * right.abs()).all()


def test_what_is_left_to_vllm(plugin: Any) -> None:
    for changed, text in (({"activation": "swigluoai"}, "activation swigluoai: only silu"),
                          ({"has_bias": True}, "biases"), ({"swiglu_alpha": 1.702}, "alpha or beta"),
                          ({"use_all2all_kernels": True}, "exchanged between ranks"),
                          ({"enable_eplb": True}, "EPLB"),
                          ({"apply_router_weight_on_input": True}, "applied to their input"),
                          ({"hidden_dim": 24}, "hidden = 24: a multiple of 16"),
                          ({"intermediate_size_per_partition": 192}, "192 rows: only multiples of 128")):
        with pytest.warns(UserWarning, match=f"layers.3: experts are left to vLLM: .*{text}"):
            assert plugin.method_of(RoutedExperts(**changed), "fp8", "layers.3") is None


@pytest.mark.parametrize("format", _experts.FORMATS)
def test_scales_that_were_not_loaded(plugin: Any, format: str) -> None:
    layer = RoutedExperts()
    method = plugin.method_of(layer, format, "layers.0")
    method.create_weights(layer, EXPERTS, HIDDEN, INTER, torch.bfloat16)
    with pytest.raises(tilewright.InvalidArgument, match="were not loaded"):
        method.process_weights_after_loading(layer)


@pytest.mark.parametrize("format, config", [
    ("fp8", {"quant_method": "fp8"}), ("nvfp4", {"quant_algo": "NVFP4"}), ("mxfp4", {"quant_method": "mxfp4"})])
def test_the_configuration_gives_layers_their_methods(plugin: Any, format: str, config: dict[str, Any]) -> None:
    quantization = importlib.import_module("tilewright.integrations.vllm.quantization")
    made = quantization.Config.from_config({**config, "ignored": ["layers.1"]})
    assert made.format == format
    method = made.get_quant_method(RoutedExperts(), "layers.0")
    assert isinstance(method, plugin.TilewrightMoEMethod) and method.format == format
    assert made.get_quant_method(RoutedExperts(), "layers.1") == "vllm's"
    with pytest.warns(UserWarning, match="biases"):
        assert made.get_quant_method(RoutedExperts(has_bias=True), "layers.0") == "vllm's"
    linear = made.get_quant_method(LinearBase(), "layers.0")
    assert linear == "vllm's" if format == "mxfp4" else isinstance(linear, quantization.TilewrightLinearMethod)
    skipped = made.get_quant_method(LinearBase(), "layers.1")
    assert skipped == "vllm's" if format == "mxfp4" else isinstance(skipped, Unquantized)
    assert made.get_quant_method(torch.nn.Identity(), "cache") == "vllm's"
