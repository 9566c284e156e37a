"""FlashInfer's plan and run against float64, on the simulator; FlashInfer itself is not needed."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from paged_batches import Case  # noqa: E402
from torch_reference import attention, close, i32, place  # noqa: E402

import tilewright  # noqa: E402
from tilewright.compat.flashinfer import (  # noqa: E402
    BatchDecodeWithPagedKVCacheWrapper as Decode,
    BatchPrefillWithPagedKVCacheWrapper as Prefill,
)
from tilewright.integrations._paged import write_cache  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")
E4M3 = torch.float8_e4m3fn
SPACE = torch.empty(16, dtype=torch.uint8, device=place())  # plan() copies its tables to where this is
MIXED = [(1, 40), (20, 20), (7, 50)]


def filled(sequences: list[tuple[int, int]], **options: Any) -> Case:
    case = Case(sequences, **options)
    case.fill_past()
    k, v = case.caches()
    write_cache(*case.new(), k, v, case.slots)
    return case


def pages(case: Case) -> tuple[Any, Any, Any]:
    """indptr, indices and lengths of last pages."""
    counts = [-(-n // case.page) for _, n in case.sequences]
    indptr = [sum(counts[:b]) for b in range(len(counts) + 1)]
    indices = torch.cat([case.pages[b, :n] for b, n in enumerate(counts)])
    last = [(n - 1) % case.page + 1 for _, n in case.sequences]
    return i32(indptr), indices, i32(last)


def lse_of(case: Case, **options: Any) -> Any:
    """float64 [rows, heads], natural."""
    found, begin = [], 0
    for b, (queries, keys) in enumerate(case.sequences):
        q = case.q[begin : begin + queries][None]
        k, v = (case._stored(b, keys, which)[None] for which in (0, 1))
        found.append(attention(q, k, v, **options)[1][0].T)
        begin += queries
    return torch.cat(found)


@pytest.mark.parametrize("layout", ["NHD", "HND"])
@pytest.mark.parametrize("each", [1, 3])
def test_decode(layout: str, each: int) -> None:
    case = filled([(each, 40), (each, 17)])
    wrapper = Decode(SPACE, layout)
    wrapper.plan(*pages(case), 4, 2, 64, 16, q_len_per_req=each, logits_soft_cap=3.0)
    k, v = (x.transpose(1, 2) if layout == "HND" else x for x in case.caches())
    out, lse = wrapper.run(case.q, (k, v), return_lse=True)
    options = {"causal": True, "softcap": 3.0}
    close(out, case.expected(**options), 0.018)
    close(lse, lse_of(case, **options) / math.log(2.0), 2e-3)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [-1, 9])
def test_prefill(causal: bool, window: int) -> None:
    case = filled(MIXED)
    wrapper = Prefill(SPACE)
    wrapper.plan(i32(case.starts()), *pages(case), 4, 2, 64, 16, causal=causal, window_left=window)
    out, lse = wrapper.run(case.q, case.caches(), return_lse=True, lse_base="e", lse_layout="HN")
    options = {"causal": causal, "window": (window, -1)}
    close(out, case.expected(**options), 0.018)
    close(lse, lse_of(case, **options).T, 2e-3)


@pytest.mark.parametrize("cache_dtype", [torch.bfloat16, E4M3], ids=str)
def test_values_of_another_width(cache_dtype: torch.dtype) -> None:
    """DeepSeek-V3's 192 and 128, one sequence of which decodes: pages are read, those of codes gathered."""
    case = filled(MIXED, d=192, value_dim=128, cache_dtype=cache_dtype)
    wrapper = Prefill(SPACE)
    wrapper.plan(i32(case.starts()), *pages(case), 4, 2, 192, 16, 128, causal=True)
    out, lse = wrapper.run(case.q, case.caches(), return_lse=True, lse_base="e")
    assert out.shape == (case.rows, 4, 128)
    close(out, case.expected(causal=True), 0.018)
    close(lse, lse_of(case, causal=True), 2e-3)
    with pytest.raises(ValueError, match=r"planned for .*\[..., 16, 2, 192\] and \[..., 16, 2, 128\]"):
        wrapper.run(case.q, (case.caches()[0],) * 2)


def test_scales_of_codes_and_sinks() -> None:
    case = Case(MIXED, cache_dtype=E4M3, scale_k=0.5, scale_v=2.0)
    case.fill_past()
    k, v = case.caches()
    scales = type("Scales", (), {"k": torch.tensor(0.5), "v": torch.tensor(2.0)})
    write_cache(*case.new(), k, v, case.slots, scales)
    sinks = torch.tensor([0.5, -1.0, 2.0, 0.0])
    wrapper = Prefill(SPACE)
    wrapper.plan(i32(case.starts()), *pages(case), 4, 2, 64, 16, causal=True, sm_scale=0.25)
    out = wrapper.run(case.q, (k, v), k_scale=0.5, v_scale=2.0, q_scale=0.5, sinks=sinks)
    close(out, case.expected(scale=0.125, causal=True, sink=sinks), 0.053)


def test_one_tensor_with_keys_and_values() -> None:
    case = filled([(1, 40), (1, 17)])
    wrapper = Decode(SPACE)
    wrapper.plan(*pages(case), 4, 2, 64, 16)
    both = torch.stack(case.caches(), 1)
    out = torch.full_like(case.q, math.nan)
    assert wrapper.run(case.q, both, out=out) is out
    close(out, case.expected(causal=True), 0.018)


@pytest.mark.parametrize(
    "options,text",
    [
        ({"pos_encoding_mode": "ROPE_LLAMA"}, "pos_encoding_mode = 'ROPE_LLAMA'"),
        ({"custom_mask": torch.ones(4)}, "custom_mask = Tensor"),
        ({"head_dim_vo": 100}, "head_dim_vo = 100"),
        ({"head_dim_vo": 264}, "head_dim_vo = 264"),
    ],
    ids=str,
)
def test_what_is_refused(options: dict[str, Any], text: str) -> None:
    case = Case(MIXED)
    with pytest.raises(tilewright.Unsupported, match=text):
        Prefill(SPACE).plan(i32(case.starts()), *pages(case), 4, 2, 64, 16, **options)


def test_wide_heads_are_refused_by_plan() -> None:
    case = Case(MIXED)
    with pytest.raises(tilewright.Unsupported, match="head_dim = 512: up to 256"):
        Decode(SPACE).plan(*pages(case), 4, 2, 512, 16)


def test_graphs_are_refused() -> None:
    with pytest.raises(tilewright.Unsupported, match="use_cuda_graph"):
        Decode(SPACE, "NHD", True)


def test_calls_that_make_no_sense() -> None:
    case = filled([(1, 40), (1, 17)])
    wrapper = Decode(SPACE)
    with pytest.raises(RuntimeError, match="before plan"):
        wrapper.run(case.q, case.caches())
    wrapper.plan(*pages(case), 4, 2, 64, 16)
    with pytest.raises(ValueError, match="planned for q"):
        wrapper.run(case.q[:1], case.caches())
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        wrapper.plan(*pages(case), 4, 2, 64, 16, colour=1)
