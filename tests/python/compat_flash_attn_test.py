"""The interface of FlashAttention-3 on our kernels: results, every refusal, what is copied, and the operators."""

import inspect
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import tilewright  # noqa: E402
import torch_reference as reference  # noqa: E402
from tilewright import compat  # noqa: E402
from tilewright.compat import _flash_attn  # noqa: E402
from tilewright.compat import flash_attn_interface as fa  # noqa: E402
from tilewright.compat._flash_caches import with_cache  # noqa: E402
from torch_reference import bf16, close, i32, place  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")
LIMIT = 2e-2
E4M3 = torch.float8_e4m3fn


@pytest.fixture(autouse=True)
def fresh_stats():
    compat.reset_stats()


def operands(b=2, s=20, t=33, heads=4, kv_heads=2, d=64):
    return bf16(b, s, heads, d), bf16(b, t, kv_heads, d, seed=1), bf16(b, t, kv_heads, d, seed=2)


def test_parameters_are_those_of_the_peer():
    names = {
        fa.flash_attn_func: "q k v softmax_scale causal qv q_descale k_descale v_descale window_size "
        "attention_chunk softcap num_splits pack_gqa deterministic sm_margin return_attn_probs",
        fa.flash_attn_varlen_func: "q k v cu_seqlens_q cu_seqlens_k max_seqlen_q max_seqlen_k seqused_q seqused_k "
        "softmax_scale causal qv q_descale k_descale v_descale window_size attention_chunk softcap num_splits "
        "pack_gqa deterministic sm_margin return_attn_probs",
        fa.flash_attn_qkvpacked_func: "qkv softmax_scale causal q_descale k_descale v_descale window_size "
        "attention_chunk softcap deterministic num_heads_q sm_margin return_attn_probs",
        fa.flash_attn_with_kvcache: "q k_cache v_cache k v qv rotary_cos rotary_sin cache_seqlens cache_batch_idx "
        "cache_leftpad page_table cu_seqlens_q cu_seqlens_k_new max_seqlen_q rotary_seqlens q_descale k_descale "
        "v_descale softmax_scale causal window_size attention_chunk softcap rotary_interleaved scheduler_metadata "
        "num_splits pack_gqa sm_margin return_softmax_lse",
        fa.flash_attn_combine: "out_partial lse_partial out out_dtype",
        fa.get_scheduler_metadata: "batch_size max_seqlen_q max_seqlen_k num_heads_q num_heads_kv headdim "
        "cache_seqlens qkv_dtype headdim_v cu_seqlens_q cu_seqlens_k_new cache_leftpad page_size max_seqlen_k_new "
        "causal window_size attention_chunk has_softcap num_splits pack_gqa sm_margin",
    }
    for function, expected in names.items():
        assert " ".join(inspect.signature(function).parameters) == expected


@pytest.mark.parametrize("options", [
    {}, {"causal": True}, {"window_size": (5, 3)}, {"window_size": (7, -1), "causal": True}, {"softcap": 5.0},
    {"num_splits": 3, "pack_gqa": True, "deterministic": True, "sm_margin": 4}, {"softmax_scale": 0.3},
], ids=str)
def test_func(options):
    q, k, v = operands()
    out, lse = fa.flash_attn_func(q, k, v, return_attn_probs=True, **options)
    known = {"causal": options.get("causal", False), "softcap": options.get("softcap", 0.0),
             "window": options.get("window_size", (-1, -1)), "scale": options.get("softmax_scale")}
    expected = reference.attention(q, k, v, **known)
    close(out, expected[0], LIMIT)
    close(lse, expected[1], 1e-5)
    assert torch.equal(fa.flash_attn_func(q, k, v, **options), out)
    assert compat.stats() == {}


@pytest.mark.parametrize("d", [16, 48, 80, 192])
def test_other_head_sizes_run_as_they_are(d):
    q, k, v = operands(d=d)
    close(fa.flash_attn_func(q, k, v), reference.attention(q, k, v)[0], LIMIT)
    assert compat.stats() == {}
    lengths = i32([17, 31])
    out = fa.flash_attn_with_kvcache(q[:, :1], k, v, cache_seqlens=lengths)
    close(out, reference.decode(q[:, :1], k, v, lengths)[0], LIMIT)
    new_k, new_v = bf16(2, 2, 2, d, seed=5), bf16(2, 2, 2, d, seed=6)
    out = fa.flash_attn_with_kvcache(q[:, :2], k, v, new_k, new_v, cache_seqlens=lengths, causal=True)
    assert torch.equal(k[0, 17:19], new_k[0]) and torch.equal(v[1, 31:33], new_v[1])
    close(out, reference.decode(q[:, :2], k, v, lengths + 2, causal=True)[0], LIMIT)
    assert compat.stats() == {}


@pytest.mark.parametrize("d, dv", [(192, 128), (136, 104), (40, 72)])
def test_values_of_another_width(d, dv):
    """DeepSeek-V3's prefill has 192 and 128."""
    q, k, v = bf16(2, 20, 4, d), bf16(2, 33, 2, d, seed=1), bf16(2, 33, 2, dv, seed=2)
    out, lse = fa.flash_attn_func(q, k, v, causal=True, return_attn_probs=True)
    expected = reference.attention(q, k, v, causal=True)
    close(out, expected[0], LIMIT)
    close(lse, expected[1], 1e-5)
    assert torch.equal(fa.flash_attn_func(q, k, v, causal=True), out)
    cu = {"cu_seqlens_q": i32([0, 20, 40]), "cu_seqlens_k": i32([0, 33, 66])}
    rows = [x.flatten(0, 1) for x in (q, k, v)]
    packed = fa.flash_attn_varlen_func(*rows, **cu, max_seqlen_q=20, max_seqlen_k=33, causal=True)
    assert torch.equal(packed.view_as(out), out)
    chunks = fa.flash_attn_func(q, k, v, attention_chunk=8)
    for b in range(2):
        close(chunks[b], in_chunks(*(x[b].double() for x in (q, k, v)), 8)[0], LIMIT)
    lengths = i32([33, 20])
    for s in (1, 20):
        cached = fa.flash_attn_with_kvcache(q[:, :s], k, v, cache_seqlens=lengths, causal=True)
        close(cached, reference.decode(q[:, :s], k, v, lengths, causal=True)[0], LIMIT)
    used = fa.flash_attn_varlen_func(*rows, **cu, max_seqlen_q=20, max_seqlen_k=33, seqused_q=i32([20, 3]),
                                     seqused_k=lengths)
    close(used[:20], reference.attention(q[:1], k[:1], v[:1])[0][0], LIMIT)
    close(used[20:23], reference.attention(q[1:, :3], k[1:, :20], v[1:, :20])[0][0], LIMIT)
    assert not used[23:].any()
    assert compat.stats() == {}


