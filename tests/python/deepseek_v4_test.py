"""DeepSeek-V4's operators against float64: sparse attention, rows of caches and lists of them, compressors, the
indexer, hyper-connections.

Tolerance: sums are of fp32; what is written as bf16 is rounded once, by at most 2^-8 of its size, unless a test
says more.
"""

import numpy as np
import pytest

import tilewright
from bf16 import NAN, bf16, random_bf16, wide

pytestmark = pytest.mark.usefixtures("kernels")


@pytest.fixture(scope="session", params=["sim:h200", "sim:b200"])
def dev(request):
    return tilewright.Device(request.param)

DIM = 512


def rounded(x):
    return wide(bf16(x))


def table_of(positions, **options):
    return np.frombuffer(tilewright.rope_table(positions, 0, **options), np.float32).reshape(positions, 64)


def rotate(x, positions, table, sign=1):
    """Pairs of the last 64 elements by the angles of a position."""
    turned = x.copy()
    cos, sin = (part.astype(np.float64) for part in (table[positions, :32], sign * table[positions, 32:]))
    while cos.ndim < x.ndim:
        cos, sin = cos[:, None], sin[:, None]
    even, odd = x[..., -64::2], x[..., -63::2]
    turned[..., -64::2], turned[..., -63::2] = even * cos - odd * sin, even * sin + odd * cos
    return turned


def rms_norm(x, eps=1e-6):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)


def near(found, expected, rtol=2**-8, atol=1e-5):
    np.testing.assert_allclose(wide(found), expected, rtol=rtol, atol=atol * max(1, np.abs(expected).max()))


def test_rope_table():
    table = table_of(7)
    angles = np.arange(7)[:, None] * 10000.0 ** (-np.arange(32) / 32)
    np.testing.assert_allclose(table, np.concatenate([np.cos(angles), np.sin(angles)], 1), atol=1e-7)
    slow = table_of(7, theta=160000, has_yarn=True, factor=16)
    assert not np.allclose(slow, table)


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_rms_norm(dev, dtype):
    rng = np.random.default_rng(0)
    x, weight = random_bf16(rng, 9, 320), random_bf16(rng, 192)
    given, values = (x, wide(x)) if dtype == "bf16" else (wide(x).astype(np.float32), wide(x))
    out = np.full((9, 192), NAN)
    op = tilewright.RmsNorm(dev, rows=9, cols=192, x_dtype=dtype, x_stride=320)
    op.run(x=given[:, :192], weight=weight, out=out)
    near(out, rms_norm(values[:, :192]) * wide(weight))


def test_hyper_embedding(dev):
    rng = np.random.default_rng(1)
    table, ids = random_bf16(rng, 11, 64), np.array([3, 10, 11, -1, 0], np.int32)
    streams = np.full((5, 4, 64), NAN)
    tilewright.HyperEmbedding(dev, tokens=5, hidden=64, vocab=11).run(table=table, ids=ids, streams=streams)
    expected = np.where(((ids >= 0) & (ids < 11))[:, None], table[ids % 11], 0)
    assert (streams == expected[:, None]).all()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def sinkhorn(c, iterations, eps):
    c = np.exp(c - c.max(-1, keepdims=True))
    c = c / c.sum(-1, keepdims=True) + eps
    c /= c.sum(-2, keepdims=True) + eps
    for _ in range(iterations - 1):
        c /= c.sum(-1, keepdims=True) + eps
        c /= c.sum(-2, keepdims=True) + eps
    return c


