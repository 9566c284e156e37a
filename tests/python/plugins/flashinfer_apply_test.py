"""Solutions for FlashInfer's registry against float64; FlashInfer's own dispatch where it is installed."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from torch_reference import close, seeded  # noqa: E402

import tilewright  # noqa: E402
from tilewright.integrations import flashinfer as plugin  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels", "torch_device")
ROWS, HEADS, SIZE = 5, 4, 64


def drawn(parts: int, dtype: Any = torch.bfloat16) -> tuple[Any, Any]:
    """v [rows, parts, heads, d] and s [rows, parts, heads] to base 2; some parts have no keys."""
    generator = seeded(parts)
    v = torch.randn(ROWS, parts, HEADS, SIZE, generator=generator).to(dtype)
    s = 3 * torch.randn(ROWS, parts, HEADS, generator=generator)
    s[0, 0] = -math.inf
    return v, s


def merged(v: Any, s: Any) -> tuple[Any, Any]:
    weights = torch.softmax(s.double() * math.log(2.0), 1)
    out = (weights[..., None] * v.double()).sum(1)
    return out, torch.logsumexp(s.double() * math.log(2.0), 1) / math.log(2.0)


def check(found: tuple[Any, Any], v: Any, s: Any) -> None:
    out, lse = merged(v, s)
    assert found[0].dtype == v.dtype and found[1].dtype == torch.float32
    assert found[1].shape == (ROWS, HEADS) and found[1].is_contiguous()
    close(found[0], out, 4 * 2.0**-8)  # bf16 rounds by 2^-8 of a number at most, numbers are up to 4
    close(found[1], lse, 1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_two_parts(dtype: Any) -> None:
    v, s = drawn(2, dtype)
    check(plugin.merge_state(v[:, 0], s[:, 0], v[:, 1], s[:, 1]), v, s)


def test_several_parts() -> None:
    check(plugin.merge_states(*drawn(5)), *drawn(5))


def test_an_unknown_release_is_refused(monkeypatch: Any) -> None:
    monkeypatch.setattr("tilewright.integrations._versions.version", lambda package: "0.8.0")
    with pytest.raises(tilewright.Unsupported, match="flashinfer-python 0.8.0.*written against 0.7"):
        plugin.solutions([(HEADS, SIZE)])


def test_flashinfer_calls_them(monkeypatch: Any) -> None:
    """Its own functions, whose kernels need a GPU, on tensors of the host."""
    if not torch.cuda.is_available():  # which asks the driver
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    flashinfer: Any = pytest.importorskip("flashinfer")
    apply: Any = pytest.importorskip("flashinfer.trace_apply")
    v, s = drawn(2)
    apply.enable_apply(plugin.solutions([(HEADS, SIZE)]))
    try:
        check(flashinfer.merge_state(v[:, 0], s[:, 0], v[:, 1], s[:, 1]), v, s)
        check(flashinfer.merge_states(v, s), v, s)
        hits = {name.rpartition(".")[2]: counts.get("hit") for name, counts in apply.stats().items()}
    finally:
        apply.disable_apply()
    assert hits == {"merge_state": 1, "merge_states": 1}
