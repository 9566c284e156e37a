"""The interfaces of FlashMLA and DeepGEMM on our kernels: results, refusals, schedules that serve again."""

import inspect
import math
import sys

import pytest

torch = pytest.importorskip("torch")

import tilewright  # noqa: E402
import tilewright.torch as tt  # noqa: E402
import torch_reference as reference  # noqa: E402
from tilewright import compat  # noqa: E402
from tilewright.compat import _mqa_logits, deep_gemm, flash_mla  # noqa: E402
from torch_layers_test import fp8_pages, lists  # noqa: E402
from torch_reference import bf16, close, i32, place  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")
E4M3 = torch.float8_e4m3fn
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float64)


def test_parameters_are_those_of_the_peers():
    names = {
        flash_mla.flash_mla_with_kvcache: "q k_cache block_table cache_seqlens head_dim_v tile_scheduler_metadata "
        "num_splits softmax_scale causal is_fp8_kvcache indices attn_sink extra_k_cache extra_indices_in_kvcache "
        "topk_length extra_topk_length out enable_batch_invariant",
        flash_mla.flash_mla_sparse_fwd: "q kv indices sm_scale d_v attn_sink topk_length indexer_topk out",
        deep_gemm.fp8_gemm_nt: "a b d c recipe recipe_a recipe_b compiled_dims disable_ue8m0_cast",
        deep_gemm.fp8_paged_mqa_logits: "q kv_cache weights context_lens block_table schedule_meta "
        "max_context_len clean_logits indices",
        deep_gemm.fp8_mqa_logits: "q kv weights cu_seq_len_k_start cu_seq_len_k_end clean_logits max_seqlen_k",
        deep_gemm.fp8_fp4_mqa_logits: "q kv weights cu_seq_len_k_start cu_seq_len_k_end clean_logits max_seqlen_k "
        "logits_dtype",
        deep_gemm.fp8_fp4_paged_mqa_logits: "q kv_cache weights context_lens block_table schedule_meta "
        "max_context_len clean_logits logits_dtype indices",
        deep_gemm.get_paged_mqa_logits_metadata: "context_lens block_kv num_sms indices",
    }
    for function, expected in names.items():
        assert " ".join(inspect.signature(function).parameters) == expected


def spread(x):
    """The same tensor with room between its rows, as views of larger ones have."""
    wide = torch.empty([size + 1 for size in x.shape[:-1]] + [x.shape[-1] + 128], dtype=x.dtype, device=x.device)
    view = wide[tuple(slice(0, size) for size in x.shape)]
    return view.copy_(x)


def decode_case(with_extra, heads=8):
    q = bf16(2, 3, heads, 512) / 4
    cache, rows = fp8_pages(6, 9, 1)
    indices = lists(2, 3, 12, rows=54)
    given = {"indices": indices, "attn_sink": torch.randn(heads, device=place())}
    given["attn_sink"][:2] = torch.tensor([torch.inf, -torch.inf])
    shown = torch.where(indices < 54, indices, -1)
    if with_extra:
        extra, extra_rows = fp8_pages(9, 7, 3)
        more, lengths = lists(2, 3, 30, rows=63, seed=1), i32([30, 0])
        given |= {"extra_k_cache": extra, "extra_indices_in_kvcache": more, "extra_topk_length": lengths}
        seen = (torch.arange(30, device=place()) < lengths[:, None, None]) & (more >= 0) & (more < 63)
        shown, rows = torch.cat((shown, torch.where(seen, more + 54, -1)), -1), torch.cat((rows, extra_rows))
    return q, cache, given, reference.sparse(q, rows, shown, given["attn_sink"], 0.03)


def call(q, cache, schedule, given):
    return flash_mla.flash_mla_with_kvcache(q, cache, None, None, 512, schedule, None, 0.03, False, True, **given)


@pytest.mark.parametrize("with_extra", [False, True])
@pytest.mark.parametrize("form", ["plain", "views"])
def test_decode(with_extra, form):
    q, cache, given, expected = decode_case(with_extra)
    if form == "views":
        q, given["indices"], cache = spread(q), spread(given["indices"]), cache.view(E4M3)
        if with_extra:
            given["extra_k_cache"] = given["extra_k_cache"].view(E4M3)
    schedule, nothing = flash_mla.get_mla_metadata()
    assert nothing is None
    for _ in range(2):
        out, lse = call(q, cache, schedule, given)
        close(out, expected[0], 8e-3)
        close(lse, expected[1].transpose(1, 2), 1e-5)
    assert schedule.have_initialized
    into = torch.empty_like(out)
    again, _ = flash_mla.flash_mla_with_kvcache(q, cache, None, None, 512, schedule, softmax_scale=0.03,
                                                is_fp8_kvcache=True, out=into, enable_batch_invariant=True,
                                                **given)
    assert again is into
    close(into, expected[0], 8e-3)