def test_strides_that_kernels_cannot_read_are_copied_and_counted():
    q, k, v = operands()
    columns = v.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    odd = torch.empty(2 * 33 * 2 * 64 + 1, dtype=torch.bfloat16, device=q.device)[1:].view(2, 33, 2, 64).copy_(k)
    close(fa.flash_attn_func(q, odd, columns), reference.attention(q, k, v)[0], LIMIT)
    assert compat.stats() == {"contiguous": 2}


def test_e4m3_with_scales_of_any_strides():
    q, k, v = (x.to(E4M3) for x in operands())
    number = torch.rand(3, device=q.device) + 0.5
    scales = [x.expand(2, 2) for x in number]
    out = fa.flash_attn_func(q, k, v, q_descale=scales[0], k_descale=scales[1], v_descale=scales[2])
    wide = [x.double() * scale for x, scale in zip((q, k, v), number, strict=True)]
    assert out.dtype == torch.bfloat16
    close(out, reference.attention(*wide)[0], 0.2)


@pytest.mark.parametrize("causal, device, value_dim, packed", [
    (False, "sim:h200", 64, {}), (True, "sim:h200", 64, {}), (True, "sim:b200", 64, {}),
    (True, "sim:b200", 256, {}), (True, "sim:b200", 256, {"seqused": 2}),
])
def test_varlen_with_rows_that_are_not_in_use(causal, device, value_dim, packed, monkeypatch):
    """Kernels read the lengths; where none does, the rows in use are packed, and counted."""
    tilewright.torch.set_device(device)
    if packed:
        monkeypatch.setattr(_flash_attn, "lacking", lambda *_: "a kernel that reads lengths")
    q, k, v = (x[0] for x in operands(b=1))
    v = bf16(33, 2, value_dim, seed=2)
    cu_q, cu_k, used_q, used_k = i32([0, 7, 7, 20]), i32([0, 11, 20, 33]), i32([5, 0, 13]), i32([9, 9, 0])
    q[5:7] = k[9:11] = v[9:11] = torch.nan
    out, lse = fa.flash_attn_varlen_func(q, k, v, cu_q, cu_k, 13, 13, seqused_q=used_q, seqused_k=used_k,
                                         causal=causal, return_attn_probs=True)
    expected = reference.attention(q[None, :5], k[None, :9], v[None, :9], causal=causal)
    close(out[None, :5], expected[0], LIMIT)
    close(lse[None, :, :5], expected[1], 1e-5)
    assert not out[5:].any() and (lse[:, 5:] == -torch.inf).all()
    if place() == "cpu":
        assert compat.stats() == packed
    plain = fa.flash_attn_varlen_func(q[7:], k[:9], v[:9], i32([0, 13]), i32([0, 9]), 13, 9, causal=causal)
    close(plain[None], reference.attention(q[None, 7:], k[None, :9], v[None, :9], causal=causal)[0], LIMIT)


def test_varlen_of_e4m3_in_use():
    q, k, v = (x[0].to(E4M3) for x in operands(b=1))
    given = (i32([0, 20]), i32([0, 33]), 20, 33)
    out = fa.flash_attn_varlen_func(q, k, v, *given, seqused_k=i32([30]))
    wide = (x.double()[None] for x in (q, k[:30], v[:30]))
    close(out[None], reference.attention(*wide)[0], 0.2)
    assert out.dtype is torch.bfloat16 and compat.stats() == {}


def test_qkvpacked_takes_views():
    qkv = bf16(1, 9, 3, 2, 64)
    close(fa.flash_attn_qkvpacked_func(qkv), reference.attention(*qkv.unbind(2))[0], LIMIT)
    flat = bf16(1, 9, 6, 64)
    expected = reference.attention(*flat.split([4, 1, 1], 2), causal=True)[0]
    close(fa.flash_attn_qkvpacked_func(flat, num_heads_q=4, causal=True), expected, LIMIT)
    with pytest.raises(ValueError, match="num_heads_q"):
        fa.flash_attn_qkvpacked_func(flat)
    assert compat.stats() == {}


@pytest.mark.parametrize("options", [
    {}, {"causal": True}, {"causal": True, "window_size": (6, -1)}, {"window_size": (6, 0)}, {"num_splits": 3},
    {"softcap": 4.0}, {"window_size": (39, 5)},
], ids=str)
@pytest.mark.parametrize("is_paged", [False, True])
def test_kvcache_by_index(options, is_paged):
    q, k, v = bf16(3, 2, 4, 64), bf16(6, 40, 2, 64, seed=1), bf16(6, 40, 2, 64, seed=2)
    lengths, index = i32([17, 33, 5]), i32([4, 0, 3])
    caches, table = (k, v), None
    if is_paged:
        caches = k.view(30, 8, 2, 64), v.view(30, 8, 2, 64)
        table = torch.arange(30, dtype=torch.int32, device=place()).view(6, 5)
    found = fa.flash_attn_with_kvcache(q, *caches, cache_seqlens=lengths, cache_batch_idx=index, page_table=table,
                                       return_softmax_lse=True, **options)
    assert len(found) == 4 and found[2].numel() == found[3].numel() == 0
    window = options.get("window_size", (-1, -1))
    known = {"causal": options.get("causal", False) or window[1] == 0, "softcap": options.get("softcap", 0.0),
             "window": (window[0] if window[0] < 39 else -1, -1)}
    expected = reference.decode(q, k[index.long()], v[index.long()], lengths, **known)
    close(found[0], expected[0], LIMIT)
    close(found[1], expected[1], 1e-5)


