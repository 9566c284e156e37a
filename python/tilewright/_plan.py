"""Plans: what an operator will do, and whether one can be made at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from . import _core
from ._errors import InvalidArgument, Unsupported
from ._reasons import Reason


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


@dataclass(frozen=True)
class Answer:
    """Whether an operator can do a problem: true or false, the plan if it can, all reasons if not."""

    plan: Plan | None
    reasons: list[Reason] = field(default_factory=list)
    text: str = ""

    def __bool__(self) -> bool:
        return self.plan is not None

    def __str__(self) -> str:
        return self.plan.text if self.plan else self.text


def plan_of(op: Any) -> Plan:
    """The plan of an operator; what it does not tell is empty."""
    size = getattr(op, "workspace_bytes", 0)
    return Plan(getattr(op, "kernel", ""), size if isinstance(size, int) else 0, getattr(op, "plan_text", ""),
                getattr(op, "flops", None), getattr(op, "bytes", None))


def can_implement(operator: str | type[_core.Operator], device: str | _core.Device = "h200",
                  **problem: Any) -> Answer:
    """Whether the operator ("Attention", or its class) can do the problem on a device: "h200", "b200", "b300",
    what Device takes, or a Device. Needs no GPU for the first three."""
    kind: Any = getattr(_core, operator) if isinstance(operator, str) else operator
    if isinstance(device, str):
        device = _core.Device(f"sim:{device}" if device in ("h200", "b200", "b300") else device)
    try:
        return Answer(plan_of(kind(device, **problem)))
    except (InvalidArgument, Unsupported) as error:
        return Answer(None, [Reason("", "", str(error))], str(error))
