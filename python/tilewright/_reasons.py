"""Why something cannot be done, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """Why something cannot be done: the member, its value, the rule that it breaks, what would help."""

    field: str
    value: str
    rule: str
    fix: str = ""
