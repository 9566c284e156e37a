"""Mixture-of-Experts layers with weights of 4, 8 or 16 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

import tilewright

from ._context import (
    DTYPES,
    Entry,
    Way,
    describe,
    dtype_name,
    device_of,
    expect_tensors,
    have_no_gradient,
    is_direct,
    known_calls,
    make_on,
    places_of,
    require,
    require_operand,
    signature,
    workspace,
)
from ._ops import Done, define, known
from ._weights import Prepared, Weight, source

#: Tensors of a call, the result last.
_TENSORS = places_of("x ids weights out")
_calls = known_calls(len(_TENSORS))
_GROUPED = places_of("x counts weights out")
_grouped_calls = known_calls(len(_GROUPED))


class Moe(torch.nn.Module):
    """out[t] = sum_i down(silu(gate(x[t])) * up(x[t]), scaled by weights[t, i]) of expert ids[t, i].

    gate, up     [experts, inter, hidden], down [experts, hidden, inter]: bfloat16 tensors, or a
                 Weight for each expert, all in one format
    shared       gate, up and down of an expert that every token visits
    format       that bfloat16 tensors are rounded to: "bf16", "fp8", "mxfp4" or "nvfp4"
    activations  "bf16", or "fp8" to round x to e4m3 where that is faster; "block_scaled" on Blackwell:
                 NVFP4 by "nvfp4" experts, MXFP8 by "mxfp4" ones
    limit        of the SwiGLU: gate at most that, up within +-that; None: no limit
    weight_after_down  the weight of an expert is applied to its result, else before `down`

    The prepared experts lie on the device of the given ones; they are no parameters.
    """

    def __init__(
        self,
        gate: Tensor | Sequence[Weight],
        up: Tensor | Sequence[Weight],
        down: Tensor | Sequence[Weight],
        *,
        shared: tuple[Tensor | Weight, Tensor | Weight, Tensor | Weight] | None = None,
        format: str = "bf16",
        activations: str = "bf16",
        limit: float | None = None,
        weight_after_down: bool = False,
        out_dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        super().__init__()
        stacks = [_experts(stack, format) for stack in (gate, up, down)]
        gates, ups, downs = stacks
        require(
            len(gates) == len(ups) == len(downs) > 0,
            f"{len(gates)} gates, {len(ups)} ups, {len(downs)} downs: expected as many of each",
        )
        members: dict[str, Any] = {
            name: [source(weight, activations) for weight in stack]
            for name, stack in zip(("gate", "up", "down"), stacks, strict=True)
        }
        for name, one in zip(("gate", "up", "down"), shared or (), strict=bool(shared)):
            weight = one if isinstance(one, Weight) else Weight.quantize(one, format)
            members[f"shared_{name}"] = [source(weight, activations)]
        device = gates[0].values.device
        made = tilewright.MoeWeights(device_of(device), experts=len(gates), **members)
        self.experts = len(gates)
        self.inter, self.hidden = gates[0].shape
        self.format = gates[0].format
        self.limit = float(limit or 0.0)
        self.weight_after_down = weight_after_down
        self.out_dtype = out_dtype
        self._prepared = Prepared(made, gates[0].shape, device, "moe", _calls)
        self._prepared.forget_in("moe_grouped", _grouped_calls)
        self._handle = self._prepared.handle

    def forward(self, x: Tensor, ids: Tensor, weights: Tensor) -> Tensor:
        """x bfloat16 [tokens, hidden]; ids int32 [tokens, topk], -1 for none; weights fp32."""
        limit, after, out_dtype = self.limit, self.weight_after_down, self.out_dtype
        given = (x, ids, weights, None, self._handle, limit, after, DTYPES.get(out_dtype))
        if not is_compiling() and (done := _calls.run(*given)) is not None:
            known_out: Tensor = done
            return known_out
        expect_tensors("x ids weights", given, 3)
        args = (x, ids, weights, self._handle, limit, after, out_dtype)
        if not is_direct(x, weights):
            made: Tensor = _moe_op(*args)
            return made
        out, entry = _moe_into(*args)
        if entry is not None:
            Way(_calls, given, _TENSORS).remember(entry, {"out": out})
        return out

    def grouped(
        self, x: Tensor, counts: Tensor, weights: Tensor | None = None, *, expected: int = 0
    ) -> Tensor:
        """The experts of tokens that come grouped by expert, each visiting that one alone.

        x         bfloat16: [experts, room, hidden], counts[e] rows of each expert from the first on (what
                  others call masked; needs activations="block_scaled" on Blackwell), or [rows, hidden], the
                  rows of each expert right behind those of the one before (contiguous)
        counts    int32 [experts], read by the kernels alone: no call waits for it. One below 0 is taken as
                  0, one that reaches beyond x as what fits
        weights   fp32 [experts, room] or [rows]; None: ones
        expected  rows of an expert, for the choice of a kernel alone; 0: as many as fit

        The result has x's shape, in bfloat16. Its rows that no count reaches are of any content.
        """
        limit, after = self.limit, self.weight_after_down
        given = (x, counts, weights, None, self._handle, limit, after, expected)
        if not is_compiling() and (done := _grouped_calls.run(*given)) is not None:
            known_out: Tensor = done
            return known_out
        expect_tensors("x counts weights", given, 2)
        require(
            self.out_dtype == torch.bfloat16,
            f"out_dtype={self.out_dtype}: expected bfloat16 for grouped tokens, of which nothing is summed",
        )
        args = (x, counts, weights, self._handle, limit, after, expected)
        if not is_direct(x) or not have_no_gradient(weights):
            made: Tensor = _grouped_op(*args)
            return made
        out, entry = _grouped_into(*args)
        if entry is not None:
            Way(_grouped_calls, given, _GROUPED).remember(entry, {"out": out})
        return out

    def extra_repr(self) -> str:
        return f"{self.experts} x ({self.hidden}, {self.inter}), format={self.format!r}"


def _experts(stack: Tensor | Sequence[Weight], format: str) -> list[Weight]:
    if not isinstance(stack, Tensor):
        return list(stack)
    require(stack.dim() == 3, f"{describe('experts', stack)}: expected [experts, out, in]")
    return [Weight.quantize(weight, format) for weight in stack]


def _moe_fake(
    x: Tensor, ids: Tensor, weights: Tensor, handle: int, *options: Any
) -> Tensor:
    return torch.empty(x.shape, dtype=options[2], device=x.device)


def _moe_into(
    x: Tensor,
    ids: Tensor,
    weights: Tensor,
    handle: int,
    limit: float,
    weight_after_down: bool,
    dtype: torch.dtype,
) -> tuple[Tensor, Entry | None]:
    """The result, and the operator, if there was something to do."""
    out = torch.empty(x.shape, dtype=dtype, device=x.device)
    if out.numel() == 0:
        return out, None
    prepared = Prepared.of(handle)
    key = (signature(x, ids, weights), limit, weight_after_down, dtype)
    entry: Entry | None = prepared.table.get(key)
    if entry is None:
        text = describe("x", x)
        require(
            x.device == prepared.device
            and x.dtype == torch.bfloat16
            and x.dim() == 2
            and x.is_contiguous()
            and x.shape[1] == prepared.shape[1],
            f"{text}: expected bfloat16 [tokens, {prepared.shape[1]}], contiguous, on {prepared.device}",
        )
        require(ids.dim() == 2, f"{describe('ids', ids)}: expected [tokens, topk]")
        require_operand("ids", ids, x, torch.int32, (x.shape[0], ids.shape[1]))
        require_operand("weights", weights, x, torch.float32, tuple(ids.shape))
        problem = {
            "tokens": x.shape[0],
            "topk": ids.shape[1],
            "swiglu_limit": limit or None,
            "weight_after_down": weight_after_down,
            "out_dtype": dtype_name(dtype),
        }
        entry = prepared.table.add(key, make_on(tilewright.Moe, prepared.made, x.device, problem))
    scratch = workspace(entry, x.device)
    entry.run(x=x, ids=ids, weights=weights, out=out, workspace=scratch)
    return out, entry


def _moe(*args: Any) -> Done:
    out, entry = _moe_into(*args)
    return (out,), known(entry, _TENSORS, args[0])


_moe_op: Any = define(
    "moe",
    "(Tensor x, Tensor ids, Tensor weights, int experts, float limit, bool weight_after_down, "
    "ScalarType dtype) -> Tensor",
    _moe,
    _moe_fake,
)


def _grouped_fake(x: Tensor, counts: Tensor, weights: Tensor | None, *options: Any) -> Tensor:
    return torch.empty(x.shape, dtype=torch.bfloat16, device=x.device)


def _grouped_into(
    x: Tensor,
    counts: Tensor,
    weights: Tensor | None,
    handle: int,
    limit: float,
    weight_after_down: bool,
    expected: int,
) -> tuple[Tensor, Entry | None]:
    """The result, and the operator, if there was something to do."""
    out = _grouped_fake(x, counts, weights)
    if out.numel() == 0:
        return out, None
    prepared = Prepared.of(handle)
    key = ("grouped", signature(x, counts, weights), limit, weight_after_down, expected)
    entry: Entry | None = prepared.table.get(key)
    if entry is None:
        is_moe = isinstance(prepared.made, tilewright.MoeWeights)
        require(is_moe, f"experts={handle}: that is a weight of a linear layer; expected that of a Moe")
        experts, hidden = prepared.made.problem["experts"], prepared.shape[1]
        require(
            x.device == prepared.device
            and x.dtype == torch.bfloat16
            and x.is_contiguous()
            and (x.dim() == 2 or (x.dim() == 3 and x.shape[0] == experts))
            and x.shape[-1] == hidden,
            f"{describe('x', x)}: expected bfloat16 [{experts}, room, {hidden}] or [rows, {hidden}], "
            f"contiguous, on {prepared.device}",
        )
        require_operand("counts", counts, x, torch.int32, (experts,))
        require_operand("weights", weights, x, torch.float32, tuple(x.shape[:-1]))
        problem = {
            "tokens": x.shape[-2],
            "topk": 1,
            "routing": "grouped" if x.dim() == 3 else "contiguous",
            "swiglu_limit": limit or None,
            "weight_after_down": weight_after_down,
            "expected_tokens": expected,
        }
        entry = prepared.table.add(key, make_on(tilewright.Moe, prepared.made, x.device, problem))
    scratch = workspace(entry, x.device)
    entry.run(x=x, counts=counts, weights=weights, out=out, workspace=scratch)
    return out, entry


def _grouped(*args: Any) -> Done:
    out, entry = _grouped_into(*args)
    return (out,), known(entry, _GROUPED, args[0])


_grouped_op: Any = define(
    "moe_grouped",
    "(Tensor x, Tensor counts, Tensor? weights, int experts, float limit, bool weight_after_down, "
    "int expected) -> Tensor",
    _grouped,
    _grouped_fake,
)
