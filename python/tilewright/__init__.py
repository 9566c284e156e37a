"""Tensor-core kernels for LLM inference, and a CUDA driver that runs them on the CPU.

    dev = tilewright.Device("auto")
    op = tilewright.Attention(dev, heads=8, kv_heads=8, q_len=4096, kv_len=4096, head_dim=128, causal=True)
    op.run(q=q, k=k, v=v, out=out)

Operators are the classes of the C interface, with the same names and members. Nothing here imports PyTorch or
numpy.
"""

from __future__ import annotations

import importlib
import os

from . import _core
from ._core import *  # noqa: F403
from ._errors import (CheckFailed, DeviceError, Error, InternalError, InvalidArgument, OutOfMemory, ParseError,
                      Unsupported)

__version__: str = _core.__version__

# Another copy would have its own devices and errors; a loader takes one that is there already for ours.
_ours = os.path.realpath(os.path.join(os.path.dirname(_core.__file__), "lib"))
if _others := [path for path in _core.loaded_libraries() if os.path.dirname(path) != _ours]:
    raise ImportError(f"tilewright: this process has loaded another copy of the library, {' and '.join(_others)}, "
                      f"beside that of this package in {_ours}; load one of them alone")

# Found when they are first used: names of modules, and of what stands in them.
_MODULES = ("bench", "compat", "doctor", "formats", "integrations", "jax", "layout", "numpy", "sim", "testing",
            "torch")
_NAMES = {"Answer": "_plan", "Completion": "_llm", "LLM": "_llm", "Layout": "layout", "Piece": "_llm",
          "Plan": "_plan", "Reason": "_reasons", "SamplingParams": "_llm", "can_implement": "_plan",
          "TokenStream": "_tokenizer", "Tokenizer": "_tokenizer", "empty": "_arrays", "simulate": "sim"}

TYPE_CHECKING = False  # as in typing, which takes longer to import than the rest
if TYPE_CHECKING:
    from . import formats as formats
    from . import layout as layout
    from . import sim as sim
    from ._arrays import empty as empty
    from ._llm import LLM as LLM
    from ._llm import Completion as Completion
    from ._llm import Piece as Piece
    from ._llm import SamplingParams as SamplingParams
    from ._plan import Answer as Answer
    from ._plan import Plan as Plan
    from ._plan import can_implement as can_implement
    from ._reasons import Reason as Reason
    from ._tokenizer import Tokenizer as Tokenizer
    from ._tokenizer import TokenStream as TokenStream
    from .layout import Layout as Layout
    from .sim import simulate as simulate


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
