"""FlashAttention-3's two kinds of call: attention over whole sequences, and over caches."""

from __future__ import annotations

import math
import weakref
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.compiler import is_compiling

from tilewright import Reason
from tilewright.torch import _attention, _decode, _paged
from tilewright.torch._context import Way, known_calls, places_of

from ._common import count, fit, packed, reason, refuse, shape_of

HEAD_DIMS = (64, 128, 256)
MAX_DECODE_QUERIES = 16
MAX_SPLITS = 1024
_DTYPES = (torch.bfloat16, torch.float16, torch.float8_e4m3fn)
_E4M3 = torch.float8_e4m3fn
#: Tensors of known calls over whole sequences and over caches, results last.
_FORWARD = places_of("q k v cu_q cu_kv q_descale k_descale v_descale out lse")
_CACHE = places_of(
    "q k_cache v_cache new_k new_v cos sin lengths block_table k_descale v_descale out lse"
)
_forward_calls = known_calls(len(_FORWARD))
cache_calls = known_calls(len(_CACHE))


def _int32(reasons: list[Reason], **tensors: Tensor | None) -> None:
    for name, tensor in tensors.items():
        if tensor is not None and tensor.dtype != torch.int32:
            fix = f"{name}.to(torch.int32)"
            reasons.append(reason(name, shape_of(tensor), "lengths and indices are int32", fix))


def _operands(
    reasons: list[Reason], q: Tensor, k: Tensor, v: Tensor, qv: Tensor | None, chunk: int
) -> None:
    """What no kernel has, whatever else is asked."""
    if q.dtype not in _DTYPES or q.dtype != k.dtype or k.dtype != v.dtype:
        given = ", ".join(map(shape_of, (q, k, v)))
        rule = "bfloat16, float16 or float8_e4m3fn, all three alike"
        reasons.append(reason("q, k, v", given, rule, "convert with .to()"))
    if qv is not None:
        rule = "scores of a second q with v (qv) have no kernel"
        reasons.append(reason("qv", shape_of(qv), rule, "concatenate it to q, and v to k"))
    head_dim = q.shape[-1]
    if v.shape[-1] != head_dim:
        rule = f"values as wide as keys, {head_dim}"
        fix = "pad v with zeros and cut the result" if v.shape[-1] < head_dim else "split v"
        reasons.append(reason("v.shape[-1]", v.shape[-1], rule, fix))
    unit = 16 if q.dtype == _E4M3 else 8
    if head_dim > HEAD_DIMS[-1] or head_dim % unit:
        rule = f"head sizes are at most {HEAD_DIMS[-1]}, in multiples of {unit}"
        reasons.append(reason("q.shape[-1]", head_dim, rule, "pad q, k and v with zeros"))
    if chunk:
        rule = "visible keys do not begin at a chunk"
        fix = "window_size limits them too, by distance"
        reasons.append(reason("attention_chunk", chunk, rule, fix))


def forward_reasons(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    qv: Tensor | None = None,
    cu_seqlens_q: Tensor | None = None,
    cu_seqlens_k: Tensor | None = None,
    seqused_q: Tensor | None = None,
    seqused_k: Tensor | None = None,
    attention_chunk: int = 0,
) -> list[Reason]:
    """Why a call over whole sequences cannot be done; empty if it can."""
    reasons: list[Reason] = []
    _operands(reasons, q, k, v, qv, attention_chunk)
    _int32(
        reasons,
        cu_seqlens_q=cu_seqlens_q,
        cu_seqlens_k=cu_seqlens_k,
        seqused_q=seqused_q,
        seqused_k=seqused_k,
    )
    if (cu_seqlens_q is None) != (cu_seqlens_k is None):
        name = "cu_seqlens_k" if cu_seqlens_k is None else "cu_seqlens_q"
        rule = "queries and keys are both packed, or neither"
        reasons.append(reason(name, None, rule, f"pass {name}: arange(batch + 1) * length"))
    elif cu_seqlens_q is None and (seqused_q is not None or seqused_k is not None):
        if lacking := _lacking(q, k):
            rule = f"used lengths without cu_seqlens_q and cu_seqlens_k are for {lacking}"
            fix = "pass both, or flash_attn_with_kvcache with cache_seqlens"
            reasons.append(reason("seqused_q, seqused_k", "given", rule, fix))
    return reasons


