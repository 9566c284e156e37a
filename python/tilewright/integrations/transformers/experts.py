"""Experts of mixture-of-experts models, prepared at the first call of a layer."""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import tilewright.torch as ops

from .refusal import refuse

FORMATS = ("bf16", "fp8", "mxfp4", "nvfp4")
_EAGER = 'use experts_implementation="eager" for this model'


def functions(name: str) -> dict[str, Callable[..., Tensor]]:
    """What transformers can register: `name` for experts as stored, NAME-FORMAT to round them."""
    return {
        name: functools.partial(forward, format=None),
        **{f"{name}-{format}": functools.partial(forward, format=format) for format in FORMATS},
    }


def forward(
    module: Any,
    hidden_states: Tensor,
    top_k_index: Tensor,
    top_k_weights: Tensor,
    *,
    format: str | None,
) -> Tensor:
    """[tokens, hidden]: the sum over the chosen experts, the weights applied after `down`.

    An index that is no expert of this rank adds nothing. Beside the weights of the module, the
    prepared ones take memory of their own.
    """
    if module.training:
        refuse(module.config, "experts in training mode", f"call eval(), or {_EAGER}")
    prepared = _prepared(module, format)
    ids = top_k_index.int()
    out: Tensor = prepared.moe(
        hidden_states.to(torch.bfloat16).contiguous(),
        ids.masked_fill(ids >= prepared.moe.experts, -1),
        top_k_weights.float().contiguous(),
    )
    return out.to(hidden_states.dtype)


class _Identity:
    """Tells when a weight was replaced, moved or written to. An address alone may be used again."""

    def __init__(self, weight: Tensor) -> None:
        self._weight = weakref.ref(weight)
        self._state = _Identity._state_of(weight)

    def is_of(self, weight: Tensor) -> bool:
        return self._weight() is weight and self._state == _Identity._state_of(weight)

    @staticmethod
    def _state_of(weight: Tensor) -> tuple[Any, ...]:
        version = 0 if weight.is_inference() else weight._version
        return weight.data_ptr(), weight.device, weight.dtype, version


@dataclass(frozen=True)
class _Prepared:
    moe: Any
    format: str | None
    weights: tuple[_Identity, ...]


#: A module's prepared experts go with it. They are no attribute: a module can be copied and saved.
_kept: weakref.WeakKeyDictionary[Any, _Prepared] = weakref.WeakKeyDictionary()


def _prepared(module: Any, format: str | None) -> _Prepared:
    weights = (module.gate_up_proj, module.down_proj)
    kept = _kept.get(module)
    if (
        kept is None
        or kept.format != format
        or not all(map(_Identity.is_of, kept.weights, weights))
    ):
        _kept.pop(module, None)  # before the new ones take memory
        made = _prepare(module, format)
        kept = _kept[module] = _Prepared(made, format, tuple(map(_Identity, weights)))
    return kept


@torch.no_grad()
def _prepare(module: Any, format: str | None) -> Any:
    config = module.config
    for attribute, wanted in (
        ("has_gate", True),
        ("is_concatenated", True),
        ("has_bias", False),
        ("is_transposed", False),
    ):
        if getattr(module, attribute) is not wanted:
            refuse(config, f"experts with {attribute}={not wanted}", _EAGER)
    gate_up, down = module.gate_up_proj, module.down_proj
    if format is None and gate_up.dtype != torch.bfloat16:
        refuse(
            config,
            f"experts stored as {gate_up.dtype}",
            'load the model with dtype=torch.bfloat16, or name a format to round them to: '
            'experts_implementation="tilewright-bf16"',
        )
    limit = float(getattr(module, "limit", None) or math.inf)
    if not _is_swiglu(module, limit):
        refuse(
            config,
            "a gate that is not silu(min(gate, limit)) * clamp(up, -limit, limit)",
            _EAGER,
        )
    gate, up = gate_up.detach().to(torch.bfloat16).chunk(2, dim=1)
    return ops.Moe(
        gate,
        up,
        down.detach().to(torch.bfloat16),
        format=format or "bf16",
        limit=None if limit == math.inf else limit,
        weight_after_down=True,
    )


def _is_swiglu(module: Any, limit: float) -> bool:
    """Asks the module: what is called "silu", and how gates are clamped, differs between models."""
    size = min(limit, 8.0)
    values = torch.linspace(-2 * size, 2 * size, 33)
    gate, up = (part.flatten() for part in torch.meshgrid(values, values, indexing="ij"))
    wanted = nn.functional.silu(gate.clamp(max=limit)) * up.clamp(-limit, limit)
    given = module._apply_gate(torch.cat([gate, up])[None])[0]
    return given.shape == wanted.shape and bool(torch.allclose(given, wanted, atol=1e-5))
