"""Attention over keys in pages, and with lengths on the device, as functions and operators of torch."""

import pytest

torch = pytest.importorskip("torch")

import tilewright  # noqa: E402
import tilewright.torch as tt  # noqa: E402
from tilewright.torch import _paged  # noqa: E402
from torch_reference import attention, bf16, close, i32, place  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")
E4M3 = torch.float8_e4m3fn
LIMIT = 2e-2  # values below 5, rounded to bf16 by 2^-8 of themselves at most


class Pages:
    """Sequences of (queries, keys) over pages in no order; what no sequence has is NaN."""

    def __init__(self, sequences, d=64, page=8, heads=4, dtype=torch.bfloat16):
        self.sequences, self.page = sequences, page
        self.q = bf16(sum(n for n, _ in sequences), heads, d).to(dtype)
        self.counts = [-(-n // page) for _, n in sequences]
        order = torch.randperm(sum(self.counts) + 1, generator=torch.Generator().manual_seed(3)).tolist()
        self.table = torch.full((len(sequences), max(self.counts) + 1), -1, dtype=torch.int32)
        self.k, self.v = (torch.full((len(order), page, 2, d), torch.nan, dtype=dtype) for _ in range(2))
        self.keys = []
        for b, (_, n) in enumerate(sequences):
            kv = [bf16(n, 2, d, seed=2 * b + i + 1).to(dtype).cpu() for i in range(2)]
            self.keys.append(kv)
            for i in range(self.counts[b]):
                page_number = order.pop()
                self.table[b, i] = page_number
                for cache, new in zip((self.k, self.v), kv, strict=True):
                    rows = new[i * page : (i + 1) * page]
                    cache[page_number, : len(rows)] = rows
        self.k, self.v, self.table = (x.to(place()) for x in (self.k, self.v, self.table))
        starts = [0]
        for n, _ in sequences:
            starts.append(starts[-1] + n)
        self.cu_q = i32(starts)
        self.max_q = max(n for n, _ in sequences)
        self.kv_lengths = i32([keys for _, keys in sequences])

    def given(self):
        return {"page_table": self.table, "kv_lengths": self.kv_lengths, "cu_q": self.cu_q, "max_q": self.max_q}

    def expected(self, **options):
        """out [rows, heads, d] and lse [heads, rows]."""
        parts = []
        rows = self.q.split([n for n, _ in self.sequences])
        for q, kv in zip(rows, self.keys, strict=True):
            if q.shape[0]:
                parts.append(attention(q[None], *(x[None].to(place()) for x in kv), **options))
        return torch.cat([out[0] for out, _ in parts]), torch.cat([lse[0] for _, lse in parts], 1)


MIXED = [(1, 40), (20, 20), (0, 8), (7, 29)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("options", [
    {}, {"causal": True}, {"causal": True, "window": (6, -1)}, {"window": (6, 3), "softcap": 4.0}, {"scale": 0.3},
], ids=str)
def test_prompts_in_parts_and_decoding_sequences_in_one_call(options, dtype):
    x = Pages(MIXED, dtype=dtype)
    out, lse = tt.attention_paged(x.q, x.k, x.v, **x.given(), **options, return_lse=True)
    expected = x.expected(**options)
    close(out, expected[0], LIMIT)
    close(lse, expected[1], 1e-5)
    again = torch.full_like(x.q, torch.nan)
    assert tt.attention_paged(x.q, x.k, x.v, **x.given(), **options, out=again) is again
    assert torch.equal(again, out)


def test_sinks_and_equally_many_queries():
    x = Pages([(5, 17), (5, 40)])
    sink = torch.tensor([0.5, -1.0, 2.0, 0.0], device=place())
    given = {name: value for name, value in x.given().items() if name in ("page_table", "kv_lengths")}
    q = x.q.view(2, 5, 4, 64)
    out, lse = tt.attention_paged(q, x.k, x.v, sink=sink, causal=True, return_lse=True, **given)
    expected = x.expected(causal=True, sink=sink)
    close(out.flatten(0, 1), expected[0], LIMIT)
    close(lse.transpose(0, 1).flatten(1), expected[1], 1e-5)


def test_rows_behind_the_queries_are_not_written():
    """The same room for all, and how many queries there are is known to the device alone."""
    x = Pages([(6, 17), (6, 40)])
    out, used = torch.full_like(x.q, 7.0), i32([2, 6])
    lse = tt.attention_paged(x.q, x.k, x.v, **x.given(), q_lengths=used, out=out, return_lse=True)[1]
    for b, n in enumerate(used.tolist()):
        begin, (_, keys) = 6 * b, x.sequences[b]
        k, v = (part[None].to(place()) for part in x.keys[b])
        expected = attention(x.q[None, begin : begin + n], k[:, :keys], v[:, :keys])
        close(out[None, begin : begin + n], expected[0], LIMIT)
        close(lse[None, :, begin : begin + n], expected[1], 1e-5)
        assert (out[begin + n : begin + 6] == 7).all()


def test_varlen_with_lengths_in_use():
    q, k, v = bf16(20, 4, 64), bf16(33, 2, 64, seed=1), bf16(33, 2, 64, seed=2)
    packing = {"cu_q": i32([0, 7, 20]), "cu_kv": i32([0, 11, 33]), "max_q": 13, "max_kv": 22}
    k[9:11] = v[9:11] = torch.nan
    out = tt.attention_varlen(q, k, v, **packing, causal=True, kv_lengths=i32([9, 20]))
    for rows, keys in ((slice(0, 7), slice(0, 9)), (slice(7, 20), slice(11, 31))):
        expected = attention(q[None, rows], k[None, keys], v[None, keys], causal=True)[0]
        close(out[None, rows], expected, LIMIT)


@pytest.mark.parametrize("chip", ["h200", "b200"])
@pytest.mark.parametrize("longest", [13, 22, 4000], ids="longest {}".format)
def test_longest_sequences_may_be_said_to_be_longer(longest, chip):
    """A bound is enough; rows behind the last sequence are padding, however many, and are not written."""
    run_on(chip)
    q, k, v = bf16(20, 4, 64), bf16(33, 2, 64, seed=1), bf16(33, 2, 64, seed=2)
    rows, keys = [slice(0, 7), slice(7, 20)], [slice(0, 11), slice(11, 33)]
    cu_q, cu_kv = i32([0, 7, 20]), i32([0, 11, 33])
    q, k, v = (torch.cat((x, torch.full_like(x[:1], torch.nan).expand(60, -1, -1))) for x in (q, k, v))
    lengths = {"cu_q": cu_q, "cu_kv": cu_kv, "max_q": longest, "max_kv": max(longest, 22)}
    in_pages = {"page_table": i32([[0], [1]]), "kv_lengths": i32([11, 22]), "cu_q": cu_q, "max_q": longest}
    pages = [torch.stack((x[0:22], x[11:33])) for x in (k, v)]
    for attend in (lambda out: tt.attention_varlen(q, k, v, **lengths, out=out),
                   lambda out: tt.attention_varlen(q, k, v, **lengths, kv_lengths=i32([11, 22]), out=out),
                   lambda out: tt.attention_paged(q, *pages, **in_pages, out=out)):
        out = attend(torch.full_like(q, 7.0))
        for row, key in zip(rows, keys, strict=True):
            close(out[None, row], attention(q[None, row], k[None, key], v[None, key])[0], LIMIT)
        assert (out[20:] == 7).all()


def test_chunks_are_sequences_of_their_own():
    """Of one sequence, packed and over pages; the last query stands at the last key."""
    x = Pages([(20, 29)])
    of_pages = tt.attention_paged(x.q, x.k, x.v, **x.given(), causal=True, chunk=12)
    k, v = (part[:29].to(place()) for part in x.keys[0])
    packing = {"cu_q": i32([0, 20]), "cu_kv": i32([0, 29]), "max_q": 20, "max_kv": 29}
    packed = tt.attention_varlen(x.q, k, v, **packing, causal=True, chunk=12)
    for rows, keys in ((slice(0, 3), slice(0, 12)), (slice(3, 15), slice(12, 24)), (slice(15, 20), slice(24, 29))):
        expected = attention(x.q[None, rows], k[None, keys], v[None, keys], causal=True)[0]
        close(of_pages[None, rows], expected, LIMIT)
        close(packed[None, rows], expected, LIMIT)


@pytest.mark.parametrize("d", [8, 40, 96, 160, 192, 200])
def test_every_head_size_is_read_as_it_is(d):
    x = Pages(MIXED, d=d, dtype=torch.float16 if d % 16 else torch.bfloat16)
    out, lse = tt.attention_paged(x.q, x.k, x.v, causal=True, return_lse=True, **x.given())
    expected = x.expected(causal=True)
    close(out, expected[0], LIMIT)
    close(lse, expected[1], 1e-5)


def in_e4m3(x, sharing):
    """The caches of x as codes, and scales of them and of queries; keys of x become what both stand for."""
    shape = (len(x.sequences), 2) if sharing == "head" else (1,)
    scales = {f"{name}_descale": torch.rand(shape, generator=torch.Generator().manual_seed(i)) + 0.4
              for i, name in enumerate("qkv")}
    x.k, x.v = x.k.to(E4M3), x.v.to(E4M3)
    for b, kv in enumerate(x.keys):
        for i, name in enumerate(("k_descale", "v_descale")):
            scale = scales[name][b, :, None] if sharing == "head" else scales[name]
            kv[i] = kv[i].to(E4M3).float() * scale
    return {name: scale.to(place()) for name, scale in scales.items()}


def run_on(chip):
    """The simulated one, or what there is."""
    if chip == "b200" and place() != "cpu":
        pytest.skip("the simulated B200")
    if place() == "cpu":
        tt.set_device(f"sim:{chip}")


@pytest.mark.parametrize("chip", ["h200", "b200"])
@pytest.mark.parametrize("sharing, page", [("tensor", 2), ("tensor", 16), ("head", 2), ("head", 16)])
def test_queries_of_16_bits_over_caches_of_e4m3(sharing, page, chip):
    run_on(chip)
    x = Pages(MIXED, page=page)
    scales = in_e4m3(x, sharing)
    options = {"causal": True, "window": (6, -1)}
    given = {**x.given(), **options, "k_descale": scales["k_descale"], "v_descale": scales["v_descale"]}
    out, lse = tt.attention_paged(x.q, x.k, x.v, **given, return_lse=True)
    expected = x.expected(**options)
    close(out, expected[0], LIMIT)
    close(lse, expected[1], 1e-5)
    again = torch.full_like(x.q, torch.nan)
    assert tt.attention_paged(x.q, x.k, x.v, **given, out=again) is again  # a known call
    assert torch.equal(again, out)


@pytest.mark.parametrize("chip", ["h200", "b200"])
@pytest.mark.parametrize("sharing", ["tensor", "head"])
def test_queries_of_e4m3_over_caches_of_e4m3(sharing, chip):
    run_on(chip)
    x = Pages(MIXED)
    scales, codes = in_e4m3(x, sharing), x.q.to(E4M3)
    rows = [n for n, _ in x.sequences]
    of_rows = scales["q_descale"] if sharing == "tensor" else torch.cat(
        [scale.repeat_interleave(2).expand(n, 4) for n, scale in zip(rows, scales["q_descale"], strict=True)]
    )[..., None]
    x.q = codes.float() * of_rows
    for dtype in (torch.bfloat16, torch.float16):
        out = torch.full(codes.shape, torch.nan, dtype=dtype, device=place())
        tt.attention_paged(codes, x.k, x.v, **x.given(), **scales, causal=True, out=out)
        # Weights are rounded to 2^-4 of themselves, and values are below 5 * 1.4.
        close(out, x.expected(causal=True)[0], 2**-4 * 7)
    out, lse = tt.attention_paged(codes, x.k, x.v, **x.given(), **scales, causal=True, return_lse=True)
    assert out.dtype is torch.bfloat16
    close(lse, x.expected(causal=True)[1], 2e-3)  # scores are sums of 13 bits


def test_operators_are_what_they_say():
    x = Pages([(3, 9), (2, 5)])
    options = (3, 0, None, True, -1, -1, 0.0, "auto")
    args = (x.q, x.k.nan_to_num(), x.v.nan_to_num(), x.table, None, x.kv_lengths, x.cu_q, *(None,) * 5, *options)
    torch.library.opcheck(torch.ops.tilewright.attention_paged.default, (*args, True))
    torch.library.opcheck(torch.ops.tilewright.attention_paged_out.default, (*args, torch.empty_like(x.q), None))
    shapes = torch.ops.tilewright.attention_paged(*(a.to("meta") if torch.is_tensor(a) else a for a in args), True)
    assert shapes[0].shape == x.q.shape and shapes[1].shape == (4, 5)


def test_no_kernel_is_a_reason_of_the_plan():
    x = Pages([(3, 9)])
    assert _paged.reasons_against(x.q.device, torch.bfloat16, 4, 2, 64) == ()
    wide = Pages([(3, 9)], d=264)
    with pytest.raises(tilewright.Unsupported, match="k6_pages: exists for head_dim 64, 96, 128, 192, 256"):
        tt.attention_paged(wide.q, wide.k, wide.v, **wide.given())
    reason, = _paged.reasons_against(x.q.device, torch.bfloat16, 4, 2, 264)
    assert (reason.value, reason.rule) == ("k6_pages", "exists for head_dim 64, 96, 128, 192, 256")
    assert _paged.reasons_against(x.q.device, E4M3, 4, 2, 64) == ()
    assert _paged.reasons_against(x.q.device, torch.float16, 4, 2, 64, None, E4M3) == ()
    reason, = _paged.reasons_against(x.q.device, E4M3, 4, 2, 272)
    assert (reason.value, reason.rule) == ("k7_pages", "exists for head_dim 64, 128, 256")
    if place() == "cpu":
        tt.set_device("sim:b200")
        assert _paged.reasons_against(x.q.device, torch.bfloat16, 4, 2, 64) == ()
        assert _paged.reasons_against(x.q.device, torch.bfloat16, 4, 2, 256) == ()
        with pytest.raises(tilewright.Unsupported, match="sm100_pages.*: exists for head_dim 64, 128, 256"):
            tt.attention_paged(wide.q, wide.k, wide.v, **wide.given())
        reason, = _paged.reasons_against(x.q.device, torch.bfloat16, 4, 2, 264)
        assert (reason.value, reason.rule) == ("sm100_pages", "exists for head_dim 64, 128, 256")
        reason, = _paged.reasons_against(x.q.device, torch.float16, 4, 2, 256, None, E4M3)
        assert (reason.value, reason.rule) == ("sm100_pages", "exists for head_dim 64, 128")
        assert _paged.reasons_against(x.q.device, E4M3, 4, 2, 256) == ()
        assert _paged.reasons_against(x.q.device, torch.float16, 4, 2, 64, None, E4M3) == ()
        reason, = _paged.reasons_against(x.q.device, E4M3, 4, 2, 272)
        assert (reason.value, reason.rule) == ("sm100_pages_e4m3", "exists for head_dim 64, 128, 256")


def refusals(x):
    yield {"max_q": None}, "max_q is None; with cu_q, expected the longest sequence's queries"
    yield {"page_table": None}, "page_table is None; expected int32"
    yield {"page_table": x.table.long()}, "page_table int64.*expected int32"
    yield {"kv_lengths": x.kv_lengths[:1]}, r"kv_lengths int32\[1\].*expected int32\[2\]"
    yield {"kv_lengths": None}, "kv_lengths is None; expected it with a page_table"
    yield {"q_lengths": x.kv_lengths[None]}, "q_lengths int32.*expected one dimension"
    yield {"cu_q": None}, r"q bfloat16.*expected \[rows, heads, head_dim\] with cu_q"
    yield {"sink": torch.ones(3, device=place())}, r"sink float32\[3\].*expected float32\[4\]"
    yield {"out": x.q.float()}, "out float32.*expected .* of torch.bfloat16 on the device of q"


def test_bad_input_is_one_sentence():
    x = Pages([(3, 9), (2, 5)])
    for change, text in refusals(x):
        with pytest.raises(tilewright.InvalidArgument, match=text) as error:
            tt.attention_paged(x.q, x.k, x.v, **{**x.given(), **change})
        assert "\n" not in str(error.value)
    with pytest.raises(tilewright.InvalidArgument, match="expected k with 4 dimensions"):
        tt.attention_paged(x.q, x.k[0], x.v[0], **x.given())
    with pytest.raises(TypeError, match="k is None; expected a torch.Tensor"):
        tt.attention_paged(x.q, None, x.v, **x.given())


def test_compiled_calls_give_the_same_bits():
    x = Pages([(3, 9), (2, 5)])

    def call(q):
        return tt.attention_paged(q * 2, x.k, x.v, **x.given(), causal=True, return_lse=True)

    found = torch.compile(call, fullgraph=True, backend="aot_eager")(x.q)
    assert all(map(torch.equal, found, call(x.q)))
