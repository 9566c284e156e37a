"""Tilewright in vLLM: attention, quantised layers, and DeepSeek-V4's sparse attention and layers.

    TILEWRIGHT_VLLM=1 vllm serve MODEL --attention-backend CUSTOM

vLLM finds register() by the entry point of the package and calls it in each of its processes. It
does nothing unless TILEWRIGHT_VLLM says what to register.
"""

from __future__ import annotations

import os

from tilewright._errors import InvalidArgument
from tilewright.integrations._versions import require_release

__all__ = ["RELEASES", "register"]

#: Of vLLM, whose classes and names these modules were written against.
RELEASES = ("0.33",)
#: What TILEWRIGHT_VLLM may name, with commas between; "1" is the first two, which change nothing
#: until a model is told to use them.
PARTS = ("attention", "quantization", "deepseek_v4", "deepseek_v4_layers")


def register() -> None:
    """Registers what TILEWRIGHT_VLLM names. May be called again."""
    parts = _wanted(os.environ.get("TILEWRIGHT_VLLM", ""))
    if not parts:
        return
    require_release("vllm", RELEASES)
    if "attention" in parts:
        from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

        # A name of our own would be unknown to a process that is sent it before it loads plug-ins.
        register_backend(AttentionBackendEnum.CUSTOM, f"{__name__}.backend.Backend")
    if "quantization" in parts:
        from . import quantization

        quantization.register()
    if "deepseek_v4" in parts:
        from . import deepseek_v4

        deepseek_v4.install()
    if "deepseek_v4_layers" in parts:
        from . import deepseek_v4_layers

        deepseek_v4_layers.install()


def _wanted(setting: str) -> set[str]:
    names = {name.strip() for name in setting.split(",") if name.strip() not in ("", "0")}
    if "1" in names:
        names = (names - {"1"}) | set(PARTS[:2])
    if unknown := names - set(PARTS):
        raise InvalidArgument(
            f"TILEWRIGHT_VLLM={setting}: {', '.join(sorted(unknown))} is nothing that can be "
            f"registered; expected 1, or some of {', '.join(PARTS)}"
        )
    return names
