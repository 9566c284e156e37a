"""What only a GPU has: CUDA graphs, streams, compiled graphs, tensors that are used as they are."""

import pytest

torch = pytest.importorskip("torch")

import tilewright  # noqa: E402
import tilewright.torch as tt  # noqa: E402
import torch_reference as reference  # noqa: E402
from torch_reference import bf16, close, i32  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: CUDA graphs and streams")
LIMIT = 2e-2


def cache(pages=32, size=16, kv_heads=2, d=128):
    return bf16(pages, size, kv_heads, d, seed=1), bf16(pages, size, kv_heads, d, seed=2)


def captured(call):
    """A graph of call(), and what it returned."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = call()
    return graph, out


@pytest.mark.parametrize("new", [False, True])
def test_decode_is_replayed_with_other_lengths_pages_and_inputs(new):
    q, k, v = bf16(4, 1, 8, 128), *cache()
    new_k, new_v = bf16(4, 1, 2, 128, seed=3), bf16(4, 1, 2, 128, seed=4)
    lengths, table = i32([17, 100, 1, 63]), torch.randperm(32).view(4, 8).int().cuda()
    options = {"k_new": new_k, "v_new": new_v} if new else {}
    start = k.clone(), v.clone()

    def call():
        return tt.attention_decode(q, k, v, lengths=lengths, page_table=table, return_lse=True, **options)

    graph, (out, lse) = captured(call)
    for step in range(3):
        k.copy_(start[0])
        v.copy_(start[1])
        q.copy_(bf16(4, 1, 8, 128, seed=10 + step))
        new_k.copy_(bf16(4, 1, 2, 128, seed=20 + step))
        lengths.copy_(i32([3 + step, 60, 127 - step, 1]))
        table.copy_(torch.randperm(32).view(4, 8))
        graph.replay()
        replayed = out.clone(), lse.clone(), k.clone(), v.clone()
        k.copy_(start[0])
        v.copy_(start[1])
        eager = call()
        for one, other in zip(replayed, (*eager, k, v), strict=True):
            assert torch.equal(one, other)


def test_attention_over_pages_is_replayed_with_other_lengths_pages_and_inputs():
    """A graph of one call serves a prompt beside sequences that decode, and then other ones."""
    k, v = cache(pages=64)
    q, table = bf16(48, 8, 128), torch.zeros(4, 16, dtype=torch.int32, device="cuda")
    kv_lengths, cu_q = i32([1, 1, 1, 1]), i32([0, 1, 2, 3, 4])

    def call():
        given = {"page_table": table, "kv_lengths": kv_lengths, "cu_q": cu_q, "max_q": 48}
        return tt.attention_paged(q, k, v, causal=True, return_lse=True, **given)

    graph, (out, lse) = captured(call)
    steps = (([40, 1, 0, 7], [200, 17, 9, 7]), ([1, 1, 1, 1], [256, 1, 100, 33]), ([0, 48, 0, 0], [5, 48, 0, 1]))
    for step, (queries, keys) in enumerate(steps):
        starts = [sum(queries[:b]) for b in range(5)]
        q.copy_(bf16(48, 8, 128, seed=step))
        table.copy_(torch.randperm(64).view(4, 16))
        kv_lengths.copy_(i32(keys))
        cu_q.copy_(i32(starts))
        graph.replay()
        for b in range(4):
            rows = slice(starts[b], starts[b + 1])
            if queries[b]:
                mine = [x[table[b].long()].flatten(0, 1)[None, : keys[b]] for x in (k, v)]
                expected = reference.attention(q[None, rows], *mine, causal=True)
                close(out[None, rows], expected[0], LIMIT)
                close(lse[None, :, rows], expected[1], 1e-4)
        used = slice(0, starts[4])
        assert torch.equal(out[used], call()[0][used])


def test_merging_and_lists_of_masks_are_replayed():
    """Operators without a workspace."""
    parts, lse = bf16(3, 2, 5, 4, 64), torch.randn(3, 2, 4, 5, device="cuda")
    mask = torch.rand(2, 5, 40, device="cuda") < 0.3

    def call():
        return *tt.merge_attention(parts, lse, return_lse=True), *tt.mask_lists(mask, topk=40)

    graph, found = captured(call)
    for seed in range(2):
        parts.copy_(bf16(3, 2, 5, 4, 64, seed=seed))
        mask.copy_(torch.rand(2, 5, 40, device="cuda") < 0.5)
        graph.replay()
        weights = (lse - lse.logsumexp(0)).double().exp().transpose(2, 3)[..., None]
        close(found[0], (parts.double() * weights).sum(0), LIMIT)
        close(found[1], lse.double().logsumexp(0), 1e-5)
        for again, one in zip(call(), found, strict=True):
            assert torch.equal(again, one)


def test_attention_and_layers_are_replayed():
    q, k, v = bf16(2, 64, 4, 128), bf16(2, 200, 2, 128, seed=1), bf16(2, 200, 2, 128, seed=2)
    weight = tt.Linear(bf16(256, 128, seed=3))

    def call():
        return weight(tt.attention(q, k, v, causal=True))

    graph, out = captured(call)
    q.copy_(bf16(2, 64, 4, 128, seed=9))
    graph.replay()
    assert torch.equal(out, call())


def test_compiled_with_graphs_gives_the_same_bits():
    k, v = cache()
    lengths, table = i32([17, 100, 1, 63]), torch.randperm(32).view(4, 8).int().cuda()

    def step(q):
        return tt.attention_decode(q * 2, k, v, lengths=lengths, page_table=table) + 1

    compiled = torch.compile(step, mode="reduce-overhead", fullgraph=True)
    for seed in range(4):
        q = bf16(4, 1, 8, 128, seed=seed)
        assert torch.equal(compiled(q), step(q))


def test_calls_go_to_the_current_stream():
    q, k, v = bf16(1, 64, 4, 128), bf16(1, 64, 4, 128, seed=1), bf16(1, 64, 4, 128, seed=2)
    expected = tt.attention(q, k, v)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    late = torch.empty_like(q)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        late.copy_(q)
        out = tt.attention(late, k, v)
    stream.synchronize()
    assert torch.equal(out, expected)


def test_tensors_of_the_host_are_named_beside_those_of_the_gpu():
    q, k = bf16(1, 4, 4, 128), torch.zeros(1, 4, 4, 128, dtype=torch.bfloat16)
    with pytest.raises(tilewright.InvalidArgument, match="k bfloat16.*on cpu.*expected one device"):
        tt.attention(q, k, k)


@pytest.mark.parametrize("s, t, d", [(1000, 1000, 128), (333, 2048, 64), (129, 513, 256)])
def test_attention_at_lengths_that_tiles_do_not_divide(s, t, d):
    q, k, v = bf16(2, s, 8, d), bf16(2, t, 2, d, seed=1), bf16(2, t, 2, d, seed=2)
    for options in ({}, {"causal": True}, {"window": (100, 30)}, {"softcap": 20.0}):
        out, lse = tt.attention(q, k, v, return_lse=True, **options)
        expected = reference.attention(q, k, v, **options)
        close(out, expected[0], LIMIT)
        close(lse, expected[1], 1e-4)