def in_chunks(q, k, v, chunk, causal=False, window=(-1, -1)):
    """One query [s, h, d] after the other, over the keys [t, g, d] that it sees."""
    outs, lses = [], []
    for i in range(q.shape[0]):
        p = i + k.shape[0] - q.shape[0]
        begin = p // chunk * chunk
        first = max(begin, 0, p - window[0] if window[0] >= 0 else 0)
        right = 0 if causal else window[1]
        last = min(begin + chunk - 1, k.shape[0] - 1, p + right if right >= 0 else k.shape[0])
        keys = slice(first, max(last + 1, first))
        out, lse = reference.attention(q[None, i : i + 1], k[None, keys], v[None, keys])
        outs.append(out[0])
        lses.append(lse[0])
    return torch.cat(outs), torch.cat(lses, 1)


CHUNKS = [{}, {"causal": True}, {"window_size": (3, 1)}, {"window_size": (5, -1), "causal": True}]


@pytest.mark.parametrize("options", CHUNKS, ids=str)
@pytest.mark.parametrize("s, t, chunk", [(20, 33, 8), (33, 20, 16), (16, 16, 8), (9, 9, 100)])
def test_chunks(options, s, t, chunk):
    q, k, v = operands(s=s, t=t)
    out, lse = fa.flash_attn_func(q, k, v, attention_chunk=chunk, return_attn_probs=True, **options)
    known = {"causal": options.get("causal", False), "window": options.get("window_size", (-1, -1))}
    for b in range(2):
        expected = in_chunks(q[b], k[b], v[b], chunk, **known)
        close(out[b], expected[0], LIMIT)
        close(lse[b], expected[1], 1e-5)
    assert compat.stats() == {}
    assert torch.equal(fa.flash_attn_func(q, k, v, attention_chunk=chunk, **options), out)


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"window_size": (3, 0)}], ids=str)
@pytest.mark.parametrize("d", [48, 64])
def test_chunks_over_caches(options, d):
    """Lengths before a border, on it and behind it, and within a chunk."""
    q, k, v = bf16(4, 3, 4, d), bf16(4, 40, 2, d, seed=1), bf16(4, 40, 2, d, seed=2)
    lengths = [16, 17, 31, 40]
    caches, table = [x.view(20, 8, 2, d) for x in (k, v)], torch.arange(20, device=q.device).view(4, 5).int()
    given = {"cache_seqlens": i32(lengths), "attention_chunk": 16, **options}
    out, lse, *_ = fa.flash_attn_with_kvcache(q, *caches, page_table=table, return_softmax_lse=True, **given)
    known = {"causal": options.get("causal", False) or "window_size" in options,
             "window": options.get("window_size", (-1, -1))}
    for b, n in enumerate(lengths):
        expected = in_chunks(q[b], k[b, :n], v[b, :n], 16, **known)
        close(out[b], expected[0], LIMIT)
        close(lse[b], expected[1], 1e-5)
    assert torch.equal(fa.flash_attn_with_kvcache(q, k, v, **given), out)
    assert compat.stats() == {}


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"window_size": (3, 1)}], ids=str)
@pytest.mark.parametrize("is_paged", [False, True])
@pytest.mark.parametrize("is_packed", [False, True])
def test_chunks_over_caches_with_many_queries(options, is_paged, is_packed):
    """Chunks begin anywhere in a page."""
    chunk = 13 if is_paged else 16
    q, k, v = bf16(4, 18, 4, 64), bf16(4, 48, 2, 64, seed=1), bf16(4, 48, 2, 64, seed=2)
    lengths, used = [32, 33, 47, 11], [18, 18, 17, 18]
    caches, given = (k, v), {"cache_seqlens": i32(lengths), "attention_chunk": chunk, **options}
    if is_paged:
        caches = [x.view(24, 8, 2, 64) for x in (k, v)]
        given["page_table"] = torch.arange(24, device=q.device).view(4, 6).int()
    if is_packed:  # the third has a query less
        rows = torch.cat([x[:n] for x, n in zip(q, used, strict=True)])
        given |= {"cu_seqlens_q": torch.nn.functional.pad(i32(used).cumsum(0), (1, 0)).int(), "max_seqlen_q": 18}
    found = fa.flash_attn_with_kvcache(rows if is_packed else q, *caches, return_softmax_lse=True, **given)
    known = {"causal": options.get("causal", False), "window": options.get("window_size", (-1, -1))}
    begin = 0
    for b, n in enumerate(lengths):
        s = used[b] if is_packed else 18
        expected = in_chunks(q[b, :s], k[b, :n], v[b, :n], chunk, **known)
        of_b = (found[0][b], found[1][b])
        if is_packed:
            of_b = (found[0][begin : begin + s], found[1][:, begin : begin + s])
        close(of_b[0], expected[0], LIMIT)
        close(of_b[1], expected[1], 1e-5)
        begin += s
    assert compat.stats() == {}


