"""Experts of transformers against their own eager implementation."""

from __future__ import annotations

import copy
import gc
import io
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from kernels_in_torch import computed_by  # noqa: E402, F401
from transformers.models.deepseek_v4.modeling_deepseek_v4 import DeepseekV4Experts  # noqa: E402
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssExperts  # noqa: E402
from transformers.models.mixtral.modeling_mixtral import MixtralExperts  # noqa: E402

import tilewright  # noqa: E402
import tilewright.torch as ops  # noqa: E402
from tilewright.integrations.transformers import experts, register  # noqa: E402

register()
HIDDEN, INTER, EXPERTS, TOPK = 256, 128, 4, 2


def v4_experts(**options: Any) -> Any:
    return made(
        DeepseekV4Experts,
        transformers.DeepseekV4Config(
            hidden_size=HIDDEN, moe_intermediate_size=INTER, n_routed_experts=EXPERTS, **options
        ),
    )


def mixtral_experts(**options: Any) -> Any:
    return made(
        MixtralExperts,
        transformers.MixtralConfig(
            hidden_size=HIDDEN, intermediate_size=INTER, num_local_experts=EXPERTS, **options
        ),
    )


def made(kind: Any, config: Any) -> Any:
    """Large enough that V4's limit takes effect."""
    module = kind(config)
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.2)
    return module.bfloat16().eval()


def inputs(tokens: int = 9) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(6)
    index = torch.stack([torch.randperm(EXPERTS)[:TOPK] for _ in range(tokens)])
    return torch.randn(tokens, HIDDEN).bfloat16(), index, torch.rand(tokens, TOPK)


def result(module: Any, implementation: str, *given: torch.Tensor) -> torch.Tensor:
    module.config._experts_implementation = implementation
    with torch.no_grad():
        return module(*given).double()


def distance(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).norm() / b.norm())


@pytest.mark.parametrize("kind", [v4_experts, mixtral_experts])
def test_experts_as_stored(kind: Any, computed_by: str) -> None:
    module, (hidden, index, weights) = kind(), inputs()
    ours, eager = (result(module, name, hidden, index, weights) for name in ("tilewright", "eager"))
    exact = result(module.float(), "eager", hidden.float(), index, weights)
    assert distance(ours, exact) <= 2 * distance(eager, exact)


@pytest.mark.parametrize(
    "format,bound", [("bf16", 0), ("fp8", 0.06), ("nvfp4", 0.2), ("mxfp4", 0.25)]
)
def test_experts_rounded_to_a_format(format: str, bound: float, kernels: None) -> None:
    """4 bits have errors of a tenth; more would be a mistake, and none would be no rounding."""
    ops.set_device("sim:h200")
    module, given = v4_experts(), inputs()
    stored = result(module, "tilewright", *given)
    error = distance(result(module, f"tilewright-{format}", *given), stored)
    assert (error == 0) if format == "bf16" else bound / 5 < error < bound


def test_an_index_that_is_no_expert_adds_nothing(computed_by: str) -> None:
    module, (hidden, index, weights) = v4_experts(), inputs()
    index[2, 0] = index[5] = EXPERTS
    ours = result(module, "tilewright", hidden, index, weights)
    without = weights.masked_fill(index == EXPERTS, 0)
    eager = result(module, "eager", hidden, index.clamp(max=EXPERTS - 1), without)
    assert bool((ours[5] == 0).all()) and distance(ours, eager) < 0.02


def test_changed_weights_are_prepared_again(computed_by: str) -> None:
    module, given = v4_experts(), inputs()
    before = result(module, "tilewright", *given)
    prepared = experts._kept[module]
    assert torch.equal(result(module, "tilewright", *given), before)
    assert experts._kept[module] is prepared
    with torch.no_grad():
        module.down_proj.mul_(2)
    assert distance(result(module, "tilewright", *given), 2 * before) < 0.01
    module.down_proj = torch.nn.Parameter(module.down_proj / 2)
    assert torch.equal(result(module, "tilewright", *given), before)


def test_a_module_can_be_copied_and_saved_and_takes_its_experts_along(computed_by: str) -> None:
    module, given = v4_experts(), inputs()
    wanted = result(module, "tilewright", *given)
    kept = len(experts._kept)
    torch.save(module.state_dict(), io.BytesIO())
    twin = copy.deepcopy(module)
    assert torch.equal(result(twin, "tilewright", *given), wanted)
    assert len(experts._kept) == kept + 1
    del module, twin
    gc.collect()
    assert len(experts._kept) == kept - 1


class TestRefusals:
    @pytest.fixture(autouse=True)
    def no_kernels(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ops, "Moe", lambda *args, **keywords: pytest.fail("was called"))

    def refused(self, module: Any, text: str) -> None:
        with pytest.raises(tilewright.Unsupported, match=text):
            result(module, "tilewright", *inputs())

    @pytest.mark.parametrize(
        "attribute", ["has_gate", "has_bias", "is_transposed", "is_concatenated"]
    )
    def test_other_layouts(self, attribute: str) -> None:
        module = v4_experts()
        setattr(module, attribute, not getattr(module, attribute))
        self.refused(module, f"deepseek_v4: experts with {attribute}=.*eager")

    def test_gpt_oss(self) -> None:
        config = transformers.GptOssConfig(
            hidden_size=HIDDEN, intermediate_size=INTER, num_local_experts=EXPERTS
        )
        self.refused(made(GptOssExperts, config), "gpt_oss: experts with is_concatenated=False")

    def test_another_activation(self) -> None:
        self.refused(mixtral_experts(hidden_act="gelu"), "mixtral: a gate that is not silu")

    def test_another_clamp(self) -> None:
        module = v4_experts()
        module._apply_gate = lambda gate_up: experts.nn.functional.silu(gate_up[:, ::2])
        self.refused(module, "a gate that is not silu")

    def test_fp32(self) -> None:
        self.refused(v4_experts().float(), r"torch\.float32.*tilewright-bf16")

    def test_training(self) -> None:
        self.refused(v4_experts().train(), "training mode")
