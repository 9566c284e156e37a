"""Number formats on arrays, against ml_dtypes, which knows most of them, and the published formulas in numpy."""

import pytest

import tilewright
from tilewright import formats

np = pytest.importorskip("numpy")

# Ours -> ml_dtypes' or numpy's.
KNOWN = {"fp16": "float16", "bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
         "e3m2": "float6_e3m2fn", "e2m3": "float6_e2m3fn", "e2m1": "float4_e2m1fn", "ue8m0": "float8_e8m0fnu"}


def known_dtype(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    return np.dtype(getattr(ml_dtypes, KNOWN[name], KNOWN[name]))


def test_all_formats_are_listed():
    assert list(formats.formats()) == ["fp32", "fp16", "bf16", "tf32", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1",
                                       "ue8m0", "ue4m3"]
    assert formats.formats()["e4m3"].max == 448 and formats.formats()["e2m1"].bits == 4
    nvfp4 = formats.block_formats()["nvfp4"]
    assert (nvfp4.element, nvfp4.scale, nvfp4.block_cols, nvfp4.has_tensor_scale) == ("e2m1", "ue4m3", 16, True)


@pytest.mark.parametrize("name", KNOWN)
def test_every_code_decodes_as_elsewhere(name):
    dtype, bits = known_dtype(name), formats.formats()[name].bits
    codes = np.arange(1 << bits, dtype="uint16" if bits > 8 else "uint8")
    theirs = codes.view(dtype).astype("float32")
    np.testing.assert_array_equal(formats.decode(codes, name), theirs)


@pytest.mark.parametrize("name", [name for name in KNOWN if name != "ue8m0"])
def test_encoding_rounds_to_nearest_even(name):
    dtype = known_dtype(name)
    limit = formats.formats()[name].max
    x = np.random.default_rng(1).normal(size=20000).astype("float32") * min(limit / 5, 1e3)
    few = formats.decode(np.arange(8, dtype="uint8"), name)
    x = np.concatenate([x[abs(x) <= limit], [0, -0.0, limit, -limit], few])
    theirs = x.astype("float32").astype(dtype)
    word = "uint16" if dtype.itemsize == 2 else "uint8"
    np.testing.assert_array_equal(formats.encode(x.astype("float32"), name), theirs.view(word))
    np.testing.assert_array_equal(formats.round(x.astype("float32"), name), theirs.astype("float32"))


def test_rounding_and_saturation():
    x = np.array([0.3, -0.3, 1e9, np.nan], "float32")
    np.testing.assert_array_equal(formats.round(x, "e4m3"), np.array([0.3125, -0.3125, 448, np.nan], "float32"))
    assert formats.round(0.3, "e4m3", rounding="down") == np.float32(0.28125)
    assert np.isnan(formats.round(1e9, "e4m3", saturate=False))
    assert formats.round(1e9, "e5m2", saturate=False) == np.inf and formats.round(1e9, "e5m2") == 57344
    assert formats.encode([[1, 2]], "bf16").dtype == "uint16" and formats.encode(1.0, "tf32").dtype == "uint32"
    assert formats.encode([[1.0], [2.0]], "e4m3").shape == (2, 1)


def test_codes_are_packed():
    codes = np.arange(16, dtype="uint8")
    packed = formats.pack(codes, 4)
    np.testing.assert_array_equal(packed, codes[::2] | codes[1::2] << 4)
    np.testing.assert_array_equal(formats.unpack(packed, 4), codes)
    np.testing.assert_array_equal(formats.unpack(formats.pack(codes, 6), 6, 16), codes)
    assert formats.pack(codes[:3], 6).size == 3 and formats.unpack(packed, 4, 3).size == 3


@pytest.mark.parametrize("name", formats.block_formats())
def test_quantized_matrices(name):
    spec = formats.block_formats()[name]
    x = np.random.default_rng(2).normal(size=(5, 200)).astype("float32")
    made = formats.quantize(x, name)
    codes, scales = made.unpacked(), made.scale_values()
    rows, cols = -(-5 // spec.block_rows) * spec.block_rows, -(-200 // spec.block_cols) * spec.block_cols
    assert codes.shape == (rows, cols) and scales.shape == (rows // spec.block_rows, cols // spec.block_cols)
    spread = np.repeat(np.repeat(scales, spec.block_rows, 0), spec.block_cols, 1)
    by_hand = formats.decode(codes, spec.element) * spread * np.float32(made.tensor_scale)
    back = made.dequantize()
    assert back.dtype == "float32"
    np.testing.assert_array_equal(back, by_hand[:5, :200])
    assert not by_hand[5:].any() and not by_hand[:, 200:].any()
    largest = formats.formats()[spec.element].max
    step = {"e2m1": 1, "e4m3": 16}[spec.element] * spread[:5, :200] * made.tensor_scale
    saturates = abs(x) > largest * spread[:5, :200] * made.tensor_scale
    assert (abs(back - x) <= step * 1.01)[~saturates].all()


def test_nvfp4_is_the_published_arithmetic():
    """As block_scale.h states it, in numpy and by itself."""
    x = np.random.default_rng(3).normal(size=(7, 96)).astype("float32")
    made = formats.quantize(x, "nvfp4")
    encode_scale = np.float32(2688) / abs(x).max()
    amax = abs(x).reshape(7, 6, 16).max(-1)
    scales = formats.round(amax * (encode_scale * (np.float32(1) / np.float32(6))), "ue4m3")
    np.testing.assert_array_equal(made.scale_values(), scales)
    factor = np.float32(1) / (scales * (np.float32(1) / encode_scale))
    codes = formats.encode(x.reshape(7, 6, 16) * factor[..., None], "e2m1").reshape(7, 96)
    np.testing.assert_array_equal(made.unpacked(), codes)
    assert made.tensor_scale == np.float32(1) / encode_scale
    fixed = formats.quantize(x, "nvfp4", encode_scale=1.0)
    assert fixed.tensor_scale == 1
    best = formats.quantize(x, "nvfp4", scale_choice="four_over_six")
    assert ((best.dequantize() - x) ** 2).sum() < ((made.dequantize() - x) ** 2).sum()


def test_tensors_in_tensors_out():
    torch = pytest.importorskip("torch")
    x = torch.randn(4, 64)
    assert isinstance(formats.round(x, "e4m3"), torch.Tensor)
    assert torch.equal(formats.round(x, "bf16"), x.bfloat16().float())
    codes = formats.encode(x, "e4m3")
    assert torch.equal(codes.view(torch.float8_e4m3fn).float(), x.to(torch.float8_e4m3fn).float())
    made = formats.quantize(x.bfloat16(), "nvfp4")
    assert isinstance(made.codes, torch.Tensor) and made.dequantize().shape == (4, 64)
    three = formats.quantize(torch.randn(2, 3, 32), "mxfp4")
    assert three.dequantize().shape == (2, 3, 32) and three.codes.shape == (6, 16)


@pytest.mark.parametrize("call, text", [
    (lambda: formats.round(1.0, "e4m4"), "no format 'e4m4'; expected one of fp32"),
    (lambda: formats.encode(1.0, "e4m3", rounding="sideways"), "expected one of nearest_even"),
    (lambda: formats.decode(np.array([256], "uint16"), "e4m3"), "0x100; e4m3 has 8 bits"),
    (lambda: formats.quantize(np.ones((2, 16)), "nvfp5"), "no block format 'nvfp5'"),
    (lambda: formats.quantize(1.0, "nvfp4"), "at least one dimension"),
    (lambda: formats.quantize(np.ones((2, 16)), "nvfp4", encode_scale=0), "encode_scale = 0"),
    (lambda: formats.quantize(np.ones((2, 16)), "mxfp4", encode_scale=2.0), "mxfp4"),
    (lambda: formats.quantize(np.ones((2, 32)), "mxfp4", scale_choice="exact_best"), "mxfp4"),
    (lambda: formats.unpack(np.zeros(2, "uint8"), 4, 5), "5 codes of 4 bits in 2 bytes"),
    (lambda: formats.pack(np.zeros(2, "uint8"), 5), "5"),
    (lambda: formats.pack(np.full(2, 16, "uint8"), 4), "16|0x10"),
])
def test_wrong_calls_are_named(call, text):
    with pytest.raises(tilewright.InvalidArgument, match=text):
        call()


@pytest.mark.parametrize("rows, cols", [(1, 1), (128, 4), (130, 9), (300, 16)])
def test_scales_in_the_order_of_blackwell(rows, cols):
    scales = np.random.default_rng(4).integers(0, 256, (2, rows, cols), dtype="uint8")
    packed = formats.to_128x4(scales)
    across = -(-cols // 4)
    assert packed.shape == (2, -(-rows // 128) * across * 512)
    for row, col in ((0, 0), (rows - 1, cols - 1), (rows // 2, cols // 2)):
        at = (row // 128 * across + col // 4) * 512 + row % 32 * 16 + row % 128 // 32 * 4 + col % 4
        assert (packed[:, at] == scales[:, row, col]).all()
    assert packed.astype("int64").sum() == scales.astype("int64").sum()
    np.testing.assert_array_equal(formats.from_128x4(packed, rows, cols), scales)


def test_scales_are_in_the_order_of_the_quantiser():
    x = np.random.default_rng(5).normal(size=(130, 96)).astype("float32")
    problem = {"rows": 130, "cols": 96, "dtype": "f32", "format": "nvfp4"}
    found = []
    for is_swizzled in (False, True):
        given = problem | {"has_128x4_scales": is_swizzled}
        code_bytes, scale_bytes = tilewright.quantize_sizes(**given)
        arguments = {"in_": x, "codes": np.zeros(code_bytes, "uint8"), "scales": np.zeros(scale_bytes, "uint8"),
                     "tensor_scale": np.zeros(1, "float32")}
        tilewright.quantize_on_host(given, arguments)
        found.append(arguments["scales"])
    np.testing.assert_array_equal(formats.to_128x4(found[0].reshape(130, 6)), found[1])


def test_bad_scales_are_named():
    with pytest.raises(tilewright.InvalidArgument, match="to_128x4: float32; expected elements of one byte"):
        formats.to_128x4(np.zeros((2, 2), "float32"))
    with pytest.raises(tilewright.InvalidArgument, match="to_128x4: scales of 1 dimensions"):
        formats.to_128x4(np.zeros(2, "uint8"))
    with pytest.raises(tilewright.InvalidArgument, match=r"shape \(3,\); expected \[..., 512\] for 2 x 2"):
        formats.from_128x4(np.zeros(3, "uint8"), 2, 2)


@pytest.mark.parametrize("name", ["e4m3", "e5m2", "e2m1", "bf16", "fp16"])
def test_stochastic_rounding(name):
    """Never beyond the neighbours, what is exact stays, no random bits truncate, and the mean is the number."""
    rng = np.random.default_rng(6)
    limit = formats.formats()[name].max
    x = np.concatenate([rng.normal(size=500), [0.0, limit, -limit, 2 * limit]]).clip(-4, 4).astype("float32")
    low, high = (formats.round(x, name, rounding=word) for word in ("down", "up"))
    none = {"random_bits": np.zeros(x.shape, "uint32"), "num_random_bits": 0}
    zero = formats.round(x, name, rounding="stochastic", **none)
    np.testing.assert_array_equal(zero, formats.round(x, name, rounding="toward_zero"))
    total = np.zeros(x.shape)
    for bits in range(64):  # all of six bits, each once
        found = formats.round(x, name, rounding="stochastic", random_bits=np.full(x.shape, bits, "uint32"),
                              num_random_bits=6)
        assert ((found == low) | (found == high)).all()
        total += found
    assert (abs(total / 64 - x) <= (high - low) / 64).all()
    with pytest.raises(tilewright.InvalidArgument, match="expected random_bits"):
        formats.round(x, name, rounding="stochastic")
