"""Other libraries' interfaces on Tilewright's kernels.

    from tilewright.compat import flash_attn_interface      # under its own name, or
    tilewright.compat.install("flash_attn_interface")       # for code that imports the peer's

What a kernel lacks raises tilewright.Unsupported, whose `reasons` name every argument at fault.
"""

from __future__ import annotations

import importlib
import sys

from ._common import reset_stats, stats

__all__ = ["install", "reset_stats", "stats", "uninstall"]

#: The modules that can stand in for the ones of that name.
MODULES = ("flash_attn_interface", "flash_mla", "deep_gemm")


def install(name: str) -> None:
    """Makes `import NAME` give our module, until uninstall(). Nothing else does that."""
    if name not in MODULES:
        raise ValueError(f"install({name!r}): expected one of {', '.join(map(repr, MODULES))}")
    ours = importlib.import_module(f"{__name__}.{name}")
    loaded = sys.modules.get(name)
    if loaded is not None and loaded is not ours:
        raise RuntimeError(
            f"{name} is loaded already from {getattr(loaded, '__file__', None)}; install ours "
            "before the first import of it, or in a process of its own"
        )
    sys.modules[name] = ours


def uninstall(name: str) -> None:
    """Undoes install(); what has been imported from our module stays with who did it."""
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__name__ == f"{__name__}.{name}":
        del sys.modules[name]
