"""Tokens drawn from rows of logits: numpy arrays and torch tensors against the formula of sample.h in float64.

A token is argmax(z / temperature + g). The kernel's g and quotients are of fp32, and its probabilities off by at
most 2^-16 of themselves: a row whose two largest sums are closer than 2^-10 says nothing.
"""

import numpy as np
import pytest

import tilewright

pytestmark = pytest.mark.usefixtures("kernels")
MARGIN = 2.0**-10


def philox(counter, key):
    """Philox4x32-10 of counters [..., 4] and one key of two words."""
    x = [counter[..., i].astype(np.uint64) for i in range(4)]
    k0, k1 = (np.uint64(word) for word in key)
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * x[0], np.uint64(0xCD9E8D57) * x[2]
        x = [(p1 >> np.uint64(32)) ^ x[1] ^ k0, p1 & low, (p0 >> np.uint64(32)) ^ x[3] ^ k1, p0 & low]
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
    return np.stack(x, -1)


def drawn(logits, temperature, top_k, top_p, min_p, seed, position):
    """The token, and how far the next one is behind it."""
    z = logits.astype(np.float64)
    if temperature == 0:
        first = np.sort(z)[::-1]
        return int(np.argmax(z)), first[0] - first[1]
    scaled = z / temperature
    weights = np.exp(scaled - scaled.max())
    order = np.argsort(-z, kind="stable")
    keep = order[: top_k or None]
    keep = keep[weights[keep] >= min_p]
    shares = np.cumsum(weights[keep]) / weights[keep].sum()
    count = 1 + int(np.searchsorted(shares, top_p))
    edge = min((abs(share - top_p) for share in shares[:-1]), default=1.0)
    keep = keep[:count]
    i = np.arange((len(z) + 3) // 4)
    words = [np.broadcast_to(np.uint64(word), i.shape)
             for word in (position, seed[1] & 0xFFFFFFFF, seed[1] >> 32)]
    bits = philox(np.stack([i.astype(np.uint64), *words], -1), (seed[0] & 0xFFFFFFFF, seed[0] >> 32))
    noise = -np.log(-np.log1p(-(bits.reshape(-1)[: len(z)].astype(np.float64) + 0.5) / 2.0**32))
    sums = np.full(len(z), -np.inf)
    sums[keep] = scaled[keep] + noise[keep]
    best = np.sort(sums)[::-1]
    return int(np.argmax(sums)), min(best[0] - best[1], edge)


def case(seed, rows=12, vocab=1000):
    rng = np.random.default_rng(seed)
    return {"logits": rng.normal(0, 3, (rows, vocab)).astype(np.float32),
            "temperature": np.where(np.arange(rows) % 4 == 3, 0, rng.uniform(0.5, 1.5, rows)).astype(np.float32),
            "top_k": np.where(np.arange(rows) % 3 == 0, 0, rng.integers(1, 50, rows)).astype(np.int32),
            "top_p": np.where(np.arange(rows) % 2 == 0, 1, rng.uniform(0.3, 0.95, rows)).astype(np.float32),
            "min_p": np.where(np.arange(rows) % 5 < 3, 0, rng.uniform(0.01, 0.2, rows)).astype(np.float32),
            "seeds": rng.integers(0, 2**62, (rows, 2)), "positions": rng.integers(0, 9999, rows).astype(np.int32)}


def expected(given):
    rows = range(len(given["logits"]))
    return [drawn(given["logits"][r], *(given[name][r] for name in ("temperature", "top_k", "top_p", "min_p")),
                  [int(word) for word in given["seeds"][r]], int(given["positions"][r])) for r in rows]


def log_probs(logits, ids):
    z = logits.astype(np.float64)
    return z[np.arange(len(ids)), ids] - np.log(np.exp(z).sum(1))


def compare(ids, found_log_probs, given):
    clear = 0
    for r, (token, margin) in enumerate(expected(given)):
        if margin > MARGIN:
            clear += 1
            assert ids[r] == token, f"row {r}"
    assert clear >= len(ids) - 3  # a margin that small is a matter of one row in hundreds
    # fp32 sums of a thousand exponentials, each off by 2^-21, and the rounding of a number below 32.
    np.testing.assert_allclose(found_log_probs, log_probs(given["logits"], ids), rtol=0, atol=2.0**-17)


@pytest.mark.parametrize("chip", ["sim:h200", "sim:b200"])
def test_arrays(chip):
    given = case(1)
    rows, vocab = given["logits"].shape
    ids, found = np.full(rows, 99, np.int32), np.full(rows, np.nan, np.float32)
    operator = tilewright.Sample(tilewright.Device(chip), rows=rows, vocab=vocab)
    operator.run(ids=ids, log_probs=found, **given)
    compare(ids, found, given)


def test_rows_are_gathered():
    x = np.random.default_rng(2).integers(0, 2**16, (5, 24)).astype(np.uint16)
    index, out = np.array([4, -1, 0, 5, 4], np.int32), np.full((5, 24), 7, np.uint16)
    gather = tilewright.GatherRows(tilewright.Device("sim:h200"), rows=5, x_rows=5, cols=24)
    gather.run(x=x, index=index, out=out)
    np.testing.assert_array_equal(out, [x[4], x[0] * 0, x[0], x[0] * 0, x[4]])


@pytest.fixture
def torch():
    found = pytest.importorskip("torch")
    import tilewright.torch

    tilewright.torch.set_device("sim:h200")
    return found


def test_tensors(torch):
    from tilewright.torch import sample

    given = case(3)
    tensors = {name: torch.from_numpy(value) for name, value in given.items()}
    for _ in range(2):  # the second call is known
        ids, found = sample(**tensors, return_log_probs=True)
        compare(ids.numpy(), found.numpy(), given)
        assert torch.equal(sample(**tensors), ids)
    mine = torch.compile(lambda given: sample(**given), fullgraph=True, backend="eager")(tensors)
    assert torch.equal(mine, ids)
    wide = torch.zeros(12, 1024).copy_(torch.nn.functional.pad(tensors["logits"], (0, 24)))[:, :1000]
    assert torch.equal(sample(**tensors | {"logits": wide}), ids)
    greedy = sample(tensors["logits"].bfloat16())
    assert torch.equal(greedy, tensors["logits"].bfloat16().argmax(1).int())


def test_rows_that_take_no_part_and_rows_without_a_largest(torch):
    from tilewright.torch import sample

    logits = torch.randn(3, 64)
    logits[2] = -float("inf")
    ids = sample(logits, positions=torch.tensor([0, -1, 0], dtype=torch.int32))
    assert ids.tolist() == [int(logits[0].argmax()), -1, -1]
    assert sample(torch.empty(0, 64)).shape == (0,)


def test_refusals_name_what_is_expected(torch):
    from tilewright.torch import sample

    logits = torch.randn(3, 64)
    with pytest.raises(tilewright.InvalidArgument, match=r"temperature.*float32"):
        sample(logits, temperature=torch.ones(3, dtype=torch.float64))
    with pytest.raises(tilewright.InvalidArgument, match=r"seeds.*int64"):
        sample(logits, seeds=torch.ones(3, dtype=torch.int64))
    with pytest.raises(tilewright.InvalidArgument, match="multiple of 4 elements"):
        sample(torch.randn(3, 66)[:, :64])
    with pytest.raises(tilewright.InvalidArgument, match=r"\[rows, vocab\]"):
        sample(logits[0])


def test_opcheck(torch):
    args = (torch.randn(2, 64), torch.ones(2), None, None, None, None, None, True)
    torch.library.opcheck(torch.ops.tilewright.sample.default, args)
