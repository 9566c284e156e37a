"""Tilewright in SGLang: attention, and DeepSeek-V4's sparse attention and indexer.

    TILEWRIGHT_SGLANG=1 python -m sglang.launch_server --model-path MODEL --attention-backend tilewright

SGLang finds register() by the entry point of the package and calls it in each of its processes. It
does nothing unless TILEWRIGHT_SGLANG says what to register.
"""

from __future__ import annotations

import os
from typing import Any

from tilewright._errors import InvalidArgument
from tilewright.integrations._versions import require_release

__all__ = ["NAME", "RELEASES", "register"]

#: Of SGLang, whose classes and names these modules were written against.
RELEASES = ("0.5.23",)
#: What --attention-backend takes.
NAME = "tilewright"
#: What TILEWRIGHT_SGLANG may name, with commas between; "1" is the first, which changes nothing
#: until a model is told to use it.
PARTS = ("attention", "deepseek_v4")


def register() -> None:
    """Registers what TILEWRIGHT_SGLANG names. May be called again."""
    parts = _wanted(os.environ.get("TILEWRIGHT_SGLANG", ""))
    if not parts:
        return
    require_release("sglang", RELEASES)
    if "attention" in parts:
        _register_attention()
    if "deepseek_v4" in parts:
        from . import deepseek_v4

        deepseek_v4.install()


def _wanted(setting: str) -> set[str]:
    names = {name.strip() for name in setting.split(",") if name.strip() not in ("", "0")}
    if "1" in names:
        names = (names - {"1"}) | {PARTS[0]}
    if unknown := names - set(PARTS):
        raise InvalidArgument(
            f"TILEWRIGHT_SGLANG={setting}: {', '.join(sorted(unknown))} is nothing that can be "
            f"registered; expected 1, or some of {', '.join(PARTS)}"
        )
    return names


def _register_attention() -> None:
    from sglang.srt.arg_groups import choices
    from sglang.srt.layers.attention.attention_registry import register_attention_backend

    register_attention_backend(NAME)(_create)
    if NAME not in choices.ATTENTION_BACKEND_CHOICES:
        choices.add_attention_backend_choices([NAME])


def _create(runner: Any) -> Any:
    from .backend import Backend

    return Backend(runner)
