"""What README.md and the pages on Python show works when it is pasted."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Behind the lines of README.md: the result is that of float64.
CHECK = """
x = q.astype(np.float64)
s = np.einsum("bqhd,bkhd->bhqk", x, x) / 8
s[:, :, np.triu(np.ones((100, 100), bool), 1)] = -np.inf
p = np.exp(s - s.max(-1, keepdims=True))
expected = np.einsum("bhqk,bkhd->bqhd", p / p.sum(-1, keepdims=True), x)
print("largest error", abs(out - expected).max())
assert abs(out - expected).max() < 4e-3
"""


def blocks(path):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / path).read_text(), re.M | re.S)


def run(text):
    done = subprocess.run([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_five_lines_of_the_readme(kernels):
    pytest.importorskip("numpy")
    (lines,) = blocks("README.md")
    assert len(lines.splitlines()) == 5
    assert "largest error" in run(lines + CHECK)


@pytest.mark.parametrize("path, before", [
    ("docs/python-torch.md", """
import torch, tilewright.torch as tt
tt.set_device("sim:h200")
q = k = v = torch.randn(2, 4, 4, 64).bfloat16()
k_cache = v_cache = torch.randn(4, 16, 4, 64).bfloat16()
lengths, pages = torch.tensor([9, 30]).int(), torch.tensor([[0, 1], [2, 3]]).int()
weight, bias = torch.randn(64, 128).bfloat16(), torch.zeros(64)
"""),
    ("docs/python-peers.md", "import tilewright.compat\n"),
])
def test_lines_of_the_pages(kernels, path, before):
    pytest.importorskip("torch")
    run(before + blocks(path)[0])
