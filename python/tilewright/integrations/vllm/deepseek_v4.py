"""DeepSeek-V4 in vLLM: the two functions of FlashMLA that its attention calls.

vLLM has no slot for another implementation: DeepseekV4FlashMLAAttention is no class that can be
replaced by name. It calls two functions by names of its own module, which install() sets.
"""

from __future__ import annotations

import importlib
from typing import Any

from tilewright._errors import Unsupported
from tilewright.compat import flash_mla as ours

#: Modules that call them: V4 and V4.1 have the same calls.
MODULES = ("vllm.models.deepseek_v4.nvidia.flashmla", "vllm.models.deepseek_v41.nvidia.flashmla")
NAMES = ("flash_mla_with_kvcache", "flash_mla_sparse_fwd")
_originals: dict[str, dict[str, Any]] = {}


def install() -> None:
    """Calls of these modules run on our kernels from now on. A second time changes nothing."""
    for path in MODULES:
        if path in _originals:
            continue
        module = importlib.import_module(path)
        missing = [name for name in NAMES if not hasattr(module, name)]
        if missing:
            raise Unsupported(
                f"{path} has no {', '.join(missing)}: this vLLM calls FlashMLA in another way; "
                "leave deepseek_v4 out of TILEWRIGHT_VLLM"
            )
        _originals[path] = {name: getattr(module, name) for name in NAMES}
        for name in NAMES:
            setattr(module, name, getattr(ours, name))


def uninstall() -> None:
    """As before install()."""
    for path, kept in _originals.items():
        module = importlib.import_module(path)
        for name, function in kept.items():
            setattr(module, name, function)
    _originals.clear()


def is_installed() -> bool:
    return bool(_originals)
