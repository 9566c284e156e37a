"""What the tests of the Python package share: the simulated H200. Tests that need a GPU are skipped."""

import pytest

import tilewright


@pytest.fixture(scope="session")
def dev():
    return tilewright.Device("sim:h200")


@pytest.fixture(scope="session")
def kernels(dev):
    """Skips where the library was built without kernels."""
    try:
        tilewright.RmsNorm(dev, rows=1, cols=128, x_dtype="bf16")
    except tilewright.Unsupported as error:
        pytest.skip(f"built without kernels: {error}")


@pytest.fixture
def torch_device():
    """Tensors of the host run on the simulated H200."""
    import tilewright.torch

    tilewright.torch.set_device("sim:h200")
    yield
    tilewright.torch.set_device("sim:h200")
