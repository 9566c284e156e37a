"""The interfaces of FlashMLA and DeepGEMM on our kernels: results, refusals, schedules that serve again."""

import inspect
import sys

import pytest

torch = pytest.importorskip("torch")

import tilewright  # noqa: E402
import torch_reference as reference  # noqa: E402
from tilewright import compat  # noqa: E402
from tilewright.compat import deep_gemm, flash_mla  # noqa: E402
from torch_layers_test import fp8_pages, lists  # noqa: E402
from torch_reference import bf16, close, i32, place  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")
E4M3 = torch.float8_e4m3fn


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
    ({"q": torch.zeros(2, 3, 8, 576, dtype=torch.bfloat16)}, "q.shape[-1]"),
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
        flash_mla.flash_mla_sparse_fwd(bf16(2, 8, 576), bf16(9, 1, 576), lists(2, 1, 4, rows=9), 1.0)
    with pytest.raises(tilewright.Unsupported, match="one head of keys"):
        flash_mla.flash_mla_sparse_fwd(bf16(2, 8, 512), bf16(9, 2, 512), lists(2, 1, 4, rows=9), 1.0)
    with pytest.raises(tilewright.Unsupported, match="indexer_topk = 512: there is no second lse"):
        flash_mla.flash_mla_sparse_fwd(bf16(2, 8, 512), bf16(9, 1, 512), lists(2, 1, 4, rows=9), 1.0,
                                       indexer_topk=512)


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


@pytest.mark.parametrize("function", ["fp8_mqa_logits", "fp8_paged_mqa_logits", "fp8_fp4_mqa_logits",
                                      "fp8_fp4_paged_mqa_logits", "m_grouped_fp8_gemm_nt_contiguous",
                                      "m_grouped_fp8_gemm_nt_masked"])
def test_deep_gemm_refusals(function):
    call = getattr(deep_gemm, function)
    x = torch.zeros(4, 32, 128, dtype=E4M3, device=place())
    needed = [name for name, p in inspect.signature(call).parameters.items() if p.default is p.empty]
    with pytest.raises(tilewright.Unsupported, match=f"{function} cannot do this call") as error:
        call(**{name: (x, x) for name in needed})
    assert error.value.reasons[0].value == "float8_e4m3fn[4, 32, 128]"


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
