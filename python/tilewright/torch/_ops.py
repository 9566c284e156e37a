"""Registration with torch: schemas, kernels, fakes, and a backward that says why there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch.library import Library

library: Any = Library("tilewright", "DEF")  # type: ignore[no-untyped-call]


def define(
    name: str, schema: str, kernel: Callable[..., Any], fake: Callable[..., Any] | None = None
) -> Any:
    """tilewright::name. A schema that mutates nothing and returns something needs a fake."""
    library.define(f"{name}{schema}", tags=(torch.Tag.needs_exact_strides,))
    for key in ("CPU", "CUDA"):
        library.impl(name, kernel, key)
    library.impl(name, fake or (lambda *args, **keywords: None), "Meta")
    operator = getattr(torch.ops.tilewright, name).default
    if not operator._schema.is_mutable:
        torch.library.register_autograd(f"tilewright::{name}", _refusing(name), lib=library)
    elif operator._schema.returns:
        library.impl(name, _with_refusal(operator, name), "Autograd", with_keyset=True)
    else:
        library.impl(name, _without_gradients(operator, name), "Autograd", with_keyset=True)
    return operator


def no_backward(name: str) -> NoReturn:
    raise NotImplementedError(
        f"tilewright: {name} has no backward; call it under torch.no_grad(), or use "
        "torch.nn.functional.scaled_dot_product_attention with the registered forward, whose "
        "backward is torch's"
    )


def _refusing(name: str) -> Callable[..., NoReturn]:
    def backward(context: Any, *gradients: torch.Tensor) -> NoReturn:
        no_backward(name)

    return backward


def _below(operator: Any, keys: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    with torch._C._AutoDispatchBelowAutograd():
        return operator.redispatch(keys & torch._C._after_autograd_keyset, *args, **keywords)


def _wants_gradients(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    if not torch.is_grad_enabled():
        return False
    everything = (*args, *keywords.values())
    return bool(torch._C._any_requires_grad(*everything))


def _with_refusal(operator: Any, name: str) -> Callable[..., Any]:
    """torch.library.register_autograd for an operator that writes to some of its arguments."""

    class Refusal(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, keys: Any, keywords: dict[str, Any], *args: Any) -> Any:
            return _below(operator, keys, args, keywords)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            no_backward(name)

    def kernel(keys: Any, *args: Any, **keywords: Any) -> Any:
        if _wants_gradients(args, keywords):
            return Refusal.apply(keys, keywords, *args)  # type: ignore[no-untyped-call]
        return _below(operator, keys, args, keywords)

    return kernel


def _without_gradients(operator: Any, name: str) -> Callable[..., Any]:
    """As torch's own functions with out=."""

    def kernel(keys: Any, *args: Any, **keywords: Any) -> Any:
        if _wants_gradients(args, keywords):
            raise RuntimeError(
                f"tilewright: {name} writes to tensors that are given, which automatic "
                "differentiation does not follow, and one of its arguments requires grad; call "
                "it under torch.no_grad(), or detach() the argument"
            )
        return _below(operator, keys, args, keywords)

    return kernel
