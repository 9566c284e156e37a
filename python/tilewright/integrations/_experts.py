"""Experts of quantised checkpoints as inference engines hold them, on tilewright.torch.Moe.

Parameters are those that vLLM's loader fills, with their names: w13 is gate and up of each expert,
one above the other, w2 is down.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import tilewright
from tilewright._errors import InvalidArgument
from tilewright.torch import Moe, Weight

E4M3 = torch.float8_e4m3fn
FORMATS = ("fp8", "nvfp4", "mxfp4")
#: Elements of a row that one scale is for.
_BLOCK = {"fp8": 128, "nvfp4": 16, "mxfp4": 32}


class Parameter(NamedTuple):
    """A tensor that is loaded, and how scales of a checkpoint go into it: "block", "tensor", or ""."""

    data: Tensor
    scales: str = ""


def parameters(format: str, experts: int, hidden: int, inter: int) -> dict[str, Parameter]:
    """Of a layer, by name. Scales are no numbers until they are loaded."""
    rows = {"w13": (2 * inter, hidden), "w2": (hidden, inter)}
    made = {}
    for name, (n, k) in rows.items():
        block, parts = _BLOCK[format], (2,) if name == "w13" else ()
        if format == "fp8":
            grid = (experts, -(-n // block), -(-k // block))
            made[f"{name}_weight"] = Parameter(torch.empty(experts, n, k, dtype=E4M3))
            made[f"{name}_weight_scale_inv"] = Parameter(torch.full(grid, torch.nan), "block")
            continue
        made[f"{name}_weight"] = Parameter(torch.empty(experts, n, k // 2, dtype=torch.uint8))
        scales = torch.full((experts, n, k // block), torch.nan)
        if format == "mxfp4":
            made[f"{name}_weight_scale"] = Parameter(scales.nan_to_num(255).to(torch.uint8), "block")
            continue
        made[f"{name}_weight_scale"] = Parameter(scales.to(E4M3), "block")
        for number in ("weight_scale_2", "input_scale"):
            made[f"{name}_{number}"] = Parameter(torch.full((experts, *parts), torch.nan), "tensor")
    return made


def reasons_against(layer: Any, format: str) -> list[str]:
    """Why our experts cannot take the place of a layer's; empty if they can."""
    moe = layer.moe_config
    activation = str(getattr(moe.activation, "value", moe.activation))
    parallel = getattr(moe, "moe_parallel_config", None)
    hidden, inter = moe.hidden_dim, moe.intermediate_size_per_partition
    told = {
        f"activation {activation}: only silu": activation != "silu",
        "biases": bool(getattr(moe, "has_bias", False)),
        "weights of experts that are applied to their input": bool(
            getattr(layer, "apply_router_weight_on_input", False)
        ),
        "a SwiGLU with alpha or beta": getattr(layer, "swiglu_alpha", None) not in (None, 1.0)
        or getattr(layer, "swiglu_beta", None) not in (None, 0.0),
        "tokens that are exchanged between ranks": bool(
            getattr(parallel, "use_all2all_kernels", False)
        ),
        "experts that move between ranks (EPLB)": bool(getattr(parallel, "enable_eplb", False)),
        # One scale spans 128 rows: those of up begin with a block of their own.
        f"FP8 experts of {inter} rows: only multiples of 128": format == "fp8" and inter % 128 != 0,
    }
    reasons = [reason for reason, holds in told.items() if holds]
    weights = {"format": format, "activations": "bf16", "hidden": hidden, "inter": inter}
    weights["experts"] = moe.num_local_experts
    topk = moe.experts_per_token
    answer = tilewright.can_implement("Moe", "h200", weights=weights, tokens=1, topk=topk)
    return reasons + [f"{r.field} = {r.value}: {r.rule}" for r in answer.reasons]


class Experts(nn.Module):
    """Prepared experts, with the numbers that global ones have on this rank (-1: another has it)."""

    def __init__(self, layer: Any, format: str) -> None:
        super().__init__()
        gate, up, down = _stacks(layer, format)
        limit = getattr(layer, "swiglu_limit", None)
        self.moe = Moe(gate, up, down, limit=limit, weight_after_down=True)
        found = getattr(layer, "_expert_map", None)
        self.register_buffer("numbers", None if found is None else found.int(), persistent=False)

    def forward(self, x: Tensor, weights: Tensor, ids: Tensor) -> Tensor:
        """x bfloat16 [tokens, hidden], ids [tokens, topk] of global experts, -1 for none."""
        numbers = self.numbers
        ids = ids.int()
        if isinstance(numbers, Tensor):
            ids = torch.where(ids < 0, ids, numbers[ids.clamp(min=0)])
        out: Tensor = self.moe(x.contiguous(), ids.contiguous(), weights.float().contiguous())
        return out


def _stacks(layer: Any, format: str) -> tuple[list[Weight], list[Weight], list[Weight]]:
    """Gate, up and down of each expert."""
    suffix = "weight_scale_inv" if format == "fp8" else "weight_scale"
    scales = [getattr(layer, f"{name}_{suffix}").data for name in ("w13", "w2")]
    for x in scales:
        is_absent = (x == 255) if x.dtype == torch.uint8 else x.float().isnan()
        if bool(is_absent.any()):
            raise InvalidArgument(
                f"scales of experts {list(layer.w13_weight.shape)} were not loaded: the checkpoint "
                "has this layer unquantised, and does not name it among those that it leaves out"
            )
    both, down = layer.w13_weight.data, layer.w2_weight.data
    numbers = _numbers(layer) if format == "nvfp4" else [(0.0, 0.0, 0.0)] * len(both)
    inter = both.shape[1] // 2
    rows = scales[0].shape[1] // 2
    stacks: tuple[list[Weight], list[Weight], list[Weight]] = ([], [], [])
    for e, (gate_scale, up_scale, down_scale) in enumerate(numbers):
        parts = (
            (both[e, :inter], scales[0][e, :rows], gate_scale),
            (both[e, inter:], scales[0][e, rows:], up_scale),
            (down[e], scales[1][e], down_scale),
        )
        for stack, (values, codes, number) in zip(stacks, parts, strict=True):
            stack.append(Weight(values, codes, format, number))
    return stacks


def _numbers(layer: Any) -> list[tuple[float, float, float]]:
    """Global scales of gate, up and down of each expert."""
    both, down = layer.w13_weight_scale_2.data.float(), layer.w2_weight_scale_2.data.float()
    if bool(both.isnan().any()) or bool(down.isnan().any()):
        raise InvalidArgument("global scales of experts (weight_scale_2) were not loaded")
    return [(*pair, one) for pair, one in zip(both.tolist(), down.tolist(), strict=True)]
