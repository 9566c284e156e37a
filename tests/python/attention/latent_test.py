"""Attention whose values are keys as well, against float64; runs on the simulator, or on a GPU."""

import math

import pytest

torch = pytest.importorskip("torch")

import tilewright  # noqa: E402
import tilewright.torch as tt  # noqa: E402
from torch_reference import bf16, i32, place  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")


def exact(q, k, v, qv, lengths, causal, scale, sink=None):
    """out [b, s, heads, d] and lse [b, heads, s] of keys [b, keys, kv_heads, ...], in float64."""
    outs, sums = [], []
    group, tokens = q.shape[2] // k.shape[2], q.shape[1]
    for b, length in enumerate(lengths):
        keys, values = (x[b, :length].double().repeat_interleave(group, 1) for x in (k, v))
        scores = torch.einsum("ihd,jhd->hij", q[b].double(), keys)
        if qv is not None:
            scores += torch.einsum("ihd,jhd->hij", qv[b].double(), values)
        scores *= scale
        if causal:
            row, key = torch.arange(tokens)[:, None].to(q.device), torch.arange(length).to(q.device)
            scores = scores.masked_fill(key > row + length - tokens, -math.inf)
        lse = torch.logsumexp(scores, -1)
        total = lse if sink is None else torch.logaddexp(lse, sink.double()[:, None])
        weights = torch.exp(scores - total[..., None]).nan_to_num(0)
        outs.append(torch.einsum("hij,jhd->ihd", weights, values))
        sums.append(lse)
    return torch.stack(outs), torch.stack(sums)


def near(found, right, dtype):
    # Weights and results are rounded once each, and rows of random numbers average that out.
    limit = 6e-3 if dtype == torch.bfloat16 else 1e-3
    assert (found[0].double() - right[0]).norm() <= limit * right[0].norm()
    # A sum of up to 576 products in fp32 for each score.
    assert torch.allclose(found[1].double(), right[1], rtol=0, atol=1e-4)


