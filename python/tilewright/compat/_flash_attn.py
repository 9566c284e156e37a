"""FlashAttention-3's attention over whole sequences."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.compiler import is_compiling

from tilewright import Reason
from tilewright.torch import _attention, _paged
from tilewright.torch._context import Way, known_calls, places_of

from . import _chunks, _flash_latent
from ._common import count, fit, forward_alone, packed, reason, refuse, shape_of

HEAD_DIMS = (64, 128, 256)
_DTYPES = (torch.bfloat16, torch.float16, torch.float8_e4m3fn)
E4M3 = torch.float8_e4m3fn
#: Tensors of known calls, results last.
_FORWARD = places_of("q k v cu_q cu_kv q_descale k_descale v_descale out lse")
_forward_calls = known_calls(len(_FORWARD))


def int32_reasons(reasons: list[Reason], **tensors: Tensor | None) -> None:
    for name, tensor in tensors.items():
        if tensor is not None and tensor.dtype != torch.int32:
            fix = f"{name}.to(torch.int32)"
            reasons.append(reason(name, shape_of(tensor), "lengths and indices are int32", fix))


def operand_reasons(reasons: list[Reason], q: Tensor, k: Tensor, v: Tensor) -> None:
    """What no kernel has, whatever else is asked."""
    if q.dtype not in _DTYPES or q.dtype != k.dtype or k.dtype != v.dtype:
        given = ", ".join(map(shape_of, (q, k, v)))
        rule = "bfloat16, float16 or float8_e4m3fn, all three alike"
        reasons.append(reason("q, k, v", given, rule, "convert with .to()"))
    head_dim, value_dim = q.shape[-1], v.shape[-1]
    unit = 16 if q.dtype == E4M3 else 8
    if value_dim != head_dim and (q.dtype == E4M3 or value_dim > HEAD_DIMS[-1] or value_dim % unit):
        rule = f"values as wide as keys, {head_dim}"
        if q.dtype != E4M3:
            rule += f", or at most {HEAD_DIMS[-1]} wide in multiples of {unit}"
        fix = "pad v with zeros and cut the result" if value_dim < head_dim else "split v"
        reasons.append(reason("v.shape[-1]", value_dim, rule, fix))
    if head_dim > HEAD_DIMS[-1] or head_dim % unit:
        rule = f"head sizes are at most {HEAD_DIMS[-1]}, in multiples of {unit}"
        reasons.append(reason("q.shape[-1]", head_dim, rule, "pad q, k and v with zeros"))


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
    causal: bool = False,
    window: Any = (-1, -1),
    softcap: float = 0.0,
) -> list[Reason]:
    """Why a call over whole sequences cannot be done; empty if it can."""
    if _flash_latent.is_latent(q, v, qv, is_over_caches=False):
        return _flash_latent.latent_reasons(
            *(q, k, v, qv),
            causal=causal,
            window=window,
            softcap=softcap,
            attention_chunk=attention_chunk,
            cu_seqlens_q=cu_seqlens_q,
            cu_seqlens_k=cu_seqlens_k,
            seqused_q=seqused_q,
            seqused_k=seqused_k,
        )
    reasons: list[Reason] = []
    operand_reasons(reasons, q, k, v)
    int32_reasons(
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
        if text := lacking(q, k, v):
            rule = f"used lengths without cu_seqlens_q and cu_seqlens_k are for {text}"
            fix = "pass both, or flash_attn_with_kvcache with cache_seqlens"
            reasons.append(reason("seqused_q, seqused_k", "given", rule, fix))
    return reasons


def lacking(q: Tensor, k: Tensor, v: Tensor) -> str:
    """What reads pages, and lengths on the device, and why it does not here; empty if it does."""
    widths = (q.shape[-1], v.shape[-1])
    found = _paged.reasons_against(q.device, q.dtype, q.shape[-2], k.shape[-2], *widths)
    own = "k7_pages" if q.dtype == E4M3 else "k6_pages"
    return f"kernel {own}, and kernel {found[0].value} {found[0].rule}" if found else ""


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
    if reasons := forward_reasons(q, k, v, qv, *lengths, attention_chunk, causal, window, softcap):
        refuse(name, reasons)
    if _flash_latent.is_latent(q, v, qv, is_over_caches=False):
        return _flash_latent.attend(
            *(q, k, v, qv, _flash_latent.whole_lengths(k), None),
            causal=causal,
            window=window,
            softmax_scale=softmax_scale,
            out=out,
            return_lse=return_lse,
        )
    head_dim = q.shape[-1]
    scale = head_dim**-0.5 if softmax_scale is None else softmax_scale
    used = [fit(q), fit(k), fit(v)]
    descales = descales if q.dtype == E4M3 else (None, None, None)
    cu_q, cu_k = packed(cu_seqlens_q), packed(cu_seqlens_k)
    scatter = None
    has_used = seqused_q is not None or seqused_k is not None
    if (has_used or attention_chunk) and not lacking(q, k, v):
        sides = (int(window[0]), 0 if causal else int(window[1]))
        options = (scale, causal, *sides, softcap)
        cu = (cu_q, cu_k, max_seqlen_q, max_seqlen_k)
        in_use = (packed(seqused_q), packed(seqused_k))
        return _in_use(used, cu, *in_use, out, options, attention_chunk, return_lse, descales)
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
    if attention_chunk:
        cu = (cu_q, cu_k, max_seqlen_q, max_seqlen_k)
        masking = (scale, causal, int(window[0]), 0 if causal else int(window[1]), softcap)
        into = out if is_plain else None
        result, lse = _in_chunks(used, cu, descales, into, attention_chunk, masking, return_lse)
        return _back(result, lse, scatter, cu_seqlens_q, seqused_q, out)
    sides = (int(window[0]), 0 if causal else int(window[1]))
    given: tuple[Any, ...]
    given = (*used, None, cu_q, cu_k, *descales, out if is_plain else None, None, return_lse)
    given += (max_seqlen_q, max_seqlen_k, scale, causal, *sides, softcap, "auto")
    way = Way(_forward_calls, known if is_plain else (), _FORWARD)
    done = _attention.attend(given, way)
    result, lse = done if return_lse else (done, None)
    return _back(result, lse, scatter, cu_seqlens_q, seqused_q, out)


def _back(
    result: Tensor,
    lse: Tensor | None,
    scatter: Tensor | None,
    cu_seqlens_q: Tensor | None,
    seqused_q: Tensor | None,
    out: Tensor | None,
) -> tuple[Tensor, Tensor | None]:
    """Results of rows that were packed, where they belong."""
    if scatter is None or cu_seqlens_q is None or seqused_q is None:
        return result, lse
    result, lse = _spread(result, lse, scatter, cu_seqlens_q, seqused_q)
    return result if out is None else out.copy_(result), lse


def _in_chunks(
    used: list[Tensor],
    cu: tuple[Tensor | None, Tensor | None, int | None, int | None],
    descales: tuple[Tensor | None, ...],
    out: Tensor | None,
    chunk: int,
    options: tuple[Any, ...],
    return_lse: bool,
) -> tuple[Tensor, Tensor | None]:
    """A query at key p sees the keys of p's chunk: from p // chunk * chunk on, as many as chunk."""
    cu_q, cu_k, max_q, max_k = cu
    q, k = used[:2]
    shape, batch = q.shape, q.shape[0]
    if cu_q is None or cu_k is None:
        cu_q, cu_k = (_chunks.starts_of(batch, x.shape[1], x.device) for x in (q, k))
        max_q, max_k = max(min(chunk, q.shape[1]), q.shape[1] - k.shape[1]), k.shape[1]
        used = [_chunks.flat(x) for x in used]
    if max_q is None or max_k is None:
        raise ValueError("max_seqlen_q and max_seqlen_k go with cu_seqlens_q and cu_seqlens_k")
    sequences = cu_q.shape[0] - 1
    cu_q, cu_k = _chunks.cut(cu_q, cu_k, chunk, int(max_k))
    pieces = (cu_q.shape[0] - 1) // max(sequences, 1)
    heads = (sequences, k.shape[-2])
    scales = (
        x if x is None or x.numel() == 1 else x.expand(heads).repeat_interleave(pieces, 0)
        for x in descales
    )
    given = (*used, None, cu_q, cu_k, *scales, None, None, return_lse)
    sizes = (int(max_q), min(chunk, int(max_k)))
    done = _attention.attend((*given, *sizes, *options, "auto"))
    result, lse = done if return_lse else (done, None)
    result = result.view(*shape[:-1], result.shape[-1])
    result = result if out is None else out.copy_(result)
    if lse is not None and len(shape) == 4:
        lse = _chunks.unflat(lse, batch)
    return result, lse


