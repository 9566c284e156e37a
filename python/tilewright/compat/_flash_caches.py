"""FlashAttention-3's attention over caches."""

from __future__ import annotations

import math
import weakref
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tilewright import Reason
from tilewright.torch import _attention, _decode, _paged
from tilewright.torch._context import Way, known_calls, places_of

from . import _chunks, _flash_append, _flash_latent, _flash_padding
from ._common import count, fit, forward_alone, packed, reason, refuse, shape_of
from ._flash_attn import E4M3, HEAD_DIMS, int32_reasons, lacking, operand_reasons

MAX_DECODE_QUERIES = 16
MAX_SPLITS = 1024
#: Tensors of known calls, results last.
_CACHE = places_of(
    "q k_cache v_cache new_k new_v cos sin lengths block_table k_descale v_descale out lse"
)
cache_calls = known_calls(len(_CACHE))


def cache_reasons(*call: Any, **options: Any) -> list[Reason]:
    """Why a call over caches, of the arguments of _judged(), cannot be done; empty if it can."""
    return _judged(*call, **options)[0]


def _judged(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    k: Tensor | None = None,
    v: Tensor | None = None,
    qv: Tensor | None = None,
    *,
    rotary_cos: Tensor | None = None,
    cache_seqlens: Tensor | int | None = None,
    cache_batch_idx: Tensor | None = None,
    cache_leftpad: Tensor | None = None,
    page_table: Tensor | None = None,
    cu_seqlens_q: Tensor | None = None,
    cu_seqlens_k_new: Tensor | None = None,
    seqused_q: Tensor | None = None,
    rotary_seqlens: Tensor | None = None,
    causal: bool = False,
    window: Any = (-1, -1),
    attention_chunk: int = 0,
    num_splits: int = 0,
    softcap: float = 0.0,
) -> tuple[list[Reason], bool]:
    """Why a call over caches cannot be done, and whether latent attention would do it."""
    reasons: list[Reason] = []
    latent = _flash_latent.over_caches(
        *(q, k_cache, v_cache, qv),
        page_table=page_table,
        cache_batch_idx=cache_batch_idx,
        causal=causal,
        window=window,
        softcap=softcap,
        attention_chunk=attention_chunk,
        cu_seqlens_q=cu_seqlens_q,
        seqused_q=seqused_q,
        cache_leftpad=cache_leftpad,
    )
    is_latent = latent is not None
    if latent is None:
        operand_reasons(reasons, q, k_cache, v_cache)
    else:
        reasons = latent
    lengths = cache_seqlens if isinstance(cache_seqlens, Tensor) else None
    int32_reasons(
        reasons,
        cache_seqlens=lengths,
        cache_batch_idx=cache_batch_idx,
        page_table=page_table,
        cu_seqlens_q=cu_seqlens_q,
        cu_seqlens_k_new=cu_seqlens_k_new,
        seqused_q=seqused_q,
        cache_leftpad=cache_leftpad,
        rotary_seqlens=rotary_seqlens,
    )
    by_page = page_table is not None or cache_batch_idx is not None
    if cache_leftpad is not None and by_page and not is_latent:
        reasons += _flash_padding.padding_reasons(k_cache, v_cache)
        cache_leftpad = None  # keys behind it are then as others are
    others = (cu_seqlens_q, seqused_q, cache_leftpad, causal, window)
    beyond = None if is_latent else _beyond_decode(q, k_cache, v_cache, *others)
    if beyond and not reasons:
        _paged_reasons(reasons, q, k_cache, v_cache, beyond)
    if k is not None:
        reasons += _flash_append.append_reasons(
            *(q, k_cache, v_cache, k, v),
            rotary_cos=rotary_cos,
            cu_seqlens_k_new=cu_seqlens_k_new,
            over_pages=beyond is not None,
        )
    elif rotary_cos is not None or cu_seqlens_k_new is not None:
        name = "cu_seqlens_k_new" if rotary_cos is None else "rotary_cos"
        rule = "comes with new keys, k and v"
        fix = "pass k and v, or leave it out" if rotary_cos is None else "turn q before the call, or pass k and v"
        reasons.append(reason(name, "given", rule, fix))
    if num_splits > MAX_SPLITS and not is_latent:
        rule = f"at most {MAX_SPLITS} splits"
        reasons.append(reason("num_splits", num_splits, rule, "0: by the lengths"))
    return reasons, is_latent


