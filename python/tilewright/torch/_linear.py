"""Linear layers with weights of 4, 8 or 16 bits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import tilewright

from ._context import (
    DTYPES,
    Entry,
    describe,
    device_of,
    is_direct,
    make_on,
    require,
    require_operand,
    signature,
    workspace,
)
from ._ops import define
from ._weights import Prepared, Weight, source


class Linear(torch.nn.Module):
    """out = x w^T + bias, with a weight that is reordered once for the kernels.

    weight       bfloat16 [n, k], or a Weight in another format
    bias         fp32 [n]
    activations  "bf16", or "fp8" to round x to e4m3 where that is faster
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
        weight = weight if isinstance(weight, Weight) else Weight(weight.detach())
        on = device_of(weight.values.device)
        made = tilewright.LinearWeight(on, **source(weight, activations))
        self.out_features, self.in_features = weight.shape
        self.out_dtype = out_dtype
        self.format = weight.format
        self._prepared = Prepared(made, weight.values.device)
        self._handle = self._prepared.handle
        self.register_buffer("bias", None if bias is None else bias.detach().float().contiguous())

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        call = _linear if is_direct(rows) else _linear_op
        out: Tensor = call(rows, self.bias, self._handle, self.out_features, self.out_dtype)
        return out.view(*x.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, format={self.format!r}"


def _linear_fake(
    x: Tensor, bias: Tensor | None, handle: int, features: int, dtype: torch.dtype
) -> Tensor:
    return torch.empty((x.shape[0], features), dtype=dtype, device=x.device)


def _linear(
    x: Tensor, bias: Tensor | None, handle: int, features: int, dtype: torch.dtype
) -> Tensor:
    out = _linear_fake(x, bias, handle, features, dtype)
    if out.numel() == 0:
        return out
    weight = Prepared.of(handle)
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
            "out_dtype": DTYPES[dtype],
            "has_bias": bias is not None,
            "x_stride": x.stride(0),
        }
        entry = weight.table.add(key, make_on(tilewright.Linear, weight.made, x.device, problem))
    entry.run(x=x, bias=bias, out=out, workspace=workspace(entry, x.device))
    return out


_linear_op: Any = define(
    "linear",
    "(Tensor x, Tensor? bias, int weight, int features, ScalarType dtype) -> Tensor",
    _linear,
    _linear_fake,
)
