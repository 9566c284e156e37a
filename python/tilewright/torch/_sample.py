"""The next tokens of rows of logits, drawn on the device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

import tilewright

from ._context import (
    DTYPES,
    Entry,
    Way,
    describe,
    expect_tensors,
    have_no_gradient,
    is_direct,
    known_calls,
    make,
    places_of,
    require,
    require_operand,
    signature,
    table,
)
from ._ops import Done, define, known


def sample(
    logits: Tensor,
    *,
    temperature: Tensor | None = None,
    top_k: Tensor | None = None,
    top_p: Tensor | None = None,
    min_p: Tensor | None = None,
    seeds: Tensor | None = None,
    positions: Tensor | None = None,
    return_log_probs: bool = False,
) -> Any:
    """Tokens drawn from softmax(logits / temperature), cut to top_k, then min_p, then top_p.

    logits       bfloat16 or float32 [rows, vocab]; rows begin at multiples of 4 elements
    temperature  fp32 [rows]; 0: the token with the largest logit, of equal ones the lowest. Without
                 temperature all rows are so
    top_k        int32 [rows]: so many of the likeliest; 0: all
    top_p        fp32 [rows]: the likeliest whose probabilities reach this share; 1: all
    min_p        fp32 [rows]: those at least min_p times as likely as the likeliest; 0: all
    seeds        int64 [rows, 2]: a seed, and what makes sequences with one seed differ
    positions    int32 [rows]: of the token in its sequence, so that each draws anew; below 0 the
                 row takes no part, and its token is -1

    Returns int32 [rows], -1 for a row without a finite largest logit; with return_log_probs also
    fp32 [rows], the logarithm of each token's probability without temperature and cuts. A token
    depends on its row alone: not on the rows beside it, nor on how many there are.
    """
    given = (logits, temperature, top_k, top_p, min_p, seeds, positions, None, None, return_log_probs)
    if not is_compiling() and (done := _calls.run(*given)) is not None:
        return done if return_log_probs else done[0]
    expect_tensors("logits temperature top_k top_p min_p seeds positions", given, 1)
    args = (*given[:7], return_log_probs)
    if not (is_direct(logits) and all(x is None or have_no_gradient(x) for x in given[1:7])):
        ids, log_probs = _sample_op(*args)
        return (ids, log_probs) if return_log_probs else ids
    results, entry = _sample_into(*args)
    if entry is not None:
        made: dict[str, Tensor | None] = dict(zip(_RESULTS, results, strict=True))
        without = () if return_log_probs else ("log_probs",)
        Way(_calls, given, _TENSORS).remember(entry, made, without=without)
    return results if return_log_probs else results[0]


_RESULTS = ("ids", "log_probs")
#: Tensors of a call, results last.
_TENSORS = places_of("logits temperature top_k top_p min_p seeds positions ids log_probs")
_calls = known_calls(len(_TENSORS))
_OPERANDS = (
    ("temperature", torch.float32),
    ("top_k", torch.int32),
    ("top_p", torch.float32),
    ("min_p", torch.float32),
    ("seeds", torch.int64),
    ("positions", torch.int32),
)


def _fake(logits: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    require(logits.dim() == 2, f"{describe('logits', logits)}: expected [rows, vocab]")
    rows = logits.shape[0]
    ids = torch.empty(rows, dtype=torch.int32, device=logits.device)
    return ids, torch.empty(rows if rest[-1] else 0, dtype=torch.float32, device=logits.device)


def _sample_into(
    logits: Tensor,
    temperature: Tensor | None,
    top_k: Tensor | None,
    top_p: Tensor | None,
    min_p: Tensor | None,
    seeds: Tensor | None,
    positions: Tensor | None,
    return_log_probs: bool,
) -> tuple[tuple[Tensor, Tensor], Entry | None]:
    """The results, and the operator, if there was something to do."""
    ids, log_probs = _fake(logits, return_log_probs)
    operands = (temperature, top_k, top_p, min_p, seeds, positions)
    if logits.shape[0] == 0:
        return (ids, log_probs), None
    key = ("sample", signature(logits, *operands), return_log_probs)
    entry: Entry | None = table.get(key)
    if entry is None:
        _check(logits, operands)
        problem = {
            "rows": logits.shape[0],
            "vocab": logits.shape[1],
            "logits_dtype": DTYPES[logits.dtype],
            "row_stride": logits.stride(0),
        }
        entry = table.add(key, make(tilewright.Sample, logits.device, problem))
    entry.run(
        logits=logits,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        seeds=seeds,
        positions=positions,
        ids=ids,
        log_probs=log_probs if return_log_probs else None,
    )
    return (ids, log_probs), entry


def _check(logits: Tensor, operands: tuple[Tensor | None, ...]) -> None:
    require(
        logits.dtype in (torch.bfloat16, torch.float32)
        and logits.stride(1) == 1
        and logits.stride(0) >= logits.shape[1]
        and logits.stride(0) % 4 == 0,
        f"{describe('logits', logits)}: expected bfloat16 or float32 [rows, vocab], each row contiguous "
        "and beginning at a multiple of 4 elements",
    )
    rows = logits.shape[0]
    for (name, dtype), operand in zip(_OPERANDS, operands, strict=True):
        require_operand(name, operand, logits, dtype, (rows, 2) if name == "seeds" else (rows,))


def _sample_done(*args: Any) -> Done:
    results, entry = _sample_into(*args)
    names = _TENSORS if args[-1] else {k: at for k, at in _TENSORS.items() if k != "log_probs"}
    return results, known(entry, names, args[0])


_sample_op = define(
    "sample",
    "(Tensor logits, Tensor? temperature, Tensor? top_k, Tensor? top_p, Tensor? min_p, "
    "Tensor? seeds, Tensor? positions, bool return_log_probs) -> (Tensor, Tensor)",
    _sample_done,
    _fake,
)
