"""Linear layers, quantising and mixtures of experts against float64.

Tolerance: products and sums are of fp32; results are rounded to bf16 once, by at most 2^-8 of their size, the
middle of an expert once more. Weights are taken as decoded, so their rounding is no error.
"""

import numpy as np
import pytest

import tilewright
from bf16 import NAN, bf16, random_bf16, wide

pytestmark = pytest.mark.usefixtures("kernels")


@pytest.fixture(scope="session", params=["sim:h200", "sim:b200"])
def dev(request):
    return tilewright.Device(request.param)

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def e4m3(codes):
    codes = codes.astype(np.int64)
    exponent, mantissa = codes >> 3 & 15, codes & 7
    size = np.where(exponent, np.exp2(exponent - 7.0) * (1 + mantissa / 8), mantissa * 2.0**-9)
    return np.where(codes & 127 == 127, np.nan, np.where(codes & 128, -size, size))


def e2m1(codes):
    return np.stack([E2M1[codes & 15], E2M1[codes >> 4]], -1).reshape(*codes.shape[:-1], -1)


def quantize(numbers, name, **options):
    """Codes by rows (perhaps more than n), scales, and 1 / G of bf16 numbers [n, k], by the host."""
    n, k = numbers.shape
    problem = {"format": name, "dtype": "bf16", "rows": n, "cols": k, **options}
    code_bytes, scale_bytes = tilewright.quantize_sizes(**problem)
    codes, scales = (np.full(size, 0xa5, np.uint8) for size in (code_bytes, scale_bytes))
    tensor_scale = np.full(1, np.nan, np.float32)
    arguments = {"in_": numbers, "codes": codes, "scales": scales}
    arguments |= {"tensor_scale": tensor_scale} if name == "nvfp4" else {}
    tilewright.quantize_on_host(problem, arguments)
    row_bytes = k // 2 if name.endswith("fp4") else k
    return codes.reshape(-1, row_bytes), scales, tensor_scale[0]


