"""Solutions for FlashInfer's registry of kernels, flashinfer.trace_apply, on Tilewright's kernels.

    import flashinfer, flashinfer.trace_apply
    from tilewright.integrations.flashinfer import solutions

    flashinfer.trace_apply.enable_apply(solutions(heads=[(32, 128)]))

routes flashinfer.merge_state() and merge_states() of 32 heads of 128 to merge_attention. Those are the
definitions that hand over all that a call depends on; the page on engines says what the others
leave out. This module does not import FlashInfer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

import tilewright.torch as tt

from ._versions import require_release

__all__ = ["KNOWN", "solutions"]

#: Releases whose definitions these are.
KNOWN = ("0.7",)
Solution = Callable[..., Any]


def solutions(heads: Iterable[tuple[int, int]]) -> dict[str, Solution]:
    """{name of a definition: function} for pairs (heads, head size), to be given to enable_apply().

    The release of FlashInfer is checked: another one may mean something else by a name.
    """
    require_release("flashinfer-python", KNOWN)
    found: dict[str, Solution] = {}
    for count, size in heads:
        shape = f"h{count}_d{size}"
        found[f"merge_state_{shape}"] = merge_state
        found[f"merge_states_{shape}"] = merge_states
    return found


def merge_state(v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor) -> tuple[Tensor, Tensor]:
    """Results [rows, heads, d] over two parts of the keys, and their lse to base 2 [rows, heads], as one."""
    return _merged((v_a, v_b), (s_a.T, s_b.T))


def merge_states(v: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """The same of v [rows, parts, heads, d] and s [rows, parts, heads]."""
    return _merged(v.transpose(0, 1), s.permute(1, 2, 0))


def _merged(parts: Any, lse: Any) -> tuple[Tensor, Tensor]:
    """lse [parts, heads, rows] to base 2; that of the result is [rows, heads], to base 2."""
    natural: Any
    natural = tuple(x * math.log(2.0) for x in lse) if isinstance(lse, tuple) else lse * math.log(2.0)
    out, found = tt.merge_attention(parts, natural, return_lse=True)
    return out, (found.T / math.log(2.0)).contiguous()
