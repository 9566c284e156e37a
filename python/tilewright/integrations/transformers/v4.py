"""DeepSeek-V4: the model's mask as lists of rows, and sparse attention over them.

The model hands over one tensor of rows, window and compressed ones, as key and value, and an
additive mask that holds all choices: window, causality, and what the indexer found.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers.masking_utils import eager_mask

import tilewright.torch as ops

from .refusal import EAGER, refuse, refuse_what_no_kernel_has

HEAD_DIM = 512
#: Mask elements that are looked at together: a byte of temporary memory each.
CHUNK_ELEMENTS = 1 << 24
#: Lists have a multiple of this many entries, so that few shapes occur while a text grows.
_WIDTH_STEP = 64

mask = eager_mask


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    s_aux: Tensor | None = None,
    cache: Any = None,
    output_attentions: bool = False,
    **_: Any,
) -> Tensor:
    """[batch, tokens, heads, 512] of query [batch, heads, tokens, 512], key [batch, 1, rows, 512].

    A row counts where the mask is 0 (or True), and not at all where it is anything else. The kernel
    multiplies bf16: fp32 operands are rounded, and the result is fp32 again.
    """
    config = module.config
    refuse_what_no_kernel_has(
        config, dropout=dropout, cache=cache, output_attentions=output_attentions
    )
    if not isinstance(attention_mask, Tensor) or attention_mask.dim() != 4:
        given = None if attention_mask is None else type(attention_mask).__name__
        refuse(
            config,
            f"attention_mask {given}, but only a tensor [batch, 1, tokens, rows] says which rows "
            "of window and compressor a query sees",
            "register masks together with attention, by "
            "tilewright.integrations.transformers.register()",
        )
    if key.data_ptr() != value.data_ptr() or key.shape[1] != 1 or key.shape[3] != HEAD_DIM:
        refuse(
            config,
            f"key {list(key.shape)}, value {list(value.shape)}: expected one tensor for both, with "
            f"one head of {HEAD_DIM}",
            EAGER,
        )
    batch, rows = key.shape[0], key.shape[2]
    lists, lengths = lists_of_mask(attention_mask[:, 0].expand(batch, -1, -1))
    out: Tensor = ops.sparse_attention(
        query.transpose(1, 2).to(torch.bfloat16),
        key.reshape(batch * rows, HEAD_DIM).to(torch.bfloat16),
        lists,
        lengths=lengths,
        scale=scaling,
        sink=None if s_aux is None else s_aux.float(),
    )
    return out.to(query.dtype)


def lists_of_mask(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Lists [batch, tokens, width] and lengths [batch, tokens], int32, of a mask
    [batch, tokens, rows].

    A list has the rows at which the mask is 0 (or True), ascending and counted through the batch,
    then -1. A single token needs no look at the counts by the host, and gets a width that holds all
    rows.
    """
    batch, tokens, rows = mask.shape
    step = max(1, CHUNK_ELEMENTS // max(1, batch * rows))
    chunks = [slice(begin, begin + step) for begin in range(0, max(1, tokens), step)]
    longest = rows
    if tokens > 1:
        longest = max(int(_visible(mask[:, chunk]).sum(-1).max()) for chunk in chunks)
    width = max(1, -(-longest // _WIDTH_STEP)) * _WIDTH_STEP
    # Rows are counted through the batch: those of a sequence are a page.
    page = torch.arange(batch, dtype=torch.int32, device=mask.device)[:, None]
    made = [
        ops.mask_lists(_visible(mask[:, chunk]), topk=width, page_table=page, page_size=rows)
        for chunk in chunks
    ]
    lists, lengths = (torch.cat([lists[i] for lists in made], 1) for i in (0, 1))
    return lists, lengths


def _visible(mask: Tensor) -> Tensor:
    return (mask if mask.dtype is torch.bool else mask == 0).contiguous()
