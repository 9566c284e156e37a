"""bf16 as numpy has it without ml_dtypes: its bits in uint16, with the nearest one of every number."""

import numpy as np

NAN = np.uint16(0xffff)


def bf16(numbers):
    """Bits of the nearest bf16, ties to even."""
    bits = np.asarray(numbers, np.float32).view(np.uint32)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def wide(bits):
    """The numbers, in float64."""
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def random_bf16(rng, *shape, scale=1.0):
    return bf16(rng.standard_normal(shape) * scale)
