"""Attention over pages as engines call it, against float64, on the simulator."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

import tilewright

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from paged_batches import Case  # noqa: E402
from torch_reference import close, place  # noqa: E402

from tilewright.integrations import _paged  # noqa: E402
from tilewright.integrations._paged import (  # noqa: E402
    Mask,
    Scales,
    attend,
    attend_itself,
    write_cache,
)

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")
E4M3 = torch.float8_e4m3fn
DECODES = [(1, 40), (1, 17), (1, 3)]
MIXED = [(1, 40), (1, 17), (20, 20), (7, 50)]
PREFILLS = [(33, 33), (18, 18)]


def limit_of(case: Case) -> float:
    """A result is rounded by 2^-8 of itself (bfloat16; float16: 2^-11), and no larger than the
    largest value, 4.5; roundings of the weights average to less. The scale of an e4m3 V is applied
    to the rounded result, half as much again for the second rounding."""
    step = 2.0**-8 if case.dtype is torch.bfloat16 else 2.0**-11
    return 4.5 * step * (1.5 if case.is_e4m3 else 1.0) * max(1.0, case.scale_v)


def run(case: Case, mask: Mask, **options: Any) -> Any:
    """The result of a call as an engine makes it: the cache is written to, then read."""
    case.fill_past()
    scales = None
    if case.is_e4m3:
        numbers = (case.scale_k, case.scale_v)
        scales = Scales(*(torch.tensor(number) for number in numbers), *numbers)
    k, v = case.caches()
    write_cache(*case.new(), k, v, case.slots, scales)
    out = case.q.new_full((*case.q.shape[:2], case.value_dim), math.nan)
    batch = options.pop("batch", None) or case.batch()
    new = None if case.is_e4m3 else case.new()
    attend(batch, case.q, k, v, out, mask, scales=scales, new=new, **options)
    return out


@pytest.mark.parametrize("layout", ["NHD", "HND"])
@pytest.mark.parametrize("sequences", [DECODES, MIXED, PREFILLS], ids=["decode", "mixed", "prefill"])
def test_batches_of_every_kind(sequences: list[tuple[int, int]], layout: str) -> None:
    case = Case(sequences, layout=layout)
    found = run(case, Mask(0.125))
    close(found, case.expected(scale=0.125, causal=True), limit_of(case))


@pytest.mark.parametrize("sequences", [DECODES, MIXED], ids=["decode", "mixed"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("device", ["sim:h200", "sim:b200"])
def test_caches_of_e4m3(
    sequences: list[tuple[int, int]], dtype: torch.dtype, device: str, gathered: list[int]
) -> None:
    tilewright.torch.set_device(device)
    case = Case(sequences, dtype=dtype, cache_dtype=E4M3, scale_k=0.5, scale_v=2.0)
    found = run(case, Mask(0.125))
    close(found, case.expected(scale=0.125, causal=True), limit_of(case))
    assert not gathered


def test_long_parts_over_caches_of_e4m3_are_gathered(
    monkeypatch: Any, gathered: list[int]
) -> None:
    """Where widening for each tile of queries takes longer than once for all keys."""
    monkeypatch.setattr(_paged, "MAX_WIDENED_ROWS", 3)
    case = Case(MIXED, cache_dtype=E4M3, scale_k=0.5, scale_v=2.0)
    found = run(case, Mask(0.125))
    close(found, case.expected(scale=0.125, causal=True), limit_of(case))
    assert gathered


@pytest.mark.parametrize(
    "d,page",
    [(64, 1), (64, 64), (128, 5), (128, 64), (256, 1), (256, 5), (96, 5), (24, 64), (192, 16)],
)
def test_head_sizes_and_page_sizes(d: int, page: int, gathered: list[int]) -> None:
    case = Case([(1, 9), (6, 11)], d=d, page=page, heads=2, kv_heads=1)
    found = run(case, Mask(d**-0.5))
    close(found, case.expected(causal=True), limit_of(case))
    assert not gathered


@pytest.mark.parametrize("cache_dtype", [torch.bfloat16, E4M3], ids=str)
@pytest.mark.parametrize("d,value_dim", [(192, 128), (64, 96)])
def test_values_of_another_width(
    d: int, value_dim: int, cache_dtype: torch.dtype, gathered: list[int]
) -> None:
    """Sequences that decode, too: decode attention has no such form."""
    case = Case([(1, 9), (6, 11)], d=d, value_dim=value_dim, cache_dtype=cache_dtype)
    found = run(case, Mask(d**-0.5))
    close(found, case.expected(causal=True), limit_of(case))
    assert not gathered


@pytest.mark.parametrize(
    "options",
    [
        {"window": (8, 0)},
        {"softcap": 2.0},
        {"causal": False},
        {"causal": False, "window": (5, 5)},
        {"window": (8, 0), "softcap": 3.0},
    ],
    ids=str,
)
def test_masks(options: dict[str, Any]) -> None:
    case = Case(MIXED, dtype=torch.float16)
    found = run(case, Mask(0.125, **options))
    close(found, case.expected(**{"scale": 0.125, "causal": True, **options}), limit_of(case))


def test_sinks() -> None:
    case = Case(MIXED)
    sink = torch.tensor([0.5, -1.0, 2.0, 0.0])
    found = run(case, Mask(0.125), sink=sink)
    close(found, case.expected(scale=0.125, causal=True, sink=sink), limit_of(case))


def test_queries_of_speculation() -> None:
    """Equally many queries of each sequence decode together."""
    case = Case([(3, 40), (3, 17), (3, 3)])
    batch = case.batch(decode_limit=3)
    assert (batch.decodes, batch.decode_len) == (3, 3)
    found = run(case, Mask(0.125), batch=batch)
    close(found, case.expected(scale=0.125, causal=True), limit_of(case))


def test_bounds_may_be_larger_than_lengths() -> None:
    """Engines that draft know on the host only what the lengths will not exceed."""
    case = Case(MIXED)
    batch = case.batch(bounds=[n + 5 for n in case.lengths()])
    close(run(case, Mask(0.125), batch=batch), case.expected(scale=0.125, causal=True), limit_of(case))


def test_sequences_that_pad_a_graph() -> None:
    """They have no queries and no keys; rows of q stand for them, whose results are 0."""
    case = Case(DECODES, pad_sequences=2)
    batch = case.batch(rows=5)
    assert (batch.decodes, batch.decode_len) == (5, 1)
    case.q = torch.cat([case.q, torch.full_like(case.q[:2], math.nan)])
    found = run(case, Mask(0.125), batch=batch)
    case.q = case.q[:3]
    close(found[:3], case.expected(scale=0.125, causal=True), limit_of(case))
    assert not found[3:].any()


@pytest.mark.parametrize(
    "lens,rows,limit,expected",
    [
        ([1, 1, 5], 7, 16, (2, 1)),
        ([1, 1, 0, 0], 4, 16, (4, 1)),
        ([1, 1, 0, 0], 2, 16, (2, 1)),
        ([2, 2, 1], 5, 16, (2, 2)),
        ([2, 2, 1], 5, 1, (0, 0)),
        ([17], 17, 99, (0, 0)),
        ([0, 0], 0, 16, (0, 0)),
    ],
)
def test_which_sequences_decode(
    lens: list[int], rows: int, limit: int, expected: tuple[int, int]
) -> None:
    starts = [0]
    for n in lens:
        starts.append(starts[-1] + n)
    assert _paged._count_decodes(starts, rows, limit) == expected


def test_encoders_attend_to_themselves() -> None:
    case = Case(PREFILLS)
    out = torch.full_like(case.q, math.nan)
    attend_itself(case.batch(), case.q, case.new(), out, Mask(0.125, False, (6, 6)))
    case.fill_past()
    write_cache(*case.new(), *case.caches(), case.slots)
    close(out, case.expected(scale=0.125, window=(6, 6)), limit_of(case))


@pytest.fixture
def gathered(monkeypatch: Any) -> list[int]:
    """One entry for each time that keys are gathered from their pages."""
    found: list[int] = []
    real = _paged._Call.gathered
    monkeypatch.setattr(_paged._Call, "gathered", lambda *given: (found.append(1), real(*given)))
    return found


@pytest.mark.parametrize("d", [64, 192, 256])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_pages_are_read_on_both_chips(d: int, dtype: torch.dtype, gathered: list[int]) -> None:
    case = Case([(1, 30), (9, 40), (5, 21)], d=d, dtype=dtype)
    for spec in ("sim:b200", "sim:h200"):
        tilewright.torch.set_device(spec)
        lse = torch.full((case.rows, case.heads), math.nan)
        found = run(case, Mask(0.125), lse=lse)
        close(found, case.expected(scale=0.125, causal=True), limit_of(case))
        assert not gathered
        assert lse.isfinite().all()


@pytest.mark.skipif(place() == "cuda", reason="chooses the chip that is simulated")
@pytest.mark.parametrize("device, d", [("sim:h200", 256), ("sim:b200", 64), ("sim:b200", 256)])
def test_keys_are_gathered_where_no_kernel_reads_pages(
    device: str, d: int, gathered: list[int]
) -> None:
    """The same calls on Hopper, whose kernel widens codes in pages, and on Blackwell, which has one
    for heads up to 128, and what one has found does not hold for the other."""
    case = Case([(1, 30), (9, 40), (5, 21)], d=d, cache_dtype=E4M3, scale_k=0.5, scale_v=2.0)
    for spec in (device, "sim:h200"):
        tilewright.torch.set_device(spec)
        gathered.clear()
        lse = torch.full((case.rows, case.heads), math.nan)
        _paged.warn_of_prompts.cache_clear()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = run(case, Mask(0.125), lse=lse)
        close(found, case.expected(scale=0.125, causal=True), limit_of(case))
        assert bool(gathered) == (spec == "sim:b200" and d == 256)
        texts = [str(one.message) for one in said if "Tilewright" in str(one.message)]
        assert len(texts) == bool(gathered)
        assert all(f"head size of {d} over caches of e4m3 on this device" in text for text in texts)
        assert lse.isfinite().all()


def test_pages_of_two_sizes_are_gathered_each_by_its_own() -> None:
    """Layers of one batch may have caches of other page sizes."""
    case = Case([(3, 11), (2, 5)], page=4)
    part = case.batch().part(0)
    assert part is not None
    for size in (4, 2, 4):
        cu_kv, page, row = part.gathering(case.cache.shape[0], size)
        assert cu_kv.tolist() == [0, 11, 16]
        places = [(b, i) for b, keys in enumerate((11, 5)) for i in range(keys)]
        columns = [min(i // size, case.pages.shape[1] - 1) for _, i in places]
        pages = [int(case.pages[b, column]) for (b, _), column in zip(places, columns, strict=True)]
        assert page.tolist() == pages
        assert row.tolist() == [i % size for _, i in places]


def test_slots_below_zero_are_not_written() -> None:
    case = Case([(2, 2)])
    k, v = case.caches()
    write_cache(*case.new(), k, v, torch.tensor([-1, int(case.slots[1])]))
    page, row = divmod(int(case.slots[1]), case.page)
    assert torch.equal(k[page, row], case.k[0][1]) and torch.equal(v[page, row], case.v[0][1])
    assert int(k.isfinite().sum()) == case.kv_heads * case.d
