"""flash_attn_with_kvcache with new keys in every form, and left padding in pages, against float64."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch")

import tilewright  # noqa: E402
import torch_reference as reference  # noqa: E402
from tilewright import compat  # noqa: E402
from tilewright.compat import flash_attn_interface as fa  # noqa: E402
from tilewright.torch import cache_append  # noqa: E402
from torch_reference import bf16, close, i32, place  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")
LIMIT = 2e-2
E4M3 = torch.float8_e4m3fn
BATCH, ROOM, PAGE = 3, 64, 8
LENGTHS, OFFSETS, PADDING = [17, 40, 0], [3, 20, 9], [4, 21, 0]


@pytest.fixture(autouse=True)
def fresh_stats():
    compat.reset_stats()


@pytest.fixture(params=["sim:h200", "sim:b200"])
def chip(request):
    if place() != "cpu":
        pytest.skip("the simulated chips")
    tilewright.torch.set_device(request.param)
    return request.param


def angles(positions, rotary_dim, dtype=torch.bfloat16):
    at = torch.arange(positions * rotary_dim // 2).view(positions, -1) * 0.37
    return at.cos().to(dtype).to(place()), at.sin().to(dtype).to(place())


def turn(x, positions, cos, sin, interleaved):
    """float64 of x [s, heads, d] at positions [s]."""
    x, half = x.double(), cos.shape[1]
    c, s = (t.double()[positions.clamp(max=t.shape[0] - 1)][:, None] for t in (cos, sin))
    out = x.clone()
    first, second = (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if interleaved else (
        slice(0, half), slice(half, 2 * half))
    a, b = x[..., first], x[..., second]
    out[..., first], out[..., second] = a * c - b * s, a * s + b * c
    return out


class Case:
    """Caches [b, ROOM, heads, d], new tokens of each sequence, queries, and what attention of them is."""

    def __init__(self, queries, new, d=64, dv=None, dtype=torch.bfloat16, heads=4, kv_heads=2):
        dv = dv or d
        self.queries, self.new = queries, new
        self.q = [bf16(n, heads, d, seed=i).to(dtype) for i, n in enumerate(queries)]
        self.k_new = [bf16(n, kv_heads, d, seed=10 + i).to(dtype) for i, n in enumerate(new)]
        self.v_new = [bf16(n, kv_heads, dv, seed=20 + i).to(dtype) for i, n in enumerate(new)]
        self.k = bf16(BATCH, ROOM, kv_heads, d, seed=30).to(dtype)
        self.v = bf16(BATCH, ROOM, kv_heads, dv, seed=40).to(dtype)

    def expected(self, *, causal=False, window=(-1, -1), rotary=None, offsets=LENGTHS, interleaved=True,
                 is_one=False, padding=(0, 0, 0), softcap=0.0, scale=None):
        """Results and lse of each sequence, and its keys."""
        made = []
        for b, n in enumerate(LENGTHS):
            q, new = self.q[b].double(), self.k_new[b].double()
            if rotary is not None:
                row = torch.arange(q.shape[0], device=q.device)
                q = turn(q, offsets[b] + row * (not is_one), *rotary, interleaved)
                row = torch.arange(new.shape[0], device=q.device)
                new = turn(new, offsets[b] + row, *rotary, interleaved)
            k = torch.cat((self.k[b, padding[b] : n].double(), new))[None]
            v = torch.cat((self.v[b, padding[b] : n].double(), self.v_new[b].double()))[None]
            found = reference.attention(q[None], k, v, causal=causal, window=window, softcap=softcap, scale=scale)
            made.append((found[0][0], found[1][0], k[0], v[0]))
        return made

    def given(self, *, pages=True, packed_q=False, packed_new=False, by_index=False):
        """Arguments, with caches of their own, and what gives a cache back as [b, ROOM, ...]."""
        k, v = self.k.clone(), self.v.clone()
        given = {"cache_seqlens": i32(LENGTHS)}
        back = lambda x: x  # noqa: E731
        if pages:
            order = torch.randperm(BATCH * ROOM // PAGE, generator=torch.Generator().manual_seed(1)).to(place())
            k, v = (x.view(-1, PAGE, *x.shape[2:])[order] for x in (k, v))
            table = torch.argsort(order)
            given["page_table"] = table.int().view(BATCH, -1)
            back = lambda x: x[table].view(BATCH, ROOM, *x.shape[2:])  # noqa: E731
        if by_index:
            swap = torch.tensor([2, 0, 1], device=place())
            given["cache_batch_idx"] = i32([1, 2, 0])
            if pages:
                given["page_table"] = given["page_table"][swap]
            else:
                k, v, back = k[swap], v[swap], lambda x: x[[1, 2, 0]]
        given |= {"k_cache": k, "v_cache": v}
        join = {True: torch.cat, False: torch.stack}
        given["q"] = join[packed_q](self.q)
        given["k"], given["v"] = join[packed_new](self.k_new), join[packed_new](self.v_new)
        if packed_q:
            given |= {"cu_seqlens_q": starts(self.queries), "max_seqlen_q": max(self.queries)}
        if packed_new:
            given["cu_seqlens_k_new"] = starts(self.new)
        return given, back

    def check(self, given, back, expected, padding=(0, 0, 0), limit=LIMIT, options=None):
        assert fa.can_implement("flash_attn_with_kvcache", **given, **(options or {})) == []
        out, lse, *_ = fa.flash_attn_with_kvcache(**given, **(options or {}), return_softmax_lse=True)
        begin = 0
        for b, (right, right_lse, k, v) in enumerate(expected):
            rows = slice(begin, begin + self.queries[b])
            begin = rows.stop
            if out.dim() == 3:
                found, found_lse = out[rows], lse[:, rows]
            else:
                found, found_lse = out[b], lse[b]
            close(found, right, limit)
            # turned operands were rounded to 2^-9 of themselves: scores are sums of 64 products of about 1
            close(found_lse, right_lse, limit)
            n = LENGTHS[b] + self.new[b]
            for cache, keys in ((given["k_cache"], k), (given["v_cache"], v)):
                if n > padding[b]:
                    close(back(cache)[b, padding[b] : n], keys, 2**-8 * float(keys.abs().max()))
        for cache, before in ((given["k_cache"], self.k), (given["v_cache"], self.v)):
            for b, n in enumerate(LENGTHS):  # nothing else was written
                assert torch.equal(back(cache)[b, :n], before[b, :n])
                assert torch.equal(back(cache)[b, n + self.new[b] :], before[b, n + self.new[b] :])


def starts(numbers):
    return i32([0, *itertools.accumulate(numbers)])


MASKS = [{}, {"causal": True}, {"window_size": (9, 2)}]


def masking(options):
    return {"causal": options.get("causal", False), "window": options.get("window_size", (-1, -1))}


@pytest.mark.parametrize("options", MASKS, ids=str)
@pytest.mark.parametrize("queries, new", [(1, 5), (4, 2), (3, 3), (20, 20), (18, 7), (2, 23)])
@pytest.mark.parametrize("pages", [True, False])
def test_other_numbers_of_new_keys(chip, options, queries, new, pages):
    case = Case([queries] * BATCH, [new] * BATCH)
    given, back = case.given(pages=pages)
    case.check(given, back, case.expected(**masking(options)), options=options)
    assert compat.stats() == {}


@pytest.mark.parametrize("queries, new", [(1, 1), (4, 4), (3, 0)])
@pytest.mark.parametrize("pages", [True, False])
def test_caches_of_different_strides_are_not_copied(chip, queries, new, pages):
    """Decode attention has one set of strides for both: such calls go to attention over pages."""
    case = Case([queries] * BATCH, [new] * BATCH)
    given, back = case.given(pages=pages)
    cache = given["v_cache"]
    apart = torch.full((*cache.shape[:2], 2 * cache.shape[2], cache.shape[3]), torch.nan, dtype=cache.dtype)
    given["v_cache"] = apart.to(cache.device)[:, :, ::2]
    given["v_cache"].copy_(cache)
    if new == 0:
        del given["k"], given["v"]
    case.check(given, back, case.expected(causal=True), options={"causal": True})
    assert compat.stats() == {}


@pytest.mark.parametrize("dtype", [torch.bfloat16, E4M3])
def test_the_stride_of_one_sequence_says_nothing(chip, dtype):
    """A batch of one, cut from caches of different numbers of rows, is decoded by the usual kernel."""
    q = bf16(1, 2, 4, 64).to(dtype)
    k, v = (bf16(2, rows, 2, 64, seed=rows).to(dtype)[:1, :48] for rows in (48, 60))
    assert k.stride() != v.stride()
    options = {"cache_seqlens": i32([41]), "causal": True}
    out, lse, *_ = fa.flash_attn_with_kvcache(q, k, v, **options, return_softmax_lse=True)
    right, right_lse = reference.attention(q, k[:, :41], v[:, :41], causal=True)
    close(out, right, LIMIT)
    close(lse, right_lse, 1e-4)
    assert "contiguous" not in compat.stats()


@pytest.mark.parametrize("options", [{"window_size": (9, 2)}, {"softcap": 3.0}, {"causal": True}], ids=str)
def test_values_of_256_take_what_attention_over_pages_has(chip, options):
    """Beside keys of 64 they have kernels of their own, which know no windows, softcaps and packed queries."""
    case = Case([3, 1, 6], [2, 5, 4], dv=256)
    given, back = case.given(packed_q=True, packed_new=True)
    expected = case.expected(**masking(options), softcap=options.get("softcap", 0.0))
    case.check(given, back, expected, options=options)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("has_offsets", [True, False])
@pytest.mark.parametrize("queries, options", [
    (1, {}), (4, {}), (4, {"causal": True}), (4, {"window_size": (9, 0)}), (19, {}), (19, {"causal": True}),
], ids=str)
def test_rotary(dtype, interleaved, has_offsets, queries, options):
    """Offsets of their own, and queries that turn alike where no mask counts from them."""
    case = Case([queries] * BATCH, [3] * BATCH, dtype=dtype)
    given, back = case.given()
    rotary = angles(64, 32, dtype)
    given |= {"rotary_cos": rotary[0], "rotary_sin": rotary[1], "rotary_interleaved": interleaved}
    if has_offsets:
        given["rotary_seqlens"] = i32(OFFSETS)
    expected = case.expected(**masking(options), rotary=rotary, offsets=OFFSETS if has_offsets else LENGTHS,
                             interleaved=interleaved, is_one=not options)
    case.check(given, back, expected, options=options, limit=4e-2)


def test_offsets_with_as_many_new_keys_as_queries():
    case = Case([2] * BATCH, [2] * BATCH)
    rotary = angles(64, 64)
    for options in MASKS[:2]:
        given, back = case.given()
        given |= {"rotary_cos": rotary[0], "rotary_sin": rotary[1], "rotary_seqlens": i32(OFFSETS)}
        expected = case.expected(**masking(options), rotary=rotary, offsets=OFFSETS, is_one=not options)
        case.check(given, back, expected, options=options, limit=4e-2)


@pytest.mark.parametrize("options", MASKS, ids=str)
@pytest.mark.parametrize("packed_q", [True, False])
@pytest.mark.parametrize("d, dv", [(64, 64), (96, 96), (192, 128)])
def test_packed_new_keys(options, packed_q, d, dv):
    """One sequence has none, one more than queries; all of them, and none, are turned."""
    case = Case([4, 1, 19] if packed_q else [2] * BATCH, [4, 0, 23], d=d, dv=dv)
    given, back = case.given(packed_q=packed_q, packed_new=True)
    case.check(given, back, case.expected(**masking(options)), options=options)
    given, back = case.given(packed_q=packed_q, packed_new=True, pages=False)
    rotary = angles(64, 32)
    given |= {"rotary_cos": rotary[0], "rotary_sin": rotary[1], "rotary_seqlens": i32(OFFSETS)}
    expected = case.expected(**masking(options), rotary=rotary, offsets=OFFSETS, is_one=not options)
    case.check(given, back, expected, options=options, limit=4e-2)


@pytest.mark.parametrize("options", [*MASKS, {"softcap": 5.0}], ids=str)
@pytest.mark.parametrize("queries", [1, 3, 19])
@pytest.mark.parametrize("pages, by_index", [(True, False), (False, True), (True, True)])
def test_left_padding_in_pages_and_by_index(chip, options, queries, pages, by_index):
    """Keys before the padding's end are not seen, though they are NaN."""
    case = Case([queries] * BATCH, [0] * BATCH)
    for b, n in enumerate(PADDING):
        case.k[b, :n] = case.v[b, :n] = torch.nan
    given, _ = case.given(pages=pages, by_index=by_index)
    del given["k"], given["v"]
    given |= {"cache_leftpad": i32(PADDING)}
    assert fa.can_implement("flash_attn_with_kvcache", **given, **options) == []
    out, lse, *_ = fa.flash_attn_with_kvcache(**given, **options, return_softmax_lse=True)
    known = masking(options) | {"softcap": options.get("softcap", 0.0)}
    for b, (right, right_lse, *_) in enumerate(case.expected(**known, padding=PADDING)):
        close(out[b], right, LIMIT)
        close(lse[b], right_lse, 1e-4)
    assert compat.stats() == {"leftpad": 1}