def test_chunks_behind_padding():
    """Chunks are counted from the first key behind it."""
    q, k, v = bf16(2, 18, 4, 64), bf16(2, 48, 2, 64, seed=1), bf16(2, 48, 2, 64, seed=2)
    lengths, padding = [48, 29], [0, 7]
    out, lse, *_ = fa.flash_attn_with_kvcache(q, k, v, cache_seqlens=i32(lengths), cache_leftpad=i32(padding),
                                              attention_chunk=12, causal=True, return_softmax_lse=True)
    for b, (n, m) in enumerate(zip(lengths, padding, strict=True)):
        expected = in_chunks(q[b], k[b, m:n], v[b, m:n], 12, causal=True)
        close(out[b], expected[0], LIMIT)
        close(lse[b], expected[1], 1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_chunks_over_caches_with_queries_in_use(causal):
    """As the operator calls it: rows behind those in use get 0, and an lse of -inf."""
    q, k, v = bf16(3, 18, 4, 64), bf16(3, 48, 2, 64, seed=1), bf16(3, 48, 2, 64, seed=2)
    lengths, used = [33, 48, 5], [18, 3, 0]
    none = dict.fromkeys(("rotary_cos", "rotary_sin", "cache_batch_idx", "page_table", "softmax_scale"))
    out, lse = with_cache("test", q, k, v, None, None, cache_seqlens=i32(lengths), seqused_q=i32(used),
                          descales=(None, None, None), causal=causal, window=(-1, -1), softcap=0.0,
                          rotary_interleaved=True, num_splits=0, return_lse=True, attention_chunk=16, **none)
    for b, (n, s) in enumerate(zip(lengths, used, strict=True)):
        if s > 0:
            expected = in_chunks(q[b, :s], k[b, :n], v[b, :n], 16, causal)
            close(out[b, :s], expected[0], LIMIT)
            close(lse[b, :, :s], expected[1], 1e-5)
        assert not out[b, s:].any() and torch.isneginf(lse[b, :, s:]).all()


@pytest.mark.parametrize("causal", [False, True])
def test_chunks_of_packed_sequences(causal):
    """One has more queries than keys, one no keys, one no queries."""
    lens = [(7, 20), (9, 4), (3, 0), (0, 6), (16, 16)]
    q, k, v = bf16(35, 4, 64), bf16(46, 2, 64, seed=1), bf16(46, 2, 64, seed=2)
    cu_q, cu_k = [0], [0]
    for n, m in lens:
        cu_q.append(cu_q[-1] + n)
        cu_k.append(cu_k[-1] + m)
    out, lse = fa.flash_attn_varlen_func(q, k, v, i32(cu_q), i32(cu_k), 16, 20, causal=causal, attention_chunk=8,
                                         return_attn_probs=True)
    for b, (n, _) in enumerate(lens):
        rows, keys = slice(cu_q[b], cu_q[b + 1]), slice(cu_k[b], cu_k[b + 1])
        if n:
            expected = in_chunks(q[rows], k[keys], v[keys], 8, causal)
            close(out[rows], expected[0], LIMIT)
            close(lse[:, rows], expected[1], 1e-5)


def test_chunks_of_rows_in_use():
    q, k, v = bf16(20, 4, 64), bf16(33, 2, 64, seed=1), bf16(33, 2, 64, seed=2)
    q[5:7] = k[9:11] = v[9:11] = torch.nan
    used = {"seqused_q": i32([5, 13]), "seqused_k": i32([9, 20])}
    out, lse = fa.flash_attn_varlen_func(q, k, v, i32([0, 7, 20]), i32([0, 11, 33]), 13, 22, **used, causal=True,
                                         attention_chunk=4, return_attn_probs=True)
    for rows, keys in ((slice(0, 5), slice(0, 9)), (slice(7, 20), slice(11, 31))):
        expected = in_chunks(q[rows], k[keys], v[keys], 4, causal=True)
        close(out[rows], expected[0], LIMIT)
        close(lse[:, rows], expected[1], 1e-5)
    assert not out[5:7].any() and compat.stats() == {}


def test_chunks_of_e4m3_keep_their_scales():
    q, k, v = (x.to(E4M3) for x in operands())
    scales = torch.rand(3, 2, 2, device=q.device) + 0.5
    given = dict(zip(("q_descale", "k_descale", "v_descale"), scales, strict=True))
    out = fa.flash_attn_func(q, k, v, attention_chunk=8, **given)
    factors = [scales[0].repeat_interleave(2, 1), scales[1], scales[2]]
    wide = [x.double() * scale[:, None, :, None] for x, scale in zip((q, k, v), factors, strict=True)]
    for b in range(2):
        close(out[b], in_chunks(*(x[b] for x in wide), 8)[0], 0.2)


@pytest.mark.parametrize("s", [1, 5, 19])
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"window_size": (6, 3)}], ids=str)
def test_kvcache_with_left_padding(s, options):
    """Keys before the padding's end are not seen, though they are NaN; the cache has a sequence more."""
    q, k, v = bf16(2, s, 4, 64), bf16(3, 40, 2, 64, seed=1), bf16(3, 40, 2, 64, seed=2)
    lengths, padding = [33, 20], [4, 20 if s == 5 else 11]
    for b, n in enumerate(padding):
        k[b, :n] = v[b, :n] = torch.nan
    out, lse, *_ = fa.flash_attn_with_kvcache(q, k, v, cache_seqlens=i32(lengths), cache_leftpad=i32(padding),
                                              return_softmax_lse=True, **options)
    known = {"causal": options.get("causal", False), "window": options.get("window_size", (-1, -1))}
    for b, n in enumerate(padding):
        keys = slice(n, lengths[b])
        expected = reference.attention(q[b : b + 1], k[b : b + 1, keys], v[b : b + 1, keys], **known)
        close(out[b : b + 1], expected[0], LIMIT)
        close(lse[b : b + 1], expected[1], 1e-5)
    assert compat.stats() == {}
    into = torch.empty_like(q)
    packing = {"cu_seqlens_q": i32([0, s, 2 * s]), "max_seqlen_q": s}
    packed = fa.flash_attn_with_kvcache(q.flatten(0, 1), k, v, cache_seqlens=i32(lengths),
                                        cache_leftpad=i32(padding), **packing, **options)
    assert torch.equal(packed.view_as(into), out)


MASKS = [{}, {"causal": True}, {"window_size": (6, 3)}, {"softcap": 4.0}]


@pytest.mark.parametrize("options", MASKS, ids=str)
@pytest.mark.parametrize("way", ["pages", "caches", "index"])
def test_kvcache_with_more_queries_than_decode_takes(options, way):
    q, k, v = bf16(2, 19, 4, 64), bf16(3, 40, 2, 64, seed=1), bf16(3, 40, 2, 64, seed=2)
    lengths, caches, given = i32([33, 20]), (k, v), {}
    if way == "pages":
        caches = k.view(15, 8, 2, 64), v.view(15, 8, 2, 64)
        given = {"page_table": torch.arange(10, dtype=torch.int32, device=place()).view(2, 5)}
    elif way == "index":
        given = {"cache_batch_idx": i32([0, 1])}
    else:
        caches = k[:2], v[:2]
    out, lse, *_ = fa.flash_attn_with_kvcache(q, *caches, cache_seqlens=lengths, return_softmax_lse=True, **given,
                                              **options)
    known = {"causal": options.get("causal", False), "softcap": options.get("softcap", 0.0),
             "window": options.get("window_size", (-1, -1))}
    expected = reference.decode(q, k, v, lengths, **known)
    close(out, expected[0], LIMIT)
    close(lse, expected[1], 1e-5)
    assert compat.stats() == {}