def test_query_without_rows_is_as_the_peer_has_it():
    q, cache, given, _ = decode_case(False)
    given["indices"][1, 2] = -1
    schedule, _ = flash_mla.get_mla_metadata()
    out, lse = flash_mla.flash_mla_with_kvcache(q, cache, None, None, 512, schedule, is_fp8_kvcache=True, **given)
    assert not out[1, 2].any() and (lse[1, :, 2] == torch.inf).all() and lse.shape == (2, 8, 3)


def test_schedule_serves_the_shapes_that_it_was_made_for():
    class Foreign:
        have_initialized = False

    q, cache, given, expected = decode_case(True)
    schedule = Foreign()
    for _ in range(2):
        out, _ = call(q, cache, schedule, given)
    assert schedule.have_initialized
    close(out, expected[0], 8e-3)
    with pytest.raises(ValueError, match=r"q has shape \(2, 3, 4, 512\).*made for \(2, 3, 8, 512\)"):
        given["attn_sink"] = given["attn_sink"][:4]
        call(q[:, :, :4], cache, schedule, given)
    with pytest.raises(TypeError, match="tile_scheduler_metadata is NoneType"):
        flash_mla.flash_mla_with_kvcache(q, cache, None, None, 512, None, is_fp8_kvcache=True, **given)


@pytest.mark.parametrize("has_lengths", [False, True])
def test_prefill(has_lengths):
    q, kv, indices = bf16(5, 8, 512) / 4, spread(bf16(33, 1, 512, seed=1) / 4), lists(5, 1, 24, rows=33)
    sink, lengths = torch.randn(8, device=place()), i32([0, 24, 7, 12, 3])
    limit = lengths[:, None] if has_lengths else torch.full((5, 1), 24, device=place())
    shown = torch.where(torch.arange(24, device=place()) < limit, indices[:, 0], -1)
    found = flash_mla.flash_mla_sparse_fwd(spread(q), kv, spread(indices), 0.05, attn_sink=sink,
                                           topk_length=lengths if has_lengths else None)
    out, lse, largest = reference.sparse(q[None], kv[:, 0], shown[None], sink, 0.05)
    lse = torch.where(lse == -torch.inf, torch.inf, lse)
    for one, other, limit in zip(found, (out[0], largest[0], lse[0]), (8e-3, 1e-5, 1e-5), strict=True):
        close(one, other, limit)


@pytest.mark.parametrize("change, field", [
    ({"q": torch.zeros(2, 3, 8, 320, dtype=torch.bfloat16)}, "q.shape[-1]"),
    ({"q": torch.zeros(2, 3, 8, 576, dtype=torch.bfloat16)}, "k_cache"),
    ({"q": torch.zeros(2, 3, 8, 576, dtype=torch.bfloat16), "indices": None}, "is_fp8_kvcache"),
    ({"head_dim_v": 256}, "head_dim_v"),
    ({"indices": None}, "indices"),
    ({"causal": True}, "causal"),
    ({"is_fp8_kvcache": False}, "is_fp8_kvcache"),
    ({"k_cache": torch.zeros(2, 64, 1, 656, dtype=torch.uint8)}, "k_cache"),
    ({"q": torch.zeros(2, 3, 129, 512, dtype=torch.bfloat16)}, "q.shape[-2]"),
    ({"q": torch.zeros(2, 3, 8, 512, dtype=torch.float16)}, "q"),
])
def test_decode_refusals(change, field):
    q, cache, given, _ = decode_case(False)
    schedule, _ = flash_mla.get_mla_metadata()
    given = {"q": q, "k_cache": cache, "head_dim_v": 512, "is_fp8_kvcache": True, **given, **change}
    with pytest.raises(tilewright.Unsupported, match="flash_mla_with_kvcache cannot") as error:
        flash_mla.flash_mla_with_kvcache(block_table=None, cache_seqlens=None, tile_scheduler_metadata=schedule,
                                         **given)
    assert [reason.field for reason in error.value.reasons] == [field]


