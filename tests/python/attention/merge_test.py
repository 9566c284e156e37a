"""Partial results merged, and masks made into lists, from numpy arrays and torch tensors: against float64, on
every chip.

Tolerance of the merge: weights and sums are of fp32, results are rounded to fp32; 2^-20 of the largest value is
more than twice what tests/ops/attention_merge_test.cpp derives for five parts.
"""

import numpy as np
import pytest

import tilewright

pytestmark = pytest.mark.usefixtures("kernels")


@pytest.fixture(scope="session", params=["sim:h200", "sim:b200", "sim:b300"])
def chip(request):
    return request.param


@pytest.fixture(scope="session")
def dev(chip):
    return tilewright.Device(chip)


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


@pytest.fixture
def torch(chip):
    """Tensors of the host, on each chip."""
    found = pytest.importorskip("torch")
    import tilewright.torch

    tilewright.torch.set_device(chip)
    yield found
    tilewright.torch.set_device("sim:h200")


def merged(torch, parts, lse, sink=None):
    """float64 of parts [parts, b, s, heads, d] and lse [parts, b, heads, s]."""
    parts, lse = parts.double(), lse.double()
    total = lse.logsumexp(0)
    below = total if sink is None else torch.logaddexp(total, sink.double()[:, None].expand_as(total))
    weights = torch.exp(lse - below).nan_to_num(0).transpose(-1, -2)
    return (weights[..., None] * parts.nan_to_num(0)).sum(0), total


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_merge_of_torch_tensors(torch, name):
    """Rounded to the type of the parts: a result is below 4, so its rounding is at most 4 u."""
    merge, dtype = tilewright.torch.merge_attention, getattr(torch, name)
    limit = {"float32": 4 * 2**-20, "bfloat16": 4 * 2**-8, "float16": 4 * 2**-11}[name]
    random = torch.Generator().manual_seed(1)
    parts = torch.rand(3, 2, 5, 4, 40, generator=random).sub(0.5).mul(6).to(dtype)
    lse = torch.rand(3, 2, 4, 5, generator=random) * 9 - 4
    lse[0, 1, 2, 3] = -torch.inf
    parts[0, 1, 3, 2] = torch.nan
    sink = torch.rand(4, generator=random)
    for options in ({}, {"sink": sink}):
        out, total = merge(parts, lse, return_lse=True, **options)
        expected = merged(torch, parts, lse, **options)
        assert out.dtype == dtype
        torch.testing.assert_close(out.double(), expected[0], rtol=0, atol=limit)
        torch.testing.assert_close(total.double(), expected[1], rtol=0, atol=2**-18)
        assert torch.equal(merge(parts, lse, **options), out)
    # Packed, the lse with strides of its own, and the result of another type, where the caller wants it.
    into = torch.full((5, 4, 40), torch.nan)
    spread = lse[:, 0].transpose(1, 2).contiguous().transpose(1, 2)
    assert merge(parts[:, 0], spread, out=into) is into
    expected = merged(torch, parts[:, :1], lse[:, :1])[0][0]
    torch.testing.assert_close(into.double(), expected, rtol=0, atol=4 * 2**-20)
    # Two, each in memory of its own.
    pair = [parts[1, ..., :8].clone(), parts[2, ..., :8]]
    out, total = merge(pair, [lse[1].clone(), lse[2]], return_lse=True)
    expected = merged(torch, parts[1:, ..., :8], lse[1:])
    torch.testing.assert_close(out.double(), expected[0], rtol=0, atol=limit)
    torch.testing.assert_close(total.double(), expected[1], rtol=0, atol=2**-18)


def test_a_shared_prefix_and_what_follows_it_are_one_call(torch):
    import tilewright.torch as tt

    q, k, v = (torch.randn(1, n, 2, 64).bfloat16() for n in (7, 40, 40))
    before = tt.attention(q, k[:, :33], v[:, :33], return_lse=True)
    behind = tt.attention(q, k[:, 33:], v[:, 33:], causal=True, return_lse=True)
    out, lse = tt.merge_attention(*zip(before, behind, strict=True), return_lse=True)
    whole = tt.attention(q, k, v, causal=True, return_lse=True)
    # Each of three results is rounded by 2^-8 of itself at most; the two parts are no smaller than what they make.
    largest = max(float(part.abs().max()) for part, _ in (before, behind))
    torch.testing.assert_close(out.float(), whole[0].float(), rtol=0, atol=3 * largest * 2**-8)
    torch.testing.assert_close(lse, whole[1], rtol=0, atol=1e-5)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("has_sink", [False, True])
