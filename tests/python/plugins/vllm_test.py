"""The plug-in for vLLM on vLLM's own classes, where they can be imported, on the simulator."""

from __future__ import annotations

import ast
import inspect
import math
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("vllm", reason="vLLM's Python sources are not installed")
torch.set_num_threads(1)

from paged_batches import Case  # noqa: E402
from torch_reference import close, i32, place  # noqa: E402
from vllm.platforms.interface import DeviceCapability  # noqa: E402
from vllm.v1.attention.backend import (  # noqa: E402
    AttentionCGSupport,
    AttentionType,
    CommonAttentionMetadata,
)
from vllm.v1.attention.backends.registry import AttentionBackendEnum  # noqa: E402

import tilewright  # noqa: E402
from tilewright.integrations import _paged, vllm as plugin  # noqa: E402
from tilewright.integrations.vllm import predicates  # noqa: E402
from tilewright.integrations.vllm.backend import Backend, Builder, Impl  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")
E4M3 = torch.float8_e4m3fn
HOPPER = DeviceCapability(9, 0)
BATCHES = {
    "decode": [(1, 40), (1, 17)],
    "mixed": [(1, 40), (1, 17), (20, 20), (7, 50)],
    "prefill": [(33, 33), (18, 18)],
}


def config(drafted: int | None = None) -> Any:
    """What the builder asks of a VllmConfig."""
    speculation = None if drafted is None else SimpleNamespace(
        num_speculative_tokens=drafted, parallel_drafting=False)
    return SimpleNamespace(
        speculative_config=speculation,
        parallel_config=SimpleNamespace(decode_context_parallel_size=1),
        use_v2_model_runner=False,
    )


def common(case: Case, causal: bool = True, rows: int | None = None) -> CommonAttentionMetadata:
    starts, lengths = i32(case.starts()), i32(case.lengths())
    queries = [n for n, _ in case.sequences]
    return CommonAttentionMetadata(
        query_start_loc=starts,
        query_start_loc_cpu=starts.cpu(),
        seq_lens=lengths,
        num_reqs=len(case.lengths()),
        num_actual_tokens=case.rows if rows is None else rows,
        max_query_len=max(queries),
        max_seq_len=max(case.lengths()),
        block_table_tensor=case.pages,
        slot_mapping=case.slots,
        causal=causal,
        seq_lens_cpu_upper_bound=lengths.cpu(),
    )


def builder(drafted: int | None = None) -> Builder:
    spec = SimpleNamespace(block_size=16)
    return Builder(spec, ["layer"], config(drafted), torch.device(place()))


def run(case: Case, impl: Impl, causal: bool = True, drafted: int | None = None) -> Any:
    """As vLLM's custom op calls it: [tokens, heads * d], the cache written to first."""
    case.fill_past()
    layer = SimpleNamespace(
        _k_scale=torch.tensor(case.scale_k),
        _v_scale=torch.tensor(case.scale_v),
        _k_scale_float=case.scale_k,
        _v_scale_float=case.scale_v,
    )
    metadata = builder(drafted).build(0, common(case, causal))
    key, value = case.new()
    out = torch.full_like(case.q, math.nan)
    impl.do_kv_cache_update(layer, key, value, case.cache, case.slots)
    found = impl.forward(layer, case.q, key, value, case.cache, metadata, out)
    assert found is out
    return out


def layer_of(case: Case, **options: Any) -> Impl:
    given = {"num_kv_heads": case.kv_heads, "kv_cache_dtype": "fp8" if case.is_e4m3 else "auto"}
    return Impl(case.heads, case.d, 0.125, **{**given, **options})


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("cache", ["auto", "fp8"])
def test_forward(name: str, cache: str) -> None:
    kind = {"cache_dtype": E4M3, "scale_k": 0.5, "scale_v": 2.0} if cache == "fp8" else {}
    case = Case(BATCHES[name], **kind)
    out = run(case, layer_of(case))
    close(out, case.expected(scale=0.125, causal=True), 0.018 if cache == "auto" else 0.053)