def test_prefill_refusals():
    with pytest.raises(tilewright.Unsupported, match="heads of 512"):
        flash_mla.flash_mla_sparse_fwd(bf16(2, 8, 320), bf16(9, 1, 320), lists(2, 1, 4, rows=9), 1.0)
    with pytest.raises(tilewright.Unsupported, match="kv.shape.-1. = 512: rows of 576, as q"):
        flash_mla.flash_mla_sparse_fwd(bf16(2, 8, 576), bf16(9, 1, 512), lists(2, 1, 4, rows=9), 1.0)
    with pytest.raises(tilewright.Unsupported, match="one head of keys"):
        flash_mla.flash_mla_sparse_fwd(bf16(2, 8, 512), bf16(9, 2, 512), lists(2, 1, 4, rows=9), 1.0)
    with pytest.raises(tilewright.Unsupported, match="indexer_topk = 512: there is no second lse"):
        flash_mla.flash_mla_sparse_fwd(bf16(2, 8, 512), bf16(9, 1, 512), lists(2, 1, 4, rows=9), 1.0,
                                       indexer_topk=512)


def records(pages, slots, seed):
    """A cache of V3.2's records of 656 bytes, and its rows in float64."""
    codes = (bf16(pages, slots, 512, seed=seed).float() / 4).to(torch.float8_e4m3fn)
    scales = torch.rand(pages, slots, 4, generator=torch.Generator().manual_seed(seed)).to(place()) + 0.1
    rope = bf16(pages, slots, 64, seed=seed + 1)
    parts = [x.contiguous().view(torch.uint8) for x in (codes, scales, rope)]
    numbers = (codes.double() * scales.double().repeat_interleave(128, -1)).to(torch.bfloat16)
    return torch.cat(parts, -1).view(pages, slots, 1, 656), torch.cat((numbers, rope), -1).double().view(-1, 576)


# 8e-3: outputs below 2 are rounded to 8 bits, and so are weights.
@pytest.mark.parametrize("heads", [8, 64, 128])
def test_decode_over_rows_of_576(heads):
    batch, tokens = (2, 3) if heads == 8 else (1, 2)
    q = bf16(batch, tokens, heads, 576) / 4
    cache, rows = records(6, 9, 1)
    extra, extra_rows = records(3, 5, 3)
    indices, more = lists(batch, tokens, 12, rows=54), lists(batch, tokens, 70, rows=15, seed=1)
    indices[0, 0], lengths = -1, i32([70, 0][:batch])
    more[0, 0] = 99
    seen = (torch.arange(70, device=place()) < lengths[:, None, None]) & (more >= 0) & (more < 15)
    shown = torch.cat((torch.where(indices < 54, indices, -1), torch.where(seen, more + 54, -1)), -1)
    sink = torch.randn(heads, device=place())
    out, lse, _ = reference.sparse(q, torch.cat((rows, extra_rows)), shown, sink, 0.03)
    lse = torch.where(lse == -torch.inf, torch.inf, lse)
    schedule, _ = flash_mla.get_mla_metadata()
    for _ in range(2):
        found = flash_mla.flash_mla_with_kvcache(
            q, cache, None, None, 512, schedule, softmax_scale=0.03, is_fp8_kvcache=True, indices=indices,
            attn_sink=sink, extra_k_cache=extra, extra_indices_in_kvcache=more, extra_topk_length=lengths)
        close(found[0], out, 8e-3)
        close(found[1], lse.transpose(1, 2), 1e-5)


@pytest.mark.parametrize("slots", [1, 7])
def test_caches_of_one_page(slots):
    """Records of 656 bytes, and one row of bf16: there is no stride from page to page."""
    cache, rows = records(1, slots, 5)
    q, indices = bf16(1, 2, 8, 576) / 4, lists(1, 2, 6, rows=slots)
    found = flash_mla.flash_mla_with_kvcache(q, cache, None, None, 512, flash_mla.get_mla_metadata()[0],
                                             is_fp8_kvcache=True, indices=indices)
    # as above
    close(found[0], reference.sparse(q, rows, indices, None, 576**-0.5)[0], 8e-3)
    kv, first = bf16(1, 1, 576, seed=3), torch.zeros(2, 1, 4, dtype=torch.int32, device=place())
    found = flash_mla.flash_mla_sparse_fwd(q[0], kv, first, 0.05)[0]
    close(found, kv[0, :, :512].double().expand(2, 8, 512), 2**-8 * float(kv.abs().max()))


