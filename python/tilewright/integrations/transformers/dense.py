"""Attention of dense models: whole, packed and padded sequences, windows, sinks, softcap.

Conventions are those of transformers' own flash_attention_2, so that every model that supports that
one runs here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import masking_utils
from transformers.integrations.flash_attention import get_target_dtype

import tilewright.torch as ops

from .refusal import EAGER, refuse, refuse_what_no_kernel_has

_MOST_HEAD_DIM = 256
_DECODE_QUERIES = 16
#: Parts of mask functions that attention() follows without a mask. A sequence in a packed row is
#: found again by its position_ids.
_KNOWN_MASKS = {
    "causal_mask_function",
    "bidirectional_mask_function",
    "sliding_window_overlay",
    "sliding_window_bidirectional_overlay",
    "packed_sequence_mask_function",
}
#: Functions that hold others, which all have to allow a key; the second is of transformers 5.23.
_OF_SEVERAL_MASKS = {"and_masks", "remap_positions_for_packed_sequence"}


def mask(
    *,
    config: Any,
    mask_function: Callable[..., Any] = masking_utils.causal_mask_function,
    attention_mask: Tensor | None = None,
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int | Tensor = 0,
    **_: Any,
) -> Tensor | None:
    """None where nothing is padded, else [batch, keys], True for a token."""
    parts = set(_parts(mask_function))
    unknown = sorted(parts - _KNOWN_MASKS)
    if unknown:
        refuse(config, f"a mask by {', '.join(unknown)}", EAGER)
    if attention_mask is not None:
        given: Tensor | None = masking_utils.flash_attention_mask(
            batch_size, q_length, kv_length, attention_mask=attention_mask
        )
        return given
    seen = int(q_offset) + q_length - int(kv_offset)
    if "causal_mask_function" in parts and seen < kv_length:  # the rest of a static cache is empty
        device = q_offset.device if isinstance(q_offset, Tensor) else None
        return torch.ones(batch_size, seen, dtype=torch.bool, device=device)
    return None


def _parts(function: Callable[..., Any]) -> Iterator[str]:
    """Names of the functions that a mask function of transformers consists of."""
    name = getattr(function, "__qualname__", repr(function)).partition(".")[0]
    if name not in _OF_SEVERAL_MASKS:
        yield name
        return
    for cell in function.__closure__ or ():
        held = cell.cell_contents if isinstance(cell.cell_contents, tuple) else (cell.cell_contents,)
        for part in filter(callable, held):
            yield from _parts(part)


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    softcap: float | None = None,
    is_causal: bool | None = None,
    s_aux: Tensor | None = None,
    cache: Any = None,
    output_attentions: bool = False,
    **keywords: Any,
) -> Tensor:
    """[batch, tokens, heads, head_dim] of query [batch, heads, tokens, head_dim] and key, value."""
    config = module.config
    refuse_what_no_kernel_has(
        config, dropout=dropout, cache=cache, output_attentions=output_attentions
    )
    if attention_mask is not None and attention_mask.dim() != 2:
        refuse(config, f"an attention mask {list(attention_mask.shape)}, not [batch, keys]", EAGER)
    head_dim, value_dim = query.shape[-1], value.shape[-1]
    scale = head_dim**-0.5 if scaling is None else scaling
    q, k, v = _operands(module, query, key, value)
    causal = bool(module.is_causal if is_causal is None else is_causal)
    options: dict[str, Any] = {
        "scale": scale,
        "causal": causal,
        "window": _window(sliding_window, k.shape[1], causal),
        "softcap": softcap or 0.0,
        "sink": None if s_aux is None else s_aux.float(),
    }
    if attention_mask is not None:
        packing: _Packing | None = _packing_of_padding(attention_mask, q, k, causal)
    else:
        packing = _packing(q, k, keywords)
    out = _whole(q, k, v, options) if packing is None else _packed(q, k, v, packing, options)
    return out[..., :value_dim].to(query.dtype)


def _operands(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """As [batch, tokens, heads, head_dim] of 16 bits, head_dim a multiple of 8 and alike in all.

    fp32 comes from layer norms that training keeps in fp32, in a model of 16 bits.
    """
    config, head_dim = module.config, query.shape[-1]
    size = -(-head_dim // 8) * 8
    if size > _MOST_HEAD_DIM or value.shape[-1] > head_dim:
        reason = f"heads of {head_dim}, values of {value.shape[-1]}, but 256 is the largest"
        refuse(config, reason, EAGER)
    dtype = get_target_dtype(query, module) or query.dtype
    if dtype not in (torch.bfloat16, torch.float16):
        refuse(config, f"a model of {dtype}", "load it with dtype=torch.bfloat16")

    def made(tensor: Tensor) -> Tensor:
        tensor = tensor.transpose(1, 2).to(dtype)
        return pad(tensor, (0, size - tensor.shape[-1])) if tensor.shape[-1] != size else tensor

    return made(query), made(key), made(value)


def _window(sliding_window: int | None, keys: int, causal: bool) -> tuple[int, int]:
    """The size counts the query's own place. Without causality it holds in both directions."""
    if sliding_window is None or keys <= sliding_window:
        return -1, -1
    return sliding_window - 1, -1 if causal else sliding_window - 1


