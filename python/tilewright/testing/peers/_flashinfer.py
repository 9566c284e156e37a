"""FlashInfer's tests of decoding and prefill over pages, on our wrappers.

FlashInfer itself is not needed: what its files compare with, its kernels for one sequence, is
attention in float32 here.
"""

from __future__ import annotations

import functools
import importlib
import pathlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from tilewright import Reason
from tilewright._errors import Unsupported
from tilewright.compat import flashinfer as ours

from ._case import Case, import_from, parametrized

TESTS = {
    "decode": ("test_batch_decode_kernels", "test_batch_decode_with_paged_kv_cache"),
    "decode_tuple": ("test_batch_decode_kernels", "test_batch_decode_with_tuple_paged_kv_cache"),
    "decode_extreme": ("test_batch_decode_kernels", "test_paged_decode_extreme_negative_logits"),
    "prefill": ("test_batch_prefill_kernels", "test_batch_prefill_with_paged_kv_cache"),
    "prefill_tuple": (
        "test_batch_prefill_kernels",
        "test_batch_prefill_with_tuple_paged_kv_cache",
    ),
}


def collect(folder: pathlib.Path, tests: list[str], through: str) -> Iterator[Case]:
    """Cases in the order of the files; each gets its place in its test as seed."""
    tests_folder = folder / "tests" if (folder / "tests").is_dir() else folder
    import_from(str(tests_folder / "attention"))
    _stand_in(tests_folder)
    for short in tests or list(TESTS):
        module, name = TESTS[short]
        function = getattr(importlib.import_module(module), name)
        for place, parameters in enumerate(parametrized(function)):
            run = functools.partial(_run, function, place, parameters)
            skips = _why_left_out(parameters)
            reasons = [] if skips else _reasons(short, parameters)
            yield Case(short, parameters, run, reasons, _bytes(parameters), skips)


def _run(function: Any, place: int, parameters: dict[str, Any]) -> None:
    torch.manual_seed(place)
    function(**parameters)


def _why_left_out(p: dict[str, Any]) -> str:
    if p.get("use_cuda_graph"):
        return "the file expects graphs to fail"
    if p.get("causal") and p["qo_len"] > p["kv_len"]:
        return "causal needs as many keys as queries"
    return ""


def _reasons(test: str, p: dict[str, Any]) -> list[Reason]:
    """What plan() says of one page."""
    few = torch.tensor([0, 1], dtype=torch.int32)
    pages = (few, few[:1], few[1:])
    given = {name: p[name] for name in ("pos_encoding_mode", "logits_soft_cap") if name in p}
    sizes = tuple(
        p.get(name, 128) for name in ("num_qo_heads", "num_kv_heads", "head_dim", "page_size")
    )
    space = torch.empty(0, dtype=torch.uint8)
    try:
        if test.startswith("prefill"):
            prefill = ours.BatchPrefillWithPagedKVCacheWrapper(space, p["kv_layout"])
            prefill.plan(few, *pages, *sizes, causal=p["causal"], **given)
        else:
            decode = ours.BatchDecodeWithPagedKVCacheWrapper(space, p.get("kv_layout", "NHD"))
            decode.plan(*pages, *sizes, **given)
    except Unsupported as error:
        return list(error.reasons)
    return []


def _bytes(p: dict[str, Any]) -> int:
    """The cache in float32 and as codes, queries and results in 16 bits, and scores of a sequence."""
    batch: int = p.get("batch_size", 1)
    heads, d = p.get("num_qo_heads", 32), p.get("head_dim", 128)
    queries, keys = p.get("qo_len", 1), p.get("kv_len", 16)
    cache = 2 * batch * keys * p.get("num_kv_heads", 4) * d
    size: int = cache * 8 + batch * queries * heads * d * 8 + heads * queries * keys * 16
    return size


class _Anything(ModuleType):
    """A module whose every name can be imported; nothing of it is called."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


def _stand_in(folder: pathlib.Path) -> None:
    """`flashinfer` with our wrappers and a reference, and the helpers of its tests."""
    if "flashinfer" in sys.modules and not isinstance(sys.modules["flashinfer"], _Anything):
        raise SystemExit("flashinfer is loaded: run its tests in a process that has not imported it")
    names = ["flashinfer", "flashinfer.utils", "flashinfer.decode", "flashinfer.prefill", "tests"]
    names += [f"tests.test_helpers.{name}" for name in ("jit_utils", "utils_fp4")]
    made: dict[str, Any] = {name: _Anything(name) for name in names}
    made["tests"].__path__ = [str(folder)]
    top, utils = made["flashinfer"], made["flashinfer.utils"]
    top.__path__ = []
    utils.has_flashinfer_jit_cache = lambda: True
    utils.get_compute_capability = lambda device: (9, 0)
    utils.GPUArchitectureError = RuntimeError
    for name in ("decode", "prefill"):
        setattr(top, name, made[f"flashinfer.{name}"])
    top.decode.single_decode_with_kv_cache = _single_decode
    top.prefill.single_prefill_with_kv_cache = _single_prefill
    for module in (top, top.decode):
        module.BatchDecodeWithPagedKVCacheWrapper = ours.BatchDecodeWithPagedKVCacheWrapper
    for module in (top, top.prefill):
        module.BatchPrefillWithPagedKVCacheWrapper = ours.BatchPrefillWithPagedKVCacheWrapper
    sys.modules.update(made)


def _single_decode(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    """q [heads, d] over k and v [keys, kv_heads, d]."""
    return _single_prefill(q[None], k, v, **options)[0]


def _single_prefill(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool = False,
    pos_encoding_mode: str = "NONE",
    logits_soft_cap: float | None = None,
) -> Tensor:
    """q [queries, heads, d] over k and v [keys, kv_heads, d], in float32."""
    if pos_encoding_mode != "NONE":
        raise ValueError(f"pos_encoding_mode={pos_encoding_mode!r}: such cases are refused before")
    queries, heads, d = q.shape
    group = heads // k.shape[1]
    keys, values = (x.float().repeat_interleave(group, 1).transpose(0, 1) for x in (k, v))
    scores = q.float().transpose(0, 1) @ keys.transpose(1, 2) * d**-0.5
    if logits_soft_cap:
        scores = (scores / logits_soft_cap).tanh() * logits_soft_cap
    if causal:
        ahead = torch.ones(queries, k.shape[0], dtype=torch.bool, device=q.device)
        scores.masked_fill_(ahead.triu(k.shape[0] - queries + 1), -torch.inf)
    found: Tensor = (scores.softmax(2) @ values).transpose(0, 1).to(q.dtype)
    return found
