"""Layouts: maps from coordinates to offsets, their algebra, and those of the hardware by name.

    Layout("(8,8):(8,1)") @ Layout("(4,2):(2,1)")
    atoms["wgmma.m64n64.C"]
    handoff("wgmma.m64n64.C", "wgmma.m64k16.A")

In a notebook a layout shows itself as a drawing. docs/01-layouts.md explains the operations.
"""

from __future__ import annotations

from ._atoms import Atom, Atoms, Handoff, atoms, handoff
from ._layout import Drawing, Layout, identity, ordered

__all__ = ["Atom", "Atoms", "Drawing", "Handoff", "Layout", "atoms", "handoff", "identity", "ordered"]
