"""Calls that were made before: the second one goes straight to the operator, and only where nothing forbids it."""

import gc
import weakref

import pytest

torch = pytest.importorskip("torch")

import tilewright  # noqa: E402
import tilewright.torch as tt  # noqa: E402
from tilewright import _core  # noqa: E402
from tilewright.torch import _attention, _context, _decode, _sparse  # noqa: E402
from torch_layers_test import fp8_pages, lists  # noqa: E402
from torch_reference import bf16, i32, place  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")


def whole(seed=0, heads=4):
    return bf16(2, 20, heads, 64, seed=seed), bf16(2, 33, 2, 64, seed=seed + 1), bf16(2, 33, 2, 64, seed=seed + 2)


class Counting:
    """How often a table of operators was asked: known calls do not ask it."""

    def __init__(self, monkeypatch):
        self.asked = 0
        get = _context.table.get

        def count(key):
            self.asked += 1
            return get(key)

        monkeypatch.setattr(_context.table, "get", count)

    def during(self, call):
        before = self.asked
        return call(), self.asked - before


@pytest.fixture
def counting(monkeypatch):
    return Counting(monkeypatch)


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"return_lse": True}, {"window": (4, 2)},
                                     {"softcap": 3.0}])
def test_attention_is_known_the_second_time(counting, options):
    first, asked = counting.during(lambda: tt.attention(*whole(), **options))
    assert asked == 1
    again, asked = counting.during(lambda: tt.attention(*whole(), **options))
    assert asked == 0
    for one, other in zip(first if isinstance(first, tuple) else (first,),
                          again if isinstance(again, tuple) else (again,), strict=True):
        assert torch.equal(one, other) and one.stride() == other.stride() and one.dtype == other.dtype
    other = tt.attention(*whole(seed=9), **options)
    assert not torch.equal(other[0] if isinstance(other, tuple) else other,
                           first[0] if isinstance(first, tuple) else first)


def test_results_that_are_given_are_written(counting):
    q, k, v = whole()
    into = torch.empty_like(q)
    tt.attention(q, k, v, out=torch.empty_like(q))
    (out, lse), asked = counting.during(lambda: tt.attention(q, k, v, out=into, return_lse=True))
    assert asked == 1 and out is into
    into.zero_()
    (out, again), asked = counting.during(lambda: tt.attention(q, k, v, out=into, return_lse=True))
    assert asked == 0 and out is into and torch.equal(again, lse)
    assert torch.equal(into, tt.attention(q, k, v))


def test_decode_and_sparse_attention_are_known(counting):
    q, k, v, lengths = bf16(2, 1, 4, 64), bf16(2, 40, 2, 64), bf16(2, 40, 2, 64, seed=1), i32([3, 17])
    new = {"k_new": bf16(2, 1, 2, 64, seed=2), "v_new": bf16(2, 1, 2, 64, seed=3)}
    results = []
    for expected in (1, 0):
        caches = k.clone(), v.clone()
        out, asked = counting.during(lambda: tt.attention_decode(q, *caches, lengths=lengths, **new))
        results.append((out, *caches))
        assert asked == expected
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)
    cache, indices, queries = fp8_pages(4, 16, 0)[0], lists(1, 2, 8, rows=64), bf16(1, 2, 4, 512)
    found = []
    for expected in (1, 0):
        done, asked = counting.during(lambda: tt.sparse_attention(
            queries, cache, indices, return_lse=True, return_max_logits=True))
        found.append(done)
        assert asked == expected
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_drop_ins_are_known(counting):
    from tilewright.compat import flash_attn_interface as fa
    from tilewright.compat import flash_mla

    q, k, v = whole()
    few, lengths = bf16(2, 1, 4, 64, seed=5), i32([3, 17])
    new = bf16(2, 1, 2, 64, seed=2), bf16(2, 1, 2, 64, seed=3)
    rows = [x.flatten(0, 1) for x in (q, k, v)]
    packed = (i32([0, 20, 40]), i32([0, 33, 66]), 20, 33)
    for call, asked in (
        (lambda: fa.flash_attn_func(q, k, v, causal=True, return_attn_probs=True), (1, 0, 0)),
        (lambda: fa.flash_attn_varlen_func(*rows, *packed, causal=True, return_attn_probs=True), (1, 0, 0)),
        (lambda: fa.flash_attn_with_kvcache(few, k, v, *new, cache_seqlens=lengths, causal=True,
                                            return_softmax_lse=True), (1, 0, 0)),
        (lambda: fa.flash_attn_func(q[..., :40], k[..., :40], v[..., :40], return_attn_probs=True), (1, 0, 0)),
    ):
        done = [counting.during(call) for _ in asked]
        assert tuple(count for _, count in done) == asked
        for out, _ in done[1:]:
            assert len(out) == len(done[0][0])
            assert all(torch.equal(one, other) for one, other in zip(out, done[0][0], strict=True))
    cache, indices, queries = fp8_pages(4, 16, 0)[0], lists(1, 2, 8, rows=64), bf16(1, 2, 4, 512)
    schedule = flash_mla.get_mla_metadata()[0]

    def sparse(indices=indices):
        return flash_mla.flash_mla_with_kvcache(queries, cache, None, None, 512, schedule, is_fp8_kvcache=True,
                                                indices=indices)

    done = [counting.during(sparse) for _ in range(4)]
    assert [count for _, count in done] == [2, 1, 0, 0]
    for out, _ in done[1:]:
        assert all(torch.equal(one, other) for one, other in zip(out, done[0][0], strict=True))
    with pytest.raises(ValueError, match="tile_scheduler_metadata was made for"):
        sparse(lists(1, 2, 16, rows=64))


