"""What operators need of Python."""

from __future__ import annotations

from typing import Any


def make(kind: Any, on: Any, members: dict[str, Any]) -> Any:
    """How an operator is unpickled."""
    return kind(on, **members)
