"""tilewright.torch's attention against float64, as operators of torch, compiled, and on bad input.

Tolerance: a result is rounded to bf16, by 2^-8 of itself at most, and is below max|v| < 5; roundings of the
weights, much smaller parts of it, average out.
"""

import pytest

torch = pytest.importorskip("torch")

import tilewright  # noqa: E402
import tilewright.torch as tt  # noqa: E402
import torch_reference as reference  # noqa: E402
from torch_reference import bf16, close, i32  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")
LIMIT = 2e-2
E4M3 = torch.float8_e4m3fn


def operands(b=2, s=20, t=33, heads=4, kv_heads=2, d=64):
    return bf16(b, s, heads, d), bf16(b, t, kv_heads, d, seed=1), bf16(b, t, kv_heads, d, seed=2)


@pytest.mark.parametrize("options", [
    {}, {"causal": True}, {"window": (5, 3)}, {"window": (7, -1)}, {"softcap": 5.0}, {"scale": 0.3},
    {"causal": True, "window": (4, 9)},
], ids=str)
def test_attention(options):
    q, k, v = operands()
    out, lse = tt.attention(q, k, v, return_lse=True, **options)
    expected = reference.attention(q, k, v, **options)
    close(out, expected[0], LIMIT)
    close(lse, expected[1], 1e-5)
    assert torch.equal(tt.attention(q, k, v, **options), out)
    into = torch.empty_like(q)
    assert tt.attention(q, k, v, out=into, **options) is into and torch.equal(into, out)


def test_attention_with_sink_strides_and_fp16():
    q, k, v = operands()
    sink = torch.randn(4, device=q.device)
    q = q.transpose(1, 2).contiguous().transpose(1, 2)
    kv = torch.stack((k, v), 2)
    out = tt.attention(q, kv[:, :, 0], kv[:, :, 1], sink=sink)
    close(out, reference.attention(q, k, v, sink=sink)[0], LIMIT)
    half = [x.half() for x in (q, k, v)]
    close(tt.attention(*half), reference.attention(*half)[0], LIMIT / 4)


def test_attention_without_keys_gives_zeros():
    q, k, v = operands(t=3)
    out, lse = tt.attention(q, k, v, causal=True, return_lse=True)
    assert not out[:, :17].any() and (lse[:, :, :17] == -torch.inf).all()
    assert tt.attention(q[:, :0], k, v).shape == (2, 0, 4, 64)


