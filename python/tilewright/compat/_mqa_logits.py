"""The indexer's logits as DeepGEMM's functions have them: what is asked of a call, and the call."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import tilewright
from tilewright import Reason
from tilewright.torch._context import device_of, table

from ._common import count, packed, reason, refuse, shape_of

#: Codes with their scales.
Scaled = tuple[Tensor, Tensor]
#: The same of queries: None for e4m3, where scales are in the weights.
Queries = tuple[Tensor, Tensor | None]
#: Of the indexer's queries and keys.
_HEAD_DIM, _MAX_HEADS, _MAX_LEN = 128, 64, 1 << 30
#: Rows of logits begin at multiples of so many numbers, 1024 bytes.
_LOGITS_STEP = 256
#: Of logits in bfloat16, which kernels write in float32 first: bytes of as many rows as are held at once.
_HELD_BYTES = 256 << 20
_Dtypes = tuple[torch.dtype, ...]
#: Of logits, and of weights.
_LOGITS: _Dtypes = (torch.float32, torch.bfloat16)
_E4M3: _Dtypes = (torch.float8_e4m3fn,)
_PACKED_FP4: _Dtypes = (torch.int8, torch.uint8, torch.float4_e2m1fn_x2)


def fp8_fp4_mqa_logits(
    q: Queries,
    kv: Scaled,
    weights: Tensor,
    cu_seq_len_k_start: Tensor,
    cu_seq_len_k_end: Tensor,
    clean_logits: bool = True,
    max_seqlen_k: int = 0,
    logits_dtype: torch.dtype = torch.float32,
) -> Tensor:
    """[s, s_kv] of logits_dtype: logits of keys from start to end of each token, else -inf if
    clean_logits.

    q     e4m3 [s, heads, 128] and None, or packed e2m1 [s, heads, 64] and int32 [s, heads] of four
          ue8m0 each
    kv    e4m3 [s_kv, 128] and fp32 [s_kv], or packed e2m1 [s_kv, 64] and int32 [s_kv]
    max_seqlen_k > 0: [s, max_seqlen_k], from each token's start on
    """
    reasons = logits_reasons(
        q, kv[0], weights, kv_scales=kv[1], logits_dtype=logits_dtype,
        starts=cu_seq_len_k_start, ends=cu_seq_len_k_end
    )
    if reasons:
        refuse("fp8_fp4_mqa_logits", reasons)
    num_keys = kv[0].shape[0]
    tokens, heads = q[0].shape[:2]
    logits = _rows_of_logits(tokens, max_seqlen_k or num_keys, q[0].device, logits_dtype)
    if logits.numel() == 0:
        return logits
    if num_keys == 0:
        return logits.fill_(-torch.inf) if clean_logits else logits
    problem = {
        "format": _format(q),
        "heads": heads,
        "max_len": _MAX_LEN,
        "is_compressed": bool(max_seqlen_k),
        "fill_logits": bool(clean_logits),
    }
    starts, scales, keys = packed(cu_seq_len_k_start), packed(kv[1]), _codes(kv[0])
    weights, ends = _float(weights), cu_seq_len_k_end
    assert starts is not None
    rows, held = tokens, logits
    if logits_dtype != torch.float32:
        rows = max(1, min(tokens, _HELD_BYTES // (4 * logits.stride(0))))
        held = _rows_of_logits(rows, logits.shape[1], logits.device)
    for begin in range(0, tokens, rows):
        part = slice(begin, min(begin + rows, tokens))
        into = logits if logits_dtype == torch.float32 else held[: part.stop - begin]
        _run_logits(
            problem,
            (q[0][part], None if q[1] is None else q[1][part]),
            weights[part],
            ends[part],
            into,
            keys=keys,
            starts=starts[part],
            key_scales=scales,
            num_keys=num_keys,
        )
        _round_into(logits[part], into)
    return logits


def fp8_fp4_paged_mqa_logits(
    q: Queries,
    kv_cache: Tensor,
    weights: Tensor,
    context_lens: Tensor,
    block_table: Tensor,
    schedule_meta: Tensor,
    max_context_len: int,
    clean_logits: bool = False,
    logits_dtype: torch.dtype = torch.float32,
    indices: Tensor | None = None,
) -> Tensor:
    """[b * next_n, max_context_len] of logits_dtype: logits of the first context_lens keys of each
    token.

    q             e4m3 [b, next_n, heads, 128] and None, or packed e2m1 [b, next_n, heads, 64] and
                  int32 [b, next_n, heads] of four ue8m0 each
    kv_cache      uint8 [pages, page_size, 1, 132 or 68]: codes of a page's keys, then their scales
    context_lens  int32 [b, next_n]
    schedule_meta is not read.
    """
    reasons = logits_reasons(
        q, kv_cache, weights, logits_dtype=logits_dtype, ends=context_lens, indices=indices
    )
    if reasons:
        refuse("fp8_fp4_paged_mqa_logits", reasons)
    batch, next_n, heads = q[0].shape[:3]
    logits = _rows_of_logits(batch * next_n, max_context_len, q[0].device)
    if logits.numel() == 0:
        return logits.to(logits_dtype)
    if block_table.shape[1] == 0 or kv_cache.shape[0] == 0:
        return logits.fill_(-torch.inf).to(logits_dtype)
    pages, page_size = kv_cache.shape[:2]
    layout = {"page_size": page_size, "num_pages": pages, "page_stride_bytes": kv_cache.stride(0)}
    if pages == 1:
        del layout["page_stride_bytes"]
    problem = {
        "format": _format(q),
        "heads": heads,
        "max_len": max_context_len,
        "keys": layout,
        "fill_logits": bool(clean_logits),
    }
    if block_table.stride(1) != 1:
        block_table = packed(block_table)  # type: ignore[assignment]
    _run_logits(
        problem,
        q,
        _float(weights),
        context_lens,
        logits,
        keys=kv_cache,
        sequences={"batch": batch, "q_len": next_n},
        key_table={
            "pages": block_table,
            "blocks": block_table.shape[1],
            "stride": block_table.stride(0),
        },
    )
    if logits_dtype == torch.float32:
        return logits
    rounded = _rows_of_logits(batch * next_n, max_context_len, q[0].device, logits_dtype)
    return _round_into(rounded, logits)


def _format(q: Queries) -> str:
    return "fp8" if q[1] is None else "mxfp4"


def _codes(x: Tensor) -> Tensor:
    """Rows one behind another that begin at a multiple of 16 bytes, as bytes."""
    if not x.is_contiguous() or x.data_ptr() % 16 != 0:
        count("contiguous")
        x = x.clone(memory_format=torch.contiguous_format)
    return x.view(torch.uint8)


def _float(weights: Tensor) -> Tensor:
    """Weights as kernels read them; exact."""
    if weights.dtype == torch.float32:
        return weights
    count("converted")
    return weights.float()


def _round_into(to: Tensor, logits: Tensor) -> Tensor:
    """Logits that were written in float32, in the type that was asked for."""
    if to.dtype != logits.dtype:
        count("converted")
        to.copy_(logits)
    return to


def _rows_of_logits(
    tokens: int, columns: int, device: torch.device, dtype: torch.dtype = torch.float32
) -> Tensor:
    step = _LOGITS_STEP * 4 // dtype.itemsize
    stride = -(-columns // step) * step
    return torch.empty((tokens, stride), dtype=dtype, device=device)[:, :columns]


def _run_logits(
    problem: dict[str, Any], q: Queries, weights: Tensor, ends: Tensor, logits: Tensor, **given: Any
) -> None:
    """A call of IndexerLogits; the operators of problems are kept."""
    device = logits.device
    layout = tuple(sorted(problem.get("keys", {}).items()))
    key = ("indexer_logits", device, *(v for k, v in problem.items() if k != "keys"), layout)
    entry = table.get(key)
    if entry is None:
        made = tilewright.IndexerLogits(device_of(device), **problem)
        entry = table.add(key, made)
    tokens = logits.shape[0]
    if device.type != "cpu":
        batch = given["sequences"]["batch"] if "sequences" in given else 1
        size = entry.workspace_bytes(tokens, batch)
        given["workspace"] = torch.empty(size, dtype=torch.uint8, device=device)
    if q[1] is not None:
        given["q_scales"] = packed(q[1])
    entry.run(
        tokens=tokens,
        q=_codes(q[0]),
        weights=packed(weights),
        ends=packed(ends),
        logits=logits,
        logits_stride=logits.stride(0),
        columns=logits.shape[1],
        **given,
    )


def logits_reasons(
    q: Queries,
    kv: Tensor | None = None,
    weights: Tensor | None = None,
    *,
    kv_scales: Tensor | None = None,
    starts: Tensor | None = None,
    ends: Tensor | None = None,
    logits_dtype: torch.dtype = torch.float32,
    indices: Tensor | None = None,
) -> list[Reason]:
    """Why no function can do a call; empty if one can. What is not given is not asked."""
    reasons = _query_reasons(q)
    if logits_dtype not in _LOGITS:
        fix = "ask for float32, and convert the result"
        reasons.append(reason("logits_dtype", logits_dtype, "logits are float32 or bfloat16", fix))
    if indices is not None:
        fix = "give the tokens of a sequence as next_n"
        reasons.append(reason("indices", shape_of(indices), "None", fix))
    if reasons:
        return reasons
    codes, scales = q
    rows, paged = codes.shape[:-1], codes.dim() == 4
    code_bytes = _HEAD_DIM if scales is None else _HEAD_DIM // 2
    dtypes = _E4M3 if scales is None else _PACKED_FP4
    wanted: list[tuple[str, Tensor | None, _Dtypes, tuple[int | None, ...]]]
    wanted = [
        ("q[1]", scales, (torch.int32,), tuple(rows)),
        ("weights", weights, _LOGITS, (rows[:-1].numel(), rows[-1])),
    ]
    if paged:
        wanted.append(("kv_cache", kv, (torch.uint8,), (None, None, 1, code_bytes + 4)))
        wanted.append(("context_lens", ends, (torch.int32,), tuple(rows[:2])))
    else:
        num_keys = None if kv is None else kv.shape[0]
        of_scales = (torch.float32,) if scales is None else (torch.int32,)
        wanted.append(("kv[0]", kv, dtypes, (None, code_bytes)))
        wanted.append(("kv[1]", kv_scales, of_scales, (num_keys,)))
        wanted.append(("cu_seq_len_k_start", starts, (torch.int32,), tuple(rows[:1])))
        wanted.append(("cu_seq_len_k_end", ends, (torch.int32,), tuple(rows[:1])))
    for name, tensor, allowed, shape in wanted:
        if tensor is not None:
            reasons += _tensor_reasons(name, tensor, allowed, shape)
    if paged and kv is not None and not reasons:
        reasons += _page_reasons(kv)
    return reasons


def _query_reasons(q: Queries) -> list[Reason]:
    codes, scales = q
    heads = codes.shape[-2] if codes.dim() in (3, 4) else 0
    if not 1 <= heads <= _MAX_HEADS:
        rule = "[s, heads, head_dim], or [b, next_n, heads, head_dim], with 1 to 64 heads"
        fix = "score groups of heads apart, and add the logits up"
        return [reason("q[0]", shape_of(codes), rule, fix)]
    allowed, size = (_E4M3, _HEAD_DIM) if scales is None else (_PACKED_FP4, _HEAD_DIM // 2)
    wanted = (*(None for _ in codes.shape[1:]), size)
    return _tensor_reasons("q[0]", codes, allowed, wanted)


def _tensor_reasons(
    name: str, tensor: Tensor, allowed: _Dtypes, shape: tuple[int | None, ...]
) -> list[Reason]:
    has_shape = tensor.dim() == len(shape) and all(
        size in (None, found) for size, found in zip(shape, tensor.shape, strict=True)
    )
    if has_shape and tensor.dtype in allowed:
        return []
    sizes = ", ".join("any" if size is None else str(size) for size in shape)
    types = " or ".join(str(dtype).removeprefix("torch.") for dtype in allowed)
    rule = f"expected {types}[{sizes}]"
    fix = "heads have 128 numbers: e4m3, or packed e2m1 with a ue8m0 for each 32"
    if has_shape and name == "weights":
        fix = "convert with .to()"
    elif name in ("weights", "context_lens", "cu_seq_len_k_start", "cu_seq_len_k_end"):
        fix = "a row for each token"
    return [reason(name, shape_of(tensor), rule, fix)]


def _page_reasons(kv_cache: Tensor) -> list[Reason]:
    row = kv_cache.shape[-1]
    strides = kv_cache.stride()
    is_dense = kv_cache.shape[1] == 1 or strides[1] == row
    if is_dense and strides[3] == 1 and (kv_cache.shape[0] == 1 or strides[0] % 16 == 0):
        return []
    rule = f"pages are dense, [page_size * {row}] bytes, and lie a multiple of 16 bytes apart"
    return [reason("kv_cache", f"strides {list(strides)}", rule, "allocate them so")]


def known_reasons(
    q: Any,
    kv: Any = None,
    kv_cache: Tensor | None = None,
    weights: Tensor | None = None,
    **rest: Any,
) -> list[Reason]:
    """By the names of the functions' parameters; those that nothing depends on may be there."""
    queries: Queries = (q, None) if isinstance(q, Tensor) else q
    names = ("logits_dtype", "indices")
    return logits_reasons(
        queries,
        kv_cache if kv is None else kv[0],
        weights,
        kv_scales=None if kv is None else kv[1],
        starts=rest.get("cu_seq_len_k_start"),
        ends=rest.get("cu_seq_len_k_end", rest.get("context_lens")),
        **{name: rest[name] for name in names if name in rest},
    )
