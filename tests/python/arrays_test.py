"""Arrays of other libraries: JAX on the host, which DLPack hands over; JAX and CuPy on a GPU."""

import pytest

import tilewright
from tilewright import _core

np = pytest.importorskip("numpy")


def norm_of(x):
    """RmsNorm without weights, eps 1e-6."""
    wide = np.asarray(x, np.float64)
    return wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6)


def as_float(codes):
    return (np.asarray(codes).astype(np.uint32) << 16).view(np.float32)


@pytest.fixture(scope="module")
def jax():
    return pytest.importorskip("jax")


@pytest.fixture(scope="module")
def cupy():
    found = pytest.importorskip("cupy")
    try:
        found.zeros(1)
    except Exception as error:
        pytest.skip(f"cupy finds no GPU: {error}")
    return found


def test_jax_arrays_of_the_host(dev, kernels, jax):
    x = jax.device_put(np.random.default_rng(1).normal(size=(3, 128)).astype("float32"), jax.devices("cpu")[0])
    view = _core.view(x)
    assert view["shape"] == (3, 128) and view["dtype"] == "f32" and view["place"] == "host"
    op = tilewright.RmsNorm(dev, rows=3, cols=128, x_dtype="f32", has_weight=False)
    out = np.full((3, 128), 0xFFFF, np.uint16)
    op.run(x=x, out=out)
    assert abs(as_float(out) - norm_of(x)).max() < 2e-2
    half = jax.numpy.asarray(x, dtype=jax.numpy.bfloat16)
    assert _core.view(half)["dtype"] == "bf16"
    tilewright.RmsNorm(dev, rows=3, cols=128, has_weight=False).run(x=half, out=out)
    assert abs(as_float(out) - norm_of(half.astype("float32"))).max() < 2e-2


def test_jax_arrays_are_not_written(dev, kernels, jax):
    """They are constants, and their capsules say so."""
    out = jax.device_put(jax.numpy.zeros((1, 128), jax.numpy.bfloat16), jax.devices("cpu")[0])
    op = tilewright.RmsNorm(dev, rows=1, cols=128, x_dtype="f32", has_weight=False)
    with pytest.raises(tilewright.InvalidArgument, match="out is .*read-only"):
        op.run(x=np.ones((1, 128), np.float32), out=out)


def gpu_device():
    try:
        return tilewright.Device("cuda:0")
    except tilewright.Error as error:
        pytest.skip(f"Gpu: {error}")


def test_gpu_arrays_of_cupy(cupy):
    device = gpu_device()
    x = cupy.asarray(np.random.default_rng(1).normal(size=(3, 128)).astype("float32"))
    out = cupy.full((3, 128), 0xFFFF, dtype=cupy.uint16)
    stream = cupy.cuda.Stream(non_blocking=True)
    op = tilewright.RmsNorm(device, rows=3, cols=128, x_dtype="f32", has_weight=False)
    cupy.cuda.Device().synchronize()
    op.run(x=x, out=out, stream=stream)
    stream.synchronize()
    assert abs(as_float(out.get()) - norm_of(x.get())).max() < 2e-2
    with pytest.raises(tilewright.InvalidArgument, match="out is a ndarray, .* on host; kernels on cuda:0"):
        op.run(x=x, out=out.get())


def test_gpu_arrays_of_jax(jax, cupy):
    device = gpu_device()
    try:
        gpu = jax.devices("gpu")[0]
    except RuntimeError as error:
        pytest.skip(f"jax finds no GPU: {error}")
    x = jax.device_put(np.random.default_rng(1).normal(size=(3, 128)).astype("float32"), gpu)
    x.block_until_ready()
    assert _core.view(x)["place"] == "cuda:0"
    out = cupy.full((3, 128), 0xFFFF, dtype=cupy.uint16)
    cupy.cuda.Device().synchronize()
    tilewright.RmsNorm(device, rows=3, cols=128, x_dtype="f32", has_weight=False).run(x=x, out=out)
    device.synchronize()
    assert abs(as_float(out.get()) - norm_of(x)).max() < 2e-2
