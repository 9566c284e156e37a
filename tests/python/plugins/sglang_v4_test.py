"""DeepSeek-V4's functions in SGLang, in modules that stand in for its own, against float64."""

from __future__ import annotations

import math
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from compat_deepseek_test import decode_case  # noqa: E402
from torch_reference import bf16, close, i32, place, seeded, sparse  # noqa: E402

import tilewright  # noqa: E402
from tilewright.compat import flash_mla  # noqa: E402
from tilewright.integrations import sglang  # noqa: E402
from tilewright.integrations.sglang import deepseek_v4  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")
E4M3 = torch.float8_e4m3fn


@pytest.fixture
def modules(monkeypatch: Any) -> Any:
    """SGLang's module and the package deep_gemm, whose functions answer with a word."""
    made = {}
    path = ""
    for part in deepseek_v4.ATTENTION.split("."):
        path = f"{path}.{part}" if path else part
        made[path] = ModuleType(path)
        made[path].__path__ = []  # type: ignore[attr-defined]
    made[deepseek_v4.INDEXER] = ModuleType(deepseek_v4.INDEXER)
    names = {deepseek_v4.ATTENTION: ("flash_mla_with_kvcache", "flash_mla_sparse_fwd"),
             deepseek_v4.INDEXER: ("fp8_fp4_mqa_logits", "fp8_fp4_paged_mqa_logits")}
    for path, functions in names.items():
        for name in functions:
            setattr(made[path], name, lambda *given, **named: "theirs")
    for path, module in made.items():
        monkeypatch.setitem(sys.modules, path, module)
    deepseek_v4.install()
    deepseek_v4.install()
    yield SimpleNamespace(attention=made[deepseek_v4.ATTENTION], indexer=made[deepseek_v4.INDEXER])
    deepseek_v4.uninstall()
    for path, functions in names.items():
        assert all(getattr(made[path], name)() == "theirs" for name in functions)
    assert not deepseek_v4.is_installed()


@pytest.mark.parametrize("with_extra", [False, True])
def test_decoding(modules: Any, with_extra: bool) -> None:
    """As V4's backend calls it, with a schedule of the peer's class."""
    q, cache, given, expected = decode_case(with_extra)
    schedule = flash_mla.FlashMLASchedMeta()
    out = modules.attention.flash_mla_with_kvcache(
        q=q, k_cache=cache, head_dim_v=512, block_table=None, cache_seqlens=None, tile_scheduler_metadata=schedule,
        softmax_scale=0.03, is_fp8_kvcache=True, use_legacy=True, **given)[0]
    assert schedule.have_initialized
    close(out, expected[0], 2e-2)  # as compat_deepseek_test: values below 5, rounded to bf16


def test_what_is_left_to_the_peer(modules: Any) -> None:
    q, cache, given, _ = decode_case(True)
    schedule = flash_mla.FlashMLASchedMeta()

    def call(**changes: Any) -> Any:
        options = {"use_legacy": True, "is_fp8_kvcache": True, "tile_scheduler_metadata": schedule}
        options |= {**given, **changes}
        return modules.attention.flash_mla_with_kvcache(
            q=q, k_cache=cache, head_dim_v=512, block_table=None, cache_seqlens=None, softmax_scale=0.03,
            **options)

    for changes in ({"use_legacy": False}, {"kv_format": "V41"}, {"indices": None}, {"is_fp8_kvcache": False},
                    {"tile_scheduler_metadata": i32([1])}, {"extra_k_cache": given["extra_k_cache"][..., :528]}):
        assert call(**changes) == "theirs", changes
    assert not isinstance(call(), str)


