"""Numbers of the formats as fractions, and the swizzle, for the generators of tests/ptx."""

import functools
import random
import struct
from fractions import Fraction

rng = random.Random(11)


@functools.lru_cache(None)
def minifloat(exponent_bits, mantissa_bits):
    bias = (1 << (exponent_bits - 1)) - 1

    @functools.lru_cache(None)
    def value(code):
        sign = -1 if code >> (exponent_bits + mantissa_bits) else 1
        e = code >> mantissa_bits & ((1 << exponent_bits) - 1)
        m = code & ((1 << mantissa_bits) - 1)
        if e == 0: return sign * Fraction(m, 1 << mantissa_bits) * Fraction(2) ** (1 - bias)
        return sign * (1 + Fraction(m, 1 << mantissa_bits)) * Fraction(2) ** (e - bias)
    return value


FLOATS = {"f16": (16, minifloat(5, 10)), "bf16": (16, minifloat(8, 7)), "tf32": (32, minifloat(8, 23)),
          "e4m3": (8, minifloat(4, 3)), "e5m2": (8, minifloat(5, 2)), "f32": (32, minifloat(8, 23))}


@functools.lru_cache(None)
def codes_of_small(kind):
    """Codes of a few small numbers, whose sums of products every unit adds exactly."""
    if kind in ("s8", "u8", "b1"):
        return {code: (code - 256 if kind == "s8" and code > 127 else code) for code in range(256)}
    bits, value = FLOATS[kind]
    if bits == 32: candidates = [struct.unpack("<I", struct.pack("<f", v))[0] for v in (0, 1, -1, 2, -3, 4, .5)]
    else: candidates = range(1 << bits)
    wanted = {Fraction(v) for v in (0, 1, -1, 2, -2, 3, -3, 4)} | {Fraction(1, 2), Fraction(-3, 2)}
    found = {}
    for code in candidates:
        if bits == 16 and (code >> 7 & 0x1f) in (0x1f,) and kind == "f16": continue
        if bits == 32 or (code & (1 << (bits - 1)) - 1) < (0x7c00 if kind == "f16" else 1 << bits):
            if value(code) in wanted and not (value(code) == 0 and code): found[code] = value(code)
    return found


def round_to(value, mantissa_bits, min_exponent, exponent_bits):
    """Code of the nearest number, ties to even; no overflow here."""
    sign, value = int(value < 0), abs(value)
    if value == 0: return 0
    e = 0
    while value >= 2 ** (e + 1): e += 1
    while value < Fraction(2) ** e: e -= 1
    e = max(e, min_exponent)
    scaled = value / Fraction(2) ** (e - mantissa_bits)
    n = int(scaled)
    rest = scaled - n
    n += int(rest > Fraction(1, 2) or (rest == Fraction(1, 2) and n & 1))
    biased = e - min_exponent + 1 if n >> mantissa_bits else 0
    code = (biased << mantissa_bits) + (n - (1 << mantissa_bits) if biased else n)
    return code | sign << (exponent_bits + mantissa_bits)


def f32_code(v): return round_to(v, 23, -126, 8)
def f16_code(v): return round_to(v, 10, -14, 5)


def swizzled(offset, span):
    """Bits 4.. of the offset are changed by bits 7..: one bit for 32 bytes, two for 64, three for 128."""
    mask = {0: 0, 32: 1, 64: 3, 128: 7}[span]
    return offset ^ ((offset >> 7 & mask) << 4)
