"""Plans: what an operator will do, and whether one can be made at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _core
from ._errors import InternalError, InvalidArgument
from ._reasons import Reason


@dataclass(frozen=True)
class Candidate:
    """A kernel that could do the problem, or not. "auto" chooses by `cost_us`, infinite if never measured."""

    name: str
    reason: str
    is_possible: bool
    is_automatic: bool
    is_chosen: bool
    cost_us: float


@dataclass(frozen=True)
class Launch:
    """One kernel launch of a plan."""

    step: str
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: int
    shared_bytes: int


@dataclass(frozen=True)
class Plan:
    """What an operator does: its kernel, the workspace that run() needs, and the text of the tool. flops and bytes
    are of what `assumption` says, "full caches"; exact if it is empty."""

    kernel: str
    workspace_bytes: int
    text: str
    flops: float | None = None
    bytes: float | None = None
    assumption: str = ""
    candidates: list[Candidate] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)

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

    def _repr_html_(self) -> str:
        from html import escape
        rows = "".join(f"<tr><td>{escape(r.field)}</td><td>{escape(r.value)}</td><td>{escape(r.rule)}</td>"
                       f"<td>{escape(r.fix)}</td></tr>" for r in self.reasons)
        head = "<tr><th>member</th><th>value</th><th>rule</th><th>what to do</th></tr>"
        return f"<table>{head}{rows}</table>" if rows else f"<pre>{escape(str(self))}</pre>"


def _launch(row: dict[str, Any]) -> Launch:
    grid, block = ((row[f"{what}_x"], row[f"{what}_y"], row[f"{what}_z"]) for what in ("grid", "block"))
    return Launch(row["step"], row["entry"], grid, block, row["cluster"], row["shared_bytes"])


def _plan(found: dict[str, Any]) -> Plan:
    return Plan(found["kernel"], found["workspace_bytes"], found["text"], found["flops"], found["bytes"],
                found["assumption"], [Candidate(**row) for row in found["candidates"]],
                [_launch(row) for row in found["launches"]])


def plan_of(op: Any) -> Plan:
    """The plan of an operator. Where a plan depends on more than the problem, what the operator itself tells."""
    given = {"problem": op.problem}
    for name, fields in _core.members(type(op), "plan").items():
        if name != "problem":  # what the weights tell of themselves
            told = getattr(op.on, "problem", None) or {}
            given[name] = {field: told[field] for field in fields if field in told}
    if all(set(_core.members(type(op), "plan")[name]) <= set(given[name]) for name in given):
        return _plan(_core.plan(type(op), op.device, given))
    size = getattr(op, "workspace_bytes", 0)
    return Plan(getattr(op, "kernel", ""), size if isinstance(size, int) else 0, getattr(op, "plan_text", ""),
                getattr(op, "flops", None), getattr(op, "bytes", None))


def can_implement(operator: str | type[_core.Operator], device: str | _core.Device = "h200",
                  **problem: Any) -> Answer:
    """Whether the operator ("Attention", or its class) can do the problem on a device: "h200", "b200", "b300",
    what Device takes, or a Device. The first three need neither GPU nor simulator.

    What a plan takes beside the problem is given by name, too: `weight` of Linear and `weights` of Moe, dicts of
    format, activations and sizes; `work` of KvCache; `tokens` and `batch` of Indexer; ...
    """
    kind: Any = getattr(_core, operator) if isinstance(operator, str) else operator
    if isinstance(device, str):
        device = _core.Device(f"plan:{device}" if device in ("h200", "b200", "b300") else device)
    others = [name for name in _core.members(kind, "plan") if name not in ("problem", "layout")]
    inputs: dict[str, Any] = {name: problem.pop(name) for name in others if name in problem}
    inputs |= {name: problem for name in ("problem", "layout") if name in _core.members(kind, "plan")}
    found = _core.plan(kind, device, inputs)
    if not found["reasons"] and found["status"] == 0:
        return Answer(_plan(found))
    return Answer(None, [Reason(**row) for row in found["reasons"]], found["text"])


def reasons_of(op_type: Any, device: _core.Device, problem: Mapping[str, Any]) -> list[Reason]:
    """All that stands in the way of an operator that could not be made."""
    try:
        return can_implement(op_type, device, **problem).reasons
    except (InvalidArgument, InternalError, TypeError):
        return []