def test_prompts(modules: Any) -> None:
    q, kv = bf16(5, 16, 512) / 4, bf16(40, 1, 512, seed=1)
    indices = torch.randint(0, 40, (5, 1, 12), generator=seeded(2), device=place()).int()
    found = modules.attention.flash_mla_sparse_fwd(q, kv, indices, 0.03)
    natural = modules.attention.flash_mla_sparse_fwd(q, kv, indices, 0.03, use_legacy=False)
    out, lse, largest = (x[0] for x in sparse(q[None], kv[:, 0], indices.transpose(0, 1), scale=0.03))
    close(found[0], out, 2e-2)
    for two, e, exact in ((found[1], natural[1], largest), (found[2], natural[2], lse)):
        close(e, exact.view_as(e), 2e-3)
        close(two, exact.view_as(two) / math.log(2.0), 3e-3)
    assert modules.attention.flash_mla_sparse_fwd(q[..., :256], kv[..., :256], indices, 0.03) == "theirs"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scores_of_a_prompt(modules: Any, dtype: Any) -> None:
    def drawn(*shape: int) -> Any:
        return torch.randn(*shape, generator=seeded(sum(shape)), device=place()).to(E4M3)

    q, keys = drawn(3, 64, 128), drawn(40, 128)
    weights = torch.rand(3, 64, generator=seeded(1), device=place()).to(dtype)
    scales = torch.rand(40, generator=seeded(2), device=place()) + 0.5
    starts, ends = i32([0, 0, 5]), i32([7, 40, 21])
    found = modules.indexer.fp8_fp4_mqa_logits(
        (q, None), (keys, scales), weights, starts, ends, False, 40, logits_dtype=dtype)
    assert found.shape == (3, 40) and found.dtype == dtype
    products = torch.einsum("thd,kd->thk", q.double(), keys.double()).relu() * weights.double()[..., None]
    sizes = torch.einsum("thd,kd->thk", q.double().abs(), keys.double().abs()) * weights.double()[..., None]
    for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        exact, size = ((x[row].sum(0) * scales)[start:end] for x in (products, sizes))
        # The tensor core keeps 13 bits behind the largest of 32 products; bf16 rounds by 2^-8 of the result.
        rounding = 2.0**-8 * exact.abs() if dtype is torch.bfloat16 else 0.0
        assert ((found[row, : end - start].double() - exact).abs() <= 1e-3 * size + rounding).all()
    other = modules.indexer.fp8_fp4_mqa_logits((q, None), (keys, scales), weights, starts, ends, logits_unknown=1)
    assert other == "theirs"


def test_registration(monkeypatch: Any) -> None:
    called: list[str] = []
    monkeypatch.setattr(sglang, "_register_attention", lambda: called.append("attention"))
    monkeypatch.setattr(deepseek_v4, "install", lambda: called.append("deepseek_v4"))
    monkeypatch.setattr(sglang, "require_release", lambda *given: None)
    for setting, expected in (("", []), ("0", []), ("1", ["attention"]), ("deepseek_v4", ["deepseek_v4"]),
                              ("1, deepseek_v4", ["attention", "deepseek_v4"])):
        called.clear()
        monkeypatch.setenv("TILEWRIGHT_SGLANG", setting)
        sglang.register()
        assert called == expected
    monkeypatch.setenv("TILEWRIGHT_SGLANG", "everything")
    with pytest.raises(tilewright.InvalidArgument, match="everything is nothing that can be registered; .* 1, or"):
        sglang.register()


def test_a_release_without_these_names_is_refused(modules: Any) -> None:
    deepseek_v4.uninstall()
    kept = modules.attention.flash_mla_sparse_fwd
    del modules.attention.flash_mla_sparse_fwd
    with pytest.raises(tilewright.Unsupported, match="has no flash_mla_sparse_fwd: this SGLang calls"):
        deepseek_v4.install()
    modules.attention.flash_mla_sparse_fwd = kept
    del modules.indexer.fp8_fp4_mqa_logits
    with pytest.raises(tilewright.Unsupported, match="deep_gemm has no fp8_fp4_mqa_logits: this SGLang calls"):
        deepseek_v4.install()
    assert not deepseek_v4.is_installed()
    assert modules.attention.flash_mla_with_kvcache() == modules.attention.flash_mla_sparse_fwd() == "theirs"
    modules.indexer.fp8_fp4_mqa_logits = modules.indexer.fp8_fp4_paged_mqa_logits