def operands(tokens, heads, kv_heads, keys, dims, dtype=torch.bfloat16, batch=2):
    shapes = (tokens, heads, 64), (tokens, heads, dims), (keys, kv_heads, 64), (keys, kv_heads, dims)
    return [bf16(batch, *shape, seed=i).to(dtype) for i, shape in enumerate(shapes)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dims", [256, 512])
@pytest.mark.parametrize("has_qv", [True, False])
def test_without_pages(dtype, dims, has_qv):
    q, qv, k, v = operands(3, 4, 2, 70, dims, dtype)
    k[1, 5:], v[1, 5:] = math.nan, math.nan
    sink = torch.tensor([0.5, -math.inf, 1, 2], device=place())
    scale = (64 + dims * has_qv) ** -0.5
    given = qv if has_qv else None
    found = tt.latent_attention(q, k, v, i32([70, 5]), qv=given, sink=sink, return_lse=True, kernel="auto")
    near(found, exact(q, k, v, given, [70, 5], True, scale, sink), dtype)


@pytest.mark.parametrize("page", [8, 64])
def test_pages_and_strides(page):
    q, qv, k, v = operands(1, 66, 1, 128, 512)
    order = torch.randperm(2 * 128 // page, generator=torch.Generator().manual_seed(3)).to(place())
    table = torch.empty(2, 128 // page + 1, dtype=torch.int32, device=place())[:, : 128 // page]
    table.copy_(torch.argsort(order).view(2, -1))
    rows = torch.cat((v, k), -1).view(-1, page, 1, 576)[order]
    out = torch.full((2, 1, 66, 520), math.nan, dtype=q.dtype, device=place())[..., :512]
    done = tt.latent_attention(q, rows[..., 512:], rows[..., :512], i32([128, 67]), qv=qv, page_table=table,
                               causal=False, scale=0.1, out=out, return_lse=True)
    assert done[0] is out
    near(done, exact(q, k, v, qv, [128, 67], False, 0.1), q.dtype)


def test_without_keys():
    q, qv, k, v = operands(2, 4, 1, 9, 256)
    out, lse = tt.latent_attention(q, k, v, i32([0, 1]), qv=qv, return_lse=True)
    assert not out[0].any() and not out[1, 0].any()
    assert (lse[0] == -math.inf).all() and (lse[1, :, 0] == -math.inf).all()
    assert torch.equal(out[1, 1], v[1, 0].expand(4, 256))
    assert tt.latent_attention(q[:0], k[:0], v[:0], i32([]), qv=qv[:0]).shape == (0, 2, 4, 256)


def test_operator():
    q, qv, k, v = operands(1, 2, 1, 9, 256)
    if place() == "cpu":
        inputs = (q, k, v, i32([3, 4]), qv, None, None, True, None, "auto", False, True)
        torch.library.opcheck(torch.ops.tilewright.latent_attention.default, inputs)
    with pytest.raises(NotImplementedError, match="latent_attention"):
        tt.latent_attention(q.requires_grad_(), k, v, i32([3, 4]), qv=qv).sum().backward()


@pytest.mark.parametrize("change, text", [
    ({"q": torch.zeros(2, 1, 2, 32)}, r"q float32.*expected bfloat16 or float16 \[batch, tokens, heads, 64\]"),
    ({"v": bf16(2, 9, 1, 128)}, "keys of 64 and as many values of 256 or 512"),
    ({"k": bf16(2, 8, 1, 64)}, "keys of 64 and as many values"),
    ({"k": bf16(3, 9, 1, 64), "v": bf16(3, 9, 1, 256)}, "expected 2 sequences, or a page_table"),
    ({"qv": bf16(2, 1, 2, 512)}, r"qv bfloat16.*expected \[2, 1, 2, 256\]"),
    ({"lengths": torch.zeros(2, dtype=torch.int64)}, "lengths int64.*expected int32"),
    ({"page_table": torch.zeros(3, 1, dtype=torch.int32)}, r"page_table int32.*expected int32 \[2, blocks\]"),
    ({"page_table": torch.zeros(2, 1, dtype=torch.int32)}, "page_size = 9; expected 8, 16, 32 or"),
    ({"kernel": "fast"}, 'no kernel "fast"'),
    ({"scale": -1.0}, "scale = -1"),
])
def test_refusals(change, text):
    q, qv, k, v = operands(1, 2, 1, 9, 256)
    given = {"q": q, "k": k, "v": v, "lengths": i32([3, 4]), "qv": qv, **change}
    given = {name: x.to(place()) if isinstance(x, torch.Tensor) else x for name, x in given.items()}
    with pytest.raises((tilewright.InvalidArgument, tilewright.Unsupported), match=text):
        tt.latent_attention(**given)


@pytest.mark.parametrize("heads", [64, 128])
def test_lists_of_rows_of_576(heads):
    """Lists of all kinds of lengths, entries that name no row, and a row of NaN that none names."""
    from tilewright.torch._sparse import attend

    lengths, rows, topk, scale = [0, 1, 64, 130, 65], 200, 130, 0.05
    q, kv = bf16(1, len(lengths), heads, 576, seed=1), bf16(rows, 1, 576, seed=2)
    kv[rows - 1] = math.nan
    order = [torch.randperm(rows - 1, generator=torch.Generator().manual_seed(i))[:topk] for i in range(5)]
    lists = torch.stack(order).int().to(place())[None]
    lists[0, 3, 5], lists[0, 3, 129] = -1, rows
    lists[0, 2, :64:2] = -7
    lists[0, 1, 1:] = rows - 1
    tail = (None,) * 7
    given = (q, kv, lists, i32([lengths]), *tail, True, True, scale, "latent")
    out, lse, top = attend(given, positive_empty_lse=True)
    for i, length in enumerate(lengths):
        named = lists[0, i, :length].long()
        keys = kv[named[(named >= 0) & (named < rows)], 0].double()
        if len(keys) == 0:
            assert not out[0, i].any() and (lse[0, i] == math.inf).all() and (top[0, i] == -math.inf).all()
            continue
        scores = q[0, i].double() @ keys.T * scale
        right = scores.softmax(1) @ keys[:, :512]
        # As near() above.
        assert (out[0, i].double() - right).norm() <= 6e-3 * right.norm()
        assert torch.allclose(lse[0, i].double(), scores.logsumexp(1), rtol=0, atol=1e-4)
        assert torch.allclose(top[0, i].double(), scores.amax(1), rtol=0, atol=1e-4)


def test_few_sequences_of_many_parts():
    q, qv, k, v = operands(1, 2, 1, 1500, 256, batch=2)
    sink, scale = torch.tensor([0.5, -1], device=place()), (64 + 256) ** -0.5
    found = tt.latent_attention(q, k, v, i32([1500, 0]), qv=qv, sink=sink, return_lse=True, kernel="auto")
    near(found, exact(q, k, v, qv, [1500, 0], True, scale, sink), torch.bfloat16)


@pytest.mark.parametrize("dims, has_qv", [(512, True), (512, False), (256, True), (256, False)])
def test_every_form_has_tensor_cores_on_blackwell(dims, has_qv):
    """A value that is no number stays in its column where values make no scores."""
    if place() != "cpu":
        pytest.skip("the simulated B200")
    tt.set_device("sim:b200")
    q, qv, k, v = operands(2, 4, 1, 24, dims, batch=1)
    given = qv if has_qv else None
    found = tt.latent_attention(q, k, v, i32([24]), qv=given, return_lse=True, kernel="pair")
    near(found, exact(q, k, v, given, [24], True, (64 + dims * has_qv) ** -0.5), q.dtype)
    if not has_qv:
        v[0, 3, 0, 5] = math.nan
        out = tt.latent_attention(q, k, v, i32([24]), kernel="pair")
        assert torch.isnan(out[..., 5]).all()
        others = [column for column in range(dims) if column != 5]
        torch.testing.assert_close(out[..., others], found[0][..., others], rtol=0, atol=0)