@pytest.mark.parametrize("packed_q", [True, False])
@pytest.mark.parametrize("pages", [True, False])
def test_left_padding_with_new_keys_that_turn(packed_q, pages):
    case = Case([4, 1, 19] if packed_q else [2] * BATCH, [3] * BATCH)
    given, back = case.given(packed_q=packed_q, pages=pages)
    rotary = angles(64, 32)
    given |= {"rotary_cos": rotary[0], "rotary_sin": rotary[1], "cache_leftpad": i32(PADDING)}
    expected = case.expected(causal=True, rotary=rotary, padding=PADDING)
    case.check(given, back, expected, PADDING, options={"causal": True}, limit=4e-2)


def test_padding_in_pages_with_gaps_between_them():
    """Keys and values of a page side by side, as vLLM has them."""
    case = Case([2] * BATCH, [0] * BATCH)
    given, _ = case.given()
    both = torch.stack((given["k_cache"], given["v_cache"]), 1)
    given |= {"k_cache": both[:, 0], "v_cache": both[:, 1], "k": None, "v": None, "cache_leftpad": i32(PADDING)}
    out = fa.flash_attn_with_kvcache(**given)
    for b, (right, *_) in enumerate(case.expected(padding=PADDING)):
        close(out[b], right, LIMIT)
    odd = torch.zeros(24 * PAGE * 2 * 64 + 24 * 8, dtype=torch.bfloat16, device=place())
    pages = odd.as_strided((24, PAGE, 2, 64), (PAGE * 2 * 64 + 8, 128, 64, 1))
    with pytest.raises(tilewright.Unsupported, match="equally many rows apart"):
        fa.flash_attn_with_kvcache(**given | {"k_cache": pages, "v_cache": pages})


