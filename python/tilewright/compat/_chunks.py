"""attention_chunk, and sequences that lie one behind the other though they came as a batch.

A query sees the keys of its own chunk alone, so a sequence that is cut where chunks begin is as many
sequences: the last query of each stands at its last key, as kernels have it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ._common import count


def starts_of(batch: int, length: int, device: torch.device) -> Tensor:
    """Of equally long sequences, and the end."""
    return torch.arange(batch + 1, dtype=torch.int32, device=device) * length


def flat(x: Tensor) -> Tensor:
    """[batch, rows, ...] as [batch * rows, ...]."""
    if x.shape[0] > 1 and x.shape[1] > 0 and x.stride(0) != x.shape[1] * x.stride(1):
        count("contiguous")
    return x.flatten(0, 1)


def unflat(lse: Tensor, batch: int) -> Tensor:
    """[heads, batch * rows] as [batch, heads, rows]."""
    return lse.view(lse.shape[0], batch, -1).transpose(0, 1).contiguous()


def cut(cu_q: Tensor, cu_k: Tensor, chunk: int, max_k: int) -> tuple[Tensor, Tensor]:
    """Where the pieces begin, as many for each sequence as the longest has; nothing waits.

    The first piece of each has the queries that stand before its first key, and no keys.
    """
    pieces = max(1, -(-max_k // chunk))
    edges = torch.arange(pieces, dtype=torch.int32, device=cu_q.device) * chunk
    queries, keys = cu_q.diff()[:, None], cu_k.diff()[:, None]
    at_q = torch.minimum((edges + queries - keys).clamp_(min=0), queries) + cu_q[:-1, None]
    at_k = torch.minimum(edges, keys) + cu_k[:-1, None]
    made = []
    for cu, inside in ((cu_q, at_q), (cu_k, at_k)):
        begins = torch.cat((cu[:-1, None], inside), 1).flatten()
        made.append(torch.cat((begins, cu[-1:])).int())
    return made[0], made[1]


def padded(cu: Tensor, leftpad: Tensor, length: int) -> Tensor:
    """Where keys begin that stand behind padding, in sequences of that length, and the end."""
    return F.pad(cu[:-1] + leftpad, (0, 1), value=(cu.shape[0] - 1) * length)