def test_hyper_connection(dev):
    rng = np.random.default_rng(2)
    tokens, hidden = 7, 128
    streams, result = random_bf16(rng, tokens, 4, hidden), random_bf16(rng, tokens, hidden)
    mix_before = rng.random((tokens, 24), np.float32)
    weight = (rng.standard_normal((24, 4 * hidden)) * 0.05).astype(np.float32)
    bias, scale = rng.standard_normal(24).astype(np.float32), np.array([0.5, 1.5, 0.7], np.float32)
    norm_weight = random_bf16(rng, hidden)
    merged, out = np.full_like(streams, NAN), np.full((tokens, hidden), NAN)
    mix = np.full((tokens, 24), np.nan, np.float32)
    op = tilewright.HyperConnection(dev, tokens=tokens, hidden=hidden, has_merge=True)
    op.run(streams=streams, merged=merged, mix_before=mix_before, result=result, mix_weight=weight, mix_bias=bias,
           mix_scale=scale, norm_weight=norm_weight, mix=mix, out=out)
    post, comb = mix_before[:, 4:8], mix_before[:, 8:].reshape(tokens, 4, 4)
    x = post[:, :, None] * wide(result)[:, None] + np.einsum("tjk,tjc->tkc", comb, wide(streams))
    near(merged, x)
    x = wide(merged)
    flat = x.reshape(tokens, -1)
    m = rms_norm(flat) @ weight.astype(np.float64).T
    pre = sigmoid(m[:, :4] * scale[0] + bias[:4]) + 1e-6
    expected = [pre, 2 * sigmoid(m[:, 4:8] * scale[1] + bias[4:8]),
                sinkhorn((m[:, 8:] * scale[2] + bias[8:]).reshape(tokens, 4, 4), 20, 1e-6).reshape(tokens, 16)]
    np.testing.assert_allclose(mix, np.concatenate(expected, 1), rtol=1e-4, atol=1e-5)
    near(out, rms_norm(np.einsum("ti,tic->tc", pre, x)) * wide(norm_weight))


@pytest.mark.parametrize("kind", ["bf16", "fp8", "nvfp4"])
def test_rows_of_a_cache_are_written_and_read(dev, kind):
    """fp8 rows keep 4 bits of a number, nvfp4 3 bits; the 64 with positions are bf16 in each format."""
    rng = np.random.default_rng(3)
    tokens, heads, page_size, num_pages = 9, 3, 4, 5
    cache = tilewright.KvCache(dev, format=kind, page_size=page_size, num_pages=num_pages)
    pages = np.full(cache.bytes(), 0xee, np.uint8)
    q, kv, kv_weight = random_bf16(rng, tokens, heads, DIM), random_bf16(rng, tokens, DIM), random_bf16(rng, DIM)
    positions = np.array([0, 5, 2, 31, 7, -1, 9, 8, 12], np.int32)
    slots = rng.permutation(page_size * num_pages)[:tokens].astype(np.int32)
    slots[3] = -1
    table, q_out, kv_out = table_of(32), np.full_like(q, NAN), np.full_like(kv, NAN)
    cache.write(tokens=tokens, heads=heads, q=q, q_out=q_out, kv=kv, kv_weight=kv_weight, positions=positions,
                rope=table, rope_positions=32, slots=slots, pages=pages, kv_out=kv_out)
    is_token = positions >= 0
    near(q_out, np.where(is_token[:, None, None], rotate(rms_norm(wide(q)), positions, table), 0))
    expected = rotate(rms_norm(wide(kv)) * wide(kv_weight), positions, table)
    coarse = {"bf16": 2**-8, "fp8": 2**-4, "nvfp4": 2**-2}[kind]
    near(kv_out[is_token, 448:], expected[is_token, 448:])
    near(kv_out[is_token, :448], expected[is_token, :448], rtol=coarse, atol=coarse / 4)
    assert (kv_out[~is_token] == NAN).all()
    rows, out = np.array([*slots, page_size * num_pages], np.int32), np.full((tokens + 1, DIM), NAN)
    cache.read(count=tokens + 1, rows=rows, pages=pages, out=out)
    written = is_token & (slots >= 0)
    assert (out[:-1][written] == kv_out[written]).all()
    assert (out[-1] == 0).all() and (out[3] == 0).all()