def test_cascade_of_sequences_of_any_length(torch, is_packed, has_sink):
    """Sequences of a batch share a prefix: all queries see it in one call, and each its own keys in pages in
    another. One has no keys of its own. Against float64 over prefix and own keys; three roundings to bfloat16 of
    values below 2, and the sink comes in once, in the merge."""
    import tilewright.torch as tt

    def draw(*shape, seed):
        return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16() / 2

    queries, lengths = ([1, 5, 3] if is_packed else [3, 3, 3]), [9, 20, 0]
    table = torch.tensor([[3, 0, 5], [1, 6, 2], [4, 7, 8]], dtype=torch.int32)
    rows, sink = sum(queries), torch.linspace(-1, 1, 4) if has_sink else None
    q, prefix = draw(rows, 4, 64, seed=1), [draw(50, 2, 64, seed=i) for i in (2, 3)]
    pages = [draw(9, 8, 2, 64, seed=i) for i in (4, 5)]
    begins = torch.tensor([0, *queries]).cumsum(0).int()
    before, before_lse = tt.attention(q[None], prefix[0][None], prefix[1][None], return_lse=True)
    given = {"page_table": table, "kv_lengths": torch.tensor(lengths, dtype=torch.int32), "causal": True}
    given |= {"return_lse": True}
    if is_packed:
        own, own_lse = tt.attention_paged(q, *pages, **given, cu_q=begins, max_q=5)
        parts, lse = (before[0], own), (before_lse[0], own_lse)
    else:
        own, own_lse = tt.attention_paged(q.view(3, 3, 4, 64), *pages, **given)
        parts = before.view(3, 3, 4, 64), own
        lse = before_lse[0].view(4, 3, 3).transpose(0, 1), own_lse
    out, total = tt.merge_attention(parts, lse, sink=sink, return_lse=True)
    for b, n in enumerate(lengths):
        of = slice(int(begins[b]), int(begins[b + 1]))
        k, v = (torch.cat((x, page[table[b].long()].flatten(0, 1)[:n])).double().repeat_interleave(2, 1)
                for x, page in zip(prefix, pages, strict=True))
        scores = torch.einsum("shd,thd->hst", q[of].double(), k) / 8
        here = torch.arange(queries[b])[:, None] + n - queries[b]  # of own keys; those of the prefix are seen
        hidden = torch.arange(50 + n) - 50 > here
        hidden[:, :50] = False
        scores = scores.masked_fill(hidden, -torch.inf)
        right_lse = scores.logsumexp(-1)
        below = right_lse if sink is None else torch.logaddexp(right_lse, sink.double()[:, None])
        right = torch.einsum("hst,thd->shd", torch.exp(scores - below[..., None]), v)
        found, found_lse = (out[of], total[:, of]) if is_packed else (out[b], total[b])
        torch.testing.assert_close(found.double(), right, rtol=0, atol=3 * 2 * 2**-8)
        torch.testing.assert_close(found_lse.double(), right_lse, rtol=0, atol=1e-5)


def test_mask_lists_of_torch_tensors(torch):
    import tilewright.torch as tt

    mask = torch.rand(2, 3, 75, generator=torch.Generator().manual_seed(2)) < 0.4
    table = torch.tensor([[7, 2], [5, 0]], dtype=torch.int32)
    for topk, pages in ((None, None), (20, None), (40, table)):
        given = {} if pages is None else {"page_table": pages, "page_size": 40}
        indices, lengths, totals = tt.mask_lists(mask, topk=topk, **given)
        assert indices.shape == (2, 3, topk or 75)
        assert torch.equal(totals, mask.sum(-1, dtype=torch.int32))
        assert torch.equal(lengths, totals.clamp(max=topk or 75))
        for b in range(2):
            for i in range(3):
                keys = mask[b, i].nonzero().flatten()[: topk or 75]
                slots = keys if pages is None else pages[b, keys // 40] * 40 + keys % 40
                n = len(keys)
                assert indices[b, i, :n].tolist() == slots.tolist() and (indices[b, i, n:] == -1).all()
    empty = tt.mask_lists(mask[:, :0])
    assert [x.shape for x in empty] == [(2, 0, 75), (2, 0), (2, 0)]


def test_operators_of_torch_are_what_they_say(torch):
    import tilewright.torch as tt

    parts, lse = torch.randn(2, 1, 3, 2, 8), torch.randn(2, 1, 2, 3)
    merge, ops = (parts, lse, None, None, None, "bf16"), torch.ops.tilewright
    torch.library.opcheck(ops.merge_attention.default, (*merge, True))
    torch.library.opcheck(ops.merge_attention_out.default, (*merge, parts[0].bfloat16(), None))
    torch.library.opcheck(ops.mask_lists.default, (torch.ones(1, 2, 9, dtype=torch.bool), None, 4, 0))


def test_bad_tensors_are_one_sentence(torch):
    import tilewright.torch as tt

    parts, lse = torch.randn(3, 1, 5, 2, 8), torch.randn(3, 1, 2, 5)
    narrow, mask = parts[0, ..., :4], torch.ones(1, 2, 9, dtype=torch.bool)
    for call, text in (
        (lambda: tt.merge_attention(list(parts), list(lse)), "parts: 3 tensors; expected two, or one"),
        (lambda: tt.merge_attention(parts, [lse[0], lse[1]]), "parts and lse: expected one tensor each, or two"),
        (lambda: tt.merge_attention(parts, lse.transpose(2, 3)), r"lse float32.*expected float32 \[3, 1, 2, 5\]"),
        (lambda: tt.merge_attention(parts.double(), lse), "out_dtype=torch.float64: expected bfloat16"),
        (lambda: tt.merge_attention(parts, lse, out=narrow), r"parts float32.*expected .*\[3, 1, 5, 2, 4\]"),
        (lambda: tt.merge_attention(parts[..., :4], lse), "head_dim = 4; expected a multiple of 8"),
        (lambda: tt.mask_lists(mask[0]), r"mask bool.*expected bool \[batch, rows, keys\]"),
        (lambda: tt.mask_lists(mask.expand(2, 2, 9)), "mask bool.*nothing expanded"),
        (lambda: tt.mask_lists(mask.float()), "mask float32.*expected bool"),
        (lambda: tt.mask_lists(mask, page_size=4), "page_table and page_size: expected both or neither"),
        (lambda: tt.mask_lists(mask, topk=0), "topk = 0; expected 1 to"),
    ):
        with pytest.raises(tilewright.InvalidArgument, match=text):
            call()
    with pytest.raises(TypeError, match="lse is None; expected a torch.Tensor"):
        tt.merge_attention(parts, None)
