"""How what the kernels lack is refused."""

from __future__ import annotations

from typing import Any, NoReturn

from tilewright._errors import Unsupported


def refuse(config: Any, reason: str, way_out: str) -> NoReturn:
    """Raises Unsupported, naming the model."""
    model = getattr(config, "model_type", None) or "this model"
    raise Unsupported(f"{model}: {reason}; {way_out}")


EAGER = 'use attn_implementation="eager" for this model'


def refuse_what_no_kernel_has(
    config: Any, *, dropout: float, cache: Any, output_attentions: bool
) -> None:
    """What transformers can ask of every attention function, and none of ours does."""
    if dropout:
        refuse(config, f"attention dropout {dropout}", "set attention_dropout to 0 in the config")
    if cache is not None:
        refuse(config, "continuous batching over paged caches", "use generate() instead")
    if output_attentions:
        refuse(config, "output_attentions=True, but the weights are never formed", EAGER)
