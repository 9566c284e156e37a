"""The examples in Python run as their users run them."""

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples/python"


@pytest.mark.parametrize("name, device", [
    ("attention.py", "sim:h200"), ("cascade.py", "sim:h200"), ("cascade.py", "sim:b200")])
def test_example(kernels, name, device):
    if name == "cascade.py":
        pytest.importorskip("torch")
    done = subprocess.run([sys.executable, EXAMPLES / name, "--device", device], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "largest error" in done.stdout
