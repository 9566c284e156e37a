#!/usr/bin/env python3
"""Writes tests/golden/formats/<name>.json: codes and values of every number format.

The witness is code that Tilewright does not share: numpy and ml_dtypes (`pip install numpy
ml_dtypes`). tf32, which neither has, is fp32 words rounded in Python integers.

  decode  [code, value] in hexadecimal; every code up to 8 bits, a selection above
  encode  [value, code]: midpoints of neighbouring codes, and the inputs just below and above each,
          rounded to nearest even without saturation

Left out because ml_dtypes 0.6.0 departs from the hardware there:
  NaN inputs         it keeps the sign, uses 0x7e for e5m2, and -0 for the formats without NaN
  ue8m0 below 2^-126 zero and negative inputs give NaN, and values that are subnormal in fp32 round
                     to the wrong neighbour (1.4 * 2^-127 to 2^-126)

With --check nothing is written; the exit status is 1 if a file would change.
"""

import json
import pathlib
import random
import sys

import golden_files
import ml_dtypes
import numpy as np

# name -> (dtype or None, bits of the code, bits of the sign)
FORMATS = {
    "fp32": (np.float32, 32, 1),
    "fp16": (np.float16, 16, 1),
    "bf16": (ml_dtypes.bfloat16, 16, 1),
    "tf32": (None, 19, 1),
    "e4m3": (ml_dtypes.float8_e4m3fn, 8, 1),
    "e5m2": (ml_dtypes.float8_e5m2, 8, 1),
    "e3m2": (ml_dtypes.float6_e3m2fn, 6, 1),
    "e2m3": (ml_dtypes.float6_e2m3fn, 6, 1),
    "e2m1": (ml_dtypes.float4_e2m1fn, 4, 1),
    "ue8m0": (ml_dtypes.float8_e8m0fnu, 8, 0),
    "ue4m3": (ml_dtypes.float8_e4m3fn, 7, 0),
}
TF32_DROPPED_BITS = 13
DEFAULT_DIR = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "formats"


def code_dtype(bits):
    return np.uint8 if bits <= 8 else np.uint16 if bits <= 16 else np.uint32


def decode(name, code):
    dtype, bits, _ = FORMATS[name]
    if dtype is None:
        return float(np.array([code << TF32_DROPPED_BITS], np.uint32).view(np.float32)[0])
    return float(np.array([code], code_dtype(bits)).view(dtype)[0])


def encode(name, value):
    """Code of a value that fp32 holds (fp64 for fp32 itself)."""
    dtype, bits, _ = FORMATS[name]
    if name == "fp32":
        return int(np.array([value], np.float64).astype(np.float32).view(np.uint32)[0])
    source = np.array([value], np.float32)
    assert np.isnan(value) or float(source[0]) == value
    if dtype is not None:
        return int(source.astype(dtype).view(code_dtype(bits))[0])
    word = int(source.view(np.uint32)[0])
    code, rest = divmod(word, 1 << TF32_DROPPED_BITS)
    half = 1 << (TF32_DROPPED_BITS - 1)
    return code + (rest > half or (rest == half and code & 1))


def selected_codes(bits, sign_bits, rng):
    """All codes up to 8 bits; above, the neighbourhood of every power of two and random ones."""
    if bits <= 8:
        return list(range(1 << bits))
    magnitudes = 1 << (bits - sign_bits)
    exponent_step = {32: 1 << 23, 19: 1 << 10, 16: 1 << 7}[bits]
    # 32 and 19 bits have 256 binades; a quarter of them keeps the files small.
    stride = exponent_step * (4 if bits > 16 else 2)
    codes = {0, 1, 2, exponent_step - 1, magnitudes - 1}
    for start in [exponent_step, *range(stride, magnitudes, stride), magnitudes - exponent_step]:
        codes |= {start - 1, start, start + 1}
    codes |= {rng.randrange(magnitudes) for _ in range(64)}
    return sorted(codes | {code + magnitudes for code in rng.sample(sorted(codes), 64)})


def midpoint_inputs(name, low, high):
    """The fp32 (fp64) inputs around the middle of two neighbouring values."""
    real = np.float64 if name == "fp32" else np.float32
    middle = real(low / 2 + high / 2)
    return [float(np.nextafter(middle, real(-np.inf))), float(middle),
            float(np.nextafter(middle, real(np.inf)))]


def largest_finite(name):
    dtype = FORMATS[name][0]
    return (2 - 2.0**-10) * 2.0**127 if dtype is None else float(ml_dtypes.finfo(dtype).max)


def encode_inputs(name, codes, sign_bits, bits):
    inputs = []
    for code in (c for c in codes if c + 1 < 1 << (bits - sign_bits)):
        low, high = decode(name, code), decode(name, code + 1)
        if np.isfinite(low) and np.isfinite(high):
            inputs += midpoint_inputs(name, low, high)
    largest = largest_finite(name)
    step = largest - decode(name, encode(name, largest) - 1)
    inputs += midpoint_inputs(name, largest, largest + step) + [float("inf")]
    if not sign_bits:
        return [x for x in inputs if name != "ue8m0" or x >= 2.0**-126]
    return inputs + [-x for x in inputs[::2]] + [0.0, -0.0]


def golden(name):
    _, bits, sign_bits = FORMATS[name]
    codes = selected_codes(bits, sign_bits, random.Random(20))
    digits = (bits + 3) // 4
    return {
        "format": name,
        "source": f"numpy {np.__version__}, ml_dtypes {ml_dtypes.__version__}",
        "decode": [[f"{code:0{digits}x}", short_hex(decode(name, code))] for code in codes],
        "encode": [[short_hex(x), f"{encode(name, x):0{digits}x}"]
                   for x in encode_inputs(name, codes, sign_bits, bits)],
    }


def short_hex(x):
    """float.hex() without the zeros that end the mantissa."""
    mantissa, power, exponent = x.hex().partition("p")
    return mantissa.rstrip("0").rstrip(".") + power + exponent if power else mantissa


def dump(data):
    """JSON with one pair per line, so that a change shows as a short diff."""
    lines = [f' "{key}": {json.dumps(data[key])},' for key in ("format", "source")]
    for key in ("decode", "encode"):
        pairs = ",\n".join("  " + json.dumps(pair) for pair in data[key])
        lines.append(f' "{key}": [\n{pairs}\n ]' + ("," if key == "decode" else ""))
    return "{\n" + "\n".join(lines) + "\n}\n"


def texts():
    for name in FORMATS:
        with np.errstate(over="ignore"):
            yield f"{name}.json", dump(golden(name))


if __name__ == "__main__":
    sys.exit(golden_files.write_or_compare(__doc__, __file__, DEFAULT_DIR, texts()))