def test_prefill_over_rows_of_576():
    q, kv, indices = bf16(5, 64, 576) / 4, bf16(33, 1, 576, seed=1) / 4, lists(5, 1, 24, rows=33)
    lengths = i32([0, 24, 7, 12, 3])
    shown = torch.where(torch.arange(24, device=place()) < lengths[:, None], indices[:, 0], -1)
    found = flash_mla.flash_mla_sparse_fwd(q, kv, indices, 0.05, topk_length=lengths)
    out, lse, largest = reference.sparse(q[None], kv[:, 0], shown[None], None, 0.05)
    lse = torch.where(lse == -torch.inf, torch.inf, lse)
    for one, other, limit in zip(found, (out[0], largest[0], lse[0]), (8e-3, 1e-5, 1e-5), strict=True):
        close(one, other, limit)


def paged_case(heads, tokens, lengths, causal, page=64):
    """A cache whose unused slots are NaN, its table, and what attention over all keys of it gives."""
    batch, blocks = len(lengths), 192 // page
    q = bf16(batch, tokens, heads, 576) / 4
    cache = torch.full((batch * blocks + 1, page, 1, 576), math.nan, dtype=torch.bfloat16, device=place())
    order = torch.randperm(batch * blocks + 1, generator=torch.Generator().manual_seed(1))[: batch * blocks]
    table = order.int().view(batch, blocks).to(place())
    shown = torch.full((batch, tokens, blocks * page), -1, device=place())
    for b, length in enumerate(lengths):
        slots = (table[b, :, None] * page + torch.arange(page, device=place())).flatten()
        cache.view(-1, 576)[slots[:length].long()] = bf16(length, 576, seed=b) / 4
        for i in range(tokens):
            count = max(0, length - tokens + 1 + i) if causal else length
            shown[b, i, :count] = slots[:count]
    return q, cache, table, reference.sparse(q, cache.view(-1, 576).nan_to_num(0), shown, None, 0.05)


@pytest.mark.parametrize("heads, tokens, lengths, causal, page", [
    (16, 1, [130, 0, 64], True, 64), (16, 3, [2, 65], True, 16), (128, 2, [130], False, 64),
    (4, 2, [30, 3], True, 24)])
def test_all_keys_of_pages(heads, tokens, lengths, causal, page):
    q, cache, table, (out, lse, _) = paged_case(heads, tokens, lengths, causal, page)
    found = tt.mla_decode(q, cache, table, i32(lengths), causal=causal, scale=0.05, return_lse=True)
    close(found[0], out, 8e-3)
    close(found[1], lse, 1e-5)
    schedule, _ = flash_mla.get_mla_metadata()
    again = flash_mla.flash_mla_with_kvcache(q, cache, table, i32(lengths), 512, schedule, None, 0.05, causal)
    assert torch.equal(again[0], found[0]) and schedule.have_initialized
    close(again[1], torch.where(lse == -torch.inf, torch.inf, lse).transpose(1, 2), 1e-5)


def test_all_keys_of_several_heads_and_a_schedule_that_serves_again():
    """Each head of keys with the heads of q that share it is what a call for it alone gives, split otherwise."""
    kv_heads, lengths = 3, [130, 2]
    q, cache, table, _ = paged_case(6, 3, lengths, True)
    q[:, :, 2:] += bf16(2, 3, 4, 576, seed=9) / 4
    caches = torch.cat([cache, -cache, cache / 2], 2)
    arguments = (table, i32(lengths), 512)
    schedule, _ = flash_mla.get_mla_metadata()
    found = flash_mla.flash_mla_with_kvcache(q, caches, *arguments, schedule, None, 0.05, True)
    for g in range(kv_heads):
        heads, own = slice(2 * g, 2 * g + 2), caches[:, :, g : g + 1]
        alone = tt.mla_decode(q[:, :, heads], own, table, i32(lengths), scale=0.05, return_lse=True)
        close(found[0][:, :, heads], alone[0], 8e-3)
        lse = torch.where(alone[1] == -torch.inf, torch.inf, alone[1])
        close(found[1][:, heads], lse.transpose(1, 2), 1e-5)
    again = flash_mla.flash_mla_with_kvcache(q, caches, *arguments, schedule, None, 0.05, True)
    assert torch.equal(again[0], found[0]) and torch.equal(again[1], found[1])
    fewer = flash_mla.flash_mla_with_kvcache(q[:1], caches, table[:1], i32([130]), 512, schedule, None, 0.05, True)
    close(fewer[0], found[0][:1], 8e-3)