def _beyond_decode(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    cu_seqlens_q: Tensor | None,
    seqused_q: Tensor | None,
    cache_leftpad: Tensor | None,
    causal: bool,
    window: Any,
) -> tuple[str, object, str] | None:
    """What decode attention does not have of a call over caches: field, value, what to do without."""
    if cache_leftpad is not None:
        fix = "move the keys, or enter the pages behind the padding in page_table"
        return "cache_leftpad", shape_of(cache_leftpad), fix
    if cu_seqlens_q is not None:
        return "cu_seqlens_q", "given", "pass q as [batch, tokens, heads, head_dim]"
    if seqused_q is not None:
        return "seqused_q", "given", "leave it out, and the results of other queries unread"
    if q.shape[1] > MAX_DECODE_QUERIES:
        fix = "call it for 16 of them at a time, or flash_attn_varlen_func with whole k and v"
        return "q.shape[1]", q.shape[1], fix
    if v_cache.shape[-1] != q.shape[-1]:
        return "v_cache.shape[-1]", v_cache.shape[-1], "pad v with zeros and cut the result"
    right = 0 if causal else int(window[1])
    if 0 < right < q.shape[1] - 1:
        return "window_size[1]", right, "0 with the queries one by one"
    if k_cache.shape == v_cache.shape and not _decode.has_equal_strides(k_cache, v_cache):
        return "v_cache.stride()", v_cache.stride(), f"a cache with the strides of k_cache, {k_cache.stride()}"
    return None


def _paged_reasons(
    reasons: list[Reason],
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    beyond: tuple[str, object, str],
) -> None:
    """Of calls that go to attention over pages."""
    field, value, fix = beyond
    if text := lacking(q, k_cache, v_cache):
        what = (
            "more than 16 queries, packed queries, values of another width, windows to the right, "
            "left padding and caches of different strides"
        )
        reasons.append(reason(field, value, f"{what} are for {text}", fix))


