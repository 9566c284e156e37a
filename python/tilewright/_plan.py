"""Plans: what an operator will do, and whether one can be made at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _core


@dataclass(frozen=True)
class Plan:
    """What an operator does: its kernel, the workspace that run() needs, and the text of the tool."""

    kernel: str
    workspace_bytes: int
    text: str
    flops: float | None = None
    bytes: float | None = None

    def __str__(self) -> str:
        return self.text


def plan_of(op: Any) -> Plan:
    """The plan of an operator; what it does not tell is empty."""
    size = getattr(op, "workspace_bytes", 0)
    return Plan(getattr(op, "kernel", ""), size if isinstance(size, int) else 0, getattr(op, "plan_text", ""),
                getattr(op, "flops", None), getattr(op, "bytes", None))
