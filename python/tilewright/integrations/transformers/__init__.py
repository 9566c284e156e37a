"""Attention, masks and experts of Hugging Face transformers.

    import tilewright.integrations.transformers as integration
    integration.register()
    model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.bfloat16, device_map="cuda",
                                                 attn_implementation="tilewright",
                                                 experts_implementation="tilewright")
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
from transformers.masking_utils import AttentionMaskInterface

from . import dense, experts, v4
from .checkpoint import dequantized, load_v4

__all__ = ["NAME", "dequantized", "load_v4", "register"]

#: What `attn_implementation` and `experts_implementation` take. Experts also as NAME-FORMAT.
NAME = "tilewright"


def register() -> None:
    """Makes "tilewright" known to transformers. Models that name another implementation keep it.

    Attention and its masks go together: with attention alone, transformers would leave out every
    mask without a word.
    """
    AttentionInterface.register(NAME, _attention)
    AttentionMaskInterface.register(NAME, _mask)
    for name, function in experts.functions(NAME).items():
        ALL_EXPERTS_FUNCTIONS.register(name, function)


def _is_v4(config: Any) -> bool:
    return getattr(config, "model_type", None) == "deepseek_v4"


def _attention(module: nn.Module, *args: Any, **keywords: Any) -> tuple[Tensor, None]:
    function = v4.attention if _is_v4(module.config) else dense.attention
    return function(module, *args, **keywords), None


def _mask(*, config: Any = None, **keywords: Any) -> Tensor | None:
    return (v4.mask if _is_v4(config) else dense.mask)(config=config, **keywords)
