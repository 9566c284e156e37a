"""Tensor-core kernels for LLM inference, and a CUDA driver that runs them on the CPU.

    dev = tilewright.Device("auto")
    op = tilewright.Attention(dev, heads=8, kv_heads=8, q_len=4096, kv_len=4096, head_dim=128, causal=True)
    op.run(q=q, k=k, v=v, out=out)

Operators are the classes of the C interface, with the same names and members. Nothing here imports PyTorch or
numpy.
"""

from __future__ import annotations

import importlib

from . import _core
from ._errors import (CheckFailed, DeviceError, Error, InternalError, InvalidArgument, OutOfMemory, ParseError,
                      Unsupported)

__version__: str = _core.__version__
Device, Buffer = _core.Device, _core.Buffer
for _name in _core.CLASSES:
    globals()[_name] = getattr(_core, _name)

# Found when they are first used: names of modules, and of what stands in them.
_MODULES = ("bench", "compat", "doctor", "formats", "integrations", "layout", "numpy", "sim", "testing", "torch")
_NAMES = {"empty": "_arrays", "Plan": "_plan", "Reason": "_reasons", "attention_signs": "_core",
          "quantize_on_host": "_core", "quantize_sizes": "_core", "rope_table": "_core"}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