@pytest.mark.parametrize("d", [64, 96, 192])
@pytest.mark.parametrize("is_paged", [True, False])
def test_kvcache_with_packed_queries(is_paged, d):
    """Parts of prompts and sequences that decode in one call; nothing is padded."""
    q, k, v = bf16(24, 4, d), bf16(3, 40, 2, d, seed=1), bf16(3, 40, 2, d, seed=2)
    cu, lengths, caches, table = [0, 1, 21, 24], [33, 20, 40], (k, v), None
    if is_paged:
        caches = k.view(15, 8, 2, d), v.view(15, 8, 2, d)
        table = torch.arange(15, dtype=torch.int32, device=place()).view(3, 5)
    given = {"cache_seqlens": i32(lengths), "page_table": table, "cu_seqlens_q": i32(cu), "max_seqlen_q": 20}
    out, lse, *_ = fa.flash_attn_with_kvcache(q, *caches, causal=True, return_softmax_lse=True, **given)
    for b, n in enumerate(lengths):
        rows = slice(cu[b], cu[b + 1])
        expected = reference.attention(q[None, rows], k[b : b + 1, :n], v[b : b + 1, :n], causal=True)
        close(out[None, rows], expected[0], LIMIT)
        close(lse[None, :, rows], expected[1], 1e-5)
    assert compat.stats() == {}
    with pytest.raises(ValueError, match="max_seqlen_q goes with cu_seqlens_q"):
        fa.flash_attn_with_kvcache(q, *caches, **{**given, "max_seqlen_q": None})


def test_what_blackwell_has_no_kernel_for_is_refused_with_its_reason():
    if place() != "cpu":
        pytest.skip("the simulated B200")
    q, k, v = operands(s=19, t=40, d=256)
    tilewright.torch.set_device("sim:b200")
    lengths = i32([33, 20])
    out = fa.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths)
    close(out[1:], reference.attention(q[1:], k[1:, :20], v[1:, :20])[0], LIMIT)
    many = bf16(2, 19, 129, 64, seed=3)
    with pytest.raises(tilewright.Unsupported, match="at most 128 query heads for a key head") as error:
        fa.flash_attn_with_kvcache(many, k[:, :, :1, :64], v[:, :, :1, :64], cache_seqlens=lengths)
    assert [reason.field for reason in error.value.reasons] == ["q.shape[1]"]
    assert "call it for 16 of them at a time" in error.value.reasons[0].fix


def test_kvcache_with_one_length_for_all():
    q, k, v = operands(s=1, t=40)
    out = fa.flash_attn_with_kvcache(q, k, v, cache_seqlens=21)
    close(out, reference.attention(q, k[:, :21], v[:, :21])[0], LIMIT)
    close(fa.flash_attn_with_kvcache(q, k, v), reference.attention(q, k, v)[0], LIMIT)


def test_kvcache_appends_and_turns():
    q, k, v = operands(s=2, t=40)
    new_k, new_v, lengths = bf16(2, 2, 2, 64, seed=3), bf16(2, 2, 2, 64, seed=4), i32([17, 31])
    # A turn by 90 degrees of neighbours, (x, y) to (-y, x), at all positions: scores stay.
    cos, sin = (torch.full((64, 32), x, dtype=torch.bfloat16, device=q.device) for x in (0.0, 1.0))
    for b, n in enumerate(lengths.tolist()):
        k[b, n : n + 2], v[b, n : n + 2] = new_k[b], new_v[b]
    turned = torch.stack((-k[..., 1::2], k[..., ::2]), -1).flatten(-2)
    k_cache, v_cache = turned.clone(), v.clone()
    for b, n in enumerate(lengths.tolist()):
        k_cache[b, n : n + 2], v_cache[b, n : n + 2] = 0, 0
    for _ in range(2):
        out = fa.flash_attn_with_kvcache(q, k_cache, v_cache, new_k, new_v, rotary_cos=cos, rotary_sin=sin,
                                         cache_seqlens=lengths, rotary_seqlens=lengths, causal=True)
    assert torch.equal(k_cache, turned) and torch.equal(v_cache, v)
    close(out, reference.decode(q, k, v, lengths + 2, causal=True)[0], LIMIT)
    assert compat.stats() == {"converted": 2}


@pytest.mark.parametrize("is_packed, chip", [(False, "h200"), (True, "h200"), (True, "b200")])
def test_many_queries_of_e4m3_over_pages(is_packed, chip):
    if chip == "b200":
        if place() != "cpu":
            pytest.skip("the simulated B200")
        tilewright.torch.set_device("sim:b200")
    q, k, v = (x.to(E4M3) for x in operands(s=20, t=40))
    scales = [torch.rand(2, 2, generator=torch.Generator().manual_seed(i)).to(place()) + 0.4 for i in range(3)]
    wide = [x.double() * s.repeat_interleave(x.shape[2] // 2, 1)[:, None, :, None].double()
            for x, s in zip((q, k, v), scales, strict=True)]
    expected = reference.attention(*wide, causal=True)
    pages = (x.view(torch.uint8).reshape(10, 8, 2, 64).view(E4M3) for x in (k, v))
    given = {"cache_seqlens": i32([40, 40]), "page_table": i32(range(10)).view(2, 5), "causal": True}
    given |= dict(zip(("q_descale", "k_descale", "v_descale"), scales, strict=True))
    if is_packed:
        given |= {"cu_seqlens_q": i32([0, 20, 40]), "max_seqlen_q": 20}
    rows = q.flatten(0, 1) if is_packed else q
    out, lse, *_ = fa.flash_attn_with_kvcache(rows, *pages, **given, return_softmax_lse=True)
    assert out.dtype is torch.bfloat16
    close(out.view(2, 20, 4, 64), expected[0], 2**-4 * 7)  # weights are rounded to 2^-4 of themselves
    close(lse.view(4, 2, 20).transpose(0, 1) if is_packed else lse, expected[1], 2e-3)


def test_kvcache_of_e4m3_folds_the_scale_of_q():
    q, k, v = (x.to(E4M3) for x in operands(s=1, t=40))
    scales, lengths = torch.rand(3, 2, 2, device=q.device) + 0.5, i32([17, 31])
    out = fa.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths, q_descale=scales[0], k_descale=scales[1],
                                     v_descale=scales[2])
    factors = [scales[0].repeat_interleave(2, 1), scales[1], scales[2]]
    wide = [x.double() * scale[:, None, :, None] for x, scale in zip((q, k, v), factors, strict=True)]
    assert out.dtype == torch.bfloat16
    close(out, reference.decode(*wide, lengths)[0], LIMIT)


