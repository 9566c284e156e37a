"""DeepSeek-V4 checkpoints of 4 and 8 bits as models of transformers.

transformers reads one quantisation for a whole checkpoint. Tilewright's own have several: NVFP4
experts beside FP8 projections. Here every weight becomes 16 or 32 bits, tensor by tensor, by what
its file says.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

_FP8_BLOCK = 128  # rows and columns of a weight that share a scale
_FP4_BLOCK = 16  # columns that share a scale
_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def load_v4(
    folder: str | Path,
    *,
    dtype: torch.dtype = torch.float32,
    attn_implementation: str = "tilewright",
    **options: Any,
) -> Any:
    """A DeepseekV4ForCausalLM of a folder with config.json and safetensors.

    Weights may be fp32, bf16, FP8 in blocks of 128 x 128 (NAME.scale beside NAME.weight) and NVFP4
    (NAME.weight_scale and NAME.weight_scale_2). `dtype` is what they become. Further options go to
    from_pretrained. Raises ValueError if the model wants a tensor that the folder lacks, or has no
    place for one.
    """
    from transformers import AutoConfig, DeepseekV4ForCausalLM

    from . import register

    register()
    load: Any = DeepseekV4ForCausalLM.from_pretrained
    model, loading = load(
        None,
        config=AutoConfig.from_pretrained(folder),
        state_dict={name: _converted(tensor, dtype) for name, tensor in dequantized(folder)},
        dtype=dtype,
        attn_implementation=attn_implementation,
        output_loading_info=True,
        **options,
    )
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if loading[kind]:
            raise ValueError(f"{folder}: {kind.replace('_', ' ')}: {sorted(loading[kind])}")
    for name, parameter in model.named_parameters():
        if name.endswith("norm.weight"):  # kept in fp32, so the next layer would get fp32 as well
            parameter.data = parameter.data.to(dtype)
    return model.eval()


def dequantized(folder: str | Path) -> Iterator[tuple[str, Tensor]]:
    """Names and values of all tensors of a folder; quantised ones as fp32, scales left out."""
    files = sorted(Path(folder).glob("*.safetensors"))
    if not files:
        raise FileNotFoundError(f"{folder}: no file *.safetensors there")
    readers: list[Any] = [safe_open(file, framework="pt") for file in files]
    where = {name: reader for reader in readers for name in reader.keys()}

    def read(name: str) -> Tensor:
        tensor: Tensor = where[name].get_tensor(name)
        return tensor

    for name in where:
        stem = name.removesuffix(".weight")
        if name.endswith((".scale", ".weight_scale", ".weight_scale_2")):
            continue
        if name != stem and f"{stem}.weight_scale" in where:
            yield name, _from_nvfp4(
                read(name), read(f"{stem}.weight_scale"), read(f"{stem}.weight_scale_2")
            )
        elif name != stem and f"{stem}.scale" in where:
            yield name, _from_fp8(read(name), read(f"{stem}.scale"))
        else:
            yield name, read(name)


def _from_fp8(codes: Tensor, scales: Tensor) -> Tensor:
    rows, columns = codes.shape
    spread = scales.float().repeat_interleave(_FP8_BLOCK, 0).repeat_interleave(_FP8_BLOCK, 1)
    return codes.float() * spread[:rows, :columns]


def _from_nvfp4(pairs: Tensor, scales: Tensor, tensor_scale: Tensor) -> Tensor:
    """Even columns are in the low halves of the bytes; the top bit of a half is the sign."""
    magnitudes = torch.tensor(_E2M1)
    values = torch.cat([magnitudes, -magnitudes])
    codes = torch.stack([pairs & 15, pairs >> 4], dim=-1).flatten(1)
    spread = scales.float().repeat_interleave(_FP4_BLOCK, 1)
    return values[codes.long()] * (spread * tensor_scale.float())


def _converted(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor.to(dtype) if tensor.is_floating_point() else tensor
