"""torch.ops.flash_attn_3 on Tilewright's kernels, for code that calls FlashAttention-3's operators.

    from tilewright.compat import flash_attn_3_ops
    flash_attn_3_ops.install()      # before FlashAttention-3's Python file is imported
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.library import Library

from . import flash_attn_interface
from ._flash_attn import forward
from ._flash_caches import with_cache

_SCHEMAS = {
    "fwd": (
        "(Tensor q, Tensor k, Tensor v, Tensor(k_new!)? k_new=None, Tensor(v_new!)? v_new=None, "
        "Tensor? q_v=None, Tensor(out!)? out=None, Tensor? cu_seqlens_q=None, "
        "Tensor? cu_seqlens_k=None, Tensor? cu_seqlens_k_new=None, Tensor? seqused_q=None, "
        "Tensor? seqused_k=None, int? max_seqlen_q=None, int? max_seqlen_k=None, "
        "Tensor? page_table=None, Tensor? kv_batch_idx=None, Tensor? leftpad_k=None, "
        "Tensor? rotary_cos=None, Tensor? rotary_sin=None, Tensor? seqlens_rotary=None, "
        "Tensor? q_descale=None, Tensor? k_descale=None, Tensor? v_descale=None, "
        "float? softmax_scale=None, bool is_causal=False, int window_size_left=-1, "
        "int window_size_right=-1, int attention_chunk=0, float softcap=0.0, "
        "bool is_rotary_interleaved=False, Tensor? scheduler_metadata=None, int num_splits=0, "
        "bool? pack_gqa=None, int sm_margin=0) -> (Tensor(out!), Tensor, Tensor, Tensor)"
    ),
    "bwd": (
        "(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor softmax_lse, "
        "Tensor(dq!)? dq=None, Tensor(dk!)? dk=None, Tensor(dv!)? dv=None, "
        "Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_k=None, Tensor? seqused_q=None, "
        "Tensor? seqused_k=None, int? max_seqlen_q=None, int? max_seqlen_k=None, "
        "float? softmax_scale=None, bool is_causal=False, int window_size_left=-1, "
        "int window_size_right=-1, float softcap=0.0, bool deterministic=False, int sm_margin=0) "
        "-> (Tensor(dq!), Tensor(dk!), Tensor(dv!), Tensor, Tensor, Tensor, Tensor, Tensor)"
    ),
    "fwd_combine": (
        "(Tensor out_partial, Tensor lse_partial, Tensor(out!)? out=None, "
        "ScalarType? out_dtype=None) -> (Tensor(out!), Tensor)"
    ),
    "get_scheduler_metadata": (
        "(int batch_size, int max_seqlen_q, int max_seqlen_k, int num_heads, int num_heads_k, "
        "int headdim, int headdim_v, ScalarType qkv_dtype, Tensor seqused_k, "
        "Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_k=None, Tensor? cu_seqlens_k_new=None, "
        "Tensor? seqused_q=None, Tensor? leftpad_k=None, int? page_size=None, "
        "int max_seqlen_k_new=0, bool is_causal=False, int window_size_left=-1, "
        "int window_size_right=-1, int attention_chunk=0, bool has_softcap=False, "
        "int num_splits=0, bool? pack_gqa=None, int sm_margin=0) -> Tensor"
    ),
}

_library: Any = None


def install() -> None:
    """Defines the operators, and the module flash_attn_3._C that their definition comes with."""
    global _library
    if _library is not None:
        return
    loaded = sys.modules.get("flash_attn_3._C")
    if loaded is not None or torch._C._dispatch_has_kernel("flash_attn_3::fwd"):
        raise RuntimeError(
            f"flash_attn_3 is loaded already ({getattr(loaded, '__file__', 'its operators')}), "
            "and a process can define its operators once; install ours first, or in a process "
            "of its own"
        )
    _library = Library("flash_attn_3", "DEF")  # type: ignore[no-untyped-call]
    kernels = {"fwd": _fwd, "bwd": _bwd, "fwd_combine": _fwd_combine}
    kernels["get_scheduler_metadata"] = _get_scheduler_metadata
    for name, schema in _SCHEMAS.items():
        _library.define(f"{name}{schema}")
        for key in ("CPU", "CUDA"):
            _library.impl(name, kernels[name], key)
    package = sys.modules.setdefault("flash_attn_3", ModuleType("flash_attn_3"))
    extension = ModuleType("flash_attn_3._C")
    setattr(package, "_C", extension)
    sys.modules["flash_attn_3._C"] = extension


def uninstall() -> None:
    """Takes the operators back; who has looked them up before holds ones without a kernel."""
    global _library
    if _library is None:
        return
    _library._destroy()
    _library = None
    for name in ("flash_attn_3._C", "flash_attn_3"):
        sys.modules.pop(name, None)


def _fwd(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    k_new: Tensor | None = None,
    v_new: Tensor | None = None,
    q_v: Tensor | None = None,
    out: Tensor | None = None,
    cu_seqlens_q: Tensor | None = None,
    cu_seqlens_k: Tensor | None = None,
    cu_seqlens_k_new: Tensor | None = None,
    seqused_q: Tensor | None = None,
    seqused_k: Tensor | None = None,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    page_table: Tensor | None = None,
    kv_batch_idx: Tensor | None = None,
    leftpad_k: Tensor | None = None,
    rotary_cos: Tensor | None = None,
    rotary_sin: Tensor | None = None,
    seqlens_rotary: Tensor | None = None,
    q_descale: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
    softmax_scale: float | None = None,
    is_causal: bool = False,
    window_size_left: int = -1,
    window_size_right: int = -1,
    attention_chunk: int = 0,
    softcap: float = 0.0,
    is_rotary_interleaved: bool = False,
    scheduler_metadata: Tensor | None = None,
    num_splits: int = 0,
    pack_gqa: bool | None = None,
    sm_margin: int = 0,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    common: dict[str, Any] = {
        "qv": q_v,
        "out": out,
        "cu_seqlens_q": cu_seqlens_q,
        "descales": (q_descale, k_descale, v_descale),
        "softmax_scale": softmax_scale,
        "causal": is_causal,
        "window": (window_size_left, window_size_right),
        "attention_chunk": attention_chunk,
        "softcap": softcap,
        "return_lse": True,
    }
    has_cache = any(x is not None for x in (k_new, page_table, kv_batch_idx, leftpad_k))
    if has_cache or (seqused_k is not None and cu_seqlens_k is None):
        result, lse = with_cache(
            "flash_attn_3::fwd",
            *(q, k, v, k_new, v_new),
            rotary_cos=rotary_cos,
            rotary_sin=rotary_sin,
            cache_seqlens=seqused_k,
            cache_batch_idx=kv_batch_idx,
            cache_leftpad=leftpad_k,
            page_table=page_table,
            seqused_q=seqused_q,
            max_seqlen_q=max_seqlen_q,
            cu_seqlens_k_new=cu_seqlens_k_new,
            rotary_seqlens=_same(seqlens_rotary, seqused_k),
            rotary_interleaved=is_rotary_interleaved,
            num_splits=num_splits,
            **common,
        )
    else:
        result, lse = forward(
            "flash_attn_3::fwd",
            *(q, k, v),
            cu_seqlens_k=cu_seqlens_k,
            seqused_q=seqused_q,
            seqused_k=seqused_k,
            max_seqlen_q=max_seqlen_q,
            max_seqlen_k=max_seqlen_k,
            **common,
        )
    assert lse is not None
    return result, lse, q.new_empty(0, dtype=torch.float32), q.new_empty(0, dtype=torch.float32)


def _same(given: Tensor | None, lengths: Tensor | None) -> Tensor | None:
    """The dispatcher makes new objects of the same tensor."""
    if given is None or lengths is None or given.data_ptr() != lengths.data_ptr():
        return given
    return lengths


def _bwd(*args: Any, **keywords: Any) -> NoReturn:
    raise NotImplementedError(
        "tilewright: flash_attn_3::bwd has no kernel; call the forward under torch.no_grad()"
    )


def _fwd_combine(
    out_partial: Tensor,
    lse_partial: Tensor,
    out: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> tuple[Tensor, Tensor]:
    return flash_attn_interface.flash_attn_combine(out_partial, lse_partial, out, out_dtype)


def _get_scheduler_metadata(
    batch_size: int,
    max_seqlen_q: int,
    max_seqlen_k: int,
    num_heads: int,
    num_heads_k: int,
    headdim: int,
    headdim_v: int,
    qkv_dtype: torch.dtype,
    seqused_k: Tensor,
    *rest: Any,
    **keywords: Any,
) -> Tensor:
    names = "cu_seqlens_q cu_seqlens_k cu_seqlens_k_new seqused_q leftpad_k page_size".split()
    names += "max_seqlen_k_new is_causal window_size_left window_size_right".split()
    names += ["attention_chunk"]
    given = dict(zip(names, rest, strict=False)) | keywords
    return flash_attn_interface.get_scheduler_metadata(
        *(batch_size, max_seqlen_q, max_seqlen_k, num_heads, num_heads_k, headdim, seqused_k),
        causal=given.get("is_causal", False),
        window_size=(given.get("window_size_left", -1), given.get("window_size_right", -1)),
        attention_chunk=given.get("attention_chunk", 0),
    )