def test_window_softcap_and_sinks() -> None:
    """A window of w tokens counts the query's own; sinks come in the model's dtype."""
    case = Case(BATCHES["mixed"])
    sinks = torch.tensor([0.5, -1.0, 2.0, 0.0], dtype=torch.bfloat16)
    out = run(case, layer_of(case, sliding_window=9, logits_soft_cap=3.0, sinks=sinks))
    options = {"window": (8, 0), "softcap": 3.0, "sink": sinks}
    close(out, case.expected(scale=0.125, causal=True, **options), 0.018)


def test_drafts_see_both_sides_of_a_window() -> None:
    case = Case(BATCHES["mixed"])
    out = run(case, layer_of(case, sliding_window=6), causal=False)
    close(out, case.expected(scale=0.125, window=(5, 5)), 0.018)


def test_encoders() -> None:
    case = Case(BATCHES["prefill"])
    out = run(case, layer_of(case, attn_type=AttentionType.ENCODER_ONLY), causal=False)
    for b, (n, _) in enumerate(case.sequences):  # no cache holds their keys
        page = torch.arange(n)
        case.caches()[0][case.pages[b, page // 16].long(), page % 16] = case.k[b]
        case.caches()[1][case.pages[b, page // 16].long(), page % 16] = case.v[b]
    close(out, case.expected(scale=0.125), 0.018)


def test_drafted_tokens_decode_together() -> None:
    case = Case([(3, 40), (3, 17)])
    batch = builder(2).build(0, common(case)).batch
    assert (batch.decodes, batch.decode_len) == (2, 3)
    assert builder().build(0, common(case)).batch.decodes == 0
    close(run(case, layer_of(case), drafted=2), case.expected(scale=0.125, causal=True), 0.018)


def test_graphs_of_uniform_batches() -> None:
    """A graph is captured over tensors of vLLM's; sequences that pad it have no keys."""
    assert Builder.get_cudagraph_support(config(15), None) is AttentionCGSupport.UNIFORM_BATCH
    single = AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE
    assert Builder.get_cudagraph_support(config(16), None) is single
    case = Case(BATCHES["decode"], pad_sequences=2)
    given = common(case, rows=4)
    batch = builder().build(0, given).batch
    assert (batch.decodes, batch.decode_len) == (4, 1)
    assert batch.lengths.data_ptr() == given.seq_lens.data_ptr()
    assert batch.pages.data_ptr() == given.block_table_tensor.data_ptr()


def test_other_pages_of_the_same_batch() -> None:
    case = Case(BATCHES["mixed"])
    made = builder()
    metadata = made.build(0, common(case))
    other = made.update_block_table(metadata, case.pages + 1, case.slots + 16)
    assert torch.equal(other.batch.pages, case.pages + 1)
    assert torch.equal(metadata.batch.pages, case.pages)
    assert other.batch.decodes == metadata.batch.decodes == 2


def test_memory_is_measured_without_metadata() -> None:
    case = Case(BATCHES["decode"])
    out = torch.full_like(case.q, math.nan)
    layer_of(case).forward(None, case.q, case.q, case.q, case.cache, None, out)
    assert not out.any()


def validate(**changes: Any) -> list[str]:
    given = {
        "head_size": 128,
        "dtype": torch.bfloat16,
        "kv_cache_dtype": "auto",
        "block_size": 16,
        "use_mla": False,
        "has_sink": False,
        "use_sparse": False,
        "use_mm_prefix": False,
        "use_per_head_quant_scales": False,
        "device_capability": HOPPER,
        "attn_type": AttentionType.DECODER,
    }
    return Backend.validate_configuration(**{**given, **changes})


@pytest.mark.parametrize("head_size", [32, 64, 80, 96, 128, 192, 256, 512])
@pytest.mark.parametrize("cache", ["auto", "fp8", "fp8_e4m3", "float16"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_validation_says_what_the_plans_say(head_size: int, cache: str, dtype: Any) -> None:
    kind = predicates.cache_dtype(dtype, cache)
    options = {"dtype": predicates.DTYPES[dtype], "heads": 8, "kv_heads": 2, "head_dim": head_size}
    # Sizes that decode attention does not have are gathered.
    sizes = _paged.decode_sizes("e4m3" if kind == "e4m3" else "bf16")
    size = head_size if head_size in sizes else 64
    decode = tilewright.can_implement(
        "AttentionDecode", "h200", kv_dtype=kind, batch=1, q_len=1, page_size=16, num_pages=4,
        max_pages=4, descale="tensor" if kind == "e4m3" else "none", **{**options, "head_dim": size})
    packed = tilewright.can_implement(
        "Attention", "h200", is_packed=True, batch=1, q_len=8, kv_len=8, total_q=8, total_kv=8,
        **options)
    assert (validate(head_size=head_size, kv_cache_dtype=cache, dtype=dtype) == []) == (
        bool(decode) and bool(packed))


@pytest.mark.parametrize(
    "changes,reason",
    [
        ({"head_size": 264}, "packed attention: exists for head_dim"),
        ({"dtype": torch.float32}, "dtype not supported"),
        ({"kv_cache_dtype": "fp8_e5m2"}, "kv_cache_dtype not supported"),
        ({"use_mla": True}, "MLA not supported"),
        ({"use_sparse": True}, "sparse not supported"),
        ({"device_capability": DeviceCapability(8, 0)}, "compute capabilities 9.0, 10.0 and 10.3"),
        ({"attn_type": AttentionType.ENCODER_DECODER}, "attention type"),
        ({"use_rswa": True}, "R-SWA not supported"),
        ({"use_mm_prefix": True}, "multimodal"),
        ({"use_dcp": True}, "DCP not supported"),
        ({"use_batch_invariant": True}, "batch invariance not supported"),
        ({"use_adaptive_verification": True}, "device-cpu query lens mismatch"),
        ({"use_per_head_quant_scales": True}, "per-head quant scales"),
    ],
    ids=str,
)
def test_what_is_refused(changes: dict[str, Any], reason: str) -> None:
    assert any(reason in text for text in validate(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"has_sink": True, "has_sliding_window": True, "use_non_causal": True},
        {"block_size": 1},
        {"block_size": 1056},
        {"attn_type": AttentionType.ENCODER_ONLY},
        {"device_capability": DeviceCapability(10, 0)},
    ],
    ids=str,
)
def test_what_is_served(changes: dict[str, Any]) -> None:
    assert validate(**changes) == []


def test_registration(monkeypatch: Any) -> None:
    monkeypatch.setenv("TILEWRIGHT_VLLM", "1")
    plugin.register()
    plugin.register()
    assert AttentionBackendEnum.CUSTOM.get_class() is Backend
    assert AttentionBackendEnum[Backend.get_name()] is AttentionBackendEnum.CUSTOM
    AttentionBackendEnum.CUSTOM.clear_override()


def test_alibi_is_refused() -> None:
    with pytest.raises(tilewright.Unsupported, match="ALiBi"):
        Impl(4, 64, 0.125, 2, alibi_slopes=[0.5] * 4)


def test_deepseek_v4_calls_our_functions() -> None:
    """The names that its attention calls, in the modules that call them."""
    module = pytest.importorskip("vllm.models.deepseek_v4.nvidia.flashmla")
    from tilewright.compat import flash_mla
    from tilewright.integrations.vllm import deepseek_v4

    before = module.flash_mla_with_kvcache
    try:
        deepseek_v4.install()
        deepseek_v4.install()
        assert module.flash_mla_with_kvcache is flash_mla.flash_mla_with_kvcache
        assert module.flash_mla_sparse_fwd is flash_mla.flash_mla_sparse_fwd
    finally:
        deepseek_v4.uninstall()
    assert module.flash_mla_with_kvcache is before and not deepseek_v4.is_installed()
    calls = [node for node in ast.walk(ast.parse(inspect.getsource(module)))
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    for name in deepseek_v4.NAMES:
        taken = inspect.signature(getattr(flash_mla, name)).parameters
        made = [call for call in calls if call.func.id == name]
        assert made, name
        for call in made:
            assert not call.args and {word.arg for word in call.keywords} <= set(taken), name
