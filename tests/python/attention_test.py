"""Attention in whole sequences and in decoding against float64, on small ragged shapes.

Tolerance: exp(s) is rounded to bf16 before it meets v, and the result once more, by 2^-8 of at most max|v| each;
the sums are of fp32. Together 2^-7 max|v|.
"""

import concurrent.futures

import numpy as np
import pytest

import tilewright
from bf16 import NAN, bf16, random_bf16, wide

pytestmark = pytest.mark.usefixtures("kernels")


@pytest.fixture(scope="session", params=["sim:h200", "sim:b200"])
def dev(request):
    return tilewright.Device(request.param)


def attention(q, k, v, *, scale=None, causal=False, left=-1, right=-1, softcap=0.0, sink=None):
    """out, lse of one sequence: q [m, h, d], k and v [n, g, d] in float64."""
    m, heads, d = q.shape
    n, groups = k.shape[:2]
    out, lse = np.zeros((m, heads, v.shape[2])), np.full((heads, m), -np.inf)
    for h in range(heads):
        keys, values = k[:, h * groups // heads], v[:, h * groups // heads]
        s = q[:, h] @ keys.T * (d**-0.5 if scale is None else scale)
        s = softcap * np.tanh(s / softcap) if softcap else s
        place = np.arange(m)[:, None] + n - m
        j = np.arange(n)[None, :]
        hidden = np.zeros((m, n), bool)
        hidden |= (j > place) if causal else False
        hidden |= (j < place - left) if left >= 0 else False
        hidden |= (j > place + right) if right >= 0 else False
        e = np.where(hidden, 0, np.exp(s))
        total = e.sum(1)
        with np.errstate(divide="ignore", invalid="ignore"):
            lse[h] = np.log(total)
            below = total + (0 if sink is None else np.exp(sink[h]))
            out[:, h] = np.where(total[:, None] > 0, e @ values / below[:, None], 0)
    return out, lse


def compare(out, lse, expected, values):
    np.testing.assert_allclose(wide(out), expected[0], rtol=0, atol=2**-7 * np.abs(values).max())
    if lse is not None:
        np.testing.assert_allclose(lse, expected[1], rtol=0, atol=2e-3)


@pytest.mark.parametrize("options", [
    {}, {"causal": True}, {"causal": True, "window_left": 20}, {"window_left": 9, "window_right": 30},
    {"softcap": 3.0, "causal": True}, {"scale": 0.3}, {"kernel": 0}, {"has_sink": True},
], ids=lambda o: " ".join(o) or "plain")
@pytest.mark.parametrize("heads, kv_heads, m, n, d", [(4, 2, 37, 75, 64), (1, 1, 130, 130, 128)])
def test_attention(dev, heads, kv_heads, m, n, d, options):
    if "kernel" in options:
        options = {"kernel": "k1" if dev.spec == "sim:h200" else "sm100_c"}
    rng = np.random.default_rng(1)
    q, k, v = (random_bf16(rng, 2, rows, h, d) for rows, h in ((m, heads), (n, kv_heads), (n, kv_heads)))
    out, lse = np.full_like(q, NAN), np.full((2, heads, m), np.nan, np.float32)
    sink = rng.standard_normal(heads).astype(np.float32) if options.get("has_sink") else None
    op = tilewright.Attention(dev, batch=2, heads=heads, kv_heads=kv_heads, q_len=m, kv_len=n, head_dim=d,
                              has_lse=True, **options)
    op.run(q=q, k=k, v=v, out=out, lse=lse, sink=sink)
    for b in range(2):
        expected = attention(wide(q[b]), wide(k[b]), wide(v[b]), scale=options.get("scale"), sink=sink,
                             causal=options.get("causal", False), left=options.get("window_left", -1),
                             right=options.get("window_right", -1), softcap=options.get("softcap", 0.0))
        compare(out[b], lse[b], expected, wide(v[b]))


def test_packed_sequences_and_empty_rows(dev):
    rng = np.random.default_rng(2)
    lengths_q, lengths_kv = [5, 0, 70, 9], [3, 4, 71, 0]
    cu_q, cu_kv = (np.cumsum([0, *lengths]).astype(np.int32) for lengths in (lengths_q, lengths_kv))
    q = random_bf16(rng, cu_q[-1], 2, 64)
    k, v = (random_bf16(rng, cu_kv[-1], 2, 64) for _ in range(2))
    out, lse = np.full_like(q, NAN), np.full((2, cu_q[-1]), np.nan, np.float32)
    op = tilewright.Attention(dev, batch=4, heads=2, kv_heads=2, q_len=70, kv_len=71, head_dim=64, causal=True,
                              is_packed=True, total_q=cu_q[-1], total_kv=cu_kv[-1], has_lse=True)
    op.run(q=q, k=k, v=v, out=out, lse=lse, cu_q=cu_q, cu_kv=cu_kv)
    for b in range(4):
        rows, keys = slice(cu_q[b], cu_q[b + 1]), slice(cu_kv[b], cu_kv[b + 1])
        expected = attention(wide(q[rows]), wide(k[keys]), wide(v[keys]), causal=True)
        compare(out[rows], lse[:, rows], expected, wide(v))


def test_strided_views_of_one_tensor(dev):
    """q, k and v lie in one tensor, [rows, 3, heads, dim], and out between guards that stay."""
    rng = np.random.default_rng(3)
    qkv = random_bf16(rng, 50, 3, 2, 64)
    whole = np.full((50, 2, 96), 0x1234, np.uint16)
    strides = {"row": 3 * 2 * 64, "head": 64}
    op = tilewright.Attention(dev, heads=2, kv_heads=2, q_len=50, kv_len=50, head_dim=64, q_strides=strides,
                              k_strides=(0, 384, 64), v_strides=strides, out_strides={"row": 192, "head": 96})
    op.run(q=qkv[:, 0], k=qkv[:, 1], v=qkv[:, 2], out=whole[:, :, :64])
    expected = attention(*(wide(qkv[:, i]) for i in range(3)))
    compare(whole[:, :, :64], None, expected, wide(qkv[:, 2]))
    assert (whole[:, :, 64:] == 0x1234).all()


def test_buffers_stay_on_the_device(dev):
    rng = np.random.default_rng(4)
    q, k, v = (random_bf16(rng, 1, 33, 1, 64) for _ in range(3))
    buffers = [tilewright.empty(dev, a.shape, "bf16") for a in (q, k, v, q)]
    for buffer, array in zip(buffers, (q, k, v)):
        buffer.upload(array)
    buffers[3].fill(0xff)
    op = tilewright.Attention(dev, heads=1, q_len=33, kv_len=33, head_dim=64)
    workspace = tilewright.Buffer(dev, op.workspace_bytes)
    op.run(q=buffers[0], k=buffers[1], v=buffers[2], out=buffers[3], workspace=workspace)
    dev.synchronize()
    out = np.frombuffer(buffers[3].download(), np.uint16).reshape(q.shape)
    compare(out[0], None, attention(wide(q[0]), wide(k[0]), wide(v[0])), wide(v))


def test_threads_run_operators_of_their_own(dev):
    rng = np.random.default_rng(8)
    q, k, v = (random_bf16(rng, 1, 33, 1, 64) for _ in range(3))

    def work(scale):
        op = tilewright.Attention(dev, heads=1, q_len=33, kv_len=33, head_dim=64, scale=scale)
        out = np.full_like(q, NAN)
        op.run(q=q, k=k, v=v, out=out)
        return scale, out

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for scale, out in pool.map(work, (0.1, 0.2, 0.3, 0.4)):
            compare(out[0], None, attention(wide(q[0]), wide(k[0]), wide(v[0]), scale=scale), wide(v))


def test_torch_tensors_of_the_host(dev):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.randn(2, 40, 2, 64).bfloat16() for _ in range(3))
    out = torch.full_like(q, float("nan"))
    op = tilewright.Attention(dev, batch=2, heads=2, kv_heads=2, q_len=40, kv_len=40, head_dim=64,
                              dtype=torch.bfloat16)
    op.run(q=q, k=k, v=v, out=out)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *(t.double().transpose(1, 2) for t in (q, k, v))).transpose(1, 2)
    assert (out.double() - expected).abs().max() <= 2**-7 * v.double().abs().max()


