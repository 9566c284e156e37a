"""What tests use. tilewright.testing.plugin is the pytest plugin: pytest --tilewright-sim=b200"""

from __future__ import annotations

from ..sim import uninitialised

__all__ = ["uninitialised"]
