"""Linear layers with weights of 4, 8 or 16 bits."""

from __future__ import annotations

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
_TENSORS = places_of("x bias out")
_calls = known_calls(len(_TENSORS))


class Linear(torch.nn.Module):
    """out = x w^T + bias, with a weight that is reordered once for the kernels.

    weight       bfloat16 [n, k], or a Weight in another format
    bias         fp32 [n]
    activations  "bf16", or "fp8" to round x to e4m3 where that is faster; "block_scaled" on Blackwell:
                 NVFP4 by "nvfp4" weights, MXFP8 by "mxfp4" and "fp8" ones; no bias
    out_dtype    torch.bfloat16 or torch.float32

    The prepared weight lies on the device of the given one and stays there; it is no parameter,
    has no gradient and is not in state_dict(): keep the source for that.
    """

    bias: Tensor | None

    def __init__(
        self,
        weight: Tensor | Weight,
        bias: Tensor | None = None,
        *,
        activations: str = "bf16",
        out_dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        super().__init__()
        if not isinstance(weight, Weight):
            expect_tensors("weight bias", (weight, bias), 1)
        weight = weight if isinstance(weight, Weight) else Weight(weight.detach())
        on = device_of(weight.values.device)
        made = tilewright.LinearWeight(on, **source(weight, activations))
        self.out_features, self.in_features = weight.shape
        self.out_dtype = out_dtype
        self.format = weight.format
        self._prepared = Prepared(made, weight.shape, weight.values.device, "linear", _calls)
        self._handle = self._prepared.handle
        self.register_buffer("bias", None if bias is None else bias.detach().float().contiguous())

    def forward(self, x: Tensor) -> Tensor:
        bias, out_dtype = self.bias, self.out_dtype
        given = (x, bias, None, self._handle, DTYPES.get(out_dtype))
        if not is_compiling() and (done := _calls.run(*given)) is not None:
            known_out: Tensor = done
            return known_out
        expect_tensors("x bias", given, 1)
        rows = x.reshape(-1, x.shape[-1])
        args = (rows, bias, self._handle, self.out_features, out_dtype)
        shape = (*x.shape[:-1], self.out_features)
        if not is_direct(x) or not have_no_gradient(bias):
            made: Tensor = _linear_op(*args)
            return made.view(shape)
        out, entry = _linear_into(*args)
        out = out.view(shape)
        if entry is not None and rows.data_ptr() == x.data_ptr():
            Way(_calls, given, _TENSORS).remember(entry, {"out": out})
        return out

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, format={self.format!r}"


def _linear_fake(
    x: Tensor, bias: Tensor | None, handle: int, features: int, dtype: torch.dtype
) -> Tensor:
    require(x.dim() == 2, f"{describe('x', x)}: expected a matrix [rows, in features]")
    return torch.empty((x.shape[0], features), dtype=dtype, device=x.device)


def _linear_into(
    x: Tensor, bias: Tensor | None, handle: int, features: int, dtype: torch.dtype
) -> tuple[Tensor, Entry | None]:
    """The result, and the operator, if there was something to do."""
    out = _linear_fake(x, bias, handle, features, dtype)
    if out.numel() == 0:
        return out, None
    weight = Prepared.of(handle)
    require(
        weight.shape == (features, x.shape[1]),
        f"{describe('x', x)} and {features} out features: expected those of the weight, "
        f"{weight.shape[1]} in features and {weight.shape[0]} out features",
    )
    key = (signature(x, bias), dtype)
    entry: Entry | None = weight.table.get(key)
    if entry is None:
        text = describe("x", x)
        require(x.device == weight.device, f"{text}: the weight is on {weight.device}")
        require(
            x.dtype == torch.bfloat16 and x.stride(1) == 1,
            f"{text}: expected bfloat16, rows contiguous",
        )
        require_operand("bias", bias, x, torch.float32, (features,))
        problem = {
            "m": x.shape[0],
            "out_dtype": dtype_name(dtype),
            "has_bias": bias is not None,
            "x_stride": x.stride(0),
        }
        entry = weight.table.add(key, make_on(tilewright.Linear, weight.made, x.device, problem))
    entry.run(x=x, bias=bias, out=out, workspace=workspace(entry, x.device))
    return out, entry


def _linear(*args: Any) -> Done:
    out, entry = _linear_into(*args)
    return (out,), known(entry, _TENSORS, args[0])


_linear_op: Any = define(
    "linear",
    "(Tensor x, Tensor? bias, int weight, int features, ScalarType dtype) -> Tensor",
    _linear,
    _linear_fake,
)