def latent_case(tokens, dims, has_qv, causal, lengths, dtype=torch.bfloat16):
    """Keys of 64 and wide values, which with qv make scores; as [b, keys, heads, ...], and the truth."""
    q, k = bf16(2, tokens, 4, 64).to(dtype), bf16(2, 64, 2, 64, seed=1).to(dtype)
    qv, v = bf16(2, tokens, 4, dims, seed=2).to(dtype), bf16(2, 64, 2, dims, seed=3).to(dtype)
    scale = (64 + dims * has_qv) ** -0.5
    wide_q, wide_k = (torch.cat(pair, -1) for pair in ((q, qv), (k, v))) if has_qv else (q, k)
    truth = [reference.attention(wide_q[b : b + 1], wide_k[b : b + 1, :n], v[b : b + 1, :n], causal=causal,
                                 scale=scale) for b, n in enumerate(lengths)]
    return q, k, v, qv if has_qv else None, [torch.cat(parts) for parts in zip(*truth, strict=True)]


@pytest.mark.parametrize("tokens, dims, has_qv, causal, page, dtype", [
    (1, 512, True, True, 64, torch.bfloat16), (20, 512, True, True, None, torch.bfloat16),
    (2, 256, True, False, 16, torch.float16), (1, 256, False, True, None, torch.bfloat16),
    (3, 512, False, True, 8, torch.float16)])
def test_qv_and_wide_values_over_caches(tokens, dims, has_qv, causal, page, dtype):
    q, k, v, qv, truth = latent_case(tokens, dims, has_qv, causal, [64, 37], dtype)
    given = {"cache_seqlens": i32([64, 37]), "qv": qv, "causal": causal, "return_softmax_lse": True}
    if page is not None:
        count = 2 * 64 // page
        order = torch.randperm(count, generator=torch.Generator().manual_seed(1)).to(place())
        k, v = (x.reshape(count, page, *x.shape[2:])[order] for x in (k, v))
        given["page_table"] = torch.argsort(order).int().view(2, -1)
    found = fa.flash_attn_with_kvcache(q, k, v, **given)
    close(found[0], truth[0], LIMIT)
    close(found[1], truth[1], 1e-4)
    if page is None:
        swapped = {**given, "cache_seqlens": i32([37, 64]), "cache_batch_idx": i32([1, 0])}
        swapped["qv"] = None if qv is None else qv.flip(0)
        again = fa.flash_attn_with_kvcache(q.flip(0), k, v, **swapped)
        assert torch.equal(again[0], found[0].flip(0)) and torch.equal(again[1], found[1].flip(0))
    names = {"q": q, "k_cache": k, "v_cache": v, "qv": qv, "page_table": given.get("page_table")}
    assert fa.can_implement("flash_attn_with_kvcache", **names) == []


@pytest.mark.parametrize("dims, has_qv", [(256, True), (512, False)])
def test_qv_and_wide_values_of_whole_sequences(dims, has_qv):
    q, k, v, qv, truth = latent_case(5, dims, has_qv, True, [64, 64])
    out, lse = fa.flash_attn_func(q, k, v, causal=True, qv=qv, return_attn_probs=True)
    close(out, truth[0], LIMIT)
    close(lse, truth[1], 1e-4)
    packed = [x.flatten(0, 1) for x in (q, k, v)]
    cu = i32([0, 5, 10]), i32([0, 64, 128])
    with pytest.raises(tilewright.Unsupported, match="cu_seqlens_q") as error:
        fa.flash_attn_varlen_func(*packed, *cu, 5, 64, qv=None if qv is None else qv.flatten(0, 1))
    assert {reason.field for reason in error.value.reasons} == {"cu_seqlens_q", "cu_seqlens_k"}


REFUSALS = {
    "qv beside narrow values": ({"qv": bf16(2, 2, 4, 64)}, "v.shape[-1]"),
    "wide values": ({"v": bf16(2, 40, 2, 320)}, "v.shape[-1]"),
    "softcap with qv": ({"v": bf16(2, 40, 2, 256), "qv": bf16(2, 2, 4, 256), "softcap": 3.0}, "softcap"),
    "window with qv": ({"v": bf16(2, 40, 2, 256), "qv": bf16(2, 2, 4, 256), "window_size": (4, 0)}, "window_size"),
    "another qv": ({"v": bf16(2, 40, 2, 256), "qv": bf16(2, 2, 4, 512)}, "qv"),
    "float32": ({name: torch.zeros(2, 2, 2, 64, device=place()) for name in "qkv"}, "q, k, v"),
    "head size": ({"q": bf16(2, 2, 4, 20), "k": bf16(2, 40, 2, 20), "v": bf16(2, 40, 2, 20)}, "q.shape[-1]"),
}


