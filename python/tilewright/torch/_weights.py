"""Weights as checkpoints have them, and prepared ones by the numbers that operators know them by."""

from __future__ import annotations

import itertools
import weakref
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tilewright import _core
from tilewright._errors import InvalidArgument

from ._context import DTYPES, Table, describe, require
from ._ops import tables
from ._quantize import quantize


@dataclass(frozen=True)
class Weight:
    """A weight [n, k], out features by in features, in a format.

    format  values                                   scales
    bf16    bfloat16 [n, k]                          none
    fp8     float8_e4m3fn [n, k]                     fp32 or float8_e8m0fnu, one for 128 x 128
    mxfp4   uint8 [n, k / 2]: two e2m1 in a byte     uint8 or float8_e8m0fnu [n, k / 32]
    nvfp4   as mxfp4                                 uint8 or float8_e4m3fn [n, k / 16]

    nvfp4 also has a global scale; `is_reciprocal`: it divides.
    """

    values: Tensor
    scales: Tensor | None = None
    format: str = "bf16"
    global_scale: float = 0.0
    is_reciprocal: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        n, k = self.values.shape
        return n, 2 * k if self.format in ("mxfp4", "nvfp4") else k

    @staticmethod
    def quantize(weight: Tensor, format: str) -> Weight:
        """A matrix in "bf16", "fp8", "mxfp4" or "nvfp4"."""
        require(
            weight.dim() == 2 and format in _BLOCKS,
            f"{describe('weight', weight)}, format={format!r}: expected a matrix and one of "
            f"{', '.join(map(repr, _BLOCKS))}",
        )
        if format == "bf16":
            return Weight(weight.detach().to(torch.bfloat16).contiguous())
        n, k = weight.shape
        done = quantize(weight.detach().contiguous(), _BLOCKS[format])
        codes = done.codes[:n, : k // 2 if format in ("mxfp4", "nvfp4") else k].contiguous()
        number = float(done.tensor_scale) if format == "nvfp4" else 0.0
        return Weight(codes, done.scales, format, number)


_BLOCKS = {"bf16": "", "fp8": "fp8_128x128", "mxfp4": "mxfp4", "nvfp4": "nvfp4"}


def source(weight: Weight, activations: str) -> dict[str, Any]:
    """As the C interface describes it."""
    n, k = weight.shape
    members: dict[str, Any] = {
        "format": weight.format,
        "activations": activations,
        "n": n,
        "k": k,
        "values": weight.values.contiguous(),
    }
    if weight.scales is not None:
        members["scales"] = weight.scales.contiguous()
    if weight.format == "fp8" and weight.scales is not None:
        members["scale_dtype"] = DTYPES[weight.scales.dtype]
    if weight.format == "nvfp4":
        members["global_scale"] = weight.global_scale
        members["is_global_scale_reciprocal"] = weight.is_reciprocal
    return members


class Prepared:
    """Prepared weights: an operator of torch takes the number, a module keeps them alive."""

    TABLE_LIMIT = 128

    _alive: weakref.WeakValueDictionary[int, Prepared] = weakref.WeakValueDictionary()
    _numbers = itertools.count(1)

    def __init__(
        self,
        made: Any,
        shape: tuple[int, ...],
        device: torch.device,
        operator: str = "",
        calls: _core.Calls | None = None,
    ) -> None:
        self.made = made
        self.shape = shape  # of a matrix: out features, in features
        self.device = device
        self.table = Table(Prepared.TABLE_LIMIT)  # operators on them, which live no longer
        self.handle = next(Prepared._numbers)
        Prepared._alive[self.handle] = self
        self.forget_in(operator, calls)

    def forget_in(self, operator: str, calls: _core.Calls | None) -> None:
        """Calls that are to be forgotten with the weights."""
        for known in (calls, tables.get(operator)):
            if known is not None:  # it holds operators, and those the weights
                weakref.finalize(self, known.clear).atexit = False

    @staticmethod
    def of(handle: int) -> Prepared:
        found = Prepared._alive.get(handle)
        if found is None:
            raise InvalidArgument(
                f"weight {handle} does not exist: the module that prepared it is gone, or it "
                "was made in another process"
            )
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> Prepared:
        return self  # never written to, so copies of a module share it
