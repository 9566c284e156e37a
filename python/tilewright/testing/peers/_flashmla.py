"""FlashMLA's tests of sparse decoding, sparse prefill and dense decoding."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import pathlib
from collections.abc import Iterator
from typing import Any

import torch

from tilewright import Reason, compat
from tilewright.compat import flash_mla

from ._case import Case, import_from, meta

TESTS = ("decode", "prefill", "dense")
_TIMING = Reason(
    "num_runs", "10", "the case times kernels by the peer's names of them", "python -m tilewright.bench"
)


def collect(folder: pathlib.Path, tests: list[str], through: str) -> Iterator[Case]:
    """Cases in the order of the files; each gets its place there as seed, as the files do."""
    import_from(str(folder / "tests" if (folder / "tests").is_dir() else folder))
    compat.install("flash_mla")
    _set_defaults()
    if "decode" in (tests or TESTS):
        yield from _decode()
    if "prefill" in (tests or TESTS):
        yield from _prefill()
    if "dense" in (tests or TESTS):
        yield from _dense()


def _set_defaults() -> None:
    """As the files do when they are programs."""
    torch.set_default_dtype(torch.bfloat16)
    if torch.cuda.is_available():
        torch.set_default_device("cuda:0")
    torch.set_float32_matmul_precision("high")


def _decode() -> Iterator[Case]:
    suite = importlib.import_module("test_flash_mla_sparse_decoding")
    for place, raw in enumerate(suite.gen_testcase()):
        raw.seed = place
        case = raw.to_test_param()
        q = meta(raw.b, raw.s_q, raw.h_q, raw.d_qk)
        reasons = flash_mla.can_implement(
            "flash_mla_with_kvcache",
            q=q,
            k_cache=meta(1, raw.block_size, 1, 584 if raw.d_qk == 512 else 656, dtype=torch.uint8),
            head_dim_v=raw.d_v,
            indices=meta(raw.b, raw.s_q, raw.topk, dtype=torch.int32),
        )
        if raw.num_runs:
            reasons = [*reasons, _TIMING]
        entries = raw.b * raw.s_q * (raw.topk + (raw.extra_topk or 0))
        size = entries * (raw.d_qk * 10 + raw.h_q * 12)
        run = functools.partial(_run_decode, suite, case)
        yield Case("decode", _told(raw), run, reasons, size)


def _run_decode(suite: Any, case: Any) -> bool:
    return bool(suite.test_flash_mla(case).is_correct)


def _prefill() -> Iterator[Case]:
    suite = importlib.import_module("test_flash_mla_sparse_prefill")
    for place, case in enumerate(_lists_of_program(suite)):
        case.seed = place
        q = meta(case.s_q, case.h_q, case.d_qk)
        kv = meta(case.s_kv, 1, case.d_qk)
        reasons = flash_mla.can_implement("flash_mla_sparse_fwd", q=q, kv=kv, d_v=case.d_v)
        if case.num_runs:
            reasons = [*reasons, _TIMING]
        size = case.s_q * case.topk * (case.d_qk * 10 + case.h_q * 12)
        run = functools.partial(suite.run_test, case)
        yield Case("prefill", _told(case), run, reasons, size if case.check_correctness else 0)


def _dense() -> Iterator[Case]:
    suite = importlib.import_module("test_flash_mla_dense_decoding")
    for case in _lists_of_program(suite):
        keys = 3 * case.s_k if case.is_varlen else case.s_k
        reasons = flash_mla.can_implement(
            "flash_mla_with_kvcache",
            q=meta(case.b, case.s_q, case.h_q, case.d),
            k_cache=meta(1, case.block_size, case.h_kv, case.d),
            head_dim_v=case.dv,
            causal=case.is_causal,
            is_fp8_kvcache=False,
        )
        if case.test_performance:
            reasons = [*reasons, dataclasses.replace(_TIMING, field="test_performance", value="True")]
        size = case.b * keys * case.h_kv * case.d * 6 + case.h_q * keys * (case.d + case.s_q) * 8
        yield Case("dense", _told(case), functools.partial(_run_dense, suite, case), reasons, size)


def _run_dense(suite: Any, case: Any) -> None:
    """It asserts."""
    suite.test_flash_mla(case)


def _lists_of_program(suite: Any) -> list[Any]:
    """`testcases`, which the file makes only when it is the program, some in main(): its assignments alone."""
    path = str(suite.__file__)
    tree = ast.parse(pathlib.Path(path).read_text(encoding="utf-8"), path)
    programs: list[ast.If | ast.FunctionDef] = [node for node in tree.body if isinstance(node, ast.If)]
    programs += [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "main"]
    program = programs[-1]
    names: dict[str, Any] = dict(vars(suite))
    for statement in program.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            exec(compile(ast.Module([statement], []), path, "exec"), names)
        if "testcases" in names:
            return list(names["testcases"])
    raise ValueError(f"{path}: expected a list `testcases` in its main part")


def _told(case: Any) -> dict[str, Any]:
    """What tells a case from its neighbours."""
    names = "d_qk h_q h_kv b s_q s_k is_causal s_kv topk block_size extra_s_k extra_topk extra_block_size".split()
    names += "have_topk_length have_extra_topk_length is_varlen is_all_indices_invalid".split()
    names += "have_zero_seqlen_k enable_attn_sink have_attn_sink seed".split()
    return {name: getattr(case, name) for name in names if hasattr(case, name)}
