"""FlashMLA's interface on Tilewright's kernels: DeepSeek-V4's sparse attention."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from torch import Tensor

import tilewright.torch as tt
from tilewright import Reason
from tilewright.torch._context import empty_as, signature
from tilewright.torch._sparse import sparse_attention_into, sparse_workspace_bytes

from ._common import count, packed, reason, refuse, shape_of

__all__ = [
    "FlashMLASchedMeta",
    "can_implement",
    "flash_mla_sparse_fwd",
    "flash_mla_with_kvcache",
    "get_mla_metadata",
]

HEAD_DIM = 512
MAX_HEADS = 128
_STATE = "_tilewright_schedule"


@dataclasses.dataclass
class _Schedule:
    """What calls keep: the shapes that it was made for, and a workspace that holds it."""

    shapes: dict[str, Any]
    signature: bytes  # of the tensors of the last call: with the same one nothing is to be compared
    workspace: Tensor
    is_made: bool = False


@dataclasses.dataclass
class FlashMLASchedMeta:
    """Empty until the first call, which makes the schedule for its shapes and lengths."""

    have_initialized: bool = False
    config: Any = None
    tile_scheduler_metadata: Tensor | None = None
    num_splits: Tensor | None = None


def get_mla_metadata(*args: Any, **kwargs: Any) -> tuple[FlashMLASchedMeta, None]:
    """An empty schedule; arguments are of older versions, and ignored."""
    return FlashMLASchedMeta(), None


def flash_mla_with_kvcache(
    q: Tensor,
    k_cache: Tensor,
    block_table: Tensor | None,
    cache_seqlens: Tensor | None,
    head_dim_v: int,
    tile_scheduler_metadata: Any,
    num_splits: None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    is_fp8_kvcache: bool = False,
    indices: Tensor | None = None,
    attn_sink: Tensor | None = None,
    extra_k_cache: Tensor | None = None,
    extra_indices_in_kvcache: Tensor | None = None,
    topk_length: Tensor | None = None,
    extra_topk_length: Tensor | None = None,
    out: Tensor | None = None,
    enable_batch_invariant: bool = False,
) -> tuple[Tensor, Tensor]:
    """q [b, s, heads, 512] over FP8 rows that lists name: out like q, lse [b, heads, s].

    tile_scheduler_metadata may serve again as long as shapes and the values of lengths stay.
    `enable_batch_invariant` makes a schedule for every call.
    """
    second: tuple[Tensor | None, ...]
    second = (extra_k_cache, extra_indices_in_kvcache, extra_topk_length)
    args: tuple[Any, ...] = (q, k_cache, indices, topk_length, *second, attn_sink)
    kind = (head_dim_v, causal, is_fp8_kvcache, enable_batch_invariant)
    kept: _Schedule | None = getattr(tile_scheduler_metadata, _STATE, None)
    lse = q.new_empty(q.shape[:3], dtype=torch.float32)
    write: Any = sparse_attention_into
    if kept is not None and kind == (HEAD_DIM, False, True, False) and _is_as_before(kept, args):
        out = empty_as(q) if out is None else out
        write(*args, softmax_scale, out, lse, kept.workspace, True)
        return out, _as_peer(lse).transpose(1, 2)
    reasons = decode_reasons(
        q, k_cache, head_dim_v, causal=causal, is_fp8_kvcache=is_fp8_kvcache, indices=indices
    )
    if reasons:
        refuse("flash_mla_with_kvcache", reasons)
    if not hasattr(tile_scheduler_metadata, "have_initialized"):
        raise TypeError(
            f"tile_scheduler_metadata is {type(tile_scheduler_metadata).__name__}: expected what "
            "get_mla_metadata() returns first"
        )
    lists = (_lists(indices), packed(topk_length))
    second = (extra_k_cache, _lists(extra_indices_in_kvcache), packed(extra_topk_length))
    out = empty_as(q) if out is None else out
    args = (_rows(q), k_cache, *lists, *second, packed(attn_sink), softmax_scale)
    if torch.compiler.is_compiling() or enable_batch_invariant:
        write(*args, out, lse)
    else:
        schedule = _schedule(tile_scheduler_metadata, args, out, lse)
        write(*args, out, lse, schedule.workspace, schedule.is_made)
        schedule.is_made = tile_scheduler_metadata.have_initialized = True
    return out, _as_peer(lse).transpose(1, 2)


def flash_mla_sparse_fwd(
    q: Tensor,
    kv: Tensor,
    indices: Tensor,
    sm_scale: float,
    d_v: int = HEAD_DIM,
    attn_sink: Tensor | None = None,
    topk_length: Tensor | None = None,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """q [s, heads, 512] over rows [rows, 1, 512]: out, largest logits and lse [s, heads]."""
    reasons = prefill_reasons(q, kv, d_v)
    if reasons:
        refuse("flash_mla_sparse_fwd", reasons)
    done, lse, max_logits = tt.sparse_attention(
        _rows(q[None]),
        kv,
        _lists(indices.transpose(0, 1)),
        lengths=None if topk_length is None else packed(topk_length[None]),
        sink=packed(attn_sink),
        scale=sm_scale,
        out=None if out is None else out[None],
        return_lse=True,
        return_max_logits=True,
    )
    return done[0], max_logits[0], _as_peer(lse)[0]


def decode_reasons(
    q: Tensor,
    k_cache: Tensor,
    head_dim_v: int = HEAD_DIM,
    *,
    causal: bool = False,
    is_fp8_kvcache: bool = True,
    indices: Tensor | None = None,
) -> list[Reason]:
    """Why flash_mla_with_kvcache cannot do a call; empty if it can."""
    reasons = _shape_reasons(q, head_dim_v)
    if indices is None:
        rule = "attention over all keys of a cache (DeepSeek-V3) has no kernel"
        fix = "pass indices; attention_decode has head sizes 64, 128 and 256"
        reasons.append(reason("indices", None, rule, fix))
    elif causal:
        rule = "lists say what a query sees"
        reasons.append(reason("causal", causal, rule, "causal=False"))
    if not is_fp8_kvcache:
        rule = "rows of a cache are FP8"
        fix = "is_fp8_kvcache=True, or flash_mla_sparse_fwd for bfloat16 rows"
        reasons.append(reason("is_fp8_kvcache", is_fp8_kvcache, rule, fix))
    elif indices is not None and q.shape[-1] == HEAD_DIM and k_cache.shape[-1] != 584:
        rule = "rows are 584 bytes, 448 e4m3, 64 bfloat16 and 8 of scales"
        fix = "write the cache in that layout"
        reasons.append(reason("k_cache", shape_of(k_cache), rule, fix))
    return reasons


def prefill_reasons(q: Tensor, kv: Tensor, d_v: int = HEAD_DIM) -> list[Reason]:
    """Why flash_mla_sparse_fwd cannot do a call; empty if it can."""
    reasons = _shape_reasons(q, d_v)
    if kv.shape[-2] != 1:
        rule = "one head of keys"
        reasons.append(reason("kv.shape[-2]", kv.shape[-2], rule, "call it for each head"))
    return reasons


def can_implement(function: str, **arguments: Any) -> list[Reason]:
    """Why a call of `function` with these arguments cannot be done; empty if it can."""
    if function == "flash_mla_sparse_fwd":
        return prefill_reasons(**arguments)
    return decode_reasons(**arguments)


def _shape_reasons(q: Tensor, width: int) -> list[Reason]:
    reasons = []
    if q.shape[-1] != HEAD_DIM:
        rule = "heads of 512, DeepSeek-V4's; those of 576 (V3, V3.2) have no kernel"
        reasons.append(reason("q.shape[-1]", q.shape[-1], rule, "use a model with heads of 512"))
    if width != HEAD_DIM:
        reasons.append(reason("head_dim_v", width, "values are the 512 of a row", "512"))
    if q.dtype != torch.bfloat16:
        reasons.append(reason("q", shape_of(q), "bfloat16", "q.to(torch.bfloat16)"))
    if not 1 <= q.shape[-2] <= MAX_HEADS:
        rule = f"1 to {MAX_HEADS} heads"
        reasons.append(reason("q.shape[-2]", q.shape[-2], rule, "split the heads"))
    return reasons


def _as_peer(lse: Tensor) -> Tensor:
    """The peer has +inf for a query that sees nothing, we have -inf."""
    return lse.nan_to_num_(nan=math.nan, posinf=math.inf, neginf=math.inf)


def _rows(q: Tensor) -> Tensor:
    if q.stride(-1) == 1 and all(step % 8 == 0 for step in q.stride()[:-1]):
        return q
    count("contiguous")
    return q.contiguous()


def _lists(indices: Tensor | None) -> Any:
    """Lists [b, s, entries], all queries at equal distances."""
    if indices is None:
        return None
    batch, tokens = indices.shape[:2]
    is_even = batch == 1 or indices.stride(0) == tokens * indices.stride(1)
    if indices.stride(2) == 1 and is_even:
        return indices
    count("contiguous")
    return indices.contiguous()


def _is_as_before(kept: _Schedule, args: tuple[Any, ...]) -> bool:
    """Whether the schedule was made for such tensors, which then are used as they are."""
    return kept.is_made and not torch.compiler.is_compiling() and kept.signature == signature(*args)


def _schedule(holder: Any, args: Any, out: Tensor, lse: Tensor) -> _Schedule:
    """What an object that a caller keeps holds for us; another class than ours will do."""
    kept: _Schedule | None = getattr(holder, _STATE, None)
    seen = signature(*args[:-1])
    if kept is not None and kept.signature == seen:
        return kept
    q, cache, indices, lengths, extra_cache, extra_indices, extra_lengths, sink, _ = args
    shapes = {
        "q": tuple(q.shape),
        "k_cache": tuple(cache.shape[1:]),
        "indices": tuple(indices.shape),
        "topk_length": None if lengths is None else tuple(lengths.shape),
        "extra_k_cache": None if extra_cache is None else tuple(extra_cache.shape[1:]),
        "extra_indices": None if extra_indices is None else tuple(extra_indices.shape),
        "extra_topk_length": None if extra_lengths is None else tuple(extra_lengths.shape),
        "attn_sink": None if sink is None else tuple(sink.shape),
    }
    if kept is not None:
        for name, shape in shapes.items():
            if kept.shapes[name] != shape:
                raise ValueError(
                    f"{name} has shape {shape}, and tile_scheduler_metadata was made for "
                    f"{kept.shapes[name]}; take a new one from get_mla_metadata()"
                )
        kept.signature = seen
        return kept
    size_of: Any = sparse_workspace_bytes
    size = size_of(*args, out, lse)
    kept = _Schedule(shapes, seen, torch.empty(size, dtype=torch.uint8, device=q.device))
    setattr(holder, _STATE, kept)
    return kept