def _lacking(q: Tensor, k: Tensor, head_dim: int | None = None) -> str:
    """What reads pages, and lengths on the device, and why it does not here; empty if it does."""
    width = q.shape[-1] if head_dim is None else head_dim
    found = _paged.reasons_against(q.device, q.dtype, q.shape[-2], k.shape[-2], width)
    return f"kernel k6_pages, and kernel {found[0].value} {found[0].rule}" if found else ""


def forward(
    name: str,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    qv: Tensor | None = None,
    out: Tensor | None = None,
    cu_seqlens_q: Tensor | None = None,
    cu_seqlens_k: Tensor | None = None,
    seqused_q: Tensor | None = None,
    seqused_k: Tensor | None = None,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    descales: tuple[Tensor | None, Tensor | None, Tensor | None] = (None, None, None),
    softmax_scale: float | None = None,
    causal: bool = False,
    window: Any = (-1, -1),
    attention_chunk: int = 0,
    softcap: float = 0.0,
    return_lse: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention over whole sequences, packed ones included."""
    known: tuple[Any, ...] = ()
    is_usual = qv is None and seqused_q is None and seqused_k is None and not attention_chunk
    if is_usual and not is_compiling():
        known = (q, k, v, cu_seqlens_q, cu_seqlens_k, *descales, out, None, max_seqlen_q)
        known += (max_seqlen_k, softmax_scale, causal, *window, softcap, return_lse)
        if (found := _forward_calls.run(*known)) is not None:
            return found if return_lse else (found, None)
    lengths = (cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k)
    if reasons := forward_reasons(q, k, v, qv, *lengths, attention_chunk):
        refuse(name, reasons)
    head_dim = q.shape[-1]
    scale = head_dim**-0.5 if softmax_scale is None else softmax_scale
    used = [fit(q), fit(k), fit(v)]
    descales = descales if q.dtype == _E4M3 else (None, None, None)
    cu_q, cu_k = packed(cu_seqlens_q), packed(cu_seqlens_k)
    scatter = None
    if (seqused_q is not None or seqused_k is not None) and not _lacking(q, k):
        sides = (int(window[0]), 0 if causal else int(window[1]))
        options = (scale, causal, *sides, softcap)
        cu = (cu_q, cu_k, max_seqlen_q, max_seqlen_k)
        return _in_use(used, cu, packed(seqused_q), packed(seqused_k), out, options, return_lse)
    if cu_q is not None and cu_k is not None:
        if seqused_k is not None:
            rows, cu_k = _used_rows(cu_k, seqused_k, k.shape[0])
            used[1:] = (_take(x, rows) for x in used[1:])
        if seqused_q is not None:
            scatter, cu_q = _used_rows(cu_q, seqused_q, q.shape[0])
            used[0] = _take(used[0], scatter)
        if max_seqlen_q is None or max_seqlen_k is None:
            raise ValueError("max_seqlen_q and max_seqlen_k go with cu_seqlens_q and cu_seqlens_k")
        max_seqlen_q, max_seqlen_k = int(max_seqlen_q), int(max_seqlen_k)
    is_plain = scatter is None
    sides = (int(window[0]), 0 if causal else int(window[1]))
    given: tuple[Any, ...]
    given = (*used, None, cu_q, cu_k, *descales, out if is_plain else None, None, return_lse)
    given += (max_seqlen_q, max_seqlen_k, scale, causal, *sides, softcap, "auto")
    way = Way(_forward_calls, known if is_plain else (), _FORWARD)
    done = _attention.attend(given, way)
    result, lse = done if return_lse else (done, None)
    if scatter is not None:
        assert cu_seqlens_q is not None and seqused_q is not None
        result, lse = _spread(result, lse, scatter, cu_seqlens_q, seqused_q)
        result = result if out is None else out.copy_(result)
    return result, lse


def _in_use(
    used: list[Tensor],
    cu: tuple[Tensor | None, Tensor | None, int | None, int | None],
    seqused_q: Tensor | None,
    seqused_k: Tensor | None,
    out: Tensor | None,
    options: tuple[Any, ...],
    return_lse: bool,
) -> tuple[Tensor, Tensor | None]:
    """By a kernel that reads the lengths. Rows that are not in use get 0, and an lse of -inf."""
    q, cu_q, cu_k = used[0], cu[0], cu[1]
    sizes = tuple(int(n) if n is not None else 0 for n in cu[2:])
    lse = None
    if cu_q is not None and 0 in sizes and q.shape[0]:
        raise ValueError("max_seqlen_q and max_seqlen_k go with cu_seqlens_q and cu_seqlens_k")
    if seqused_q is not None:
        out = torch.zeros(q.shape, dtype=q.dtype, device=q.device) if out is None else out.zero_()
        shape = _attention._lse_shape(q)
        lse = q.new_full(shape, -math.inf, dtype=torch.float32) if return_lse else None
    given = (*used, None, seqused_q, seqused_k, cu_q, cu_k, None, out, lse, return_lse)
    done = _paged.attend((*given, *sizes, *options, "auto"))
    return done if return_lse else (done, None)


def _wide(x: Tensor) -> Tensor:
    """x in a head size that the decode kernels have, with rows that they can read."""
    head_dim = x.shape[-1]
    if head_dim in HEAD_DIMS:
        return fit(x)
    count("head_dim")
    width = _width(head_dim)
    if x.dtype == _E4M3:
        return F.pad(x.view(torch.uint8), (0, width - head_dim)).view(_E4M3)
    return F.pad(x, (0, width - head_dim))


def _width(head_dim: int) -> int:
    """The head size that kernels for caches have for it."""
    return next((size for size in HEAD_DIMS if size >= head_dim), head_dim)


def _used_rows(cu: Tensor, used: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """The rows in use, sequence after sequence, and where each begins; nothing waits for the device.

    Behind the last one stand rows that no sequence has.
    """
    count("seqused")
    ends = torch.cumsum(used, 0, dtype=torch.int32)
    begins = F.pad(ends, (1, 0))
    row = torch.arange(rows, device=cu.device, dtype=torch.int32)
    sequence = torch.searchsorted(ends, row, right=True).clamp_(max=used.shape[0] - 1)
    taken = cu[sequence] + row - begins[sequence]
    return taken.clamp_(0, max(rows - 1, 0)), begins


def _take(x: Tensor, rows: Tensor) -> Tensor:
    """x[rows], of any type."""
    return x.view(torch.uint8)[rows].view(x.dtype) if x.dtype == _E4M3 else x[rows]


def _spread(
    out: Tensor, lse: Tensor | None, taken: Tensor, cu: Tensor, used: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Results back to the rows that they belong to; rows that are not in use get 0, and -inf."""
    row = torch.arange(taken.shape[0], device=cu.device, dtype=torch.int32)
    ends = cu[1:].contiguous()
    sequence = torch.searchsorted(ends, row, right=True).clamp_(max=used.shape[0] - 1)
    inside = row - cu[sequence]
    begins = F.pad(torch.cumsum(used, 0, dtype=torch.int32), (1, 0))
    is_used = (inside < used[sequence]) & (row < cu[-1])
    source = (begins[sequence] + inside).clamp_(0, max(taken.shape[0] - 1, 0))
    out = torch.where(is_used[:, None, None], out[source], 0)
    return out, None if lse is None else torch.where(is_used, lse[:, source], -math.inf)


def cache_reasons(
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
) -> list[Reason]:
    """Why a call over caches cannot be done; empty if it can."""
    reasons: list[Reason] = []
    _operands(reasons, q, k_cache, v_cache, qv, attention_chunk)
    lengths = cache_seqlens if isinstance(cache_seqlens, Tensor) else None
    _int32(
        reasons,
        cache_seqlens=lengths,
        cache_batch_idx=cache_batch_idx,
        page_table=page_table,
        cu_seqlens_q=cu_seqlens_q,
        seqused_q=seqused_q,
    )
    if cu_seqlens_k_new is not None:
        rule = "packed new keys have no kernel"
        fix = "write the keys to the cache before the call"
        reasons.append(reason("cu_seqlens_k_new", "given", rule, fix))
        return reasons
    if beyond := _beyond_decode(q, cu_seqlens_q, seqused_q, causal, window):
        if not reasons:
            _paged_reasons(reasons, q, k_cache, k is not None or rotary_cos is not None, beyond)
    elif k is not None:
        _append_reasons(reasons, q, k, rotary_cos is not None, causal, window)
    if rotary_cos is not None and rotary_seqlens is not None and rotary_seqlens is not lengths:
        rule = "positions count from cache_seqlens"
        fix = "pass cache_seqlens itself, or None"
        reasons.append(reason("rotary_seqlens", shape_of(rotary_seqlens), rule, fix))
    if cache_leftpad is not None:
        rule = "caches begin at their first key"
        fix = "move the keys, or enter the pages behind the padding in page_table"
        reasons.append(reason("cache_leftpad", shape_of(cache_leftpad), rule, fix))
    if num_splits > MAX_SPLITS:
        rule = f"at most {MAX_SPLITS} splits"
        reasons.append(reason("num_splits", num_splits, rule, "0: by the lengths"))
    return reasons


def _beyond_decode(
    q: Tensor, cu_seqlens_q: Tensor | None, seqused_q: Tensor | None, causal: bool, window: Any
) -> tuple[str, object, str] | None:
    """What decode attention does not have of a call over caches: field, value, what to do without."""
    if cu_seqlens_q is not None:
        return "cu_seqlens_q", "given", "pass q as [batch, tokens, heads, head_dim]"
    if seqused_q is not None:
        return "seqused_q", "given", "leave it out, and the results of other queries unread"
    if q.shape[1] > MAX_DECODE_QUERIES:
        fix = "call it for 16 of them at a time, or flash_attn_varlen_func with whole k and v"
        return "q.shape[1]", q.shape[1], fix
    right = 0 if causal else int(window[1])
    if 0 < right < q.shape[1] - 1:
        return "window_size[1]", right, "0 with the queries one by one"
    return None


def _paged_reasons(
    reasons: list[Reason], q: Tensor, k_cache: Tensor, appends: bool, beyond: tuple[str, object, str]
) -> None:
    """Of calls that go to attention over pages."""
    field, value, fix = beyond
    what = "more than 16 queries, packed queries and windows to the right over caches"
    if lacking := _lacking(q, k_cache, _width(q.shape[-1])):
        reasons.append(reason(field, value, f"{what} are for {lacking}", fix))
    elif appends:
        rule = f"{what} come with keys that are in the cache, and are not turned"
        fix = "turn q, and write the keys to the cache, before the call"
        reasons.append(reason(field, value, rule, fix))


def _append_reasons(
    reasons: list[Reason], q: Tensor, k: Tensor, is_rotary: bool, causal: bool, window: Any
) -> None:
    queries = q.shape[1]
    if k.shape[1] != queries:
        value = f"{k.shape[1]} beside {queries} queries"
        fix = "write the keys to the cache before the call"
        reasons.append(reason("k.shape[1]", value, "as many new keys as queries", fix))
    is_open = not causal and int(window[0]) < 0 and not 0 <= int(window[1]) < queries - 1
    if is_rotary and is_open and queries > 1:
        rule = "queries turn by their own positions, and here by cache_seqlens alone"
        fix = "pass causal=True, or turn q before the call"
        reasons.append(reason("rotary_cos", f"{queries} queries, not causal", rule, fix))
    if q.shape[-1] not in HEAD_DIMS:
        rule = f"head sizes of caches that are written are one of {HEAD_DIMS}"
        fix = "pad the caches with zeros once"
        reasons.append(reason("q.shape[-1]", q.shape[-1], rule, fix))


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
    max_seqlen_q: int | None = None,
    descales: tuple[Tensor | None, Tensor | None, Tensor | None],
    softmax_scale: float | None,
    causal: bool,
    window: Any,
    softcap: float,
    rotary_interleaved: bool,
    num_splits: int,
    return_lse: bool,
    known: tuple[Any, ...] = (),
    **other: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attention of a few queries over caches, to which new keys and values may be added.

    known  arguments of cache_calls: the same call from now on is a known one, if nothing is copied
    """
    reasons = cache_reasons(
        *(q, k_cache, v_cache, k, v, other.pop("qv", None)),
        rotary_cos=rotary_cos,
        cache_seqlens=cache_seqlens,
        cache_batch_idx=cache_batch_idx,
        page_table=page_table,
        cu_seqlens_q=cu_seqlens_q,
        seqused_q=seqused_q,
        causal=causal,
        window=window,
        num_splits=num_splits,
        **other,
    )
    if reasons:
        refuse(name, reasons)
    head_dim = q.shape[-1]
    room = k_cache.shape[1] * (1 if page_table is None else page_table.shape[1])
    if cache_batch_idx is not None:
        page_table = _by_index(cache_batch_idx, page_table)
    left, right = int(window[0]), 0 if causal else int(window[1])
    scale = head_dim**-0.5 if softmax_scale is None else softmax_scale
    if _beyond_decode(q, cu_seqlens_q, seqused_q, causal, window):
        packing = (packed(cu_seqlens_q), packed(seqused_q), max_seqlen_q)
        masking = (scale, causal, left, right, softcap)
        caches = (k_cache, v_cache)
        return _over_pages(q, caches, cache_seqlens, page_table, packing, out, masking, return_lse)
    options = (scale, causal or right == 0, -1 if left >= room - 1 else left, softcap)
    scales: tuple[Tensor | None, Tensor | None] = (None, None)
    if q.dtype == _E4M3:
        scales = _cache_descales(descales)
        q = _sixteen_bits(q)
        k, v = (None if x is None else _sixteen_bits(x) for x in (k, v))
    turning: tuple[Tensor | None, Tensor | None] = (None, None)
    if rotary_cos is not None and rotary_sin is not None:
        turning = (_fp32(rotary_cos), _fp32(rotary_sin))
    caches = (k_cache, v_cache)
    if k is None:
        caches = (_wide(k_cache), _wide(v_cache))
        if caches[0].stride() != caches[1].stride():
            caches = (caches[0].contiguous(), caches[1].contiguous())
    new = (None if k is None else fit(k), None if v is None else fit(v))
    is_plain = head_dim in HEAD_DIMS
    given: tuple[Any, ...]
    given = (_wide(q), *caches, _lengths(cache_seqlens, q.shape[0], k_cache, room), _table(page_table), *new)
    given += (*turning, None, *scales, out if is_plain else None, None, return_lse)
    given += (rotary_interleaved, *options, max(num_splits, 0), "auto")
    done = _decode.decode(given, Way(cache_calls, known if is_plain else (), _CACHE))
    result, lse = done if return_lse else (done, None)
    if result.shape[-1] != head_dim:
        result = result[..., :head_dim]
        result = result if out is None else out.copy_(result)
    return result, lse


def _over_pages(
    q: Tensor,
    caches: tuple[Tensor, Tensor],
    cache_seqlens: Tensor | int | None,
    page_table: Tensor | None,
    packing: tuple[Tensor | None, Tensor | None, int | None],
    out: Tensor | None,
    options: tuple[Any, ...],
    return_lse: bool,
) -> tuple[Tensor, Tensor | None]:
    """Packed queries, or more than decode attention takes. Rows that are not in use get 0, and -inf."""
    cu_q, used_q, max_q = packing
    if cu_q is not None and max_q is None:
        raise ValueError("max_seqlen_q goes with cu_seqlens_q")
    batch, size = q.shape[0] if cu_q is None else cu_q.shape[0] - 1, caches[0].shape[1]
    if cu_q is not None and page_table is None:  # a sequence is a page
        page_table = torch.arange(batch, dtype=torch.int32, device=q.device)[:, None]
    room = size * (1 if page_table is None else page_table.shape[1])
    lengths = _lengths(cache_seqlens, batch, caches[0], room)
    head_dim, q = q.shape[-1], _wide(q)
    given: tuple[Any, ...]
    given = (q, _wide(caches[0]), _wide(caches[1]), _table(page_table), used_q, lengths, cu_q, None)
    result, lse = out if head_dim in HEAD_DIMS else None, None
    if used_q is not None:
        result = torch.zeros_like(q) if result is None else result.zero_()
        shape = _attention._lse_shape(q)
        lse = q.new_full(shape, -math.inf, dtype=torch.float32) if return_lse else None
    given = (*given, None, result, lse, return_lse, max_q or q.shape[1], 0)
    done = _paged.attend((*given, *options, "auto"))
    result, lse = done if return_lse else (done, None)
    assert result is not None
    if result.shape[-1] != head_dim:
        result = result[..., :head_dim]
        result = result if out is None else out.copy_(result)
    return result, lse


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
