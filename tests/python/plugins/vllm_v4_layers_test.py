"""DeepSeek-V4's linear layers, experts and indexer in vLLM: who owns which layer, by vLLM's own configuration of
V4, and what ours give, against float64."""

from __future__ import annotations

import ast
import inspect
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
quant_config = pytest.importorskip(
    "vllm.models.deepseek_v4.quant_config", reason="vLLM's sources are not installed")
torch.set_num_threads(1)

from torch_reference import seeded  # noqa: E402
from vllm.model_executor.layers.fused_moe import RoutedExperts  # noqa: E402
from vllm.model_executor.layers.linear import LinearBase  # noqa: E402

from tilewright.integrations.vllm import deepseek_v4, deepseek_v4_layers, quantization  # noqa: E402
from tilewright.integrations.vllm.experts import TilewrightMoEMethod  # noqa: E402
from tilewright.torch import Weight  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")
CHECKPOINT = {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "scale_fmt": "ue8m0",
              "weight_block_size": [128, 128]}


@pytest.fixture
def installed() -> Any:
    before = quant_config.DeepseekV4FP8Config.get_quant_method
    deepseek_v4_layers.install()
    deepseek_v4_layers.install()
    assert deepseek_v4_layers.is_installed()
    yield
    deepseek_v4_layers.uninstall()
    deepseek_v4_layers.uninstall()
    assert quant_config.DeepseekV4FP8Config.get_quant_method is before


def config(experts: str = "fp4", algorithm: str = "", **changed: Any) -> Any:
    made = quant_config.DeepseekV4FP8Config.from_config({**CHECKPOINT, **changed})
    made._resolved_expert_dtype, made._resolved_moe_quant_algo = experts, algorithm
    return made


def linear(n: int = 256, k: int = 128) -> Any:
    layer = LinearBase.__new__(LinearBase)
    torch.nn.Module.__init__(layer)
    layer.input_size, layer.output_size = k, n
    return layer


def routed(**changed: Any) -> Any:
    layer = RoutedExperts.__new__(RoutedExperts)
    torch.nn.Module.__init__(layer)
    parallel = SimpleNamespace(use_all2all_kernels=False, enable_eplb=False)
    sizes = {"num_local_experts": 4, "hidden_dim": 256, "intermediate_size_per_partition": 128,
             "experts_per_token": 2, "activation": "silu", "has_bias": False, **changed}
    layer.moe_config = SimpleNamespace(moe_parallel_config=parallel, **sizes)
    layer.swiglu_limit, layer.apply_router_weight_on_input = 10.0, False
    return layer


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", deepseek_v4_layers.LAYERS)
def test_linear_layers_are_ours(name: str) -> None:
    method = config().get_quant_method(linear(), f"model.layers.3.attn.{name}")
    assert isinstance(method, quantization.TilewrightLinearMethod) and method.format == "fp8"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    "experts,algorithm,format", [("fp4", "", "mxfp4"), ("fp4", "NVFP4", "nvfp4"), ("fp8", "", "fp8")])
def test_experts_are_ours(experts: str, algorithm: str, format: str) -> None:
    method = config(experts, algorithm).get_quant_method(routed(), "model.layers.3.ffn.experts")
    assert isinstance(method, TilewrightMoEMethod) and method.format == format


def test_the_rest_is_left_to_vllm() -> None:
    of = deepseek_v4_layers.method_of
    assert of(config(), linear(), "model.layers.3.attn.wo_a") is None
    assert of(config(), linear(), "model.layers.3.attn.indexer.weights_proj") is None
    assert of(config(), torch.nn.Linear(2, 2), "model.layers.3.attn.wq_b") is None
    assert of(config(), linear(k=192), "model.layers.3.attn.wq_b") is None
    assert of(config(weight_block_size=[64, 64]), linear(), "model.layers.3.attn.wq_b") is None
    ignoring = config(ignored_layers=["model.layers.3.attn.wq_b", "model.layers.3.ffn.experts"])
    assert of(ignoring, linear(), "model.layers.3.attn.wq_b") is None
    assert of(ignoring, routed(), "model.layers.3.ffn.experts") is None
    with pytest.warns(UserWarning, match="model.layers.3.ffn.experts: experts are left to vLLM: biases"):
        assert of(config(), routed(has_bias=True), "model.layers.3.ffn.experts") is None


@pytest.mark.usefixtures("installed")
def test_scales_of_powers_of_two(monkeypatch: Any) -> None:
    """As V4's checkpoints have them, in a type of their own."""
    for name, number in (("rank", 0), ("world_size", 1)):
        asked = f"vllm.model_executor.parameter.get_tensor_model_parallel_{name}"
        monkeypatch.setattr(asked, lambda number=number: number)
    n, k = 256, 384
    layer = linear(n, k)
    method = config().get_quant_method(layer, "model.layers.3.attn.fused_wqa_wkv")
    method.create_weights(layer, k, [128, 128], k, n, torch.bfloat16, weight_loader=print)
    random = seeded(3)
    stored = Weight.quantize(torch.randn(n, k, generator=random).bfloat16(), "fp8")
    scales = stored.scales.log2().ceil().exp2()
    for part in range(2):
        rows = slice(128 * part, 128 * part + 128)
        layer.weight.load_merged_column_weight(
            stored.values[rows], shard_id=part, shard_offset=128 * part, shard_size=128)
        layer.weight_scale_inv.load_merged_column_weight(
            scales[part:part + 1].to(torch.float8_e8m0fnu), shard_id=part, shard_offset=part, shard_size=1)
    method.process_weights_after_loading(layer)
    x = torch.randn(3, k, generator=random).bfloat16()
    factors = scales.double().repeat_interleave(128, 0).repeat_interleave(128, 1)
    exact = x.double() @ (stored.values.double() * factors).T
    # Rounded to bfloat16, by 2^-8 of itself; sums in fp32 add less than 2^-12 of the largest.
    limit = 2.0**-8 * exact.abs() + 2.0**-12 * exact.abs().max()
    assert ((method.apply(layer, x).double() - exact).abs() <= limit).all()


