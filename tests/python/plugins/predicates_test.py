"""What vLLM's backend answers of head sizes, and what becomes of those that decode attention does not have."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tilewright  # noqa: E402
from tilewright.integrations import _paged  # noqa: E402
from tilewright.integrations.vllm import predicates  # noqa: E402

pytestmark = pytest.mark.usefixtures("kernels")
DEVICES = [(9, 0), (10, 0), (10, 3)]


def reason(head_size: int, capability: tuple[int, int] = (9, 0), **changes: Any) -> str | None:
    given = {"dtype": torch.bfloat16, "kv_cache_dtype": "auto", "block_size": 16, "has_sink": False}
    return predicates.reason_against(capability, head_size, **{**given, **changes})


def test_head_sizes_are_those_of_the_plans() -> None:
    assert predicates.head_sizes() == tuple(range(8, 257, 8))
    for d in (8, 96, 256):
        assert tilewright.can_implement("Attention", "h200", head_dim=d, q_len=1, kv_len=1)
    for d in _paged.decode_sizes():
        assert tilewright.can_implement("AttentionDecode", "h200", head_dim=d, max_len=1)
    assert _paged.decode_sizes() == set(predicates.head_sizes())
    assert _paged.decode_sizes("e4m3") == set(range(16, 257, 16))


@pytest.mark.parametrize("capability", DEVICES)
@pytest.mark.parametrize("cache", ["auto", "fp8"])
def test_every_head_size_is_served(capability: tuple[int, int], cache: str) -> None:
    for head_size in (8, 64, 80, 96, 192, 256):
        assert reason(head_size, capability, kv_cache_dtype=cache) is None


def test_what_no_size_has_is_refused_for_each() -> None:
    for head_size in (64, 96):
        assert "decode attention" in str(reason(head_size, kv_cache_dtype="float16"))
        assert "not (8, 0)" in str(reason(head_size, (8, 0)))
        assert "not torch.float32" in str(reason(head_size, dtype=torch.float32))
    assert "packed attention: exists for head_dim" in str(reason(264))
    assert "packed attention: a multiple of 8" in str(reason(20))


def test_gathering_is_not_silent() -> None:
    with pytest.warns(UserWarning, match="head size of 72 over caches of e4m3: every step copies"):
        _paged.warn_of_gathering(72, "e4m3")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _paged.warn_of_gathering(72, "bf16")
        _paged.warn_of_gathering(96, _paged.cache_kind(torch.uint8))