@pytest.mark.parametrize("scales", ["tensor", "head", "block"])
def test_prepared_e4m3_operands(dev, scales):
    """AttentionPrepare, then attention of what it wrote. e4m3 has 4 bits: 2^-4 of each operand."""
    rng = np.random.default_rng(5)
    heads, n, d = 2, 150, 64
    layout = "columns" if dev.spec == "sim:h200" else "rows"  # columns are in the order of Hopper's accumulators
    q, k, v = (random_bf16(rng, 1, n, heads, d) for _ in range(3))
    prepare = tilewright.AttentionPrepare(dev, heads=heads, kv_heads=heads, q_len=n, kv_len=n, head_dim=d,
                                          scales=scales, v_layout=layout)
    sizes = prepare.sizes()
    made = {name: np.full(sizes[f"{name}_bytes"], 0xff, np.uint8) for name in ("q8", "k8", "v8")}
    made |= {f"{x}_descale": np.full(sizes[f"num_{x}_descales"], np.nan, np.float32) for x in "qkv"}
    made["v_descale_max"] = np.full(sizes["num_v_descale_max"], np.nan, np.float32)
    prepare.run(q=q, k=k, v=v, **made)
    out = np.full_like(q, NAN)
    op = tilewright.Attention(dev, heads=heads, kv_heads=heads, q_len=n, kv_len=n, head_dim=d, dtype="e4m3",
                              fp8={"scales": scales, "v_layout": layout})
    values, descales = [made.pop(f"{x}8") for x in "qkv"], made
    op.run(q=values[0], k=values[1], v=values[2], out=out, **descales)
    expected, _ = attention(wide(q[0]), wide(k[0]), wide(v[0]))
    assert np.abs(wide(out[0]) - expected).max() <= 2**-4 * np.abs(wide(v)).max()
    assert np.abs(wide(out[0]) - expected).mean() <= 2**-6