def with_cache(
    name: str,
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    k: Tensor | None,
    v: Tensor | None,
    *,
    out: Tensor | None = None,
    rotary_cos: Tensor | None,
    rotary_sin: Tensor | None,
    cache_seqlens: Tensor | int | None,
    cache_batch_idx: Tensor | None,
    page_table: Tensor | None,
    cu_seqlens_q: Tensor | None = None,
    seqused_q: Tensor | None = None,
    cache_leftpad: Tensor | None = None,
    max_seqlen_q: int | None = None,
    descales: tuple[Tensor | None, Tensor | None, Tensor | None],
    softmax_scale: float | None,
    causal: bool,
    window: Any,
    softcap: float,
    rotary_interleaved: bool,
    num_splits: int,
    return_lse: bool,
    attention_chunk: int = 0,
    known: tuple[Any, ...] = (),
    **other: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attention of a few queries over caches, to which new keys and values may be added.

    known  arguments of cache_calls: the same call from now on is a known one, if nothing is copied
    """
    qv: Tensor | None = other.pop("qv", None)
    cu_new: Tensor | None = other.pop("cu_seqlens_k_new", None)
    offsets: Tensor | None = other.pop("rotary_seqlens", None)
    offsets = None if offsets is cache_seqlens else offsets
    reasons, is_latent = _judged(
        *(q, k_cache, v_cache, k, v, qv),
        rotary_cos=rotary_cos,
        cache_seqlens=cache_seqlens,
        cache_batch_idx=cache_batch_idx,
        page_table=page_table,
        cu_seqlens_q=cu_seqlens_q,
        seqused_q=seqused_q,
        cache_leftpad=cache_leftpad,
        causal=causal,
        window=window,
        attention_chunk=attention_chunk,
        num_splits=num_splits,
        softcap=softcap,
        cu_seqlens_k_new=cu_new,
        rotary_seqlens=offsets,
        **other,
    )
    if reasons:
        refuse(name, reasons)
    room = k_cache.shape[1] * (1 if page_table is None else page_table.shape[1])
    if cache_batch_idx is not None:
        page_table = _by_index(cache_batch_idx, page_table)
    batch = q.shape[0] if cu_seqlens_q is None else cu_seqlens_q.shape[0] - 1
    is_padded = cache_leftpad is not None and page_table is not None
    given_q = q
    if k is not None and v is not None:
        as_one = _flash_append.turns_as_one(q, room, causal, window, attention_chunk, max_seqlen_q)
        others = (cu_seqlens_q, seqused_q, cache_leftpad, causal, window)
        if _flash_append.is_apart(
            *(q, k),
            beyond=is_latent
            or is_padded
            or _beyond_decode(q, k_cache, v_cache, *others) is not None,
            is_one_position=as_one,
            rotary_cos=rotary_cos,
            rotary_seqlens=offsets,
            cu_seqlens_k_new=cu_new,
            has_scales=any(x is not None for x in descales),
        ):
            turning: tuple[Tensor | None, Tensor | None, Tensor | None] = (None, None, offsets)
            if rotary_cos is not None and rotary_sin is not None:
                turning = (_fp32(rotary_cos), _fp32(rotary_sin), offsets)
                q = _sixteen_bits(q) if q.dtype == E4M3 else q
            q, cache_seqlens = _flash_append.append(
                q,
                (k_cache, v_cache),
                (k, v),
                _lengths(cache_seqlens, batch, k_cache, room),
                _table(page_table),
                (cu_seqlens_q, cu_new),
                turning,
                rotary_interleaved,
                as_one,
            )
            known, k, v, rotary_cos, rotary_sin = (), None, None, None, None
    if is_padded:
        assert page_table is not None and cache_leftpad is not None
        k_cache, v_cache, page_table, cache_seqlens = _flash_padding.behind_padding(
            *(k_cache, v_cache, page_table, _lengths(cache_seqlens, batch, k_cache, room), cache_leftpad)
        )
        cache_leftpad, known = None, ()
    if is_latent:
        lengths = _lengths(cache_seqlens, q.shape[0], k_cache, room)
        if page_table is None:  # of a cache with room for more sequences
            k_cache, v_cache = k_cache[: q.shape[0]], v_cache[: q.shape[0]]
        return _flash_latent.attend(
            *(q, k_cache, v_cache, qv, lengths, page_table),
            causal=causal,
            window=window,
            softmax_scale=softmax_scale,
            out=out,
            return_lse=return_lse,
        )
    left, right = int(window[0]), 0 if causal else int(window[1])
    scale = q.shape[-1]**-0.5 if softmax_scale is None else softmax_scale
    others = (cu_seqlens_q, seqused_q, cache_leftpad, causal, window)
    if _beyond_decode(q, k_cache, v_cache, *others):
        packing = (packed(cu_seqlens_q), packed(seqused_q), max_seqlen_q)
        masking = (scale, causal, left, right, softcap)
        keys = (k_cache, v_cache, cache_seqlens, page_table, packed(cache_leftpad))
        used = descales if q.dtype == E4M3 else (None, None, None)
        return _over_pages(q, keys, packing, out, masking, return_lse, attention_chunk, used)
    options = (scale, causal or right == 0, -1 if left >= room - 1 else left, softcap)
    scales: tuple[Tensor | None, Tensor | None] = (None, None)
    if given_q.dtype == E4M3:
        scales = _cache_descales(descales)
        q = _sixteen_bits(q) if q.dtype == E4M3 else q
        k, v = (None if x is None else _sixteen_bits(x) for x in (k, v))
    angles: tuple[Tensor | None, Tensor | None] = (None, None)
    if rotary_cos is not None and rotary_sin is not None:
        angles = (_fp32(rotary_cos), _fp32(rotary_sin))
    caches = (k_cache, v_cache)
    if k is None:
        caches = (fit(k_cache), fit(v_cache))
        if not _decode.has_equal_strides(*caches):  # one of them is a copy
            count("contiguous")
            caches = (caches[0].contiguous(), caches[1].contiguous())
    new = (None if k is None else fit(k), None if v is None else fit(v))
    given: tuple[Any, ...]
    given = (fit(q), *caches, _lengths(cache_seqlens, q.shape[0], k_cache, room), _table(page_table), *new)
    given += (*angles, None, *scales, out, None, return_lse)
    given += (rotary_interleaved, *options, max(num_splits, 0), "auto", attention_chunk)
    done = _decode.decode(given, Way(cache_calls, known, _CACHE))
    result, lse = done if return_lse else (done, None)
    return result, lse


def _over_pages(
    q: Tensor,
    keys: tuple[Tensor, Tensor, Tensor | int | None, Tensor | None, Tensor | None],
    packing: tuple[Tensor | None, Tensor | None, int | None],
    out: Tensor | None,
    options: tuple[Any, ...],
    return_lse: bool,
    chunk: int,
    descales: tuple[Tensor | None, ...],
) -> tuple[Tensor, Tensor | None]:
    """What decode attention does not take. Rows that are not in use get 0, and an lse of -inf.

    keys     both caches, their lengths, a table of pages, and left padding
    packing  where packed queries begin, how many of each are in use, and the longest
    """
    k_cache, v_cache, seqlens, page_table, leftpad = keys
    cu_q, used_q, max_q = packing
    if cu_q is not None and max_q is None:
        raise ValueError("max_seqlen_q goes with cu_seqlens_q")
    shape, size = q.shape, k_cache.shape[1]
    batch = shape[0] if cu_q is None else cu_q.shape[0] - 1
    room = size * (1 if page_table is None else page_table.shape[1])
    lengths = _lengths(seqlens, batch, k_cache, room)
    max_q, q, k, v = max_q or shape[1], fit(q), fit(k_cache), fit(v_cache)
    cu_k, is_flat = None, False
    if leftpad is not None:  # sequences one behind the other, of which the padding is left out
        if cu_q is None:
            cu_q, q, is_flat = _chunks.starts_of(batch, shape[1], q.device), _chunks.flat(q), True
        k, v = (_chunks.flat(x[:batch]) for x in (k, v))
        cu_k = _chunks.padded(_chunks.starts_of(batch, size, q.device), leftpad, size)
        lengths = (lengths - leftpad).clamp_(min=0)
    elif cu_q is not None and page_table is None:  # a sequence is a page
        page_table = torch.arange(batch, dtype=torch.int32, device=q.device)[:, None]
    result_shape = _attention.out_shape(q, v)
    result = out if out is not None and out.shape == result_shape else None
    is_given = out is not None
    lse: Tensor | None = None
    if used_q is not None:
        dtype = torch.bfloat16 if q.dtype == E4M3 else q.dtype
        result = q.new_zeros(result_shape, dtype=dtype) if result is None else result.zero_()
        if return_lse:
            lse = q.new_full(_attention._lse_shape(q), -math.inf, dtype=torch.float32)
    given: tuple[Any, ...]
    given = (q, k, v, _table(page_table), used_q, lengths, cu_q, cu_k, None, *descales)
    given += (result, lse, return_lse)

    def attend() -> Any:
        return _paged.attend((*given, max_q, room, *options, "auto", chunk))

    done = attend() if is_given else forward_alone("attention_paged", attend, q, k, v)
    found: Tensor = done[0] if return_lse else done
    lse = done[1] if return_lse else None
    if found is not out:
        found = found.view(*shape[:-1], found.shape[-1])
        found = found if out is None else out.copy_(found)
    return found, _chunks.unflat(lse, batch) if is_flat and lse is not None else lse


def _by_index(index: Tensor, page_table: Tensor | None) -> Tensor:
    """A sequence of the cache for each of the batch: its pages, or all of it as one page."""
    return index[:, None] if page_table is None else page_table[index]


def _table(page_table: Tensor | None) -> Tensor | None:
    if page_table is None or page_table.stride(1) == 1:
        return page_table
    return packed(page_table)


def _lengths(given: Tensor | int | None, batch: int, cache: Tensor, room: int) -> Tensor:
    if isinstance(given, Tensor):
        lengths = packed(given)
        assert lengths is not None
        return lengths
    number = room if given is None else given
    return torch.full((batch,), number, dtype=torch.int32, device=cache.device)


def _cache_descales(
    descales: tuple[Tensor | None, Tensor | None, Tensor | None],
) -> tuple[Tensor | None, Tensor | None]:
    """q comes with its factor folded into that of the keys, which every score has too."""
    q_descale, k_descale, v_descale = descales
    if q_descale is not None:
        k_descale = q_descale if k_descale is None else q_descale * k_descale
    return k_descale, v_descale


def _sixteen_bits(x: Tensor) -> Tensor:
    """e4m3 in bfloat16, exactly."""
    count("converted")
    return x.to(torch.bfloat16)


_tables: dict[int, tuple[weakref.ref[Tensor], int, Tensor]] = {}


def _fp32(table: Tensor) -> Tensor:
    """Cosines or sines in fp32; those of the last few tables are kept."""
    if table.dtype == torch.float32 and table.is_contiguous():
        return table
    if torch.compiler.is_compiling() or table.is_inference():
        return table.float().contiguous()
    kept = _tables.get(id(table))
    if kept is not None and kept[0]() is table and kept[1] == table._version:
        return kept[2]
    count("converted")
    while len(_tables) >= 16:
        del _tables[next(iter(_tables))]
    made = table.float().contiguous()
    _tables[id(table)] = (weakref.ref(table), table._version, made)
    return made


def _wide(x: Tensor) -> Tensor:
    """x in a head size that the decode kernels have, with rows that they can read."""
    head_dim = x.shape[-1]
    if head_dim in HEAD_DIMS:
        return fit(x)
    count("head_dim")
    width = _width(head_dim)
    if x.dtype == E4M3:
        return F.pad(x.view(torch.uint8), (0, width - head_dim)).view(E4M3)
    return F.pad(x, (0, width - head_dim))


def _width(head_dim: int) -> int:
    """The head size that kernels for caches have for it."""
    return next((size for size in HEAD_DIMS if size >= head_dim), head_dim)