def test_addresses_are_those_of_the_tensors():
    q, k, v = whole()
    sink = torch.zeros(4, device=q.device)
    given = (q, k, v, sink, None, None, None, None, None, torch.empty_like(q), None, False, None, None, None, True,
             -1, -1, 0.0, "auto")
    tt.attention(q, k, v, sink=sink, causal=True, out=given[9])
    found = _attention._calls.addresses(*given)
    assert found == {name: 0 if given[at] is None else given[at].data_ptr()
                     for name, at in _attention._TENSORS.items()}
    later = (q.clone(), *given[1:])
    assert _attention._calls.addresses(*later)["q"] == later[0].data_ptr()


@pytest.mark.parametrize("change", [
    lambda q, k, v: (q[:, :19], k, v), lambda q, k, v: (q.half(), k.half(), v.half()),
    lambda q, k, v: (torch.cat((q, q), -1)[..., :64], k, v),
    lambda q, k, v: (q, k[:, :32], v[:, :32]),
], ids=["shape", "dtype", "strides", "keys"])
def test_other_tensors_are_other_calls(counting, change):
    tt.attention(*whole())
    assert counting.during(lambda: tt.attention(*change(*whole())))[1] == 1


@pytest.mark.parametrize("options", [{"causal": True}, {"scale": 0.25}, {"scale": 1}, {"window": (3, -1)},
                                     {"softcap": 1.0}, {"kernel": "k1"}, {"return_lse": True}], ids=str)
def test_other_options_are_other_calls(counting, options):
    tt.attention(*whole())
    assert counting.during(lambda: tt.attention(*whole(), **options))[1] == 1


def test_calls_that_others_want_to_see_are_not_known(counting):
    q, k, v = whole()
    expected = tt.attention(q, k, v)
    wants = q.clone().requires_grad_()
    out, asked = counting.during(lambda: tt.attention(wants, k, v))
    assert asked == 1 and out.requires_grad
    with torch.no_grad():
        out, asked = counting.during(lambda: tt.attention(wants, k, v))
    assert asked == 0 and torch.equal(out, expected)
    seen = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    with Mode():
        tt.attention(q, k, v)
    assert any("tilewright" in name for name in seen)

    class Sub(torch.Tensor):
        pass

    assert type(tt.attention(q.as_subclass(Sub), k, v)) is Sub
    assert torch.equal(torch.compile(lambda x: tt.attention(x, k, v), fullgraph=True)(q), expected)
    with torch.inference_mode():
        assert counting.during(lambda: tt.attention(q, k, v))[1] == 0


def test_operators_that_are_forgotten_are_freed():
    q, k, v = whole(heads=2)
    tt.attention(q, k, v)
    entry = _context.table.entries()[-1]
    operator = weakref.ref(entry) if hasattr(entry, "__weakref__") else None
    count = len(_attention._calls)
    assert count >= 1 and operator is None
    tt.set_device("sim:h200")
    gc.collect()
    assert len(_attention._calls) == len(_decode._calls) == len(_sparse._calls) == 0
    assert torch.equal(tt.attention(q, k, v), tt.attention(q, k, v))


def calls(tensors=2, limit=3, **functions):
    given = {"plain": (torch.Tensor, torch.nn.Parameter), "guards": (), "grad_enabled": lambda: False,
             "is_capturing": lambda: False, "allocate": lambda size, like: torch.empty(size, dtype=torch.uint8)}
    return _core.Calls(tensors, limit, **(given | functions))


