"""The simulated GPU from Python: launches of PTX with arrays of the host, findings and counters as data.

    report = tilewright.simulate(ptx, grid=4, block=256, args=[x, y, 1000], device="b200", check="all")
    report.findings, report.counters, report.by_line()
"""

from __future__ import annotations

from ._memory import uninitialised
from ._report import Finding, Line, Place, Report
from ._simulate import simulate
from ._simulator import Simulator
from ._tensor_map import tensor_map

__all__ = ["Finding", "Line", "Place", "Report", "Simulator", "simulate", "tensor_map", "uninitialised"]