@pytest.mark.parametrize("change, field", REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("is_cache", [False, True])
def test_what_no_kernel_has_is_refused(change, field, is_cache):
    q, k, v = operands(s=2, t=40)
    given = {"q": q, "k": k, "v": v, **change}
    if is_cache:
        given |= {"k_cache": given.pop("k"), "v_cache": given.pop("v"), "cache_seqlens": i32([3, 4])}
    function = "flash_attn_with_kvcache" if is_cache else "flash_attn_func"
    with pytest.raises(tilewright.Unsupported, match=f"{function} cannot do this call") as error:
        getattr(fa, function)(**given)
    assert [reason.field for reason in error.value.reasons] == [field]
    assert fa.can_implement(function, **given) == error.value.reasons
    assert all(reason.rule and reason.fix for reason in error.value.reasons)


def kvcache_refusals():
    lengths, new = i32([3, 4]), bf16(2, 2, 2, 64, seed=5)
    table = torch.ones(64, 16, device=place())
    yield "int64 padding", {"cache_leftpad": lengths.long()}, "cache_leftpad"
    packed = {"q": bf16(4, 4, 64), "cu_seqlens_q": i32([0, 2, 4])}
    yield "packed keys without keys", {"cu_seqlens_k_new": i32([0, 2, 4])}, "cu_seqlens_k_new"
    yield "packed keys that are not", {"cu_seqlens_k_new": i32([0, 2, 4]), "k": new, "v": new}, "k, v"
    yield "turned queries without keys", {"rotary_cos": table, "rotary_sin": table}, "rotary_cos"
    yield "int64 starts", {**packed, "cu_seqlens_q": i32([0, 2, 4]).long()}, "cu_seqlens_q"
    yield "int64 offsets", {"k": new, "v": new, "rotary_cos": table, "rotary_sin": table,
                            "rotary_seqlens": lengths.long()}, "rotary_seqlens"
    yield "many splits", {"num_splits": 1025}, "num_splits"
    yield "int64 lengths", {"cache_seqlens": lengths.long()}, "cache_seqlens"
    yield "int64 pages", {"page_table": i32([[0], [1]]).long()}, "page_table"


@pytest.mark.parametrize("name, change, field", list(kvcache_refusals()),
                         ids=lambda x: x if isinstance(x, str) else "")
def test_what_caches_cannot_have_is_refused(name, change, field):
    q, k, v = operands(s=2, t=40)
    given = {"q": q, "k_cache": k, "v_cache": v, "cache_seqlens": i32([3, 4]), **change}
    with pytest.raises(tilewright.Unsupported) as error:
        fa.flash_attn_with_kvcache(**given)
    assert [reason.field for reason in error.value.reasons] == [field]
    asked = {n: x.to("meta") if torch.is_tensor(x) else x for n, x in given.items()}
    assert fa.can_implement("flash_attn_with_kvcache", **asked) == error.value.reasons


@pytest.mark.parametrize("change, field", [
    ({"cu_seqlens_q": torch.tensor([0, 20])}, "cu_seqlens_q"),
    ({"seqused_k": torch.tensor([3])}, "seqused_k"),
    ({"cu_seqlens_k": None}, "cu_seqlens_k"),
])
def test_varlen_refusals(change, field):
    q, k, v = (x[0] for x in operands(b=1))
    given = {"cu_seqlens_q": i32([0, 20]), "cu_seqlens_k": i32([0, 33]), **change}
    given = {name: x.to(place()) if torch.is_tensor(x) else x for name, x in given.items()}
    with pytest.raises(tilewright.Unsupported) as error:
        fa.flash_attn_varlen_func(q, k, v, max_seqlen_q=20, max_seqlen_k=33, **given)
    assert [reason.field for reason in error.value.reasons] == [field]


def test_all_reasons_come_together():
    q, k, v = operands()
    given = {"q": q, "k_cache": k, "v_cache": v[..., :20], "attention_chunk": 3, "qv": q}
    reasons = fa.can_implement("flash_attn_with_kvcache", **given)
    assert {reason.field for reason in reasons} == {"qv", "v.shape[-1]", "attention_chunk"}


def test_backward_is_refused():
    q, k, v = operands()
    out = fa.flash_attn_func(q.requires_grad_(), k, v)
    with pytest.raises(NotImplementedError, match="no backward"):
        out.sum().backward()


@pytest.mark.parametrize("given", [
    {"seqused_q": [20, 3]}, {"seqused_k": [33, 20]}, {"seqused_q": [20, 3], "seqused_k": [33, 20]},
    {"attention_chunk": 8}, {"attention_chunk": 8, "seqused_q": [20, 3]}])
@pytest.mark.parametrize("returns_lse", [False, True])
def test_operands_that_require_gradients_have_results(given, returns_lse):
    """Lengths and chunks go by an operator that writes to what it is given, which is no concern of the caller."""
    q, k, v = (x.flatten(0, 1) for x in operands())
    given = {name: i32(x) if isinstance(x, list) else x for name, x in given.items()}
    call = (i32([0, 20, 40]), i32([0, 33, 66]), 20, 33)
    expected = fa.flash_attn_varlen_func(q, k, v, *call, **given)
    out = fa.flash_attn_varlen_func(q.requires_grad_(), k, v.requires_grad_(), *call, **given,
                                    return_attn_probs=returns_lse)
    out = out[0] if returns_lse else out
    assert out.requires_grad and torch.equal(out, expected)
    with pytest.raises(NotImplementedError, match="no backward"):
        out.sum().backward()
    with torch.no_grad():
        assert not fa.flash_attn_varlen_func(q, k, v, *call, **given).requires_grad


def test_caches_with_queries_that_require_gradients():
    q, k, v = operands()
    none = dict.fromkeys(("rotary_cos", "rotary_sin", "cache_batch_idx", "page_table", "softmax_scale"))
    given = {"cache_seqlens": i32([33, 20]), "seqused_q": i32([20, 3]), "descales": (None,) * 3, **none}
    given |= {"causal": True, "window": (-1, -1), "softcap": 0.0, "rotary_interleaved": True, "num_splits": 0,
              "return_lse": True, "attention_chunk": 0}
    expected, _ = with_cache("test", q, k, v, None, None, **given)
    out, _ = with_cache("test", q.requires_grad_(), k, v, None, None, **given)
    assert out.requires_grad and torch.equal(out, expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, E4M3])