@pytest.mark.parametrize("kind", ["number", "expanded", "heads", "mixed"])
def test_attention_of_e4m3(kind):
    q, k, v = (x.to(E4M3) for x in operands())
    scales = torch.rand(3, 2, 2, device=q.device) + 0.5
    if kind == "number":
        scales = [x[:1, 0] for x in scales]
    elif kind == "expanded":
        scales = [x[0, 0].expand(2, 2) for x in scales]
    elif kind == "mixed":
        scales = [scales[0], None, scales[2][0, 0].expand(2, 2)]
    names = ("q_descale", "k_descale", "v_descale")
    out = tt.attention(q, k, v, **dict(zip(names, scales, strict=True)))
    wide = []
    for x, scale in zip((q, k, v), scales, strict=True):
        factor = torch.ones(2, 2, device=q.device) if scale is None else scale.expand(2, 2)
        factor = factor.repeat_interleave(x.shape[2] // 2, 1)
        wide.append(x.double() * factor[:, None, :, None])
    assert out.dtype == torch.bfloat16
    close(out, reference.attention(*wide)[0], 0.2)


def test_attention_varlen():
    q, k, v = (x.flatten(0, 1) for x in operands(b=1, s=20, t=33))
    cu_q, cu_kv = i32([0, 7, 7, 20]), i32([0, 11, 20, 33])
    lengths = {"cu_q": cu_q, "cu_kv": cu_kv, "max_q": 13, "max_kv": 13}
    out, lse = tt.attention_varlen(q, k, v, causal=True, return_lse=True, **lengths)
    for a, b, c, d in ((0, 7, 0, 11), (7, 20, 20, 33)):
        expected = reference.attention(q[None, a:b], k[None, c:d], v[None, c:d], causal=True)
        close(out[None, a:b], expected[0], LIMIT)
        close(lse[None, :, a:b], expected[1], 1e-5)


def test_decode_appends_and_turns():
    q, k, v = operands(b=3, s=2, t=40)
    lengths = i32([17, 33, 5])
    new_k, new_v = bf16(3, 2, 2, 64, seed=3), bf16(3, 2, 2, 64, seed=4)
    k_cache, v_cache = k.clone(), v.clone()
    out, lse = tt.attention_decode(q, k_cache, v_cache, lengths=lengths, k_new=new_k, v_new=new_v,
                                   return_lse=True)
    for b, n in enumerate(lengths.tolist()):
        k[b, n : n + 2], v[b, n : n + 2] = new_k[b], new_v[b]
    assert torch.equal(k_cache, k) and torch.equal(v_cache, v)
    expected = reference.decode(q, k, v, lengths + 2, causal=True)
    close(out, expected[0], LIMIT)
    close(lse, expected[1], 1e-5)
    # By 90 degrees, pairs of halves: (x, y) to (-y, x), of all positions alike, so that scores stay.
    cos, sin = torch.zeros(64, 32, device=q.device), torch.ones(64, 32, device=q.device)
    turned = torch.cat((-k[..., 32:], k[..., :32]), -1)
    k_cache = turned.clone()
    again = tt.attention_decode(q, k_cache, v_cache, lengths=lengths, k_new=new_k, v_new=new_v,
                                rotary_cos=cos, rotary_sin=sin, interleaved=False)
    close(again, expected[0], LIMIT)
    assert torch.equal(k_cache, turned)


def test_tables_of_angles_that_are_not_two_dimensional_are_refused():
    q, k, v = operands(b=3, s=2, t=40)
    new_k, new_v = bf16(3, 2, 2, 64, seed=3), bf16(3, 2, 2, 64, seed=4)
    kept = k.clone()
    for shape in ((32,), (1, 64, 32)):
        angles = torch.ones(shape, device=q.device)
        sizes = ", ".join(map(str, shape))
        expected = rf"rotary_cos.*{sizes}.*expected \[positions, rotary_dim / 2\]; reshape both"
        with pytest.raises(tilewright.InvalidArgument, match=expected):
            tt.attention_decode(q, k, v, lengths=i32([17, 33, 5]), k_new=new_k, v_new=new_v, rotary_cos=angles,
                                rotary_sin=angles)
    assert torch.equal(k, kept)


@pytest.mark.parametrize("options", [{}, {"window": 6}, {"softcap": 4.0}, {"splits": 3}, {"causal": False}],
                         ids=str)
def test_decode_over_pages(options):
    q = bf16(2, 3, 4, 64)
    pages = torch.randperm(20, generator=torch.Generator().manual_seed(1))[:10].view(2, 5).int().to(q.device)
    k, v = bf16(20, 8, 2, 64, seed=1), bf16(20, 8, 2, 64, seed=2)
    lengths = i32([9, 37])
    out = tt.attention_decode(q, k, v, lengths=lengths, page_table=pages, **options)
    known = {name: options[name] for name in ("softcap",) if name in options}
    known |= {"causal": options.get("causal", True), "window": (options.get("window", -1), -1)}
    caches = (x[pages.long()].flatten(1, 2) for x in (k, v))
    expected = reference.decode(q, *caches, lengths, **known)
    close(out, expected[0], LIMIT)


def test_decode_over_e4m3_caches():
    q, k, v = operands(s=1, t=40)
    k8, v8, lengths = k.to(E4M3), v.to(E4M3), i32([17, 33])
    scales = torch.rand(2, 2, 2, device=q.device) + 0.5
    out = tt.attention_decode(q, k8, v8, lengths=lengths, k_descale=scales[0], v_descale=scales[1])
    wide = [x.double() * scale[:, None, :, None] for x, scale in ((k8, scales[0]), (v8, scales[1]))]
    close(out, reference.decode(q, *wide, lengths)[0], LIMIT)


def op_calls():
    q, k, v = operands()
    lengths = {"q": q[:, :2], "n": i32([17, 33])}
    whole = (q, k, v, None, None, None, None, None, None, 20, 33, None, True, -1, -1, 0.0, "auto")
    few = (lengths["q"], k.clone(), v.clone(), lengths["n"], None, None, None, None, None, True, None, None, None)
    few += (None, True, -1, 0.0, 0, "auto")
    ops = torch.ops.tilewright
    yield ops.attention.default, (*whole, True)
    yield ops.attention.default, (*whole, False)
    yield ops.attention_out.default, (*whole, torch.empty_like(q), None)
    yield ops.attention_decode.default, (*few, True)
    yield ops.attention_decode_out.default, (*few, torch.empty_like(lengths["q"]), None)


def test_ops_are_what_they_say():
    for op, args in op_calls():
        torch.library.opcheck(op, args)


def test_compiled_calls_give_the_same_bits():
    q, k, v = operands()
    lengths = i32([17, 31])

    def whole(q, k, v):
        return tt.attention(q * 2, k, v, causal=True, return_lse=True)

    def few(q, k, v):
        out = tt.attention_decode(q[:, :2] * 2, k, v, lengths=lengths, k_new=k[:, :2], v_new=v[:, :2])
        return out, k + 1

    for function in (whole, few):
        eager_caches, caches = (k.clone(), v.clone()), (k.clone(), v.clone())
        expected = function(q, *eager_caches)
        found = torch.compile(function, fullgraph=True)(q, *caches)
        for one, other in zip((*found, *caches), (*expected, *eager_caches), strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize("function", ["attention", "attention_decode"])
def test_backward_says_that_there_is_none(function):
    q, k, v = operands(s=2)
    q.requires_grad_()
    options = {"lengths": i32([17, 33])} if function == "attention_decode" else {}
    out = getattr(tt, function)(q, k, v, **options)
    with pytest.raises(NotImplementedError, match=f"{function} has no backward.*no_grad"):
        out.sum().backward()
    sink = torch.zeros(4, device=q.device, requires_grad=True)
    with pytest.raises(NotImplementedError, match=f"{function} has no backward"):
        getattr(tt, function)(q.detach(), k, v, sink=sink, **options).sum().backward()
    with torch.no_grad():
        assert torch.equal(getattr(tt, function)(q, k, v, **options), out)
    with pytest.raises(RuntimeError, match="requires grad"):
        getattr(tt, function)(q, k, v, out=torch.empty_like(out), **options)


@pytest.mark.parametrize("change, text", [
    (lambda q, k, v: (q, k[..., :32], v[..., :32]), "with the head size of q"),
    (lambda q, k, v: (q, k, v[:, :5]), "and v of k's shape but"),
    (lambda q, k, v: (q.half(), k, v), r"float16\[2, 20, 4, 64\].*expected one dtype"),
    (lambda q, k, v: (q[0], k, v), r"expected \[batch, tokens, heads, head_dim\]"),
    (lambda q, k, v: (q, k[:1], v[:1]), "the same batch"),
    (lambda q, k, v: (q.transpose(1, 3).contiguous().transpose(1, 3), k, v), r"q\.contiguous\(\) makes it so"),
    (lambda q, k, v: (q.double(), k.double(), v.double()), "bfloat16, float16 or float8_e4m3fn"),
    (lambda q, k, v: (q[:, :, :3], k, v), "heads"),
])
def test_bad_operands_are_named(change, text):
    with pytest.raises(tilewright.InvalidArgument, match=text):
        tt.attention(*change(*operands()))


@pytest.mark.parametrize("options, text", [
    ({"sink": torch.zeros(4, dtype=torch.bfloat16)}, r"sink bfloat16\[4\].*expected float32\[4\]"),
    ({"sink": torch.zeros(5)}, r"sink float32\[5\].*expected float32\[4\]"),
    ({"out": torch.zeros(2, 20, 4, 32)}, r"out float32.*expected \[2, 20, 4, 64\] on the device"),
    ({"softcap": -1.0}, "softcap"),
])
def test_bad_options_are_named(options, text):
    options = {name: x.to(reference.place()) if torch.is_tensor(x) else x for name, x in options.items()}
    with pytest.raises(tilewright.InvalidArgument, match=text):
        tt.attention(*operands(), **options)


def test_bad_lengths_are_named():
    q, k, v = operands(s=1)
    with pytest.raises(tilewright.InvalidArgument, match=r"lengths int64\[2\].*lengths.to\(.*torch.int32\)"):
        tt.attention_decode(q, k, v, lengths=torch.tensor([1, 2], device=q.device))
    with pytest.raises(tilewright.InvalidArgument, match=r"page_table int32\[3, 2\]"):
        tt.attention_decode(q, k, v, lengths=i32([1, 2]), page_table=i32([[0, 1]] * 3))
    with pytest.raises(tilewright.InvalidArgument, match="equal strides of both caches"):
        tt.attention_decode(q, k, torch.stack((v, v), 2)[:, :, 0], lengths=i32([1, 2]))


def test_other_things_than_dense_tensors():
    q, k, v = operands()
    assert tt.attention(*(x.to("meta") for x in (q, k, v))).device.type == "meta"
    with pytest.raises(tilewright.InvalidArgument, match="sparse_coo.*expected dense tensors"):
        tt.attention(q.to_sparse(), k, v)
    with pytest.raises(TypeError, match="q is a list; expected a torch.Tensor"):
        tt.attention([1.0], k, v)
    with pytest.raises(TypeError, match="k is None; expected a torch.Tensor"):
        tt.attention(q, None, v)
    with pytest.raises(TypeError, match="lengths is a ndarray; expected a torch.Tensor"):
        tt.attention_decode(q[:, :1], k, v, lengths=i32([3, 4]).cpu().numpy())
    with pytest.raises(TypeError, match="weight is a int; expected a torch.Tensor"):
        tt.Linear(3)
    with pytest.raises(TypeError, match="x is a str; expected a torch.Tensor"):
        tt.quantize("x")
    freed = q.clone()
    freed.untyped_storage().resize_(0)
    with pytest.raises((tilewright.InvalidArgument, RuntimeError)):
        tt.attention(freed, k, v)
    half = torch.view_as_complex(torch.randn(2, 20, 4, 64, 2, device=q.device)).conj().imag
    with pytest.raises(tilewright.InvalidArgument, match="last dimension contiguous"):
        tt.attention(half, half, half)


def test_tensors_of_the_host_want_a_simulated_device(monkeypatch):
    monkeypatch.delenv("TILEWRIGHT_DEVICE", raising=False)
    tt.set_device(None)
    x = torch.zeros(1, 1, 1, 64, dtype=torch.bfloat16)
    with pytest.raises(tilewright.InvalidArgument, match=r"set_device\('sim:h200'\)"):
        tt.attention(x, x, x)
    with pytest.raises(tilewright.InvalidArgument, match="only a simulated device"):
        tt.set_device("cuda:0")


def test_table_of_operators_is_bounded():
    from tilewright.torch import _context

    _context.table.clear()
    q, k, v = operands(b=1, s=1, t=1, heads=1, kv_heads=1)
    tt.attention(q, k, v)
    tt.attention(q, k, v)
    assert len(_context.table) == 1
    small = _context.Table(2)
    for key in range(5):
        small.add(key, str(key))
    assert len(small) == 2 and small.get(4) == "4" and small.get(0) is None
