"""DeepGEMM's interface on Tilewright's kernels: what there is of it, and reasons for the rest.

Our linear layers have their weights reordered once, so a product with a weight as it lies in memory
is no drop-in. keep_weights() allows it all the same: weights are prepared at their first use.
"""

from __future__ import annotations

import weakref
from typing import Any, NoReturn

import torch
from torch import Tensor

import tilewright
from tilewright import Reason
from tilewright.torch import Weight, _weights
from tilewright.torch._context import device_of, make_on, workspace

from ._common import count, reason, refuse, shape_of
from ._mqa_logits import Scaled, fp8_fp4_mqa_logits, fp8_fp4_paged_mqa_logits, known_reasons

__all__ = [
    "can_implement",
    "fp8_fp4_gemm_nt",
    "fp8_fp4_mqa_logits",
    "fp8_fp4_paged_mqa_logits",
    "fp8_gemm_nt",
    "fp8_mqa_logits",
    "fp8_paged_mqa_logits",
    "get_num_sms",
    "get_paged_mqa_logits_metadata",
    "keep_weights",
    "m_grouped_fp8_gemm_nt_contiguous",
    "m_grouped_fp8_gemm_nt_masked",
    "set_num_sms",
]

_BLOCK = 128
_HOPPER_SMS = 132
#: The element of 64 that stands at each place of an FP8 activation.
_OPERAND_ORDER = [
    16 * (p // 4 % 4) + 2 * (p // 16) + (p & 1) + 4 * (p & 2) for p in range(64)
]

_num_sms: int | None = None
_limit = 0
_kept: dict[tuple[Any, ...], tuple[weakref.ref[Tensor], _weights.Prepared]] = {}


def keep_weights(limit: int) -> None:
    """Lets fp8_gemm_nt() prepare up to `limit` weights and keep them; 0: none, as at the start.

    A kept weight takes as much memory again. It is known by address, shape and version.
    """
    global _limit
    _limit = limit
    while len(_kept) > limit:
        del _kept[next(iter(_kept))]


def fp8_gemm_nt(
    a: Scaled,
    b: Scaled,
    d: Tensor,
    c: Tensor | None = None,
    recipe: Any = None,
    recipe_a: Any = None,
    recipe_b: Any = None,
    compiled_dims: str = "nk",
    disable_ue8m0_cast: bool = False,
) -> None:
    """d = a b^T: e4m3 [m, k] with fp32 scales [m, k / 128], [n, k] with [n / 128, k / 128]."""
    reasons = gemm_reasons(a, b, d, c)
    if reasons:
        refuse("fp8_gemm_nt", reasons)
    (x, x_scales), (w, w_scales) = a, b
    if d.numel() == 0:
        return
    prepared = _prepared(w, w_scales)
    rows, k = x.shape
    key = (x.device, rows, d.dtype, d.stride(0))
    entry = prepared.table.get(key)
    if entry is None:
        dtype = "bf16" if d.dtype == torch.bfloat16 else "f32"
        problem = {
            "m": rows,
            "x_dtype": "e4m3",
            "activation_scales": "block",
            "out_dtype": dtype,
            "out_stride": d.stride(0),
        }
        made = make_on(tilewright.Linear, prepared.made, x.device, problem)
        entry = prepared.table.add(key, made)
    count("converted")
    entry.run(
        x=_operand_order(x),
        x_scales=_block_major(x_scales),
        out=d,
        workspace=workspace(entry, x.device),
    )


fp8_fp4_gemm_nt = fp8_gemm_nt


def gemm_reasons(a: Scaled, b: Scaled, d: Tensor, c: Tensor | None = None) -> list[Reason]:
    """Why fp8_gemm_nt cannot do a call; empty if it can."""
    reasons = []
    if not _limit:
        rule = "weights are reordered before they are multiplied with"
        fix = "use tilewright.torch.Linear, or allow copies by keep_weights(limit)"
        reasons.append(reason("b", shape_of(b[0]), rule, fix))
    if c is not None:
        rule = "nothing is added to what is in d"
        reasons.append(reason("c", shape_of(c), rule, "add it after the call"))
    (x, x_scales), (w, w_scales) = a, b
    wanted = {
        "a[0]": (x, torch.float8_e4m3fn, (x.shape[0], w.shape[1])),
        "a[1]": (x_scales, torch.float32, (x.shape[0], -(-w.shape[1] // _BLOCK))),
        "b[0]": (w, torch.float8_e4m3fn, tuple(w.shape)),
        "b[1]": (w_scales, torch.float32, tuple(-(-size // _BLOCK) for size in w.shape)),
    }
    for name, (tensor, dtype, shape) in wanted.items():
        if tensor.dtype != dtype or tuple(tensor.shape) != shape:
            rule = f"{str(dtype).removeprefix('torch.')}{list(shape)}"
            fix = "quantise with scales for 1 x 128 of a and 128 x 128 of b"
            reasons.append(reason(name, shape_of(tensor), rule, fix))
    if d.dtype not in (torch.bfloat16, torch.float32) or d.stride(-1) != 1:
        rule = "bfloat16 or float32, rows contiguous"
        reasons.append(reason("d", shape_of(d), rule, "copy the result"))
    return reasons


def _prepared(w: Tensor, scales: Tensor) -> _weights.Prepared:
    key = (w.data_ptr(), tuple(w.shape), tuple(w.stride()), scales.data_ptr())
    version = 0 if w.is_inference() else w._version
    found = _kept.get((*key, version))
    if found is not None and found[0]() is w:
        return found[1]
    source = _weights.source(Weight(w, scales, "fp8"), "fp8")
    made = tilewright.LinearWeight(device_of(w.device), **source)
    prepared = _weights.Prepared(made, tuple(w.shape), w.device)
    while len(_kept) >= _limit:
        del _kept[next(iter(_kept))]
    _kept[(*key, version)] = (weakref.ref(w), prepared)
    return prepared


def _operand_order(x: Tensor) -> Tensor:
    """Rows padded with zeros to 64, every 64 in the order that the kernels read."""
    bytes_of = x.view(torch.uint8)
    bytes_of = torch.nn.functional.pad(bytes_of, (0, -x.shape[1] % 64))
    order = torch.tensor(_OPERAND_ORDER, device=x.device)
    blocks = bytes_of.view(x.shape[0], -1, 64)[:, :, order]
    return blocks.reshape(x.shape[0], -1).view(torch.float8_e4m3fn)


def _block_major(scales: Tensor) -> Tensor:
    """[rows, blocks] as [blocks, rows rounded up to 4]."""
    return torch.nn.functional.pad(scales.t(), (0, -scales.shape[0] % 4)).contiguous()


_GROUPED = (
    "groups of rows with a weight each have no operator",
    "use tilewright.torch.Moe for the whole layer",
)


def m_grouped_fp8_gemm_nt_contiguous(
    a: Scaled,
    b: Scaled,
    d: Tensor,
    grouped_layout: Tensor,
    recipe: Any = None,
    recipe_a: Any = None,
    recipe_b: Any = None,
    compiled_dims: str = "nk",
    disable_ue8m0_cast: bool = False,
    use_psum_layout: bool = False,
    ensure_zero_padding: bool = False,
    expected_m_for_psum_layout: int | None = None,
) -> NoReturn:
    """Refused: see the reason."""
    _refuse("m_grouped_fp8_gemm_nt_contiguous", b=b)


def m_grouped_fp8_gemm_nt_masked(
    a: Scaled,
    b: Scaled,
    d: Tensor,
    masked_m: Tensor,
    expected_m: int,
    recipe: Any = None,
    recipe_a: Any = None,
    recipe_b: Any = None,
    compiled_dims: str = "nk",
    disable_ue8m0_cast: bool = False,
) -> NoReturn:
    """Refused: see the reason."""
    _refuse("m_grouped_fp8_gemm_nt_masked", b=b)


def fp8_mqa_logits(
    q: Tensor,
    kv: Scaled,
    weights: Tensor,
    cu_seq_len_k_start: Tensor,
    cu_seq_len_k_end: Tensor,
    clean_logits: bool = True,
    max_seqlen_k: int = 0,
) -> Tensor:
    """fp8_fp4_mqa_logits() of e4m3."""
    return fp8_fp4_mqa_logits(
        (q, None), kv, weights, cu_seq_len_k_start, cu_seq_len_k_end, clean_logits, max_seqlen_k
    )


def fp8_paged_mqa_logits(
    q: Tensor,
    kv_cache: Tensor,
    weights: Tensor,
    context_lens: Tensor,
    block_table: Tensor,
    schedule_meta: Tensor,
    max_context_len: int,
    clean_logits: bool = False,
    indices: Tensor | None = None,
) -> Tensor:
    """fp8_fp4_paged_mqa_logits() of e4m3."""
    return fp8_fp4_paged_mqa_logits(
        (q, None),
        kv_cache,
        weights,
        context_lens,
        block_table,
        schedule_meta,
        max_context_len,
        clean_logits,
        indices=indices,
    )


def get_paged_mqa_logits_metadata(
    context_lens: Tensor, block_kv: int, num_sms: int, indices: Tensor | None = None
) -> Tensor:
    """int32 of the peer's size; nothing here reads it."""
    return torch.zeros((num_sms + 1, 2), dtype=torch.int32, device=context_lens.device)


def get_num_sms() -> int:
    """What set_num_sms() was given, else the SMs of the current GPU (an H200's without one)."""
    if _num_sms is not None:
        return _num_sms
    if not torch.cuda.is_available():
        return _HOPPER_SMS
    return int(torch.cuda.get_device_properties().multi_processor_count)


def set_num_sms(number: int) -> None:
    """Kept for get_num_sms(); kernels here choose for themselves."""
    global _num_sms
    _num_sms = number


def can_implement(function: str, **arguments: Any) -> list[Reason]:
    """Why a call of `function` with these arguments cannot be done; empty if it can."""
    if function in ("fp8_gemm_nt", "fp8_fp4_gemm_nt"):
        a, b, d = (arguments[name] for name in ("a", "b", "d"))
        return gemm_reasons(a, b, d, arguments.get("c"))
    if "mqa_logits" in function:
        return known_reasons(**arguments)
    rule, fix = _GROUPED
    return [reason("b", shape_of(arguments["b"][0]), rule, fix)]


def _refuse(function: str, **arguments: Any) -> NoReturn:
    refuse(function, can_implement(function, **arguments))
