"""bench/*_peers.py: what they hand to our operators, on the simulated device and against float64."""

import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")

import tilewright  # noqa: E402
import torch_reference as reference  # noqa: E402
from torch_reference import close  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import append_peers  # noqa: E402
import attention_peers  # noqa: E402
import decode_peers  # noqa: E402
import linear_peers  # noqa: E402
import mla_peers  # noqa: E402
import peer_run  # noqa: E402
import prepare_peers  # noqa: E402
import qv_peers  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "on_the_simulator")
LIMIT = 2e-2


@pytest.fixture
def on_the_simulator(monkeypatch):
    monkeypatch.setattr(peer_run, "DEVICE", "sim:h200")


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


def test_the_clock_is_the_median_of_sms_that_have_both_marks():
    before = [[1000, 10], [2000, 20], [0, 0], [50, 30]]
    after = [[2700, 1010], [3800, 1020], [9000, 99], [1800, 1030]]
    assert peer_run.median_mhz(before, after) == 1750  # of 1700, 1800 and 1750
    assert peer_run.median_mhz([[0, 0]], [[5, 5]]) == 0


def test_decode_over_caches_and_pages():
    q, k, v = normal(2, 1, 4, 64), normal(2, 48, 2, 64, seed=1), normal(2, 48, 2, 64, seed=2)
    expected = reference.decode(q, k, v, torch.tensor([48, 48]))[0].transpose(1, 2)
    run, plan = decode_peers.prepare(torch, tilewright, q, k, v, 48)
    close(run(), expected, LIMIT)
    assert "decode" in plan
    table = torch.randperm(6, generator=torch.Generator().manual_seed(1)).int().reshape(2, 3)
    pages = [torch.zeros(6, 16, 2, 64, dtype=x.dtype) for x in (k, v)]
    for pool, x in zip(pages, (k, v), strict=True):
        pool[table.flatten().long()] = x.reshape(6, 16, 2, 64)
    close(decode_peers.prepare(torch, tilewright, q, *pages, 48, table=table)[0](), expected, LIMIT)
    rounded = [attention_peers.Rounded(torch, x.transpose(1, 2), 2) for x in (k, v)]
    codes = [x.codes.transpose(1, 2).contiguous() for x in rounded]
    run, _ = decode_peers.prepare(torch, tilewright, q, *codes, 48, descales=[x.descale for x in rounded])
    exact = (x.exact.transpose(1, 2) for x in rounded)
    close(run(), reference.decode(q, *exact, torch.tensor([48, 48]))[0].transpose(1, 2), LIMIT)


@pytest.mark.parametrize("columns", [None, False, True])
def test_attention(columns):
    q, k, v = normal(1, 2, 40, 64), normal(1, 1, 40, 64, seed=1), normal(1, 1, 40, 64, seed=2)
    out, lse, fp8 = torch.empty_like(q), torch.empty(1, 2, 40), None
    if columns is not None:
        rounded = [attention_peers.Rounded(torch, x, 1) for x in (q, k, v)]
        names = ("q_descale", "k_descale", "v_descale")
        fp8 = {"columns": columns, "scales": "head", "accumulation": "one_level", "descales": {
            name: x.descale for name, x in zip(names, rounded, strict=True)}}
        fp8["descales"]["v_descale_max"] = rounded[2].descale_max
        q, k, v = (x.exact for x in rounded)
        given = [x.codes for x in rounded[:2]]
        given.append(rounded[2].columns(torch) if columns else rounded[2].codes)
    else:
        given = [q, k, v]
    run, kernel, plan = attention_peers.prepare(torch, tilewright, {"causal": True}, *given, out, lse, "auto", fp8)
    run()
    expected = reference.attention(*(x.transpose(1, 2) for x in (q, k, v)), causal=True)
    close(out.transpose(1, 2), expected[0], 0.2 if fp8 else LIMIT)
    close(lse, expected[1], 1e-2 if fp8 else 1e-5)
    assert kernel in plan


@pytest.mark.parametrize("kind, activations", [("bf16", "bf16"), ("nvfp4", "bf16"), ("mxfp4", "bf16"),
                                               ("fp8", "fp8")])
