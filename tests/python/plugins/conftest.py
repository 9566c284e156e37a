"""Where there is a GPU, tensors are made on it, and the engines' calls run there instead of on the simulator."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def on_the_gpu() -> Iterator[None]:
    """Without torch and without a GPU nothing changes."""
    try:
        import torch
        from torch_reference import place
    except ImportError:
        yield
        return
    if place() == "cpu":
        yield
        return
    torch.set_default_device(place())
    yield
    torch.set_default_device(None)