def test_a_table_of_calls_is_bounded_and_refuses_what_makes_no_sense(dev):
    table = calls()
    names = {"x": 0, "out": 1}
    made = []
    for cols in range(128, 128 * 6, 128):
        op = tilewright.RmsNorm(dev, rows=1, cols=cols, x_dtype="f32", has_weight=False)
        x = torch.ones(1, cols)
        assert table.run(x, None, "a") is None
        like = {1: lambda first: torch.empty(1, first.shape[1]).bfloat16()}
        assert table.add((x, None, "a"), op, 0, names, like, {})
        assert table.add((x, None, "a"), op, 0, names, like, {})
        out = table.run(x, None, "a")
        assert torch.equal(out, torch.ones_like(out))
        assert table.run(x, None, "b") is None and table.run(x, None) is None
        made.append(len(table))
    assert made == [1, 2, 3, 1, 2]
    table.clear()
    assert len(table) == 0 and table.run(x, None, "a") is None
    assert table.add((x, None, object()), op, 0, names, {}, {}) is False
    assert table.run(x, None, object()) is None and table.run(x, None, 1 << 80) is None and table.run() is None
    with pytest.raises(tilewright.InvalidArgument, match="RmsNorm.run has no tensor nothing"):
        table.add((x, None), op, 0, {"nothing": 0}, {}, {})
    with pytest.raises(tilewright.InvalidArgument, match="no argument 7"):
        table.add((x, None), op, 0, {"x": 7}, {}, {})
    with pytest.raises(tilewright.InvalidArgument, match="no result can be argument 2"):
        table.add((x, None), op, 0, names, {2: torch.empty_like}, {})
    with pytest.raises(TypeError, match="RmsNorm.run: there is no nothing"):
        table.add((x, None), op, 0, names, {}, {"nothing": 1})
    for wrong in ({"tensors": 0}, {"tensors": 99}, {"limit": 0}, {"plain": (torch.Tensor,)}):
        with pytest.raises(tilewright.InvalidArgument, match="Calls: "):
            calls(**wrong)
    with pytest.raises(TypeError, match="expected types"):
        calls(plain=(1, 2))


def test_what_a_maker_raises_comes_out(dev):
    def broken(first):
        raise MemoryError("none left")

    table = calls()
    op = tilewright.RmsNorm(dev, rows=1, cols=128, x_dtype="f32", has_weight=False)
    x = torch.ones(1, 128)
    assert table.add((x, None), op, 0, {"x": 0, "out": 1}, {1: broken}, {})
    with pytest.raises(MemoryError, match="none left"):
        table.run(x, None)
    assert table.run(x.to(torch.float64), None) is None


@pytest.mark.skipif(place() != "cuda", reason="Gpu: streams and workspaces of a device")
class TestGpu:
    def test_gpu_streams_have_workspaces_of_their_own(self):
        """Many calls on two streams at once, each with partial results of splits in its workspace."""
        q, lengths = bf16(4, 1, 8, 128), i32([4000, 33, 2048, 1])
        k, v = bf16(4, 4096, 2, 128, seed=1), bf16(4, 4096, 2, 128, seed=2)
        others = [q * scale for scale in (1, -1)]
        expected = [tt.attention_decode(x, k, v, lengths=lengths, splits=16) for x in others]
        streams = [torch.cuda.Stream() for _ in others]
        torch.cuda.synchronize()
        found = [[], []]
        for _ in range(50):
            for i, stream in enumerate(streams):
                with torch.cuda.stream(stream):
                    found[i].append(tt.attention_decode(others[i], k, v, lengths=lengths, splits=16))
        torch.cuda.synchronize()
        for outs, right in zip(found, expected, strict=True):
            assert all(torch.equal(out, right) for out in outs)

    def test_gpu_graphs_have_workspaces_of_their_own(self):
        """A graph is replayed while the stream that it was captured on goes on with the same call."""
        q, lengths = bf16(4, 1, 8, 128), i32([4000, 33, 2048, 1])
        k, v = bf16(4, 4096, 2, 128, seed=1), bf16(4, 4096, 2, 128, seed=2)
        other = bf16(4, 1, 8, 128, seed=5)

        def call(x):
            return tt.attention_decode(x, k, v, lengths=lengths, splits=16)

        expected, wanted = call(q), call(other)
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        with torch.cuda.graph(graph, stream=stream):
            out = call(q)
        torch.cuda.synchronize()
        for _ in range(20):
            graph.replay()
            with torch.cuda.stream(stream):
                results = [call(other) for _ in range(5)]
        torch.cuda.synchronize()
        assert torch.equal(out, expected) and all(torch.equal(x, wanted) for x in results)
