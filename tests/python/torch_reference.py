"""float64 references of attention on torch tensors, and the device that tests of torch run on."""

import math

import torch


_PLACE = "cuda" if torch.cuda.is_available() else "cpu"  # asked before the simulator is loaded


def place():
    """Tensors of the host run on the simulated H200; where there is a GPU, on that."""
    return _PLACE


def seeded(seed):
    """A generator of numbers that are drawn there."""
    return torch.Generator(device=place()).manual_seed(seed)


def attention(q, k, v, *, scale=None, causal=False, window=(-1, -1), softcap=0.0, sink=None):
    """out [b, s, h, d] and lse [b, h, s] of q [b, s, h, d] and k, v [b, t, g, d]."""
    q, k, v = (x.double() for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[2] // k.shape[2], 2) for x in (k, v))
    s = torch.einsum("bqhd,bkhd->bhqk", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    s = softcap * torch.tanh(s / softcap) if softcap else s
    here = torch.arange(q.shape[1], device=q.device)[:, None] + k.shape[1] - q.shape[1]
    key = torch.arange(k.shape[1], device=q.device)
    left, right = window[0], 0 if causal else window[1]
    hidden = torch.zeros_like(s[0, 0], dtype=torch.bool)
    hidden |= (key < here - left) if left >= 0 else False
    hidden |= (key > here + right) if right >= 0 else False
    return finish(s.masked_fill(hidden, -math.inf), v, sink)


def finish(s, v, sink):
    """Scores [b, h, q, k] and values [b, k, h, d] to the result and the lse."""
    lse = s.logsumexp(-1)
    below = lse if sink is None else torch.logaddexp(lse, sink.double()[:, None].expand_as(lse))
    weights = torch.exp(s - below[..., None]).nan_to_num(0)
    return torch.einsum("bhqk,bkhd->bqhd", weights, v), lse


def decode(q, k, v, lengths, **options):
    """attention() of each sequence's keys alone."""
    each = [attention(q[b : b + 1], k[b : b + 1, :n], v[b : b + 1, :n], **options)
            for b, n in enumerate(lengths.tolist())]
    return torch.cat([out for out, _ in each]), torch.cat([lse for _, lse in each])


def sparse(q, rows, indices, sink=None, scale=512**-0.5):
    """out, lse, largest logits of q [b, s, h, d] over rows [n, d] named by indices [b, s, k]; values are the first
    512 numbers of a row."""
    is_row = (indices >= 0) & (indices < rows.shape[0])
    x = rows.double()[indices.clamp(0, rows.shape[0] - 1).long()].masked_fill(~is_row[..., None], 0)
    s = torch.einsum("bshd,bskd->bshk", q.double(), x) * scale
    s = s.masked_fill(~is_row[:, :, None], -math.inf)
    lse = s.logsumexp(-1)
    below = lse if sink is None else torch.logaddexp(lse, sink.double().expand_as(lse))
    weights = torch.exp(s - below[..., None]).nan_to_num(0)
    out = torch.einsum("bshk,bskd->bshd", weights, x[..., :512])
    return out, lse, s.amax(-1)


def close(found, expected, limit):
    """Equal to within limit; infinities in the same places."""
    torch.testing.assert_close(found.double(), expected.double(), rtol=0, atol=limit)


def bf16(*shape, seed=0):
    made = torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))
    return made.to(torch.bfloat16).to(place())


def i32(values):
    return torch.tensor(values, dtype=torch.int32, device=place())