@pytest.mark.parametrize("paged", [False, True], ids=["dense", "pages"])
@pytest.mark.parametrize("options", [{}, {"window_left": 30}, {"causal": False, "softcap": 5.0}, {"splits": 3}],
                         ids=lambda o: " ".join(o) or "plain")
def test_decode(dev, paged, options):
    rng = np.random.default_rng(6)
    batch, q_len, heads, kv_heads, d, room, page = 3, 2, 4, 2, 64, 96, 16
    lengths = np.array([96, 33, 0], np.int32)
    q = random_bf16(rng, batch, q_len, heads, d)
    k, v = (random_bf16(rng, batch, room, kv_heads, d) for _ in range(2))
    for b in range(batch):  # bytes that no query sees may be anything
        k[b, lengths[b]:], v[b, lengths[b]:] = NAN, NAN
    out, lse = np.full_like(q, NAN), np.full((batch, heads, q_len), np.nan, np.float32)
    given = {"max_len": room}
    caches, table = (k, v), None
    if paged:
        blocks = room // page
        order = rng.permutation(batch * blocks).astype(np.int32)
        table = order.reshape(batch, blocks)
        caches = tuple(np.empty((batch * blocks, page, kv_heads, d), np.uint16) for _ in range(2))
        for cache, whole in zip(caches, (k, v)):
            cache[order] = whole.reshape(batch * blocks, page, kv_heads, d)
        given = {"page_size": page, "num_pages": batch * blocks, "max_pages": blocks}
    op = tilewright.AttentionDecode(dev, batch=batch, q_len=q_len, heads=heads, kv_heads=kv_heads, head_dim=d,
                                    has_lse=True, **given, **options)
    op.run(q=q, k_cache=caches[0], v_cache=caches[1], lengths=lengths, block_table=table, out=out, lse=lse)
    for b in range(batch):
        n = lengths[b]
        expected = attention(wide(q[b]), wide(k[b, :n]), wide(v[b, :n]), causal=options.get("causal", True),
                             left=options.get("window_left", -1), softcap=options.get("softcap", 0.0))
        compare(out[b], lse[b], expected, wide(v[b, :n]) if n else np.ones(1))


def test_decode_appends_what_is_new(dev):
    rng = np.random.default_rng(7)
    batch, q_len, heads, d, room = 2, 3, 2, 64, 40
    lengths = np.array([20, 0], np.int32)
    q, new_k, new_v = (random_bf16(rng, batch, q_len, heads, d) for _ in range(3))
    k, v = (random_bf16(rng, batch, room, heads, d) for _ in range(2))
    before, out = k.copy(), np.full_like(q, NAN)
    op = tilewright.AttentionDecode(dev, batch=batch, q_len=q_len, heads=heads, kv_heads=heads, head_dim=d,
                                    max_len=room, append={"is_wanted": True})
    op.run(q=q, k_cache=k, v_cache=v, lengths=lengths, new_k=new_k, new_v=new_v, out=out)
    for b in range(batch):
        n = lengths[b] + q_len
        assert (k[b, lengths[b]:n] == new_k[b]).all() and (v[b, lengths[b]:n] == new_v[b]).all()
        assert (k[b, :lengths[b]] == before[b, :lengths[b]]).all() and (k[b, n:] == before[b, n:]).all()
        expected = attention(wide(q[b]), wide(k[b, :n]), wide(v[b, :n]), causal=True)
        compare(out[b], None, expected, wide(v[b, :n]))


def test_rounding_of_this_file():
    assert bf16([1.0, 1 + 2**-8, 1 + 3 * 2**-8]).tolist() == [0x3f80, 0x3f80, 0x3f82]