def test_lists_of_all_keys():
    table = torch.tensor([[3, 1], [0, 2]], dtype=torch.int32, device=place())
    lists_of = torch.ops.tilewright.mla_lists
    for causal, counts in ((True, [[0, 1], [4, 5]]), (False, [[1, 1], [5, 5]])):
        indices, visible = lists_of(table, i32([1, 5]), 2, 3, 4, causal)
        assert visible.tolist() == counts and indices.shape == (2, 2, 6)
        for b, slots in enumerate([[9, 10, 11, 3, 4, 5], [0, 1, 2, 6, 7, 8]]):
            for i, count in enumerate(counts[b]):
                assert indices[b, i].tolist() == slots[:count] + [-1] * (6 - count)
    if place() == "cpu":
        torch.library.opcheck(lists_of.default, (table, i32([1, 5]), 2, 3, 4, True))
    with pytest.raises(tilewright.InvalidArgument, match=r"page_table int64.*expected int32 .2, blocks."):
        lists_of(table.long(), i32([1, 5]), 2, 3, 4, True)
    with pytest.raises(tilewright.InvalidArgument, match="page_size=0"):
        lists_of(table, i32([1, 5]), 2, 0, 4, True)


def test_refusals_of_all_keys():
    q, cache, table, _ = paged_case(8, 1, [5], True)
    schedule, _ = flash_mla.get_mla_metadata()

    def refused(match, q=q, cache=cache, table=table, lengths=i32([5]), is_fp8=False, **given):
        with pytest.raises(tilewright.Unsupported, match=match):
            flash_mla.flash_mla_with_kvcache(q, cache, table, lengths, 512, schedule, None, 0.05, True, is_fp8,
                                             **given)

    refused("block_table = None: without indices", table=None)
    refused("cache_seqlens = None: without indices", lengths=None)
    refused("FP8 rows are read through lists", is_fp8=True)
    refused(r"\[pages, page_size, kv_heads, 576\] of the dtype of q", cache=cache.half())
    several = torch.cat([cache, cache], 2)
    refused("k_cache.shape.2. = 2: a number of heads that 7, those of q,", q=q[:, :, :7], cache=several)
    refused("several heads of keys come in pages of 8", cache=several[:, :24])
    refused("indices = None: there are no lists", topk_length=i32([5]))
    refused("DeepSeek-V3's, with heads of 576", q=bf16(1, 1, 8, 512))
    with pytest.raises(tilewright.InvalidArgument, match="page_table"):
        tt.mla_decode(q, cache, table.long(), i32([5]))
    with pytest.raises(tilewright.InvalidArgument, match="expected bfloat16 rows of 576, or .* 656"):
        tt.sparse_attention(q, bf16(9, 512), lists(1, 1, 4, rows=9))
    with pytest.raises(tilewright.InvalidArgument, match="head_dim = 100"):
        tilewright.SparseAttention(tilewright.Device("plan:h200"), heads=8, head_dim=100,
                                   window={"cache": {"num_pages": 1}, "topk": 4})