def test_lists_of_rows(dev):
    cache = tilewright.KvCache(dev, format="bf16", page_size=4, num_pages=16)
    pages = np.array([[5, 2, 9, 1], [0, 7, 3, 8]], np.int32)
    starts = np.array([6, 0], np.int32)
    lists, lengths = np.full((6, 5), -9, np.int32), np.full(6, -9, np.int32)
    positions = np.full(6, -9, np.int32)
    cache.list(kind="window", tokens=6, sequences={"batch": 2, "q_len": 3, "starts": starts},
               table={"pages": pages, "blocks": 4}, window=5, list_len=5, lists=lists, lengths=lengths,
               positions=positions)
    assert positions.tolist() == [6, 7, 8, 0, 1, 2]
    for t, p in enumerate(positions):
        seen = range(max(0, p - 4), p + 1)
        rows = [pages[t // 3, q // 4] * 4 + q % 4 for q in seen]
        assert lengths[t] == len(rows) and lists[t].tolist() == rows + [-1] * (5 - len(rows))


def test_inverse_rope(dev):
    rng = np.random.default_rng(4)
    out, positions, table = random_bf16(rng, 5, 2, DIM), np.array([0, 3, -1, 9, 4], np.int32), table_of(10)
    expected = rotate(wide(out), positions, table, sign=-1)
    expected[2] = wide(out)[2]
    before = out.copy()
    tilewright.InverseRope(dev).run(tokens=5, heads=2, out=out, positions=positions, rope=table, rope_positions=10)
    near(out, expected)
    assert (out[:, :, :448] == before[:, :, :448]).all()


def sparse(q, rows, scale, sink):
    """One query of all heads over the rows that it sees."""
    s = q @ rows.T * scale
    e = np.exp(s)
    total = e.sum(-1) + (0 if sink is None else np.exp(sink))
    return e @ rows / total[:, None], np.log(e.sum(-1)), s.max(-1)


def test_sparse_attention_of_two_lists(dev):
    """Probabilities are rounded to bf16, and so is the result: 2^-7 of the largest row is four times that."""
    rng = np.random.default_rng(5)
    batch, q_len, heads = 2, 2, 3
    caches = [random_bf16(rng, pages, 8, DIM) for pages in (6, 9)]
    topk, valid = (16, 40), ([[16, 3], [1, 0]], [[40, 7], [0, 0]])
    indices = [rng.integers(0, 8 * len(cache), (batch, q_len, k)).astype(np.int32)
               for cache, k in zip(caches, topk)]
    indices[0][0, 0, 5] = -1  # masked
    lengths = [np.array(v, np.int32) for v in valid]
    q, sink = random_bf16(rng, batch, q_len, heads, DIM), rng.standard_normal(heads).astype(np.float32)
    out = np.full_like(q, NAN)
    lse, largest = (np.full((batch, q_len, heads), np.nan, np.float32) for _ in range(2))
    lists = [{"cache": {"format": "bf16", "page_size": 8, "num_pages": len(cache)}, "topk": k,
              "lengths": "per_query"} for cache, k in zip(caches, topk)]
    op = tilewright.SparseAttention(dev, batch=batch, q_len=q_len, heads=heads, window=lists[0],
                                    compressed=lists[1], has_sink=True, has_lse=True, has_max_logits=True)
    given = [{"pages": cache, "indices": i, "lengths": n} for cache, i, n in zip(caches, indices, lengths)]
    op.run(q=q, window=given[0], compressed=given[1], out=out, lse=lse, max_logits=largest, sink=sink)
    for b in range(batch):
        for t in range(q_len):
            seen = [i[b, t, :n[b, t]] for i, n in zip(indices, lengths)]
            rows = np.concatenate([wide(cache.reshape(-1, DIM)[i[i >= 0]]) for cache, i in zip(caches, seen)])
            if not len(rows):
                assert (out[b, t] == 0).all() and (lse[b, t] == -np.inf).all() and (largest[b, t] == -np.inf).all()
                continue
            expected = sparse(wide(q[b, t]), rows, DIM**-0.5, sink)
            np.testing.assert_allclose(wide(out[b, t]), expected[0], rtol=0, atol=2**-7 * np.abs(rows).max())
            np.testing.assert_allclose(lse[b, t], expected[1], atol=1e-3)
            np.testing.assert_allclose(largest[b, t], expected[2], atol=1e-3)


def hadamard(x):
    size = x.shape[-1]
    matrix = np.ones((1, 1))
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return x @ matrix * size**-0.5


def pool(kv, gate, ape, ratio, dim, overlap):
    """Entries of one sequence that begins at position 0."""
    tokens = len(kv)
    scores = gate + ape[np.arange(tokens) % ratio]
    made = []
    for j in range(tokens // ratio):
        own, channels = slice(j * ratio, (j + 1) * ratio), slice(-dim, None)
        values, weights = [kv[own, channels]], [scores[own, channels]]
        if overlap and j:
            before = slice((j - 1) * ratio, j * ratio)
            values.append(kv[before, :dim])
            weights.append(scores[before, :dim])
        e = np.exp(np.concatenate(weights))
        made.append((e * np.concatenate(values)).sum(0) / e.sum(0))
    return np.array(made)


@pytest.mark.parametrize("kind, ratio, overlap, tokens", [("csa", 4, True, 22), ("hca", 128, False, 260)])
def test_compressor(dev, kind, ratio, overlap, tokens):
    """In two calls. Four roundings to bf16 on the way: 2^-6 of a number and of what the rotation adds to it."""
    rng = np.random.default_rng(6)
    dim, page_size = 512, 2
    width = dim * (1 + overlap)
    op = tilewright.Compressor(dev, kind=kind, state_slots=1,
                               cache={"format": "bf16", "page_size": page_size, "num_pages": 4})
    kv, gate = (rng.standard_normal((tokens, width)).astype(np.float32) for _ in range(2))
    ape, norm_weight = rng.standard_normal((ratio, width)).astype(np.float32), random_bf16(rng, dim)
    table = table_of(300)
    state, pages = np.full(op.state_bytes, 0xff, np.uint8), np.full((8, dim), NAN)
    assert op.cache_bytes == pages.nbytes
    blocks = np.array([[3, 1, 0, 2]], np.int32)
    first = tokens - 7
    for begin, end in ((0, first), (first, tokens)):
        op.run(sequences={"batch": 1, "q_len": end - begin, "starts": np.array([begin], np.int32)},
               max_tokens=end - begin, kv=kv[begin:end], gate=gate[begin:end], ape=ape, norm_weight=norm_weight,
               rope=table, rope_positions=300, state=state, table={"pages": blocks, "blocks": 4}, pages=pages)
    entries = pool(kv, gate, ape, ratio, dim, overlap)
    expected = rms_norm(entries) * wide(norm_weight)
    expected = rotate(expected, np.arange(len(entries)) * ratio, table)
    rows = [blocks[0, j // page_size] * page_size + j % page_size for j in range(len(entries))]
    assert len(entries) == tokens // ratio
    near(pages[rows], expected, rtol=2**-6, atol=2**-7)
    assert (np.delete(pages, rows, 0) == NAN).all()


def e4m3(codes):
    codes = codes.astype(np.int64)
    exponent, mantissa = codes >> 3 & 15, codes & 7
    size = np.where(exponent, np.exp2(exponent - 7.0) * (1 + mantissa / 8), mantissa * 2.0**-9)
    return np.where(codes & 128, -size, size)


def test_indexer_selects_the_largest(dev):
    """Keys that the index compressor wrote; what is selected is compared by logits of the decoded keys, as entries
    with nearly equal logits may change places: e4m3 queries are 2^-4 off."""
    rng = np.random.default_rng(7)
    tokens, heads, topk, max_len = 3, 8, 6, 32
    keys_layout = {"page_size": 16, "num_pages": 2}
    op = tilewright.Indexer(dev, format="fp8", heads=heads, topk=topk, ratio=4, max_len=max_len, keys=keys_layout)
    assert op.workspace_bytes(tokens, 1) > 0
    codes = rng.integers(0, 0x60, (2, 16, 128), np.uint8) | rng.integers(0, 2, (2, 16, 128), np.uint8) << 7
    scales = np.exp2(rng.integers(-7, -4, (2, 16))).astype(np.float32)
    pages = np.concatenate([codes.reshape(2, -1), scales.view(np.uint8).reshape(2, -1)], 1)
    assert op.key_cache_bytes == pages.size
    q, weights = random_bf16(rng, tokens, heads, 128), random_bf16(rng, tokens, heads)
    positions = np.array([127, 11, 83], np.int32)
    rows, counts = np.full((tokens, topk), -9, np.int32), np.full(tokens, -9, np.int32)
    blocks = np.array([[1, 0]], np.int32)
    op.run(tokens=tokens, sequences={"batch": 1, "q_len": tokens}, positions=positions, q=q, weights=weights,
           rope=table_of(128), rope_positions=128, key_pages=pages, key_table={"pages": blocks, "blocks": 2},
           rows=rows, counts=counts)
    order = [blocks[0, j // 16] * 16 + j % 16 for j in range(max_len)]
    keys = (e4m3(codes) * scales[:, :, None]).reshape(-1, 128)[order]
    query = hadamard(rounded(rotate(wide(q), positions, table_of(128))))
    for t, seen in enumerate((positions + 1) // 4):
        dots = np.maximum(query[t] @ keys[:seen].T, 0)
        logits = wide(weights[t]) @ dots * (128 * heads)**-0.5
        assert counts[t] == min(seen, topk)
        chosen = rows[t, :counts[t]]
        assert (np.diff(chosen) > 0).all() and (rows[t, counts[t]:] == -1).all() and (chosen < seen).all()
        slack = 2**-4 * np.abs(logits).max()
        assert logits[chosen].min() >= np.sort(logits)[-counts[t]] - slack
