"""What tilewright.torch computes, in plain torch and float64, to test integrations without it."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch import Tensor

import tilewright.torch as ops


@pytest.fixture(params=["torch", "sim:h200"])
def computed_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What takes the place of kernels: the functions here, or the kernels on the simulator."""
    if request.param == "torch":
        for name in ("attention", "attention_varlen", "attention_decode", "sparse_attention", "mask_lists", "Moe"):
            monkeypatch.setattr(ops, name, getattr(sys.modules[__name__], name))
    else:
        request.getfixturevalue("kernels")
        ops.set_device(request.param)
    return str(request.param)


def mask_lists(
    mask: Tensor, *, topk: int, page_table: Tensor, page_size: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Each sequence is a page. Of mask [b, rows, keys], by loops."""
    batch, rows, _ = mask.shape
    lists = torch.full((batch, rows, topk), -1, dtype=torch.int32)
    for b in range(batch):
        for i in range(rows):
            keys = mask[b, i].nonzero().flatten()[:topk] + page_table[b, 0] * page_size
            lists[b, i, : len(keys)] = keys.int()
    totals = mask.sum(-1, dtype=torch.int32)
    return lists, totals.clamp(max=topk), totals


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scale: float | None = None,
    causal: bool = False,
    window: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    sink: Tensor | None = None,
    out: Tensor | None = None,
    return_lse: bool = False,
) -> Any:
    """Of q [b, s, heads, d] and k, v [b, t, kv_heads, d]; the lse is [b, heads, s]."""
    heads, kv_heads = q.shape[2], k.shape[2]
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    k64, v64 = (t.double().repeat_interleave(heads // kv_heads, dim=2) for t in (k, v))
    scores = torch.einsum("bshd,bthd->bhst", q.double(), k64) * scale
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores.masked_fill(~visible(q.shape[1], k.shape[1], causal, window), -torch.inf)
    result, lse = weighted(scores, v64, sink)
    return _answer(result.transpose(1, 2), lse, q, out, return_lse)


def attention_varlen(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    cu_q: Tensor,
    cu_kv: Tensor,
    max_q: int,
    max_kv: int,
    out: Tensor | None = None,
    return_lse: bool = False,
    **options: Any,
) -> Any:
    """Of packed rows; the lse is [heads, rows]."""
    assert cu_q.dtype == cu_kv.dtype == torch.int32
    result = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=torch.float64)
    lse = torch.zeros(q.shape[1], q.shape[0], dtype=torch.float64)
    for begin, end, first, last in zip(cu_q, cu_q[1:], cu_kv, cu_kv[1:], strict=False):
        assert end - begin <= max_q and last - first <= max_kv
        operands = (t.double() for t in (q[begin:end], k[first:last], v[first:last]))
        part, part_lse = attention(*(t[None] for t in operands), **options, return_lse=True)
        result[begin:end], lse[:, begin:end] = part[0], part_lse[0]
    return _answer(result, lse, q, out, return_lse)


def attention_decode(
    q: Tensor, k: Tensor, v: Tensor, *, lengths: Tensor, window: int, **options: Any
) -> Tensor:
    """Of q [b, s, heads, d] at the end of caches [b, max_len, kv_heads, d]."""
    assert k.stride() == v.stride() and q.shape[1] <= 16 and lengths.dtype == torch.int32
    assert bool((lengths == k.shape[1]).all())
    result: Tensor = attention(q, k, v, window=(window, -1), **options)
    return result


def visible(queries: int, keys: int, causal: bool, window: tuple[int, int]) -> Tensor:
    """Query i stands at key i + keys - queries."""
    distance = torch.arange(keys) - (torch.arange(queries)[:, None] + keys - queries)
    left, right = window
    seen = torch.ones(queries, keys, dtype=torch.bool)
    if left >= 0:
        seen &= distance >= -left
    if causal or right >= 0:
        seen &= distance <= (0 if causal else right)
    return seen


def weighted(scores: Tensor, values: Tensor, sink: Tensor | None) -> tuple[Tensor, Tensor]:
    """[b, heads, s, d] of scores [b, heads, s, t] and values [b, t, heads, d]; and the lse."""
    lse = scores.logsumexp(-1)
    total = lse if sink is None else torch.logaddexp(lse, sink.double()[:, None].expand_as(lse))
    weights = torch.exp(scores - total[..., None]).nan_to_num(0.0)
    return torch.einsum("bhst,bthd->bhsd", weights, values), lse


def _answer(result: Tensor, lse: Tensor, q: Tensor, out: Tensor | None, return_lse: bool) -> Any:
    rounded = result.to(q.dtype).contiguous() if out is None else out.copy_(result)
    return (rounded, lse.float().contiguous()) if return_lse else rounded


def sparse_attention(
    q: Tensor, rows: Tensor, lists: Tensor, *, lengths: Tensor, scale: float, sink: Tensor | None
) -> Tensor:
    """Of q [b, s, heads, 512] and rows [n, 512]; lists [b, s, width], lengths [b, s]."""
    seen = torch.arange(lists.shape[-1]) < lengths[..., None]
    assert bool((lists[seen] >= 0).all()) and lists.dtype == lengths.dtype == torch.int32
    chosen = rows.double()[lists.long().clamp(min=0)]
    scores = torch.einsum("bshd,bstd->bhst", q.double(), chosen) * scale
    scores = scores.masked_fill(~seen[:, None], -torch.inf)
    lse = scores.logsumexp(-1)
    total = lse if sink is None else torch.logaddexp(lse, sink.double()[:, None].expand_as(lse))
    weights = torch.exp(scores - total[..., None]).nan_to_num(0.0)
    return torch.einsum("bhst,bstd->bshd", weights, chosen).to(q.dtype)


class Moe(torch.nn.Module):
    """SwiGLU experts; the weights of a token are applied after `down`."""

    def __init__(
        self,
        gate: Tensor,
        up: Tensor,
        down: Tensor,
        *,
        format: str,
        limit: float | None,
        weight_after_down: bool,
    ) -> None:
        super().__init__()
        assert weight_after_down and gate.dtype == up.dtype == down.dtype == torch.bfloat16
        self.gate, self.up, self.down = (stack.double() for stack in (gate, up, down))
        self.experts, self.limit = len(gate), torch.inf if limit is None else limit

    def forward(self, x: Tensor, ids: Tensor, weights: Tensor) -> Tensor:
        assert x.dtype == torch.bfloat16 and ids.dtype == torch.int32
        assert weights.dtype == torch.float32 and x.is_contiguous()
        out = torch.zeros(x.shape, dtype=torch.float64)
        for token, place in (ids >= 0).nonzero().tolist():
            expert = int(ids[token, place])
            row = x[token].double()
            gate = (self.gate[expert] @ row).clamp(max=self.limit)
            up = (self.up[expert] @ row).clamp(-self.limit, self.limit)
            hidden = torch.nn.functional.silu(gate) * up
            out[token] += weights[token, place].double() * (self.down[expert] @ hidden)
        return out.to(x.dtype)
