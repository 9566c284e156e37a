"""Partial results merged, and masks made into lists, from numpy arrays: against float64, on every chip.

Tolerance of the merge: weights and sums are of fp32, results are rounded to fp32; 2^-20 of the largest value is
more than twice what tests/ops/attention_merge_test.cpp derives for five parts.
"""

import numpy as np
import pytest

import tilewright

pytestmark = pytest.mark.usefixtures("kernels")


@pytest.fixture(scope="session", params=["sim:h200", "sim:b200", "sim:b300"])
def dev(request):
    return tilewright.Device(request.param)


@pytest.mark.parametrize("parts, has_sink", [(1, False), (2, True), (5, False)])
def test_merge(dev, parts, has_sink):
    rng = np.random.default_rng(3)
    batch, rows, heads, dim = 2, 3, 4, 40
    x = rng.uniform(-2, 2, (parts, batch, rows, heads, dim)).astype(np.float32)
    lse = rng.uniform(-5, 5, (parts, batch, heads, rows)).astype(np.float32)
    lse[0, 1, 2, 1] = -np.inf
    sink = rng.uniform(-1, 1, heads).astype(np.float32)
    out = np.full((batch, rows, heads, dim), np.nan, np.float32)
    total = np.full((batch, heads, rows), np.nan, np.float32)
    merge = tilewright.AttentionMerge(
        dev, part_dtype="f32", out_dtype="f32", parts=parts, batch=batch, rows=rows, heads=heads,
        head_dim=dim, has_sink=has_sink, has_lse=True)
    merge.run(part_out=x, part_lse=lse, out=out, lse=total, sink=sink if has_sink else None)
    weights = np.exp(lse.astype(np.float64))
    sums = weights.sum(0)
    below = sums + (np.exp(sink.astype(np.float64))[None, :, None] if has_sink else 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(sums > 0, weights / below, 0)  # [parts, batch, heads, rows]
        np.testing.assert_allclose(total, np.log(sums), rtol=2**-20, atol=2**-20)
    expected = np.einsum("pbhr,pbrhd->brhd", shares, x.astype(np.float64))
    np.testing.assert_allclose(out, expected, rtol=0, atol=2 * 2**-20)


@pytest.mark.parametrize("entry", ["bytes", "bits"])
def test_mask_lists(dev, entry):
    rng = np.random.default_rng(5)
    batch, rows, keys, topk = 2, 3, 75, 40
    mask = rng.uniform(size=(batch, rows, keys)) < 0.4
    given = np.packbits(mask, axis=-1, bitorder="little") if entry == "bits" else mask
    indices = np.full((batch, rows, topk), 99, np.int32)
    lengths, totals = (np.full((batch, rows), 99, np.int32) for _ in range(2))
    lists = tilewright.MaskLists(
        dev, entry=entry, batch=batch, rows=rows, keys=keys, topk=topk, has_totals=True)
    lists.run(mask=given.view(np.uint8), indices=indices, lengths=lengths, totals=totals)
    for b in range(batch):
        for i in range(rows):
            found = np.flatnonzero(mask[b, i])
            assert totals[b, i] == len(found) and lengths[b, i] == min(len(found), topk)
            expected = np.full(topk, -1)
            expected[: lengths[b, i]] = found[:topk]
            np.testing.assert_array_equal(indices[b, i], expected)


def test_refusals_name_field_value_and_rule(dev):
    with pytest.raises(tilewright.InvalidArgument, match="head_dim = 12; expected a multiple of 8"):
        tilewright.AttentionMerge(dev, rows=2, head_dim=12)
    with pytest.raises(tilewright.InvalidArgument, match="topk = 0; expected 1 to"):
        tilewright.MaskLists(dev, rows=2, keys=4)