@pytest.mark.parametrize("rows", [0, 33])
def test_sequences_that_are_all_empty(dtype, rows):
    """The longest sequence of keys is one of 0: there is nothing to attend to."""
    q, k, v = (x[0].to(dtype) for x in operands(b=1))
    k, v = k[:rows], v[:rows]
    for given in ({"seqused_q": i32([20])}, {"seqused_k": i32([0])}):
        out, lse = fa.flash_attn_varlen_func(q, k, v, i32([0, 20]), i32([0, 0]), 20, 0, **given,
                                             return_attn_probs=True)
        assert not out.any() and (lse == -torch.inf).all()
    with pytest.raises(ValueError, match="max_seqlen_q and max_seqlen_k go with"):
        fa.flash_attn_varlen_func(q, k, v, i32([0, 20]), i32([0, 0]), 20, None, seqused_q=i32([20]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_combine(dtype):
    parts, lse = torch.randn(5, 2, 7, 4, 64, device=place()), torch.randn(5, 2, 7, 4, device=place())
    lse[3:, :1] = lse[:, 1, 3] = -torch.inf
    out, total = fa.flash_attn_combine(parts, lse, out_dtype=dtype)
    weights = torch.exp(lse.double() - lse.double().logsumexp(0)).nan_to_num(0)
    assert out.dtype == dtype
    close(out, (weights[..., None] * parts).sum(0), 1e-5 if dtype == torch.float32 else 2e-2)
    close(total, lse.logsumexp(0), 1e-5)
    into = torch.empty_like(out)
    assert fa.flash_attn_combine(parts, lse, into, dtype)[0] is into and torch.equal(into, out)


@pytest.mark.parametrize("options, size", [({}, 25), ({"causal": True}, 33), ({"window_size": (3, 3)}, 25)])
def test_metadata_has_the_size_of_the_peer(options, size):
    made = fa.get_scheduler_metadata(5, 1, 128, 6, 2, 128, i32([1] * 5), **options)
    assert made.dtype == torch.int32 and made.shape == (size,)


def test_install_is_asked_for_undone_and_refused():
    assert "flash_attn_interface" not in sys.modules
    compat.install("flash_attn_interface")
    import flash_attn_interface

    assert flash_attn_interface is fa
    compat.install("flash_attn_interface")
    compat.uninstall("flash_attn_interface")
    assert "flash_attn_interface" not in sys.modules
    other = sys.modules["flash_attn_interface"] = type(sys)("flash_attn_interface")
    try:
        with pytest.raises(RuntimeError, match="flash_attn_interface is loaded already"):
            compat.install("flash_attn_interface")
        compat.uninstall("flash_attn_interface")
        assert sys.modules["flash_attn_interface"] is other
    finally:
        del sys.modules["flash_attn_interface"]
    with pytest.raises(ValueError, match="expected one of 'flash_attn_interface'"):
        compat.install("flash_attn")


OPERATORS = """
import torch, tilewright.torch
from tilewright.compat import flash_attn_3_ops, flash_attn_interface as fa
tilewright.torch.set_device("sim:h200")
flash_attn_3_ops.install()
import flash_attn_3._C
q, k = torch.randn(2, 1, 4, 64).bfloat16(), torch.randn(2, 40, 2, 64).bfloat16()
lengths = torch.tensor([17, 31], dtype=torch.int32)
out, lse, *rest = torch.ops.flash_attn_3.fwd(q, k, k)
expected = fa.flash_attn_func(q, k, k, return_attn_probs=True)
assert torch.equal(out, expected[0]) and torch.equal(lse, expected[1]) and len(rest) == 2
caches = [k.clone(), k.clone()]
new = k[:, :1], k[:, 1:2]
out, lse, *rest = torch.ops.flash_attn_3.fwd(q, *caches, *new, seqused_k=lengths, is_causal=True)
others = [k.clone(), k.clone()]
expected = fa.flash_attn_with_kvcache(q, *others, *new, cache_seqlens=lengths, causal=True)
assert torch.equal(out, expected) and all(map(torch.equal, caches, others))
ops = torch.ops.flash_attn_3
many, used = torch.randn(2, 19, 4, 64).bfloat16(), torch.tensor([19, 4], dtype=torch.int32)
out, lse, *rest = ops.fwd(many, k, k, seqused_q=used, seqused_k=lengths, is_causal=True)
for b, (n, keys) in enumerate(((19, 17), (4, 31))):
    right = fa.flash_attn_func(many[b:b+1, :n], k[b:b+1, :keys], k[b:b+1, :keys], causal=True)
    torch.testing.assert_close(out[b:b+1, :n].float(), right.float(), rtol=0, atol=2e-2)
    assert not out[b, n:].any() and (lse[b, :, n:] == -torch.inf).all() and lse[b, :, :n].isfinite().any()
out, lse, *rest = ops.fwd(many, k, k, seqused_q=used)
right = fa.flash_attn_func(many[1:, :4], k[1:], k[1:])
torch.testing.assert_close(out[1:, :4].float(), right.float(), rtol=0, atol=2e-2)
assert not out[1, 4:].any()
assert ops.get_scheduler_metadata(2, 1, 40, 4, 2, 64, 64, torch.bfloat16, lengths).shape == (13,)
assert ops.fwd_combine(torch.randn(2, 1, 1, 1, 64), torch.randn(2, 1, 1, 1))[0].shape == (1, 1, 1, 64)
try:
    torch.ops.flash_attn_3.bwd(q, q, k, k, q, lse)
except NotImplementedError as error:
    assert "no_grad" in str(error)
flash_attn_3_ops.install()
flash_attn_3_ops.uninstall()
assert not torch._C._dispatch_has_kernel("flash_attn_3::fwd")
theirs = torch.library.Library("flash_attn_3", "DEF")
theirs.define("fwd(Tensor q) -> Tensor")
theirs.impl("fwd", lambda q: q, "CPU")
try:
    flash_attn_3_ops.install()
except RuntimeError as error:
    print("refused", error)
"""


def test_operators_stand_in_for_the_peers():
    done = subprocess.run([sys.executable, "-c", OPERATORS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused flash_attn_3 is loaded already")
