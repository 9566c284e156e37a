"""Tilewright's attention in SGLang.

    TILEWRIGHT_SGLANG=1 python -m sglang.launch_server --model-path MODEL --attention-backend tilewright

SGLang finds register() by the entry point of the package and calls it in each of its processes. It
does nothing unless TILEWRIGHT_SGLANG is 1.
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


def register() -> None:
    """Registers the backend. May be called again."""
    setting = os.environ.get("TILEWRIGHT_SGLANG", "")
    if setting in ("", "0"):
        return
    if setting != "1":
        raise InvalidArgument(f"TILEWRIGHT_SGLANG={setting}: expected 1, or nothing")
    require_release("sglang", RELEASES)
    from sglang.srt.arg_groups import choices
    from sglang.srt.layers.attention.attention_registry import register_attention_backend

    register_attention_backend(NAME)(_create)
    if NAME not in choices.ATTENTION_BACKEND_CHOICES:
        choices.add_attention_backend_choices([NAME])


def _create(runner: Any) -> Any:
    from .backend import Backend

    return Backend(runner)
