"""Tilewright's operators as functions on torch tensors.

CUDA tensors are used as they are, on torch's current stream. CPU tensors run on the simulated
device that set_device() or TILEWRIGHT_DEVICE names.
"""

from ._attention import attention, attention_varlen
from ._cache_append import cache_append
from ._context import set_device
from ._decode import attention_decode
from ._latent import latent_attention
from ._linear import Linear
from ._merge import mask_lists, merge_attention
from ._mla import mla_decode
from ._moe import Moe
from ._paged import attention_paged
from ._quantize import Quantized, quantize
from ._sample import sample
from ._sparse import sparse_attention
from ._weights import Weight

__all__ = [
    "Linear",
    "Moe",
    "Quantized",
    "Weight",
    "attention",
    "attention_decode",
    "attention_paged",
    "attention_varlen",
    "cache_append",
    "latent_attention",
    "mask_lists",
    "merge_attention",
    "mla_decode",
    "quantize",
    "sample",
    "set_device",
    "sparse_attention",
]
