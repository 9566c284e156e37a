"""FlashMLA's interface on Tilewright's kernels: attention of DeepSeek-V4, V3.2 and V3."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

from tilewright import Reason
from tilewright.torch._context import Way, known_calls, places_of, signature
from tilewright.torch._latent import Schedule
from tilewright.torch._mla import attend_pages, has_kernel
from tilewright.torch._sparse import HEAD_DIM, MLA_DIM, attend, empty_out, sparse_attention_scheduled

from ._common import count, packed, reason, refuse, shape_of

__all__ = [
    "FlashMLASchedMeta",
    "can_implement",
    "flash_mla_sparse_fwd",
    "flash_mla_with_kvcache",
    "get_mla_metadata",
]

MAX_HEADS = 128
#: Bytes of an FP8 row by the size of a head of q.
_ROWS = {
    HEAD_DIM: (584, "448 e4m3, 64 bfloat16 and 8 of scales"),
    MLA_DIM: (656, "512 e4m3, 16 of scales and 64 bfloat16"),
}
_STATE = "_tilewright_schedule"
_DENSE_STATE = "_tilewright_schedule_of_pages"


_serials = itertools.count()
#: Tensors of a known call of flash_mla_with_kvcache, results and the workspace last.
_DECODE = places_of(
    "q window.pages window.indices window.lengths compressed.pages compressed.indices "
    "compressed.lengths sink out lse workspace"
)
_decode_calls = known_calls(len(_DECODE))


@dataclasses.dataclass
class _Schedule:
    """What calls keep: the shapes that it was made for, and a workspace that holds it."""

    shapes: dict[str, Any]
    signature: bytes  # of the tensors of the last call: with the same one nothing is to be compared
    workspace: Tensor | None = None
    serial: int = dataclasses.field(default_factory=lambda: next(_serials))  # of known calls


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
    """q [b, s, heads, 512 or 576] over FP8 rows that lists name: out [b, s, heads, 512], lse [b, heads, s].

    Without indices q of 576 over all keys of a paged cache, [pages, page_size, kv_heads, 576], bfloat16 or
    float16.

    tile_scheduler_metadata may serve again as long as shapes and the values of lengths stay.
    `enable_batch_invariant` makes a schedule for every call.
    """
    args: tuple[Any, ...]
    args = (q, k_cache, indices, topk_length)
    args += (extra_k_cache, extra_indices_in_kvcache, extra_topk_length, attn_sink)
    kept: _Schedule | None = getattr(tile_scheduler_metadata, _STATE, None)
    known: tuple[Any, ...] = ()
    if kept is not None and not is_compiling():
        known = (*args, out, None, kept.workspace, softmax_scale, kept.serial, head_dim_v, causal)
        known += (is_fp8_kvcache, enable_batch_invariant)
        if (done := _decode_calls.run(*known)) is not None:
            return done[0], done[1].transpose(1, 2)
    reasons = decode_reasons(
        q, k_cache, head_dim_v, causal=causal, is_fp8_kvcache=is_fp8_kvcache, indices=indices
    )
    if indices is None and not reasons:
        lists_given = (extra_k_cache, extra_indices_in_kvcache, topk_length, extra_topk_length)
        reasons += _dense_reasons(block_table, cache_seqlens, lists_given)
        if attn_sink is not None and k_cache.shape[2] > 1:
            rule = "sinks are for one head of keys"
            reasons.append(reason("attn_sink", shape_of(attn_sink), rule, "call it for each head"))
    if reasons:
        refuse("flash_mla_with_kvcache", reasons)
    if not hasattr(tile_scheduler_metadata, "have_initialized"):
        raise TypeError(
            f"tile_scheduler_metadata is {type(tile_scheduler_metadata).__name__}: expected what "
            "get_mla_metadata() returns first"
        )
    if indices is None:
        tile_scheduler_metadata.have_initialized = True
        pages = (_rows(q), k_cache, block_table, packed(cache_seqlens), packed(attn_sink))
        schedule_of_pages = None if enable_batch_invariant else _dense_schedule(tile_scheduler_metadata)
        options = (causal, softmax_scale, True)
        done, lse = attend_pages(pages, options, out, True, schedule_of_pages)
        assert lse is not None
        return done, lse
    lists = (_lists(indices), packed(topk_length))
    second = (extra_k_cache, _lists(extra_indices_in_kvcache), packed(extra_topk_length))
    inputs = (_rows(q), k_cache, *lists, *second, packed(attn_sink))
    if is_compiling() or enable_batch_invariant:
        given = (*inputs, out, None, None, True, False, softmax_scale, "auto")
        done, lse = attend(given, positive_empty_lse=True)
        return done, lse.transpose(1, 2)
    out = empty_out(q) if out is None else out
    lse = q.new_empty(q.shape[:3], dtype=torch.float32)
    schedule = _schedule(tile_scheduler_metadata, inputs)
    way = Way(_decode_calls, known, _DECODE) if known else None
    schedule.workspace = sparse_attention_scheduled(
        inputs, softmax_scale, out, lse, schedule.workspace, way
    )
    tile_scheduler_metadata.have_initialized = True
    return out, lse.transpose(1, 2)


def _dense_schedule(holder: Any) -> Schedule:
    """What an object that a caller keeps holds of attention over all keys."""
    kept: Schedule | None = getattr(holder, _DENSE_STATE, None)
    if kept is None:
        kept = Schedule()
        setattr(holder, _DENSE_STATE, kept)
    return kept


def flash_mla_sparse_fwd(
    q: Tensor,
    kv: Tensor,
    indices: Tensor,
    sm_scale: float,
    d_v: int = HEAD_DIM,
    attn_sink: Tensor | None = None,
    topk_length: Tensor | None = None,
    indexer_topk: int = 0,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """q [s, heads, d] over rows [rows, 1, d], d 512 or 576: out, largest logits and lse [s, heads]."""
    reasons = prefill_reasons(q, kv, d_v, indexer_topk)
    if reasons:
        refuse("flash_mla_sparse_fwd", reasons)
    lengths = None if topk_length is None else packed(topk_length[None])
    inputs = (_rows(q[None]), kv, _lists(indices.transpose(0, 1)), lengths, None, None, None)
    into = None if out is None else out[None]
    given = (*inputs, packed(attn_sink), into, None, None, True, True, sm_scale, "auto")
    done, lse, max_logits = attend(given, positive_empty_lse=True)
    return done[0], max_logits[0], lse[0]


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
    reasons = _shape_reasons(q, head_dim_v, indices is not None)
    if indices is None:
        return reasons + _all_keys_reasons(q, k_cache, is_fp8_kvcache)
    if causal:
        rule = "lists say what a query sees"
        reasons.append(reason("causal", causal, rule, "causal=False"))
    size, parts = _ROWS.get(q.shape[-1], (k_cache.shape[-1], ""))
    if not is_fp8_kvcache:
        rule = "rows of a cache that lists name are FP8"
        fix = "is_fp8_kvcache=True, or flash_mla_sparse_fwd for bfloat16 rows"
        reasons.append(reason("is_fp8_kvcache", is_fp8_kvcache, rule, fix))
    elif k_cache.shape[-1] != size:
        rule = f"rows are {size} bytes, {parts}"
        fix = "write the cache in that layout"
        reasons.append(reason("k_cache", shape_of(k_cache), rule, fix))
    return reasons


def _all_keys_reasons(q: Tensor, k_cache: Tensor, is_fp8_kvcache: bool) -> list[Reason]:
    """Of a call without indices."""
    reasons = []
    if q.shape[-1] == HEAD_DIM:
        rule = "attention over all keys of a cache is DeepSeek-V3's, with heads of 576"
        reasons.append(reason("indices", None, rule, "pass indices"))
    elif is_fp8_kvcache:
        rule = "FP8 rows are read through lists"
        fix = "pass indices, or a bfloat16 cache and is_fp8_kvcache=False"
        reasons.append(reason("is_fp8_kvcache", is_fp8_kvcache, rule, fix))
    elif k_cache.dim() != 4 or k_cache.shape[3] != MLA_DIM or k_cache.dtype != q.dtype:
        rule = "[pages, page_size, kv_heads, 576] of the dtype of q"
        reasons.append(reason("k_cache", shape_of(k_cache), rule, "write the cache in that layout"))
    elif (kv_heads := k_cache.shape[2]) == 0 or q.shape[-2] % kv_heads:
        rule = f"a number of heads that {q.shape[-2]}, those of q, is a multiple of"
        reasons.append(reason("k_cache.shape[2]", kv_heads, rule, "repeat heads of q or of keys"))
    elif kv_heads > 1 and not has_kernel(k_cache.shape[1]):
        rule = "several heads of keys come in pages of 8, 16, 32 or a multiple of 64"
        reasons.append(reason("k_cache.shape[1]", k_cache.shape[1], rule, "other pages"))
    return reasons


def _dense_reasons(
    block_table: Tensor | None, cache_seqlens: Tensor | None, lists_given: tuple[Any, ...]
) -> list[Reason]:
    reasons = []
    for name, given in (("block_table", block_table), ("cache_seqlens", cache_seqlens)):
        if given is None:
            rule = "without indices it says which keys a sequence has"
            reasons.append(reason(name, None, rule, "pass it, or indices"))
    if any(x is not None for x in lists_given):
        rule = "there are no lists without indices"
        reasons.append(reason("indices", None, rule, "pass indices, or no lengths and second cache"))
    return reasons


def prefill_reasons(
    q: Tensor, kv: Tensor, d_v: int = HEAD_DIM, indexer_topk: int = 0
) -> list[Reason]:
    """Why flash_mla_sparse_fwd cannot do a call; empty if it can."""
    reasons = _shape_reasons(q, d_v)
    if not reasons and kv.shape[-1] != q.shape[-1]:
        rule = f"rows of {q.shape[-1]}, as q"
        reasons.append(reason("kv.shape[-1]", kv.shape[-1], rule, "pass rows of the same size"))
    if kv.shape[-2] != 1:
        rule = "one head of keys"
        reasons.append(reason("kv.shape[-2]", kv.shape[-2], rule, "call it for each head"))
    if indexer_topk != 0:
        rule = "there is no second lse, of the first entries of a list"
        fix = "indexer_topk=0, and for that lse a second call with shorter topk_length"
        reasons.append(reason("indexer_topk", indexer_topk, rule, fix))
    return reasons


def can_implement(function: str, **arguments: Any) -> list[Reason]:
    """Why a call of `function` with these arguments cannot be done; empty if it can."""
    if function == "flash_mla_sparse_fwd":
        return prefill_reasons(**arguments)
    return decode_reasons(**arguments)


def _shape_reasons(q: Tensor, width: int, has_lists: bool = True) -> list[Reason]:
    reasons = []
    if q.shape[-1] not in _ROWS:
        rule = "heads of 512, DeepSeek-V4's, or of 576, V3's and V3.2's"
        fix = "use a model with such heads"
        reasons.append(reason("q.shape[-1]", q.shape[-1], rule, fix))
    if width != HEAD_DIM:
        reasons.append(reason("head_dim_v", width, "values are the 512 of a row", "512"))
    dtypes = (torch.bfloat16,) if has_lists else (torch.bfloat16, torch.float16)
    if q.dtype not in dtypes:
        rule = "bfloat16" if has_lists else "bfloat16 or float16"
        reasons.append(reason("q", shape_of(q), rule, "q.to(torch.bfloat16)"))
    if not 1 <= q.shape[-2] <= MAX_HEADS:
        rule = f"1 to {MAX_HEADS} heads"
        reasons.append(reason("q.shape[-2]", q.shape[-2], rule, "split the heads"))
    return reasons


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


def _schedule(holder: Any, inputs: tuple[Any, ...]) -> _Schedule:
    """What an object that a caller keeps holds for us; another class than ours will do."""
    kept: _Schedule | None = getattr(holder, _STATE, None)
    seen = signature(*inputs)
    if kept is not None and kept.signature == seen:
        return kept
    q, cache, indices, lengths, extra_cache, extra_indices, extra_lengths, sink = inputs
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
    kept = _Schedule(shapes, seen)
    setattr(holder, _STATE, kept)
    return kept
