"""torch.nn.functional.scaled_dot_product_attention with Tilewright's forward and torch's backward.

    import torch.nn.attention
    import tilewright.integrations.sdpa as sdpa
    sdpa.register()
    torch.nn.attention.activate_flash_attention_impl("tilewright")
    ...
    torch.nn.attention.restore_flash_attention_impl()

What our kernels lack runs on torch's own, as before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.library import Library

import tilewright.torch as ops
from tilewright._errors import Unsupported

NAME = "tilewright"
DENSE = "_scaled_dot_product_flash_attention"
PACKED = "_flash_attention_forward"

_HEAD_STEP, _MAX_HEAD_SIZE = 8, 256  # of head sizes, of values too
_ALIGNMENT = 16  # bytes, of addresses and strides


def register() -> None:
    """Makes the name known to torch. Nothing changes until it is activated."""
    from torch.nn.attention import register_flash_attention_impl

    register_flash_attention_impl(NAME, register_fn=_activate)


class _Handle:
    """Keeps the overrides in place."""

    def __init__(self, library: Library) -> None:
        self._library: Library | None = library

    def remove(self) -> None:
        self._library = None


def _activate() -> _Handle:
    library = Library("aten", "IMPL", "CUDA")  # type: ignore[no-untyped-call]
    for name, forward in ((DENSE, dense_forward), (PACKED, packed_forward)):
        try:
            original = torch.library.get_kernel(f"aten::{name}", "CUDA")
        except RuntimeError as error:
            raise Unsupported(
                f"this torch {torch.__version__} has no CUDA kernel of {name}; SDPA can be "
                "activated with a build of torch for CUDA only"
            ) from error
        kernel = _with_fallback(forward, original)
        library.impl(name, kernel, "CUDA", with_keyset=True)  # type: ignore[no-untyped-call]
    return _Handle(library)


def _with_fallback(forward: Callable[..., Any], original: Any) -> Callable[..., Any]:
    def kernel(keys: torch.DispatchKeySet, *args: Any, **keywords: Any) -> Any:
        results = forward(*args, **keywords)
        return original.call_boxed(keys, *args, **keywords) if results is None else results

    return kernel


def dense_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...] | None:
    """The nine results of aten's operator of this name, of [b, heads, s, d]; None: not for us."""
    q, k, v = (tensor.transpose(1, 2) for tensor in (query, key, value))
    if dropout_p or return_debug_mask or not _can_run(q, k, v):
        return None
    out = _empty_out(query, value)
    lse = _run(q, k, v, None, out.transpose(1, 2), is_causal, scale, (-1, -1))
    if lse is None:
        return None
    rng_state, unused, debug_mask = _no_dropout(query)
    return out, lse, None, None, query.shape[2], key.shape[2], rng_state, unused, debug_mask


def packed_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cum_seq_q: Tensor | None,
    cum_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    return_debug_mask: bool,
    *,
    scale: float | None = None,
    window_size_left: int | None = None,
    window_size_right: int | None = None,
    seqused_k: Tensor | None = None,
    alibi_slopes: Tensor | None = None,
) -> tuple[Any, ...] | None:
    """The five results of aten's operator of this name; None: not for us.

    Tensors are [rows, heads, d] with cum_seq_q and cum_seq_k, else [b, s, heads, d].
    """
    if dropout_p or return_debug_mask or seqused_k is not None or alibi_slopes is not None:
        return None
    if not _can_run(query, key, value):
        return None
    packing = None
    if cum_seq_q is not None and cum_seq_k is not None:
        if cum_seq_q.dtype != torch.int32 or cum_seq_k.dtype != torch.int32:
            return None
        packing = {
            "cu_q": cum_seq_q.contiguous(),
            "cu_kv": cum_seq_k.contiguous(),
            "max_q": max_q,
            "max_kv": max_k,
        }
    window = (_open_side(window_size_left), _open_side(window_size_right))
    out = _empty_out(query, value)
    lse = _run(query, key, value, packing, out, is_causal, scale, window)
    return None if lse is None else (out, lse, *_no_dropout(query))


def _empty_out(query: Tensor, value: Tensor) -> Tensor:
    """As query lies, in rows as wide as those of value."""
    if value.shape[-1] == query.shape[-1]:
        return torch.empty_like(query)
    order = sorted(range(query.dim()), key=query.stride, reverse=True)
    shape = (*query.shape[:-1], value.shape[-1])
    out = query.new_empty([shape[i] for i in order])
    return out.permute([order.index(i) for i in range(query.dim())])


def _open_side(size: int | None) -> int:
    return -1 if size is None or size < 0 else size


def _can_run(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether the kernels take these operands, [..., heads, d]."""
    return (
        q.dtype in (torch.bfloat16, torch.float16)
        and _is_head_size(q.shape[-1])
        and _is_head_size(v.shape[-1])
        and k.shape[:-1] == v.shape[:-1]
        and k.shape[-1] == q.shape[-1]
        and min(q.numel(), k.numel()) > 0
        and q.shape[-2] % k.shape[-2] == 0
        and all(tensor.dtype == q.dtype and _is_aligned(tensor) for tensor in (q, k, v))
    )


def _is_head_size(columns: int) -> bool:
    return 0 < columns <= _MAX_HEAD_SIZE and columns % _HEAD_STEP == 0


def _is_aligned(tensor: Tensor) -> bool:
    step = _ALIGNMENT // tensor.element_size()
    return (
        tensor.stride(-1) == 1
        and tensor.data_ptr() % _ALIGNMENT == 0
        and all(stride % step == 0 for stride in tensor.stride()[:-1])
    )


@torch.no_grad()
def _run(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    packing: dict[str, Any] | None,
    out: Tensor,
    causal: bool,
    scale: float | None,
    window: tuple[int, int],
) -> Tensor | None:
    """The lse that torch's backward wants, or None if no kernel does this."""
    options: dict[str, Any] = {
        "scale": scale,
        "causal": causal,
        "window": window,
        "out": out,
        "return_lse": True,
    }
    lse: Tensor
    try:
        if packing is not None:
            _, lse = ops.attention_varlen(q, k, v, **packing, **options)
        else:
            _, lse = ops.attention(q, k, v, **options)
    except Unsupported:
        return None
    if packing is not None or (q.shape[1] > k.shape[1] and (causal or window != (-1, -1))):
        # Rows without a key: -inf here, +inf there, so that exp(score - lse) is 0.
        lse.masked_fill_(lse == -math.inf, math.inf)
    return lse


def _no_dropout(query: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """State of the random numbers, a second part of it, and the mask that only tests look at."""
    return (
        torch.zeros(2, dtype=torch.uint64, device=query.device),
        torch.zeros((), dtype=torch.uint64, device=query.device),
        torch.empty(0, dtype=query.dtype, device=query.device),
    )