@pytest.mark.parametrize("queries, has_scales", [(2, False), (2, True), (20, True)])
def test_new_codes_are_those_of_the_cache(queries, has_scales):
    """e4m3 of queries, caches and new tokens: scales of the cache are those of the new codes, too."""
    case = Case([queries] * BATCH, [queries] * BATCH, dtype=E4M3)
    given, back = case.given(pages=False)
    scale = [0.5, 0.7, 1.5] if has_scales else [1.0] * 3
    if has_scales:
        names = ("q_descale", "k_descale", "v_descale")
        given |= {name: torch.full((BATCH, 2), x, device=place()) for name, x in zip(names, scale, strict=True)}
    out = fa.flash_attn_with_kvcache(**given, causal=True)
    for b, (right, *_) in enumerate(case.expected(causal=True, scale=64**-0.5 * scale[0] * scale[1])):
        close(out[b], right * scale[2], 0.4 if queries > 16 else LIMIT * 2)
        new = slice(LENGTHS[b], LENGTHS[b] + queries)
        assert torch.equal(back(given["k_cache"])[b, new].view(torch.uint8), case.k_new[b].view(torch.uint8))
        assert torch.equal(back(given["v_cache"])[b, new].view(torch.uint8), case.v_new[b].view(torch.uint8))


