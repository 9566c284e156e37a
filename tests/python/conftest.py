"""What the tests of the Python package share: the simulated H200, and the GPU for tensors of torch where there is
one. Tests that need a GPU are skipped without."""

import pytest

import tilewright


@pytest.fixture(scope="session")
def dev():
    return tilewright.Device("sim:h200")


@pytest.fixture(scope="session")
def kernels(dev):
    """Skips where the library was built without kernels for the device that tensors of torch are on."""
    try:
        from torch_reference import place
    except ImportError:
        device = dev
    else:
        device = tilewright.Device("cuda:0") if place() == "cuda" else dev
    try:
        tilewright.RmsNorm(device, rows=1, cols=128, x_dtype="bf16")
    except tilewright.Unsupported as error:
        pytest.skip(f"built without kernels: {error}")


@pytest.fixture
def torch_device():
    """Tensors of the host run on the simulated H200."""
    import tilewright.torch

    tilewright.torch.set_device("sim:h200")
    yield
    tilewright.torch.set_device("sim:h200")