@pytest.mark.parametrize("m, n, k", [(5, 160, 192), (3, 256, 384), (33, 128, 128)])
def test_gemm_with_kept_weights(m, n, k):
    x, w = bf16(m, k).to(E4M3), bf16(n, k, seed=1).to(E4M3)
    scales = [torch.rand(size, device=place()) for size in ((m, -(-k // 128)), (-(-n // 128), -(-k // 128)))]
    out = torch.empty(m, n, dtype=torch.bfloat16, device=place())
    with pytest.raises(tilewright.Unsupported, match=r"keep_weights\(limit\)"):
        deep_gemm.fp8_gemm_nt((x, scales[0]), (w, scales[1]), out)
    deep_gemm.keep_weights(2)
    try:
        for _ in range(2):
            deep_gemm.fp8_gemm_nt((x, scales[0]), (w, scales[1]), out)
        assert len(deep_gemm._kept) == 1
        with pytest.raises(tilewright.Unsupported, match="nothing is added"):
            deep_gemm.fp8_gemm_nt((x, scales[0]), (w, scales[1]), out, c=out)
    finally:
        deep_gemm.keep_weights(0)
    assert not deep_gemm._kept
    a = x.double() * scales[0].repeat_interleave(128, 1)[:, :k]
    b = w.double() * scales[1].repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]
    expected = a @ b.T
    assert (out - expected).norm() < 4e-3 * expected.norm()


@pytest.mark.parametrize("function", ["m_grouped_fp8_gemm_nt_contiguous", "m_grouped_fp8_gemm_nt_masked"])
def test_deep_gemm_refusals(function):
    call = getattr(deep_gemm, function)
    x = torch.zeros(4, 32, 128, dtype=E4M3, device=place())
    needed = [name for name, p in inspect.signature(call).parameters.items() if p.default is p.empty]
    with pytest.raises(tilewright.Unsupported, match=f"{function} cannot do this call") as error:
        call(**{name: (x, x) for name in needed})
    assert error.value.reasons[0].value == "float8_e4m3fn[4, 32, 128]"


class Rows:
    """Rows of 128 numbers in codes, with scales that no bf16 numbers gave, and their values."""

    def __init__(self, is_fp4, *shape):
        if is_fp4:
            self.codes = torch.randint(-128, 128, (*shape, 64), dtype=torch.int8)
            powers = torch.randint(120, 131, (*shape, 4), dtype=torch.uint8)
            self.scales = powers.view(torch.int32).squeeze(-1)
            halves = torch.stack((self.codes & 15, self.codes >> 4 & 15), -1).flatten(-2).long()
            values = E2M1[halves & 7] * torch.where(halves > 7, -1.0, 1.0)
            self.values = values * torch.exp2(powers.double() - 127).repeat_interleave(32, -1)
        else:
            self.codes = torch.randn(*shape, 128).to(E4M3)
            self.scales = torch.rand(shape) + 0.01
            self.values = self.codes.double() * self.scales.double()[..., None]
        self.codes, self.scales = self.codes.to(place()), self.scales.to(place())


def codes_of_queries(is_fp4, *shape):
    """What a function takes as q, and its values: the scales of e4m3 are in the weights."""
    rows = Rows(is_fp4, *shape)
    return ((rows.codes, rows.scales), rows.values) if is_fp4 else ((rows.codes, None), rows.codes.double().cpu())


def logits_in_float64(q, k, weights):
    """logits [m, n], and the magnitudes of what they are sums of."""
    w = weights.double().cpu()
    logits = torch.einsum("mhn,mh->mn", torch.einsum("mhd,nd->mhn", q, k).relu(), w)
    return logits, torch.einsum("mhn,mh->mn", torch.einsum("mhd,nd->mhn", q.abs(), k.abs()), w.abs())


def expect_near(found, expected, seen):
    """The tensor core keeps 13 bits behind the largest of 32 products, and adds four such sums up."""
    logits, magnitudes = expected
    assert ((found.double().cpu() - logits).abs() <= 1e-3 * magnitudes)[seen].all()


def ranges_case(is_fp4, heads):
    starts, ends = i32([0, 17, 270, 30, 80, 0, 299]), i32([5, 49, 301, 30, 20, 12, 301])
    q, values = codes_of_queries(is_fp4, 7, heads)
    kv = Rows(is_fp4, 301)
    weights = torch.randn(7, heads, device=place())
    keys = torch.arange(301)
    seen = (keys >= starts.cpu()[:, None]) & (keys < ends.cpu()[:, None])
    return (q, (kv.codes, kv.scales), weights, starts, ends), logits_in_float64(values, kv.values, weights), seen


@pytest.mark.parametrize("is_fp4", [False, True])
@pytest.mark.parametrize("heads", [32, 64])
def test_logits_of_ranges(is_fp4, heads):
    given, expected, seen = ranges_case(is_fp4, heads)
    logits = deep_gemm.fp8_fp4_mqa_logits(*given)
    assert logits.shape == (7, 301) and logits.stride(0) % 256 == 0
    assert torch.equal(logits.cpu() == -torch.inf, ~seen)
    expect_near(logits, expected, seen)
    assert torch.equal(deep_gemm.fp8_fp4_mqa_logits(*given), logits)
    compressed = deep_gemm.fp8_fp4_mqa_logits(*given, clean_logits=False, max_seqlen_k=32)
    assert compressed.shape == (7, 32)
    for token, (start, end) in enumerate(zip(given[3].tolist(), given[4].tolist(), strict=True)):
        count = max(0, min(end - start, 32))
        assert torch.equal(compressed[token, :count], logits[token, start : start + count])


def test_ranges_of_e4m3_by_the_older_name():
    (q, kv, weights, starts, ends), expected, seen = ranges_case(False, 64)
    wide = torch.empty(7, 80, device=place())
    wide[:, :64] = weights
    before = compat.stats().get("contiguous", 0)
    logits = deep_gemm.fp8_mqa_logits(q[0], kv, wide[:, :64], starts, ends)
    assert compat.stats()["contiguous"] == before + 1
    expect_near(logits, expected, seen)


def test_logits_of_nothing():
    (q, kv, weights, starts, ends), *_ = ranges_case(False, 32)
    nothing = (kv[0][:0], kv[1][:0])
    assert deep_gemm.fp8_mqa_logits(q[0], nothing, weights, starts, ends).shape == (7, 0)
    assert deep_gemm.fp8_mqa_logits(q[0][:0], kv, weights[:0], starts[:0], ends[:0]).shape == (0, 301)
    empty = deep_gemm.fp8_mqa_logits(q[0], nothing, weights, starts, ends, max_seqlen_k=9)
    assert empty.shape == (7, 9) and (empty == -torch.inf).all()


@pytest.mark.parametrize("is_fp4, page_size, next_n, clean", [(False, 64, 1, False), (False, 16, 2, True),
                                                              (True, 32, 2, False)])
def test_logits_of_pages(is_fp4, page_size, next_n, clean):
    batch, blocks, heads = 2, 3, 64 if page_size == 64 else 32
    rows = Rows(is_fp4, 7 * page_size)
    size = rows.codes.shape[-1]
    cache = torch.full((7, page_size * (size + 4) + 16), 255, dtype=torch.uint8, device=place())
    cache[:, : page_size * size] = rows.codes.view(torch.uint8).view(7, -1)
    cache[:, page_size * size : page_size * (size + 4)] = rows.scales.view(7, page_size).view(torch.uint8)
    pages = cache[:, :-16].unflatten(1, (page_size, 1, size + 4))
    table = i32([[6, 0, 2, -1], [4, 3, 5, -1]])[:, :blocks]
    lengths = i32([[1, 40], [blocks * page_size, 9]])[:, -next_n:]
    q, values = codes_of_queries(is_fp4, batch, next_n, heads)
    weights = torch.randn(batch * next_n, heads, device=place())
    longest = blocks * page_size
    meta = deep_gemm.get_paged_mqa_logits_metadata(lengths, page_size, 132)
    given = (pages, weights, lengths, table, meta, longest, clean)
    if is_fp4:
        logits = deep_gemm.fp8_fp4_paged_mqa_logits(q, *given)
    else:
        logits = deep_gemm.fp8_paged_mqa_logits(q[0], *given)
    assert logits.shape == (batch * next_n, longest)
    seen = torch.arange(longest) < lengths.cpu().flatten()[:, None]
    if clean:
        assert torch.equal(logits.cpu() == -torch.inf, ~seen)
    for b in range(batch):
        mine = slice(b * next_n, (b + 1) * next_n)
        of = (table[b].long().cpu()[:, None] * page_size + torch.arange(page_size)).flatten()
        expect_near(logits[mine], logits_in_float64(values[b], rows.values[of], weights[mine]), seen[mine])


PLAIN = {"q": torch.zeros(2, 64, 128).to(E4M3), "kv": (torch.zeros(9, 128).to(E4M3), torch.zeros(9)),
         "weights": torch.zeros(2, 64), "cu_seq_len_k_start": torch.zeros(2, dtype=torch.int32),
         "cu_seq_len_k_end": torch.zeros(2, dtype=torch.int32)}
PAGED = {"q": torch.zeros(2, 1, 64, 128).to(E4M3), "kv_cache": torch.zeros(3, 64, 1, 132, dtype=torch.uint8),
         "weights": torch.zeros(2, 64), "context_lens": torch.zeros(2, 1, dtype=torch.int32),
         "block_table": torch.zeros(2, 3, dtype=torch.int32), "schedule_meta": None, "max_context_len": 100}


@pytest.mark.parametrize("given, change, field", [
    (PLAIN, {"q": torch.zeros(2, 64, 64).to(E4M3)}, "q[0]"),
    (PLAIN, {"q": torch.zeros(2, 128, 128).to(E4M3)}, "q[0]"),
    (PLAIN, {"q": torch.zeros(2, 64, 128, dtype=torch.bfloat16)}, "q[0]"),
    (PLAIN, {"kv": (torch.zeros(9, 64).to(E4M3), torch.zeros(9))}, "kv[0]"),
    (PLAIN, {"kv": (torch.zeros(9, 128).to(E4M3), torch.zeros(8))}, "kv[1]"),
    (PLAIN, {"weights": torch.zeros(2, 32)}, "weights"),
    (PLAIN, {"weights": torch.zeros(2, 64, dtype=torch.float16)}, "weights"),
    (PLAIN, {"cu_seq_len_k_start": torch.zeros(2, dtype=torch.int64)}, "cu_seq_len_k_start"),
    (PLAIN, {"cu_seq_len_k_end": torch.zeros(3, dtype=torch.int32)}, "cu_seq_len_k_end"),
    (PAGED, {"kv_cache": torch.zeros(3, 64, 1, 128, dtype=torch.uint8)}, "kv_cache"),
    (PAGED, {"kv_cache": torch.zeros(3, 64, 1, 140, dtype=torch.uint8)[..., :132]}, "kv_cache"),
    (PAGED, {"context_lens": torch.zeros(2, dtype=torch.int32)}, "context_lens"),
    (PAGED, {"indices": torch.zeros(2, dtype=torch.int32)}, "indices"),
])
def test_logits_refusals(given, change, field):
    function = deep_gemm.fp8_mqa_logits if given is PLAIN else deep_gemm.fp8_paged_mqa_logits
    arguments = {**given, **change}
    assert deep_gemm.can_implement(function.__name__, **given) == []
    with pytest.raises(tilewright.Unsupported, match="mqa_logits cannot do this call") as error:
        function(**arguments)
    assert [reason.field for reason in error.value.reasons] == [field]
    assert deep_gemm.can_implement(function.__name__, **arguments) == error.value.reasons


@pytest.mark.parametrize("is_fp4", [False, True])
@pytest.mark.parametrize("rows", [1, 3, 7])
def test_logits_and_weights_in_bf16(is_fp4, rows, monkeypatch):
    """Logits are those of float32, rounded: of as many rows at a time as are held. Weights are exact."""
    (q, kv, weights, starts, ends), *_, seen = ranges_case(is_fp4, 32)
    rounded = weights.bfloat16()
    whole = deep_gemm.fp8_fp4_mqa_logits(q, kv, rounded.float(), starts, ends)
    monkeypatch.setattr(_mqa_logits, "_HELD_BYTES", rows * 4 * 512)
    logits = deep_gemm.fp8_fp4_mqa_logits(q, kv, rounded, starts, ends, logits_dtype=torch.bfloat16)
    assert logits.dtype == torch.bfloat16 and logits.stride(0) % 512 == 0
    assert torch.equal(logits, whole.bfloat16()) and torch.equal(logits.cpu() == -torch.inf, ~seen)
    compressed = deep_gemm.fp8_fp4_mqa_logits(q, kv, rounded, starts, ends, False, 32, torch.bfloat16)
    for token, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        count = max(0, min(end - start, 32))
        assert torch.equal(compressed[token, :count], whole[token, start : start + count].bfloat16())
    none = deep_gemm.fp8_fp4_mqa_logits(q, (kv[0][:0], kv[1][:0]), rounded, starts, ends, True, 9, torch.bfloat16)
    assert none.dtype == torch.bfloat16 and (none == -torch.inf).all()


def test_logits_of_pages_in_bf16():
    rows = Rows(False, 3 * 64)
    cache = torch.zeros(3, 64 * 132, dtype=torch.uint8, device=place())
    cache[:, : 64 * 128] = rows.codes.view(torch.uint8).view(3, -1)
    cache[:, 64 * 128 :] = rows.scales.view(3, 64).view(torch.uint8)
    q, _ = codes_of_queries(False, 1, 2, 32)
    weights = torch.randn(2, 32, device=place()).bfloat16()
    lengths, table = i32([[99, 100]]), i32([[2, 0, 1]])
    given = (cache.view(3, 64, 1, 132), weights, lengths, table, None, 150, True)
    exact = deep_gemm.fp8_fp4_paged_mqa_logits(q, given[0], weights.float(), *given[2:])
    logits = deep_gemm.fp8_fp4_paged_mqa_logits(q, *given, logits_dtype=torch.bfloat16)
    assert logits.dtype == torch.bfloat16 and torch.equal(logits, exact.bfloat16())
    assert torch.isfinite(logits[0, :99]).all() and (logits[0, 99:] == -torch.inf).all()


def test_logits_are_fp32_or_bf16():
    with pytest.raises(tilewright.Unsupported, match="logits_dtype = torch.float16: logits are float32 or"):
        deep_gemm.fp8_fp4_mqa_logits(**{**PLAIN, "q": (PLAIN["q"], None)}, logits_dtype=torch.float16)


def test_metadata_of_deep_gemm():
    assert deep_gemm.get_paged_mqa_logits_metadata(i32([[3]]), 64, 132).shape == (133, 2)
    deep_gemm.set_num_sms(100)
    assert deep_gemm.get_num_sms() == 100


def test_install():
    for name in ("flash_mla", "deep_gemm"):
        compat.install(name)
        assert sys.modules[name].__name__ == f"tilewright.compat.{name}"
        compat.uninstall(name)
        assert name not in sys.modules
