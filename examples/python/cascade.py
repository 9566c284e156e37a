"""A prefix that all sequences share is read once: cascade attention, from Python.

    python examples/python/cascade.py [--device sim:h200]

Every sequence decodes over the prefix (a system prompt) and keys of its own. All queries together see the prefix
in one call, as if they were of one sequence; each sees its own keys in another; the two results are merged by
their lse, which is attention over both. Keys of the prefix come from memory once, not once for each sequence.
"""

import argparse

import torch

import tilewright.torch as tt


def cascade(q, prefix_k, prefix_v, k_cache, v_cache, lengths, sink=None):
    """q [b, s, heads, d]; prefix [n, kv_heads, d]; caches [b, room, kv_heads, d], their first `lengths` keys."""
    together = q.flatten(0, 1)[None]  # one sequence of b * s queries, all of which stand behind the prefix
    out, lse = tt.attention(together, prefix_k[None], prefix_v[None], return_lse=True)
    of_prefix = out.view_as(q)
    prefix_lse = lse[0].view(lse.shape[1], q.shape[0], q.shape[1]).transpose(0, 1)  # [b, heads, s]
    own, own_lse = tt.attention_decode(q, k_cache, v_cache, lengths=lengths, causal=True, return_lse=True)
    # A sink is of the whole: parts come without one. Parts may lie in memory with any strides.
    return tt.merge_attention((of_prefix, own), (prefix_lse, own_lse), sink=sink)


def in_float64(q, prefix_k, prefix_v, k_cache, v_cache, lengths, sink=None):
    outs = []
    for b, n in enumerate(lengths.tolist()):
        k, v = (torch.cat((x, cache[b, :n])).double() for x, cache in ((prefix_k, k_cache), (prefix_v, v_cache)))
        k, v = (x.repeat_interleave(q.shape[2] // x.shape[1], 1) for x in (k, v))
        scores = torch.einsum("shd,thd->hst", q[b].double(), k) * q.shape[-1] ** -0.5
        rows, keys = torch.arange(q.shape[1])[:, None], torch.arange(len(k))
        hidden = (keys > rows + len(k) - q.shape[1]).to(q.device)
        weights = scores.masked_fill(hidden, -torch.inf).exp()
        below = weights.sum(-1, keepdim=True)
        if sink is not None:
            below = below + sink.double().exp()[:, None, None]
        outs.append(torch.einsum("hst,thd->shd", weights / below, v))
    return torch.stack(outs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default=None, help="sim:h200 or sim:b200; default: the GPU, if there is one")
    device = parser.parse_args().device or ("cuda" if torch.cuda.is_available() else "sim:h200")
    is_gpu = device.startswith("cuda")
    if not is_gpu:
        tt.set_device(device)
    place = device if is_gpu else "cpu"
    sequences, prefix, room = (64, 4096, 512) if is_gpu else (3, 90, 32)
    heads, kv_heads, dim, queries = 8, 2, 64, 2

    def draw(*shape):
        return torch.randn(shape, generator=random).bfloat16().to(place)

    random = torch.Generator().manual_seed(1)
    q = draw(sequences, queries, heads, dim)
    prefix_k, prefix_v = draw(prefix, kv_heads, dim), draw(prefix, kv_heads, dim)
    caches = draw(sequences, room, kv_heads, dim), draw(sequences, room, kv_heads, dim)
    lengths = torch.randint(queries, room + 1, (sequences,), generator=random).int().to(place)
    error = 0.0
    for sink in (None, torch.linspace(-1, 1, heads, device=place)):
        given = (q, prefix_k, prefix_v, *caches, lengths, sink)
        error = max(error, (cascade(*given).double() - in_float64(*given)).abs().max().item())
    print(f"{sequences} sequences share {prefix} keys on {device}: largest error {error:.2g}")
    # Three roundings to bfloat16, of values below 2: two parts, and what they are merged to.
    if not error < 3 * 2 * 2**-8:
        raise SystemExit("the result is wrong")


if __name__ == "__main__":
    main()