def _in_use(
    used: list[Tensor],
    cu: tuple[Tensor | None, Tensor | None, int | None, int | None],
    seqused_q: Tensor | None,
    seqused_k: Tensor | None,
    out: Tensor | None,
    options: tuple[Any, ...],
    chunk: int,
    return_lse: bool,
    descales: tuple[Tensor | None, ...],
) -> tuple[Tensor, Tensor | None]:
    """By a kernel that reads the lengths, and knows chunks. Rows that are not in use get 0, and an lse of -inf."""
    q, cu_q, cu_k = used[0], cu[0], cu[1]
    shape = _attention.out_shape(q, used[2])
    if cu_q is not None and None in cu[2:] and q.shape[0]:
        raise ValueError("max_seqlen_q and max_seqlen_k go with cu_seqlens_q and cu_seqlens_k")
    sizes = tuple(int(n or 0) for n in cu[2:])
    is_empty = used[1].numel() == 0 or (cu_q is not None and 0 in sizes)  # the longest sequence is
    lse = None
    is_given = out is not None
    if seqused_q is not None or is_empty:
        dtype = torch.bfloat16 if q.dtype == E4M3 else q.dtype
        out = torch.zeros(shape, dtype=dtype, device=q.device) if out is None else out.zero_()
        rows = _attention._lse_shape(q)
        lse = q.new_full(rows, -math.inf, dtype=torch.float32) if return_lse else None
        if is_empty:
            return out, lse
    given = (*used, None, seqused_q, seqused_k, cu_q, cu_k, None, *descales, out, lse, return_lse)
    def attend() -> Any:
        return _paged.attend((*given, *sizes, *options, "auto", chunk))

    done = attend() if is_given else forward_alone("attention_paged", attend, *used)
    return done if return_lse else (done, None)


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
    return x.view(torch.uint8)[rows].view(x.dtype) if x.dtype == E4M3 else x[rows]


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