def test_nobody_else_reads_the_weights() -> None:
    """Of the layers that are ours; a release in which V4's model does so would fail on their first call."""
    for path in ("attention", "nvidia.flashmla", "nvidia.model"):
        module = pytest.importorskip(f"vllm.models.deepseek_v4.{path}")
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            is_weight = isinstance(node, ast.Attribute) and node.attr.startswith("weight")
            if is_weight and isinstance(node.value, ast.Attribute):
                assert node.value.attr not in deepseek_v4_layers.LAYERS, ast.unparse(node)


@pytest.fixture
def indexer() -> Any:
    """vLLM's module, whose two functions are ours; they fall back to a word."""
    module = pytest.importorskip(deepseek_v4.INDEXER)
    before = {name: getattr(module, name) for name in deepseek_v4.INDEXER_NAMES}
    for name in deepseek_v4.INDEXER_NAMES:
        setattr(module, name, lambda *given, **named: "vllm's")
    deepseek_v4.install()
    yield module
    deepseek_v4.uninstall()
    assert all(getattr(module, name)() == "vllm's" for name in deepseek_v4.INDEXER_NAMES)
    for name, function in before.items():
        setattr(module, name, function)


def drawn(*shape: int) -> Any:
    return torch.randn(*shape, generator=seeded(sum(shape))).to(torch.float8_e4m3fn)


def exact_logits(q: Any, keys: Any, scales: Any, weights: Any) -> tuple[Any, Any]:
    """float64 [tokens, keys], and the magnitudes of what they are sums of."""
    q, keys, w = q.double(), keys.double(), weights.double()[:, :, None]
    logits = (torch.einsum("thd,kd->thk", q, keys).relu() * w).sum(1)
    return logits * scales, (torch.einsum("thd,kd->thk", q.abs(), keys.abs()) * w).sum(1) * scales


def check_logits(found: Any, exact: Any, size: Any) -> None:
    """The tensor core keeps 13 bits behind the largest of 32 products, and adds four such sums up."""
    assert found.dtype == torch.float32
    assert ((found.double() - exact).abs() <= 1e-3 * size).all()


def test_scores_of_a_prompt(indexer: Any) -> None:
    q, keys, weights = drawn(3, 64, 128), drawn(40, 128), torch.rand(3, 64)
    scales, starts, ends = torch.rand(40) + 0.5, torch.tensor([0, 0, 5]).int(), torch.tensor([7, 40, 21]).int()
    found = indexer.fp8_fp4_mqa_logits((q, None), (keys, scales), weights, starts, ends, 40)
    assert found.shape == (3, 40)
    exact, size = exact_logits(q, keys, scales, weights)
    for row, (start, end) in enumerate(zip(starts, ends)):
        check_logits(found[row, : end - start], exact[row, start:end], size[row, start:end])
    rounded = weights.bfloat16()  # as on Blackwell
    found = indexer.fp8_fp4_mqa_logits((q, None), (keys, scales), rounded, starts, ends, 40)
    exact, size = exact_logits(q, keys, scales, rounded)
    for row, (start, end) in enumerate(zip(starts, ends)):
        check_logits(found[row, : end - start], exact[row, start:end], size[row, start:end])


def test_scores_of_a_step(indexer: Any) -> None:
    """Keys in pages, one token of each of two sequences."""
    pages, page_size = 4, 64
    q, keys, weights = drawn(2, 1, 64, 128), drawn(pages * page_size, 128), torch.rand(2, 64)
    scales = torch.rand(pages * page_size) + 0.5
    parts = (keys.view(torch.uint8).view(pages, -1), scales.view(torch.uint8).view(pages, -1))
    cache = torch.cat(parts, 1).view(pages, page_size, 1, 132)
    lengths, table = torch.tensor([[70], [128]]).int(), torch.tensor([[2, 0], [3, 1]]).int()
    meta = torch.zeros(1, 2).int()
    found = indexer.fp8_fp4_paged_mqa_logits((q, None), cache, weights, lengths, table, meta, max_model_len=128)
    assert found.shape == (2, 128)
    for row in range(2):
        at = torch.cat([torch.arange(page_size) + page_size * page for page in table[row]])[: lengths[row]]
        exact, size = exact_logits(q[row], keys[at], scales[at], weights[row : row + 1])
        check_logits(found[row, : len(at)], exact[0], size[0])
    indices = torch.arange(2).int()
    blackwell = indexer.fp8_fp4_paged_mqa_logits(
        (q, None), cache, weights, lengths, table, meta, max_model_len=128, indices=indices)
    assert blackwell == "vllm's"