def weight(dev, numbers, name, activations="bf16"):
    """A prepared weight, and what it means."""
    n, k = numbers.shape
    source = {"format": name, "n": n, "k": k, "activations": activations}
    if name == "bf16":
        return source | {"values": numbers}, wide(numbers)
    if name == "fp8":
        codes, scales, _ = quantize(numbers, "fp8_128x128")
        codes, scales = codes[:n].copy(), scales.view(np.float32).reshape(-(-n // 128), -(-k // 128))
        wide_scales = np.kron(scales, np.ones((128, 128)))[:n, :k]
        return source | {"values": codes, "scales": scales}, e4m3(codes) * wide_scales
    codes, scales, tensor_scale = quantize(numbers, name)
    if name == "mxfp4":
        factors = np.exp2(scales.reshape(n, -1).astype(np.float64) - 127)
        return source | {"values": codes, "scales": scales}, e2m1(codes) * np.repeat(factors, 32, 1)
    factors = e4m3(scales.reshape(n, -1)) * tensor_scale
    return source | {"values": codes, "scales": scales, "global_scale": float(tensor_scale)}, \
        e2m1(codes) * np.repeat(factors, 16, 1)


@pytest.mark.parametrize("m", [1, 19, 130])
@pytest.mark.parametrize("name", ["bf16", "fp8", "mxfp4", "nvfp4"])
def test_linear(dev, name, m):
    rng = np.random.default_rng(m)
    n, k = 144, 256
    source, expected_weight = weight(dev, random_bf16(rng, n, k), name)
    x, bias = random_bf16(rng, m, k), rng.standard_normal(n).astype(np.float32)
    out = np.full((m, n), NAN)
    prepared = tilewright.LinearWeight(dev, **source)
    assert prepared.bytes > 0
    op = tilewright.Linear(prepared, m=m, has_bias=True)
    assert op.kernel and op.workspace_bytes >= 0 and op.flops == 2 * m * n * k and op.plan.bytes > 0
    op.run(x=x, bias=bias, out=out)
    expected = wide(x) @ expected_weight.T + bias
    np.testing.assert_allclose(wide(out), expected, rtol=2**-7, atol=1e-4 * np.abs(expected).max())


def scaled_source(rng, name, n, k):
    """A weight of 4 bits, or of 8 with scales of 128 x 128 that are powers of two; and what it means."""
    if name != "fp8":
        source, numbers = weight(None, random_bf16(rng, n, k), name)
        del source["activations"]
        return source, numbers
    codes = rng.integers(0, 256, (n, k), np.uint8)
    codes[codes & 127 == 127] = 0  # no NaN
    scales = np.exp2(rng.integers(-9, -5, (-(-n // 128), -(-k // 128)))).astype(np.float32)
    source = {"format": name, "n": n, "k": k, "values": codes, "scales": scales, "scale_dtype": "f32"}
    return source, e4m3(codes) * np.kron(scales, np.ones((128, 128)))[:n, :k]


@pytest.mark.parametrize("m", [1, 70])
@pytest.mark.parametrize("name", ["fp8", "mxfp4", "nvfp4"])
def test_block_scaled_linear_on_blackwell(name, m):
    rng = np.random.default_rng(m)
    n, k = 144, 256
    blackwell = tilewright.Device("sim:b200")
    source, expected_weight = scaled_source(rng, name, n, k)
    form = "nvfp4" if name == "nvfp4" else "mxfp8"
    numbers = random_bf16(rng, m, k)
    codes, plain, tensor_scale = quantize(numbers, form)
    _, scales, _ = quantize(numbers, form, has_128x4_scales=True)
    if form == "nvfp4":
        x = e2m1(codes[:m]) * np.repeat(e4m3(plain.reshape(-1, k // 16)[:m]), 16, 1) * tensor_scale
    else:
        factors = np.exp2(plain.reshape(-1, k // 32)[:m].astype(np.float64) - 127)
        x, tensor_scale = e4m3(codes[:m]) * np.repeat(factors, 32, 1), 1
    prepared = tilewright.BlockScaledWeight(blackwell, **source)
    op = tilewright.BlockScaledLinear(prepared, m=m)
    assert op.flops == 2 * m * n * k and op.x_scales_bytes == scales.nbytes
    out = np.full((m, n), NAN)
    op.run(x=codes, x_scales=scales, out=out, x_tensor_scale=float(tensor_scale))
    expected = x @ expected_weight.T
    np.testing.assert_allclose(wide(out), expected, rtol=2**-7, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["bf16", "fp8"])
def test_groups_of_a_weight_take_columns_of_their_own(dev, name):
    rng = np.random.default_rng(6)
    groups, n, k, m = 2, 256, 128, 3
    source, w = weight(dev, random_bf16(rng, n, k), name)
    x = random_bf16(rng, m, groups * k)
    out = np.full((m, n), NAN)
    made = tilewright.LinearWeight(dev, **source, groups=groups)
    tilewright.Linear(made, m=m).run(x=x, out=out)
    parts, rows = wide(x).reshape(m, groups, k), w.reshape(groups, n // groups, k)
    exact = np.einsum("mgk,gnk->mgn", parts, rows).reshape(m, n)
    size = np.einsum("mgk,gnk->mgn", abs(parts), abs(rows)).reshape(m, n)
    # Half a unit of bf16's eighth bit, and sums of k products in fp32.
    assert np.all(abs(wide(out) - exact) <= 2.0**-8 * abs(exact) + k * 2.0**-23 * size)


def test_linear_of_rows_with_strides(dev):
    rng = np.random.default_rng(1)
    source, expected_weight = weight(dev, random_bf16(rng, 32, 128), "bf16")
    x, out = random_bf16(rng, 7, 256), np.full((7, 48), np.nan, np.float32)
    op = tilewright.Linear(tilewright.LinearWeight(dev, **source), m=7, x_stride=256, out_stride=48,
                           out_dtype="f32")
    op.run(x=x[:, :128], out=out[:, :32])
    np.testing.assert_allclose(out[:, :32], wide(x[:, :128]) @ expected_weight.T, rtol=1e-4, atol=1e-4)
    assert np.isnan(out[:, 32:]).all()


@pytest.mark.parametrize("name", ["nvfp4", "mxfp4", "mxfp8", "fp8_1x128", "fp8_1x128_ue8m0", "fp8_token",
                                  "fp8_128x128"])
def test_quantize_gives_the_bytes_of_the_host(dev, name):
    rng = np.random.default_rng(2)
    numbers = random_bf16(rng, 37, 256, scale=3.0)
    codes, scales, tensor_scale = quantize(numbers, name)
    made = np.full(codes.size, 0x5a, np.uint8), np.full(scales.size, 0x5a, np.uint8)
    found = np.full(1, np.nan, np.float32)
    op = tilewright.Quantize(dev, format=name, dtype="bf16", rows=37, cols=256)
    op.run(in_=numbers, codes=made[0], scales=made[1], tensor_scale=found if name == "nvfp4" else None)
    assert (made[0] == codes.ravel()).all() and (made[1] == scales).all()
    if name == "nvfp4":
        assert found[0] == tensor_scale


def test_quantized_numbers_are_near(dev):
    """e4m3 keeps 4 bits: half a unit is 2^-4 of the number."""
    numbers = random_bf16(np.random.default_rng(3), 9, 128)
    codes, scales, _ = quantize(numbers, "fp8_1x128")
    near = e4m3(codes) * scales.view(np.float32).reshape(9, 1)
    np.testing.assert_allclose(near, wide(numbers), rtol=2**-4, atol=np.abs(wide(numbers)).max() * 2**-9)


def silu(x):
    return x / (1 + np.exp(-x))


def experts(rng, dev, count, hidden, inter, name):
    """Sources of gate, up and down, and what they mean."""
    shapes = {"gate": (inter, hidden), "up": (inter, hidden), "down": (hidden, inter)}
    made = {part: [weight(dev, random_bf16(rng, *shape, scale=shape[1]**-0.5), name) for _ in range(count)]
            for part, shape in shapes.items()}
    return {part: [source for source, _ in pairs] for part, pairs in made.items()}, \
        {part: [numbers for _, numbers in pairs] for part, pairs in made.items()}


@pytest.mark.parametrize("name", ["bf16", "nvfp4"])
@pytest.mark.parametrize("routing", ["given", "logits"])
def test_moe(dev, name, routing):
    rng = np.random.default_rng(4)
    count, hidden, inter, tokens, topk = 5, 128, 128, 9, 2
    sources, numbers = experts(rng, dev, count, hidden, inter, name)
    weights = tilewright.MoeWeights(dev, **sources)
    x = random_bf16(rng, tokens, hidden)
    ids = np.stack([rng.permutation(count)[:topk] for _ in range(tokens)]).astype(np.int32)
    factors = rng.random((tokens, topk), np.float32)
    given = {"ids": ids, "weights": factors}
    if routing == "logits":
        logits = rng.standard_normal((tokens, count)).astype(np.float32)
        ids = np.argsort(-logits, axis=1, kind="stable")[:, :topk]
        chosen = np.exp(np.take_along_axis(logits.astype(np.float64), ids, 1))
        factors, given = chosen / chosen.sum(1, keepdims=True), {"logits": logits}
    op = tilewright.Moe(weights, tokens=tokens, topk=topk, routing=routing, out_dtype="f32", swiglu_limit=2.0,
                        weight_after_down=True)
    out = np.full((tokens, hidden), np.nan, np.float32)
    op.run(x=x, out=out, **given)
    expected = np.zeros((tokens, hidden))
    for t in range(tokens):
        for e, factor in zip(ids[t], factors[t]):
            gate = np.minimum(numbers["gate"][e] @ wide(x[t]), 2.0)
            up = np.clip(numbers["up"][e] @ wide(x[t]), -2.0, 2.0)
            expected[t] += factor * (numbers["down"][e] @ (silu(gate) * up))
    np.testing.assert_allclose(out, expected, rtol=0, atol=2**-6 * np.abs(expected).max())


def test_moe_of_tokens_that_come_grouped(dev):
    rng = np.random.default_rng(7)
    counts, hidden, inter, rows = np.array([4, 0, 7], np.int32), 128, 128, 13
    sources, numbers = experts(rng, dev, len(counts), hidden, inter, "nvfp4")
    op = tilewright.Moe(tilewright.MoeWeights(dev, **sources), tokens=rows, topk=1, routing="contiguous",
                        expected_tokens=5)
    x, factors, out = random_bf16(rng, rows, hidden), rng.random(rows, np.float32), bf16(np.ones((rows, hidden)))
    op.run(x=x, counts=counts, weights=factors, out=out)
    for row, e in enumerate(np.repeat(np.arange(3), counts)):
        gate, up = numbers["gate"][e] @ wide(x[row]), numbers["up"][e] @ wide(x[row])
        expected = factors[row] * (numbers["down"][e] @ (silu(gate) * up))
        np.testing.assert_allclose(wide(out[row]), expected, rtol=0, atol=2**-6 * np.abs(expected).max())
    assert (wide(out[counts.sum():]) == 1).all()


def test_moe_check_names_ids_that_are_no_experts(dev):
    rng = np.random.default_rng(5)
    sources, _ = experts(rng, dev, 4, 128, 128, "bf16")
    op = tilewright.Moe(tilewright.MoeWeights(dev, **sources), tokens=2, topk=2)
    buffers = {"x": random_bf16(rng, 2, 128), "ids": np.array([[0, 9], [1, 2]], np.int32),
               "weights": np.ones((2, 2), np.float32), "out": np.full((2, 128), NAN)}
    held = {}
    for name, array in buffers.items():
        held[name] = tilewright.empty(dev, array.shape, "bf16" if array.dtype == np.uint16 else array.dtype)
        held[name].upload(array)
    held["workspace"] = tilewright.Buffer(dev, op.workspace_bytes)
    held["workspace"].fill(0xff)
    op.run(**held)
    with pytest.raises(tilewright.InvalidArgument, match="9"):
        op.check(**held)


@pytest.mark.parametrize("change, text", [
    ({"experts": 3}, "gate has 4 entries; experts = 3"),
    ({"up": []}, "a list of dicts"),
    ({"down": [{}]}, "down has 1 entries; experts = 4"),
    ({"shared_gate": [{}, {}]}, "expected a dict"),
    ({"gate": [{"values": b"", "n": 1.5}] * 4}, r"gate\[0\].n = 1.5; expected an int"),
])
def test_what_weights_refuse(dev, change, text):
    sources, _ = experts(np.random.default_rng(6), dev, 4, 128, 128, "bf16")
    with pytest.raises((tilewright.InvalidArgument, TypeError), match=text):
        tilewright.MoeWeights(dev, **(sources | change))


def test_weights_print_what_they_are(dev):
    source, _ = weight(dev, bf16(np.ones((32, 128))), "bf16")
    made = tilewright.LinearWeight(dev, **source)
    assert repr(made) == ("tilewright.LinearWeight({!r}, format='bf16', n=32, k=128, "
                          "values=...)").format(dev)
    with pytest.raises(TypeError, match="cannot be pickled"):
        made.__reduce__()
