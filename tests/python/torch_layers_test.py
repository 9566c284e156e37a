"""tilewright.torch's sparse attention, linear layers, experts and quantiser."""

import copy
import gc

import pytest

torch = pytest.importorskip("torch")

import tilewright  # noqa: E402
import tilewright.torch as tt  # noqa: E402
import torch_reference as reference  # noqa: E402
from torch_reference import bf16, close, i32, place  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")
LEVELS = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def lists(*shape, rows, seed=0):
    """Indices with some that are negative, and some that no row has."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-4, rows + 9, shape, generator=generator).int().to(place())


def fp8_pages(pages, slots, seed):
    """A cache of FlashMLA's FP8 rows, as bytes, and its rows in float64."""
    row_bytes, stride = 576, -(-slots * 584 // 576) * 576
    codes = (bf16(pages, slots, 448, seed=seed).float() / 4).to(torch.float8_e4m3fn)
    exponents = torch.randint(124, 128, (pages, slots, 7), dtype=torch.uint8).to(place())
    rope = bf16(pages, slots, 64, seed=seed + 1)
    cache = torch.full((pages, stride), 0x7F, dtype=torch.uint8, device=place())[:, : slots * 584]
    rows = torch.cat((codes.view(torch.uint8), rope.view(torch.uint8)), -1)
    cache[:, : slots * row_bytes] = rows.flatten(1)
    scales = torch.cat((exponents, torch.zeros_like(exponents[..., :1])), -1)
    cache[:, slots * row_bytes :] = scales.flatten(1)
    factor = torch.exp2(exponents.double() - 127).repeat_interleave(64, -1)
    wide = torch.cat((codes.double() * factor, rope.double()), -1)
    return cache.view(pages, slots, 1, 584), wide.view(-1, 512)


def test_sparse_attention_over_bf16_rows():
    q, rows, sink = bf16(2, 3, 8, 512) / 4, bf16(70, 512, seed=1) / 4, torch.randn(8, device=place())
    indices = lists(2, 3, 20, rows=70)
    indices[0, 0] = -1
    found = tt.sparse_attention(q, rows, indices, sink=sink, return_lse=True, return_max_logits=True)
    for one, expected in zip(found, reference.sparse(q, rows, indices, sink), strict=True):
        close(one, expected, 4e-3)
    assert not found[0][0, 0].any()
    assert (found[1][0, 0] == -torch.inf).all() and (found[2][0, 0] == -torch.inf).all()
    assert torch.equal(tt.sparse_attention(q, rows, indices, sink=sink), found[0])
    assert len(tt.sparse_attention(q, rows, indices, return_max_logits=True)) == 2


@pytest.mark.parametrize("per_query", [False, True])
def test_sparse_attention_over_two_fp8_caches(per_query):
    q = bf16(2, 2, 8, 512) / 4
    cache, rows = fp8_pages(5, 16, 1)
    extra, extra_rows = fp8_pages(9, 7, 3)
    indices, more = lists(2, 2, 12, rows=80), lists(2, 2, 30, rows=63, seed=1)
    lengths = i32([[30, 4], [11, 0]] if per_query else [30, 11])
    out, lse = tt.sparse_attention(q, cache, indices, extra_cache=extra, extra_indices=more,
                                   extra_lengths=lengths, return_lse=True)
    limit = lengths[..., None] if per_query else lengths[:, None, None]
    more = torch.where(torch.arange(30, device=place()) < limit, more, -1)
    every = torch.cat((torch.where(indices < 80, indices, -1),
                       torch.where((more >= 0) & (more < 63), more + 80, -1)), -1)
    expected = reference.sparse(q, torch.cat((rows, extra_rows)), every)
    close(out, expected[0], 8e-3)
    close(lse, expected[1], 1e-5)


def test_sparse_attention_over_nvfp4_rows():
    q, indices = bf16(1, 2, 8, 512) / 4, lists(1, 2, 12, rows=32)
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(0, 256, (2, 16, 224), dtype=torch.uint8, generator=generator).to(place())
    rope = bf16(2, 16, 64)
    scales = torch.randint(40, 56, (2, 16, 28), dtype=torch.uint8, generator=generator).to(place())
    padded = torch.cat((scales, torch.zeros_like(scales[..., :4])), -1)
    rows = torch.cat((codes, rope.view(torch.uint8)), -1)
    cache = torch.cat((rows.flatten(1), padded.flatten(1)), 1).view(2, 16, 384)
    levels = LEVELS.to(place())
    plain = torch.stack((levels[(codes & 15).long()], levels[(codes >> 4).long()]), -1).flatten(-2).double()
    plain *= scales.view(torch.float8_e4m3fn).double().repeat_interleave(16, -1)
    wide = torch.cat((plain, rope.double()), -1).view(-1, 512)
    close(tt.sparse_attention(q, cache, indices), reference.sparse(q, wide, indices)[0], 2e-2)


def test_sparse_op_is_what_it_says_and_compiles():
    q, rows, indices = bf16(1, 2, 4, 512), bf16(32, 512, seed=1), lists(1, 2, 8, rows=32)
    inputs = (q, rows, indices, None, None, None, None, None, None, "auto", False)
    torch.library.opcheck(torch.ops.tilewright.sparse_attention.default, (*inputs, True, True))
    torch.library.opcheck(torch.ops.tilewright.sparse_attention_out.default,
                          (*inputs, torch.empty_like(q), None, None, None, False))
    compiled = torch.compile(lambda *a: tt.sparse_attention(*a, return_lse=True), fullgraph=True)
    for one, other in zip(compiled(q, rows, indices), tt.sparse_attention(q, rows, indices, return_lse=True),
                          strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("change, text", [
    ({"q": torch.zeros(1, 2, 4, 320, dtype=torch.bfloat16)}, r"q bfloat16.*320.*heads, 512 or 576"),
    ({"cache": torch.zeros(2, 16, 656, dtype=torch.uint8)}, "584"),
    ({"indices": torch.zeros(1, 2, 8, dtype=torch.int64)}, r"indices int64.*expected int32"),
    ({"extra_indices": torch.zeros(1, 2, 8, dtype=torch.int32)}, "expected both or neither"),
    ({"sink": torch.zeros(3)}, r"expected float32\[4\]"),
])
def test_sparse_attention_names_bad_input(change, text):
    given = {"q": bf16(1, 2, 4, 512), "cache": bf16(32, 512), "indices": lists(1, 2, 8, rows=32)}
    given |= {name: value.to(place()) for name, value in change.items()}
    with pytest.raises(tilewright.InvalidArgument, match=text):
        tt.sparse_attention(**given)


@pytest.mark.parametrize("format, activations, limit", [
    ("bf16", "bf16", 0.004), ("fp8", "bf16", 0.03), ("fp8", "fp8", 0.04), ("mxfp4", "bf16", 0.12),
    ("nvfp4", "bf16", 0.1), ("nvfp4", "fp8", 0.1),
])
def test_linear(format, activations, limit):
    weight, bias, x = bf16(64, 128) / 8, torch.randn(64, device=place()), bf16(3, 5, 128, seed=1)
    layer = tt.Linear(tt.Weight.quantize(weight, format), bias, activations=activations)
    expected = x.double() @ weight.double().T + bias
    assert (layer(x) - expected).norm() < limit * expected.norm()
    assert repr(layer) == f"Linear(128, 64, format='{format}')"


def test_linear_layers_share_weights_and_let_them_go():
    from tilewright.torch._weights import Prepared

    x = bf16(4, 128)
    layer = tt.Linear(bf16(64, 128, seed=1))
    other = copy.deepcopy(layer)
    assert torch.equal(layer(x), other(x)) and layer._handle == other._handle
    assert torch.equal(torch.compile(layer, fullgraph=True)(x), layer(x))
    torch.library.opcheck(torch.ops.tilewright.linear.default, (x, None, layer._handle, 64, torch.bfloat16))
    handle = layer._handle
    torch._dynamo.reset()
    del layer, other
    gc.collect()
    with pytest.raises(tilewright.InvalidArgument, match="the module that prepared it is gone"):
        Prepared.of(handle)
    with pytest.raises(tilewright.InvalidArgument, match=r"x float32.*expected bfloat16"):
        tt.Linear(bf16(64, 128))(x.float())


def experts(x, ids, weights, gate, up, down, limit=None):
    out = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
    for t, i in (ids >= 0).nonzero().tolist():
        e = ids[t, i]
        g, u = gate[e].double() @ x[t].double(), up[e].double() @ x[t].double()
        g, u = (g.clamp(max=limit), u.clamp(-limit, limit)) if limit else (g, u)
        out[t] += weights[t, i] * (down[e].double() @ (torch.nn.functional.silu(g) * u))
    return out


@pytest.mark.parametrize("options, limit", [
    ({}, 0.006), ({"limit": 0.5}, 0.006), ({"weight_after_down": True}, 0.006), ({"format": "fp8"}, 0.08),
    ({"format": "nvfp4"}, 0.25),
], ids=str)
def test_moe(options, limit):
    gate, up, down = bf16(4, 64, 128) / 8, bf16(4, 64, 128, seed=1) / 8, bf16(4, 128, 64, seed=2) / 8
    x, weights = bf16(6, 128), torch.rand(6, 2, device=place())
    ids = i32([[0, 1], [2, -1], [3, 0], [1, 2], [3, 1], [0, 3]])
    layer = tt.Moe(gate, up, down, **options)
    expected = experts(x, ids, weights, gate, up, down, options.get("limit"))
    assert (layer(x, ids, weights) - expected).norm() < limit * expected.norm()


def test_moe_op_is_what_it_says_and_compiles():
    layer = tt.Moe(bf16(2, 64, 128), bf16(2, 64, 128, seed=1), bf16(2, 128, 64))
    args = bf16(3, 128), i32([[0], [1], [-1]]), torch.rand(3, 1, device=place())
    torch.library.opcheck(torch.ops.tilewright.moe.default, (*args, layer._handle, 0.0, False, torch.bfloat16))
    assert torch.equal(torch.compile(layer, fullgraph=True)(*args), layer(*args))
    with pytest.raises(tilewright.InvalidArgument, match=r"ids int64\[3, 1\]"):
        layer(args[0], args[1].long(), args[2])
    with pytest.raises(tilewright.InvalidArgument, match="2 gates, 1 ups"):
        tt.Moe(bf16(2, 64, 128), bf16(1, 64, 128), bf16(2, 128, 64))


@pytest.mark.parametrize("has_weights", [True, False])
def test_moe_of_tokens_behind_each_other(has_weights):
    gate, up, down = bf16(4, 64, 128) / 8, bf16(4, 64, 128, seed=1) / 8, bf16(4, 128, 64, seed=2) / 8
    x, weights = bf16(9, 128), torch.rand(9, device=place()) if has_weights else None
    layer = tt.Moe(gate, up, down, limit=0.5)
    for sizes in ([3, 0, 4, 1], [0, 5, -7, 99], [3, 0, 4, 1]):  # the counts alone change: the call is known
        taken, rest = [], 9
        for size in sizes:
            taken.append(min(max(size, 0), rest))
            rest -= taken[-1]
        ids = torch.repeat_interleave(torch.arange(4), torch.tensor(taken)).int().to(place())[:, None]
        count = len(ids)
        factors = weights[:count, None] if has_weights else torch.ones(count, 1, device=place())
        expected = experts(x[:count], ids, factors, gate, up, down, 0.5)
        found = layer.grouped(x, i32(sizes), weights)
        assert (found[:count] - expected).norm() < 0.006 * expected.norm(), sizes
        assert torch.equal(found[:count], layer.grouped(x, i32(sizes), weights, expected=3)[:count])


def test_moe_grouped_op_is_what_it_says_and_compiles():
    layer = tt.Moe(bf16(2, 64, 128), bf16(2, 64, 128, seed=1), bf16(2, 128, 64))
    args = bf16(3, 128), i32([1, 2]), torch.rand(3, device=place())
    torch.library.opcheck(torch.ops.tilewright.moe_grouped.default, (*args, layer._handle, 0.0, False, 0))
    run = torch.compile(lambda *args: layer.grouped(*args), fullgraph=True)
    assert torch.equal(run(*args), layer.grouped(*args))
    x, counts, weights = args
    assert layer.grouped(x[:0], counts).shape == (0, 128)
    wanted = r"expected bfloat16 \[2, room, 128\] or \[rows, 128\], contiguous"
    for wrong in (x[:, :64], x.float(), x.expand(3, 3, 128).contiguous(), x[0], bf16(3, 256)[:, ::2]):
        with pytest.raises(tilewright.InvalidArgument, match=wanted):
            layer.grouped(wrong, counts)
    with pytest.raises(tilewright.InvalidArgument, match=r"counts int64\[2\].* expected int32\[2\]"):
        layer.grouped(x, counts.long())
    with pytest.raises(tilewright.InvalidArgument, match=r"weights float32\[2\].* expected float32\[3\]"):
        layer.grouped(x, counts, weights[:2])
    with pytest.raises(tilewright.InvalidArgument, match="expected_tokens = 4"):
        layer.grouped(x, counts, expected=4)
    with pytest.raises(TypeError, match="counts is None; expected a torch.Tensor"):
        layer.grouped(x, None)
    f32 = tt.Moe(bf16(2, 64, 128), bf16(2, 64, 128), bf16(2, 128, 64), out_dtype=torch.float32)
    with pytest.raises(tilewright.InvalidArgument, match="expected bfloat16 for grouped tokens"):
        f32.grouped(x, counts)


def test_rooms_want_block_scaled_activations():
    layer = tt.Moe(bf16(2, 64, 128), bf16(2, 64, 128), bf16(2, 128, 64))
    with pytest.raises(tilewright.Unsupported) as caught:
        layer.grouped(bf16(2, 5, 128), i32([1, 2]))
    assert "without room between them" in str(caught.value)


@pytest.mark.parametrize("rows, cols", [(5, 200), (130, 64)])
def test_quantize(rows, cols):
    from tilewright.torch._quantize import FORMATS

    x = bf16(rows, cols).float()
    levels = LEVELS.to(place())
    for name, format in FORMATS.items():
        done = tt.quantize(x, name)
        values = done.codes.float()
        if format.bits == 4:
            pairs = levels[(done.codes & 15).long()], levels[(done.codes >> 4).long()]
            values = torch.stack(pairs, -1).flatten(1)
        block = format.block[0], values.shape[1] // done.scales.shape[1]
        scales = done.scales.float().repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)
        found = values * scales * (done.tensor_scale if name == "nvfp4" else 1)
        error = (found[:rows, :cols] - x).norm() / x.norm()
        assert error < (0.14 if format.bits == 4 else 0.04), name
        assert not found[rows:].any() and not found[:, cols:].any(), name


def test_quantize_op_is_what_it_says():
    x = bf16(4, 64)
    torch.library.opcheck(torch.ops.tilewright.quantize.default, (x, "nvfp4", "nearest", None, None))
    given = torch.full((1,), 100.0, device=place())
    for one, other in zip(tt.quantize(x, encode_scale=given), tt.quantize(x, encode_scale=100.0), strict=True):
        assert torch.equal(one.view(torch.uint8), other.view(torch.uint8))
    with pytest.raises(tilewright.InvalidArgument, match="format='int4': expected one of 'nvfp4'"):
        tt.quantize(x, "int4")


def test_features_are_those_of_the_weight():
    """Wider rows, and rows of a wider matrix, hold enough memory for what is not there."""
    layer = tt.Linear(bf16(64, 128))
    wide = bf16(3, 256)
    for x in (wide, wide[:, :64], bf16(300, 64)):
        with pytest.raises(tilewright.InvalidArgument, match=r"x bfloat16.*expected those of the weight, 128 in"):
            layer(x)
    with pytest.raises(tilewright.InvalidArgument, match="and 32 out features: expected .* 64 out features"):
        torch.ops.tilewright.linear(wide[:, :128], None, layer._handle, 32, torch.bfloat16)
    experts = tt.Moe(bf16(2, 64, 128), bf16(2, 64, 128), bf16(2, 128, 64))
    for cols in (64, 256):
        with pytest.raises(tilewright.InvalidArgument, match=r"expected bfloat16 \[tokens, 128\]"):
            experts(bf16(3, cols), i32([[0]] * 3), torch.ones(3, 1, device=wide.device))