@pytest.mark.parametrize("new, is_turned", [(2, False), (5, True)])
def test_new_keys_with_qv(new, is_turned):
    case = Case([2] * BATCH, [new] * BATCH, dv=256)
    qv = bf16(BATCH, 2, 4, 256, seed=7)
    given, back = case.given()
    rotary = angles(64, 32) if is_turned else None
    if rotary:
        given |= {"rotary_cos": rotary[0], "rotary_sin": rotary[1]}
    out = fa.flash_attn_with_kvcache(**given, qv=qv, causal=True)
    for b, n in enumerate(LENGTHS):
        k = back(given["k_cache"])[b : b + 1, : n + new]
        v = back(given["v_cache"])[b : b + 1, : n + new]
        right = case.expected(causal=True, rotary=rotary)[b]
        close(k[0], right[2], 2**-8 * float(right[2].abs().max()))
        assert torch.equal(v[0, n:], case.v_new[b])
        q = case.q[b].double()
        if rotary:
            q = turn(q, n + torch.arange(2, device=q.device), *rotary, True)
        wide = torch.cat((q, qv[b].double()), -1)[None], torch.cat((k, v), -1)
        close(out[b], reference.attention(*wide, v, causal=True, scale=320**-0.5)[0][0], 4e-2)


@pytest.mark.parametrize("change, field, text", [
    ({"k": bf16(3, 2, 2, 32), "v": bf16(3, 2, 2, 64)}, "k, v", "heads and dtype as the caches have"),
    ({"k": bf16(6, 2, 64), "v": bf16(6, 2, 64)}, "k, v", r"\[batch, tokens, heads, head_dim\]"),
    ({"k": bf16(3, 2, 2, 64), "v": bf16(3, 2, 2, 64), "rotary_cos": torch.ones(9, 12, device=place()),
      "rotary_sin": torch.ones(9, 12, device=place())}, "rotary_cos", "a multiple of 16"),
    ({"rotary_cos": torch.ones(9, 16, device=place()), "rotary_sin": torch.ones(9, 16, device=place())},
     "rotary_cos", "comes with new keys"),
    ({"cu_seqlens_k_new": i32([0, 2, 4, 6])}, "cu_seqlens_k_new", "comes with new keys"),
], ids=range(5))
def test_what_is_refused(change, field, text):
    case = Case([2] * BATCH, [2] * BATCH)
    given, _ = case.given()
    given |= {"k": None, "v": None, **change}
    with pytest.raises(tilewright.Unsupported, match=text) as error:
        fa.flash_attn_with_kvcache(**given)
    assert [reason.field for reason in error.value.reasons] == [field]
    assert fa.can_implement("flash_attn_with_kvcache", **given) == error.value.reasons