def test_linear(kind, activations):
    weight = linear_peers.Weight.__new__(linear_peers.Weight)
    weight.torch, weight.n, weight.k, weight.bf16, weight.fp4 = torch, 128, 256, normal(128, 256), {}
    blocks = weight.bf16.float().reshape(1, 128, 2, 128)
    weight.fp8_scales = blocks.abs().amax((1, 3)) / 448
    weight.fp8 = (blocks / weight.fp8_scales[:, None, :, None]).reshape(128, 256).to(torch.float8_e4m3fn)
    x, out = normal(3, 256, seed=1), torch.empty(3, 128, dtype=torch.bfloat16)
    prepared = [linear_peers.prepare(tilewright, weight, kind, activations)]
    for is_given in (False, True) if activations == "fp8" else (False,):
        op = linear_peers.our_operator(torch, tilewright, prepared, [weight], kind, activations, "auto", x, out,
                                       is_given)
        assert linear_peers.errors(torch, op.call(0), op.exact(), op.tolerance)["ok"], op.name
        assert op.plan and op.weight_bytes > 0
    assert linear_peers.all_kernels(tilewright, prepared[0], 3)


@pytest.mark.parametrize("scales, is_rotated, rope", [("head", False, "none"), ("block", True, "halves")])
def test_prepare(scales, is_rotated, rope):
    q, k, v = normal(1, 40, 2, 64), normal(1, 40, 2, 64, seed=1), normal(1, 40, 2, 64, seed=2)
    one = prepare_peers.Prepare(torch, tilewright, q, k, v, scales, is_rotated, rope)
    one.run()
    error = one.error(scales)
    assert (error is None) == (rope != "none") and (error is None or error < prepare_peers.LIMIT)
    assert all(bool(x.any()) for x in one.codes)


@pytest.mark.parametrize(
    "shape",
    [("dense", 3, 2, 2, 100, 0), ("lists", 3, 1, 2, 90, 40), ("prefill", 3, 5, 1, 90, 40)],
    ids=lambda shape: shape[0],
)
def test_rows_of_576(shape, monkeypatch, torch_device):
    from tilewright.compat import flash_mla

    monkeypatch.setattr(mla_peers, "DEVICE", "cpu")
    problem = mla_peers.Problem(torch, *shape)
    out = problem.call(flash_mla)()
    assert problem.error(out, 8) < mla_peers.LIMIT
    flops, _ = problem.counts()
    seen = sum(len(problem.seen(b, i)) for b in range(problem.batch) for i in range(problem.queries))
    assert flops == 2 * 3 * seen * (576 + 512)
    other = mla_peers.Problem(torch, *shape)
    assert other.error(out, 8) > 0.5


def test_values_that_make_scores(monkeypatch, torch_device):
    import tilewright.torch

    monkeypatch.setattr(qv_peers, "DEVICE", "cpu")
    problem = qv_peers.Problem(torch, 3, 2, 2, 128)
    out = problem.ours(tilewright.torch)()
    assert problem.error(out, 4) < qv_peers.LIMIT
    flops, num_bytes = problem.counts()
    assert flops == 2 * 3 * 2 * (127 + 128) * (64 + 2 * 512)
    assert num_bytes == 2 * (2 * 128 * 576 + 12 * (64 + 2 * 512))
    assert qv_peers.Problem(torch, 3, 2, 2, 128).error(out, 4) > 0.5


@pytest.mark.parametrize("kind", append_peers.KINDS)
@pytest.mark.parametrize(
    "shape", (("", 2, 70, 9, False, False), ("", 5, 64, 20, True, False), ("", 3, 300, 8, False, True))
)
def test_new_keys_in_caches(monkeypatch, shape, kind):
    monkeypatch.setattr(append_peers, "DEVICE", "cpu")
    is_turned = kind[2]
    batch = append_peers.Batch(torch, shape, kind)
    batch.ours(tilewright)()
    assert batch.error() <= (append_peers.LIMIT if is_turned else 0)
    if not is_turned:
        batch.torch_call()()
        assert batch.error() == 0
    batch.new_k = batch.new_k.flip(0)
    assert batch.error() > append_peers.LIMIT