def _whole(q: Tensor, k: Tensor, v: Tensor, options: dict[str, Any]) -> Tensor:
    """Few queries at the end of many keys are work for the decode kernels, which cut the keys up."""
    out: Tensor
    left, right = options["window"]
    queries, keys = q.shape[1], k.shape[1]
    if queries > _DECODE_QUERIES or keys == queries or right >= 0 or k.stride() != v.stride():
        out = ops.attention(q, k, v, **options)
    else:
        lengths = torch.full((q.shape[0],), keys, dtype=torch.int32, device=q.device)
        out = ops.attention_decode(q, k, v, lengths=lengths, **{**options, "window": left})
    return out


class _Packing(NamedTuple):
    """Where sequences begin; and which of all tokens they have, None for all."""

    cu_q: Tensor
    cu_kv: Tensor
    max_q: int
    max_kv: int
    q_tokens: Tensor | None = None
    kv_tokens: Tensor | None = None


def _packing(q: Tensor, k: Tensor, keywords: dict[str, Any]) -> _Packing | None:
    """Of several sequences in one row: by their lengths, or by their positions."""
    names = ("cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k")
    if all(keywords.get(name) is not None for name in names):
        cu_q, cu_kv, max_q, max_kv = (keywords[name] for name in names)
        return _Packing(cu_q.int(), cu_kv.int(), int(max_q), int(max_kv))
    positions = keywords.get("position_ids")
    if positions is None or q.shape[0] != 1 or q.shape[1] == 1 or q.shape[1] != k.shape[1]:
        return None
    return _packing_of_positions(positions)


def _packing_of_positions(positions: Tensor) -> _Packing | None:
    """Sequences in one row begin where positions begin again."""
    if positions.dim() != 2 or positions.shape[0] != 1:
        return None
    begins = (positions[0] == positions.min()).nonzero()[:, 0]
    if len(begins) == 1:
        return None
    cu = pad(begins, (0, 1), value=positions.shape[1])
    longest = int(cu.diff().max())
    return _Packing(cu.int(), cu.int(), longest, longest)


def _packing_of_padding(mask: Tensor, q: Tensor, k: Tensor, causal: bool) -> _Packing:
    """Sequences of a padded batch. The queries are the last of all tokens; where attention is not
    causal they may be tokens of another sequence, which the mask says nothing of."""
    batch, queries, keys = q.shape[0], q.shape[1], k.shape[1]
    mask = mask.bool()
    cu_kv, max_kv = _sums(mask)
    kv_tokens = pad(mask, (0, keys - mask.shape[1])).flatten().nonzero()[:, 0]
    if queries == keys == mask.shape[1]:
        return _Packing(cu_kv, cu_kv, max_kv, max_kv, kv_tokens, kv_tokens)
    mask = mask[:, -queries:] if causal else mask.new_ones(batch, queries)
    cu_q, max_q = _sums(mask)
    return _Packing(cu_q, cu_kv, max_q, max_kv, mask.flatten().nonzero()[:, 0], kv_tokens)


def _sums(mask: Tensor) -> tuple[Tensor, int]:
    counts = mask.sum(-1)
    return pad(counts.cumsum(0), (1, 0)).int(), int(counts.max())


def _packed(
    q: Tensor, k: Tensor, v: Tensor, packing: _Packing, options: dict[str, Any]
) -> Tensor:
    cu_q, cu_kv, max_q, max_kv, q_tokens, kv_tokens = packing
    q_rows, k_rows, v_rows = (tensor.flatten(0, 1) for tensor in (q, k, v))
    if q_tokens is not None and kv_tokens is not None:
        q_rows, k_rows, v_rows = q_rows[q_tokens], k_rows[kv_tokens], v_rows[kv_tokens]
    rows: Tensor = ops.attention_varlen(
        q_rows, k_rows, v_rows, cu_q=cu_q, cu_kv=cu_kv, max_q=max_q, max_kv=max_kv, **options
    )
    if q_tokens is None:
        return rows.view(q.shape)
    out = torch.zeros_like(q, memory_format=torch.contiguous_format)
    out.flatten(0, 1)[q_tokens] = rows
    return out