def test_cache_append_says_what_is_wrong():
    case = Case([2] * BATCH, [2] * BATCH)
    given, _ = case.given()
    call = {"lengths": given["cache_seqlens"], "page_table": given["page_table"]}
    caches, new = (given["k_cache"], given["v_cache"]), (given["k"], given["v"])
    grown, turned = cache_append(*caches, *new, **call)
    assert grown.tolist() == [n + 2 for n in LENGTHS] and turned is None
    with pytest.raises(tilewright.InvalidArgument, match="expected None without rotary_cos"):
        cache_append(*caches, *new, **call, q=given["q"])
    with pytest.raises(tilewright.InvalidArgument, match="lengths"):
        cache_append(*caches, *new, **call | {"lengths": given["cache_seqlens"].long()})
    with pytest.raises(tilewright.InvalidArgument, match="heads as k_cache"):
        cache_append(*caches, new[0], new[1][..., :32], **call)
    with pytest.raises(tilewright.InvalidArgument, match="k_new float32.*expected bfloat16, float16"):
        cache_append(*caches, new[0].float(), new[1].float(), **call)


def test_cache_append_compiles():
    """The operator declares what it writes."""
    case = Case([2] * BATCH, [3] * BATCH)
    given, back = case.given()
    rotary = angles(64, 32, torch.float32)

    def call(k_cache, v_cache, q):
        return cache_append(k_cache, v_cache, given["k"], given["v"], lengths=given["cache_seqlens"],
                            page_table=given["page_table"], q=q, rotary_cos=rotary[0], rotary_sin=rotary[1])

    caches = [x.clone() for x in (given["k_cache"], given["v_cache"])]
    expected = call(*caches, given["q"])
    compiled = torch.compile(call, backend="eager", fullgraph=True)(given["k_cache"], given["v_cache"], given["q"])
    assert all(map(torch.equal, expected, compiled))
    assert torch.equal(caches[0], given["k_cache"]) and torch.equal(caches[1], given["v_cache"])
    operator = torch.ops.tilewright.cache_append.default
    args = (*caches, given["k"], given["v"], given["cache_seqlens"], given["page_table"], None, given["q"], None)
    torch.library.opcheck(operator, (*args, *rotary, None, None, None, True, False))
