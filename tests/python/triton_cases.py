"""Kernels of Triton as a user's test file has them, from tensors of the CPU. triton_test.py runs this file by
pytest --tilewright-sim=DEVICE, and looks at what fails and where: the last six tests are wrong on purpose."""

import pytest
import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, tma
from triton.experimental.gluon.nvidia import hopper
from triton.tools.tensor_descriptor import TensorDescriptor

from tilewright.testing import uninitialised

async_store = getattr(tma, "async_store", tma.async_copy_shared_to_global)  # its name since 3.7, and before


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax(x, out, stride, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * stride + at, mask=at < n, other=-float("inf"))
    e = tl.exp(row - tl.max(row, axis=0))
    tl.store(out + tl.program_id(0) * stride + at, e / tl.sum(e, axis=0), mask=at < n)


@triton.jit
def matmul(a, b, c, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for at in range(0, k, K):
        left = tl.load(a + rows[:, None] * k + (at + inner)[None, :])
        right = tl.load(b + (at + inner)[:, None] * n + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


@triton.jit
def matmul_with_descriptors(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    from_a = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    from_b = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    to_c = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    total = tl.zeros((M, N), tl.float32)
    for at in range(0, k, K):
        total = tl.dot(from_a.load([row, at]), from_b.load([at, column]), total)
    to_c.store([row, column], total)


@triton.jit
def matmul_of_the_hosts_descriptors(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    total = tl.zeros((M, N), tl.float32)
    for at in range(0, k, K):
        total = tl.dot(a.load([tl.program_id(0) * M, at]), b.load([at, tl.program_id(1) * N]), total)
    c.store([tl.program_id(0) * M, tl.program_id(1) * N], total)


@triton.jit
def scalars(out, i, j, x, flag, pair):
    tl.store(out, i + j + pair[0])
    tl.store(out + 1, x * pair[1])
    if flag:
        tl.store(out + 2, 7.0)


@triton.jit
def rotate(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at) + 1)
    tl.store(out + at, tl.load(x + (at + 64) % BLOCK))  # races with the line above


@gluon.jit
def double(x, out, N: gl.constexpr, has_fence: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    rows = gl.arange(0, 32, gl.SliceLayout(1, layout))
    columns = gl.arange(0, N, gl.SliceLayout(0, layout))
    tile = gl.allocate_shared_memory(out.dtype, [32, N], out.layout)
    tile.store(2 * gl.load(x + rows[:, None] * N + columns[None, :]))  # what has no fence
    if has_fence:
        fence_async_shared()
    async_store(out, [0, 0], tile)
    tma.store_wait(0)


def run_double(has_fence):
    x, out = torch.randn(32, 64), torch.empty(32, 64)
    target = hopper.TensorDescriptor.from_tensor(out, [32, 64], gl.NVMMASharedLayout(128, 32, 2))
    double[(1,)](x, target, 64, has_fence, num_warps=4)
    assert torch.equal(out, 2 * x)


def run_rotate():
    rotate[(1,)](torch.zeros(256), torch.empty(256), BLOCK=256)


def operands(m, n, k, dtype):
    return torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype), torch.empty(m, n)


def check_product(a, b, c):
    torch.testing.assert_close(c, a.float() @ b.float(), atol=0.03 if a.itemsize == 1 else 1e-4, rtol=1e-4)


def test_add(tilewright_sim):
    x, y, out = torch.randn(1000), torch.randn(1000), uninitialised(torch.empty(1000))
    add[(4,)](x, y, out, 1000, BLOCK=256)
    assert torch.equal(out, x + y)
    report, = tilewright_sim.reports
    assert report.grid == (4, 1, 1) and report.device == tilewright_sim.device
    busiest = report.by_line()[0]
    assert busiest.file == __file__ and "tl.store(out + at" in busiest.text
    assert busiest["global_used_bytes"] == 3 * 4000


def test_softmax():
    x, out = torch.randn(8, 100), torch.empty(8, 100)
    softmax[(8,)](x, out, 100, 100, BLOCK=128)
    torch.testing.assert_close(out, x.softmax(1), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn])
def test_matmul(dtype):
    a, b, c = operands(128, 128, 128, dtype)
    matmul[(2, 2)](a, b, c, 128, 128, M=64, N=64, K=64)
    check_product(a, b, c)


def test_descriptors_of_the_device():
    a, b, c = operands(256, 128, 128, torch.bfloat16)
    matmul_with_descriptors[(2, 1)](a, b, c, 256, 128, 128, M=128, N=128, K=64)
    check_product(a, b, c)


# On sm_100 Triton has a copy overwrite the word that tcgen05.alloc wrote, and no proxy fence between the two.
@pytest.mark.tilewright(check="all,-proxy")
def test_descriptors_of_the_host():
    a, b, c = operands(128, 128, 128, torch.bfloat16)
    given = [TensorDescriptor.from_tensor(each, [64, 64]) for each in (a, b, c)]
    matmul_of_the_hosts_descriptors[(2, 2)](*given, 128, M=64, N=64, K=64)
    check_product(a, b, c)


def test_scalars_and_tuples():
    out = torch.zeros(3)
    scalars[(1,)](out, 1, 2, 1.5, True, (10, 3.0))
    assert out.tolist() == [13, 4.5, 7]


def test_views_and_an_empty_grid():
    both = torch.zeros(2, 64)
    add[(1,)](torch.ones(64), torch.ones(64), both[1], 64, BLOCK=64)
    add[(0,)](both, both, both, 64, BLOCK=64)
    assert both[1].eq(2).all() and not both[0].any()


def test_a_fence_that_is_there():
    run_double(True)


@pytest.mark.tilewright(check="none")
def test_a_race_that_is_not_looked_for():
    run_rotate()


@pytest.mark.tilewright(check="all,-race", seed=3, timing="late")
def test_only_some_checks(tilewright_sim):
    run_rotate()
    assert tilewright_sim.check == "all,-race"


def test_wrong_race():
    run_rotate()


def test_wrong_fence():
    run_double(False)


def test_wrong_mask():
    x = torch.zeros(256)
    add[(1,)](x, x, x, 1024, BLOCK=1024)


def test_wrong_read():
    x = uninitialised(torch.empty(256))
    add[(1,)](x, x, torch.empty(256), 256, BLOCK=256)


def test_a_fresh_context_after_them():
    test_softmax()


def test_wrong_result():
    x, out = torch.ones(64), torch.empty(64)
    add[(1,)](x, x, out, 64, BLOCK=64)
    assert out.eq(3).all()


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def tuned_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


def test_wrong_benchmark():
    x = torch.ones(128)
    tuned_add[(2,)](x, x, torch.empty(128), 128)
