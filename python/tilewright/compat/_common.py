"""What the drop-in modules share: reasons to refuse, and copies that are made and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn

import torch
from torch import Tensor

from tilewright._errors import Unsupported
from tilewright._reasons import Reason
from tilewright.torch._ops import no_backward

_counts: Counter[str] = Counter()


def stats() -> dict[str, int]:
    """How often calls had to do what a caller may want to avoid, by kind.

    contiguous  a tensor was copied for its strides or its address
    head_dim    q, k and v were copied into a larger head size
    converted   a tensor was copied into another dtype
    seqused     sequences were packed, because they use fewer rows than they have
    leftpad     a table of single keys was made, of those behind left padding in pages
    """
    return dict(_counts)


def reset_stats() -> None:
    _counts.clear()


def count(kind: str) -> None:
    _counts[kind] += 1


class _Forward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, name: str, call: Callable[[], Any], *operands: Tensor) -> Any:
        ctx.name = name
        return call()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        no_backward(ctx.name)


def forward_alone(name: str, call: Callable[[], Any], *operands: Tensor) -> Any:
    """call(), which writes to tensors that were made for it: where an operand requires a gradient the
    result does so too, and its backward is refused, as that of operators that make their results."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in operands):
        return _Forward.apply(name, call, *operands)  # type: ignore[no-untyped-call]
    return call()


def reason(field: str, value: object, rule: str, fix: str) -> Reason:
    return Reason(field, str(value), rule, fix)


def refuse(function: str, reasons: list[Reason]) -> NoReturn:
    lines = (f"  {r.field} = {r.value}: {r.rule}. {r.fix}" for r in reasons)
    text = f"{function} cannot do this call:\n" + "\n".join(lines)
    raise Unsupported(text, reasons)


def _has_aligned_rows(stride: tuple[int, ...], shape: torch.Size, itemsize: int) -> bool:
    if stride[-1] != 1 and shape[-1] > 1:
        return False
    outer = zip(stride[:-1], shape[:-1], strict=True)
    return all(size == 1 or step * itemsize % 16 == 0 for step, size in outer)


_has_aligned_rows_as_before = lru_cache(maxsize=4096)(_has_aligned_rows)


def fit(tensor: Tensor) -> Tensor:
    """The tensor, or a copy whose rows the kernels can read."""
    layout = (tensor.stride(), tensor.shape, tensor.itemsize)
    if torch.compiler.is_compiling() or tensor.is_meta:
        is_fine = _has_aligned_rows(*layout)
    else:
        is_fine = tensor.data_ptr() % 16 == 0 and _has_aligned_rows_as_before(*layout)
    if is_fine:
        return tensor
    count("contiguous")
    return tensor.clone(memory_format=torch.contiguous_format)


def packed(tensor: Tensor | None) -> Tensor | None:
    """A tensor of lengths or indices, contiguous."""
    if tensor is None or tensor.is_contiguous():
        return tensor
    count("contiguous")
    return tensor.contiguous()


def shape_of(value: Any) -> str:
    """A tensor as a reason's value has it."""
    if not isinstance(value, Tensor):
        return repr(value)
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
