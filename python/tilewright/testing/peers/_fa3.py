"""FlashAttention-3's hopper/test_flash_attn.py."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import math
import os
import pathlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch

from tilewright import Reason, compat
from tilewright.compat import flash_attn_3_ops, flash_attn_interface

from . import _deferred
from ._case import Case, import_from, meta, parametrized

#: Parts of the file that nothing here can run: the suite's own switches.
SWITCHES = ("BACKWARD", "LOCAL", "HDIM64", "HDIM96", "HDIM192")
TESTS = {
    "output": "test_flash_attn_output",
    "varlen": "test_flash_attn_varlen_output",
    "kvcache": "test_flash_attn_kvcache",
    "combine": "test_flash_attn_combine",
    "cluster": "test_flash_attn_cluster",
    "linearize": "test_flash_attn_varlen_combine_linearize",
    "schemas": "test_flash3_bw_compatibility",
    "race": "test_flash_attn_race_condition",
}


#: Tests that wait for the device once a case, unless they are run as published.
DEFERRED = ("kvcache",)


def collect(
    folder: pathlib.Path,
    tests: list[str],
    through: str,
    as_published: bool = False,
    asks: bool = True,
) -> Iterator[Case]:
    """Cases of the named tests; `through`: "module", or "operators" below the peer's own module.

    With `asks` false they lack what can_implement() says, which takes most of the time.
    """
    for switch in SWITCHES:
        os.environ.setdefault(f"FLASH_ATTENTION_DISABLE_{switch}", "TRUE")
    hopper = folder / "hopper" if (folder / "hopper").is_dir() else folder
    import_from(str(hopper), str(hopper.parent))
    if torch.cuda.is_available():  # what it turns keys with is a kernel of Triton
        _find_rotary(hopper.parent)
    flash_attn_3_ops.install()
    if through == "module":
        compat.install("flash_attn_interface")
    suite: Any
    if as_published:
        suite, deferred = importlib.import_module("test_flash_attn"), None
    else:
        suite, checks = _deferred.load(
            hopper / "test_flash_attn.py", "test_flash_attn", [TESTS[short] for short in DEFERRED]
        )
        suite.attention_ref = _deferred.Memo(suite.attention_ref)
        deferred = functools.partial(_run_deferred, checks, suite.attention_ref)
    for short in tests or list(TESTS):
        function = getattr(suite, TESTS[short])
        ask: Callable[..., Answer] = _ASK.get(short, _nothing)
        for parameters in parametrized(function):
            run = functools.partial(function, **parameters)
            group: tuple[Any, ...] = ()
            if deferred and short in DEFERRED:
                group = _inputs(**parameters)
                run = functools.partial(deferred, group, run)
            answer = ask(suite, **parameters) if asks else _nothing(suite)
            yield Case(short, parameters, run, *answer, group=group)


def _run_deferred(
    checks: _deferred.Checks, memo: _deferred.Memo, group: Any, run: Callable[[], Any]
) -> None:
    checks.clear()
    memo.begin(group)
    try:
        run()
        checks.settle()
    finally:
        checks.clear()


def _inputs(**p: Any) -> tuple[Any, ...]:
    """What the tensors of a case of kvcache depend on: without rotary or new keys some options change none."""
    unused = [] if p["rotary_fraction"] else ["rotary_interleaved"]
    unused += [] if p["new_kv"] else ["seqlen_new_eq_seqlen_q"]
    return tuple(value for name, value in p.items() if name not in unused)


def _find_rotary(folder: pathlib.Path) -> None:
    """Makes flash_attn.layers.rotary importable where FlashAttention-2 is not built: the package's own file loads
    its kernels, and the suite leaves its cases of rotary out, silently, where that fails."""
    is_built = importlib.util.find_spec("flash_attn_2_cuda") is not None
    if is_built or "flash_attn" in sys.modules or not (folder / "flash_attn").is_dir():
        return
    package = ModuleType("flash_attn")
    package.__path__ = [str(folder / "flash_attn")]
    sys.modules["flash_attn"] = package


Answer = tuple[list[Reason], int, str]


def _nothing(suite: Any, **parameters: Any) -> Answer:
    return [], 0, ""


def _value_sizes(d: int, has_qv: bool, dtype: torch.dtype) -> list[int]:
    """The head sizes of v that a case goes through."""
    if has_qv:
        return [256, 512]
    if dtype == torch.float8_e4m3fn:
        return [d]
    return [128, d] if 128 < d <= 192 else [256, 512, d] if d <= 64 else [d]


def _backward(suite: Any, dtype: torch.dtype) -> list[Reason]:
    if suite.DISABLE_BACKWARD or dtype == torch.float8_e4m3fn:
        return []
    return [Reason("backward", "wanted", "forward only", "FLASH_ATTENTION_DISABLE_BACKWARD=TRUE")]


def _whole(packed: bool) -> Callable[..., Answer]:
    def ask(suite: Any, **p: Any) -> Answer:
        d, dtype, has_qv = p["d"], p["dtype"], p["has_qv"]
        if has_qv and (d != 64 or dtype == torch.float8_e4m3fn):
            return [], 0, "has_qv is for heads of 64 in 16 bits"
        if p.get("V_colmajor") and (p["seqlen_k"] % 16 or dtype != torch.float8_e4m3fn):
            return [], 0, "V_colmajor is for e4m3"
        heads = 6
        kv_heads = {"mha": heads, "gqa": 2, "mqa": 1}[p["mha_type"]]
        chunked = not suite.DISABLE_LOCAL and (not packed or p["seqlen_q"] <= p["seqlen_k"])
        reasons = _backward(suite, dtype)
        for dv in _value_sizes(d, has_qv, dtype):
            for chunk in (1, 0) if chunked else (0,):
                masking = {"attention_chunk": chunk, "causal": p["causal"], "softcap": p.get("softcap", 0.0)}
                masking["window_size"] = (1, 1) if p.get("local") else (-1, -1)
                reasons += _whole_reasons(packed, dtype, heads, kv_heads, d, dv, has_qv, masking)
        size = 9 * heads * p["seqlen_q"] * p["seqlen_k"] * 4 * 6
        return reasons, size if max(p["seqlen_q"], p["seqlen_k"]) <= 2048 else size * 2 // 9, ""

    return ask


def _whole_reasons(
    packed: bool,
    dtype: torch.dtype,
    heads: int,
    kv_heads: int,
    d: int,
    dv: int,
    has_qv: bool,
    masking: dict[str, Any],
) -> list[Reason]:
    rows = (8,) if packed else (2, 4)
    arguments: dict[str, Any] = {
        "q": meta(*rows, heads, d, dtype=dtype),
        "k": meta(*rows, kv_heads, d, dtype=dtype),
        "v": meta(*rows, kv_heads, dv, dtype=dtype),
        "qv": meta(*rows, heads, dv, dtype=dtype) if has_qv else None,
        **masking,
    }
    if packed:
        lengths = meta(3, dtype=torch.int32)
        arguments |= {"cu_seqlens_q": lengths, "cu_seqlens_k": lengths}
        arguments |= {"seqused_q": lengths[:2], "seqused_k": lengths[:2]}
    name = "flash_attn_varlen_func" if packed else "flash_attn_func"
    return flash_attn_interface.can_implement(name, **arguments)


def _kvcache(suite: Any, **p: Any) -> Answer:
    queries, keys, d, dtype = p["seqlen_q"], p["seqlen_k"], p["d"], p["dtype"]
    if p["page_size"] is not None and keys % p["page_size"]:
        return [], 0, "the page size does not divide the keys"
    if p["new_kv"] and queries > keys:
        return [], 0, "more new keys than room"
    if not p["new_kv"] and p["rotary_fraction"] > 0:
        return [], 0, "rotary positions are of new keys"
    if not p["rotary_fraction"] and p["has_rotary_seqlens"]:
        return [], 0, "positions are of rotary"
    batch, heads = 5, 6
    kv_heads = {"mha": heads, "mqa": 1, "gqa": 3}[p["mha_type"]]
    rotary_dim = math.floor(int(p["rotary_fraction"] * d) / 16) * 16
    lengths, begins = meta(batch, dtype=torch.int32), meta(batch + 1, dtype=torch.int32)
    cache = meta(batch, keys, kv_heads, d, dtype=dtype)
    packed = p["varlen_q"]
    q = meta(batch * queries, heads, d, dtype=dtype) if packed else meta(batch, queries, heads, d, dtype=dtype)
    # The suite draws the number of new keys; one that is not said to be equal may be.
    new = queries if p["seqlen_new_eq_seqlen_q"] or queries == 1 else queries - 1
    new_shape = (batch * new, kv_heads, d) if packed else (batch, new, kv_heads, d)
    fresh = meta(*new_shape, dtype=dtype) if p["new_kv"] else None
    window = (1, 1 if queries > 2 else 0) if p["local"] else (-1, -1)
    arguments: dict[str, Any] = {
        "q": q,
        "k_cache": cache,
        "v_cache": cache,
        "k": fresh,
        "v": fresh,
        "rotary_cos": meta(keys, rotary_dim // 2) if rotary_dim else None,
        "cache_seqlens": lengths,
        "rotary_seqlens": lengths,
        "cache_batch_idx": lengths if p["has_batch_idx"] else None,
        "cache_leftpad": lengths if p["has_leftpad"] else None,
        "page_table": None if p["page_size"] is None else meta(batch, 4, dtype=torch.int32),
        "cu_seqlens_q": begins if packed else None,
        "cu_seqlens_k_new": begins if packed and p["new_kv"] else None,
        "causal": p["causal"],
        "window_size": window,
        "attention_chunk": int((p["causal"] or p["local"]) and not suite.DISABLE_LOCAL),
    }
    reasons = flash_attn_interface.can_implement("flash_attn_with_kvcache", **arguments)
    return reasons, _kvcache_bytes(batch, heads, kv_heads, **p), ""


def _kvcache_bytes(batch: int, heads: int, kv_heads: int, **p: Any) -> int:
    """Scores in float32, both caches and what is saved of them, and their sequences for the reference."""
    queries, keys, d = int(p["seqlen_q"]), int(p["seqlen_k"]), int(p["d"])
    scores = batch * heads * queries * keys * 4 * 6
    in_cache = batch * (2 if p["has_batch_idx"] else 1) * (3 if p["page_size"] else 1)
    return scores + 4 * in_cache * keys * kv_heads * d * 2 + 10 * batch * keys * heads * d * 2


def _combine(suite: Any, **p: Any) -> Answer:
    return [], p["num_splits"] * 5 * 16 * p["seqlen"] * p["d"] * 4 * 5, ""


def _race(suite: Any, **p: Any) -> Answer:
    rule = "forward only, and the test goes backward"
    return [Reason("backward", "wanted", rule, "run its forward in a test of your own")], 0, ""


_ASK: dict[str, Callable[..., Answer]] = {
    "output": _whole(packed=False),
    "varlen": _whole(packed=True),
    "kvcache": _kvcache,
    "combine": _combine,
    "race": _race,
}
