#!/usr/bin/env python3
"""Finds the tables of a GPU's special functions from recordings and writes them as C++.

    python3 tools/ptx/fit_special_functions.py RECORDINGS src/sim/insn/scalar/special_function_tables.h

RECORDINGS is what tools/ptx/record_special_functions.py wrote. Needs NumPy. The model is an interpolator
with one segment for each value of the argument's leading bits:

    y = floor(constant + linear * x + square * truncated(x * x))    x: the 17 bits that follow, / 2^17

in units of the result's last place (or 2^-23, 2^-24 where the result is a fixed-point number), with
integer linear and 2 * square. Least squares gives both to a hundredth; what is left says between which
bounds the constant lies. A segment that no constant explains ends the program.
"""

import pathlib
import sys

import numpy as np

from record_special_functions import decode

SCALE = 1 << 17  # units of the constant, and values of x
TANH_BITS = [0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 3]  # leading mantissa bits used, exponents -8 to 2


def truncated_square(x):
    """x^2 / 2^19 for 17 bits, each partial product below 2^19 left out: 15 bits."""
    total = np.zeros_like(x)
    for i in range(17):
        row = ((x >> (i + 1)) << (2 * i + 2)) | (1 << 2 * i)
        total += np.where(x >> i & 1, row >> 19, 0)
    return total


def floats(words):
    return words.astype(np.uint32).view(np.float32).astype(np.float64)


class Recordings:
    def __init__(self, folder):
        self.members = {}
        for path in sorted(pathlib.Path(folder).glob("data_*.npz")):
            archive = np.load(path)
            self.members |= {key: archive for key in archive.files}

    def section(self, name, high):
        return decode(self.members[f"{name}.{high}"][f"{name}.{high}"])


class Segment:
    """Points (x of 17 bits, bounds low <= y < high)."""

    def __init__(self, x, low, high):
        width = (high - low)[len(low) // 2]
        fx, fs = x / SCALE, truncated_square(x) / (1 << 15)
        shift = low[0]
        features = np.stack([np.ones(len(x)), fx, fs], 1)
        fit = np.linalg.lstsq(features, (low + high) / 2 - shift, rcond=None)[0]
        for step in (1, 2, 4, 8, 16, 32):  # coarser where the results have few distinct values
            for step2 in (1, 2, 4, 8, 16, 32):
                self.linear, self.square2 = round(fit[1] / step) * step, round(2 * fit[2] / step2) * step2
                self.distance = max(abs(fit[1] - self.linear), abs(2 * fit[2] - self.square2)) / width
                rest = self.linear * fx + self.square2 / 2 * fs
                self.low, self.high = (low - rest).max() * SCALE, (high - rest).min() * SCALE
                if self.low < self.high:
                    return
        raise SystemExit(f"no constant near {fit}")


def residue(segments, modulus):
    """The bits below 1/16 that the constants of all segments can share."""
    for candidate in range(modulus):
        if all(int(-(-(s.low - candidate) // modulus)) * modulus + candidate < s.high for s in segments):
            last = candidate
            while all(int(-(-(s.low - last - 1) // modulus)) * modulus + last + 1 < s.high for s in segments):
                last += 1
            return candidate, last
    raise SystemExit("the constants share no low bits")


def report(name, segments):
    modulus = SCALE // 16
    first, last = residue(segments, modulus)
    distance = max(s.distance for s in segments)
    print(f"{name}: {len(segments)} segments, low bits {first} to {last} of {modulus}, "
          f"coefficients within {distance:.3f} of integers")
    rows = []
    for s in segments:
        constant = int(-(-(s.low - first) // modulus)) * modulus + first
        assert s.low <= constant < s.high
        rows.append((constant, s.linear, 2 * s.square2))
    return rows


def of_last_place(words, leading_bits):
    """Segments of 2^23 results, in units of the last place; the first argument is left out."""
    count = 1 << (23 - leading_bits)
    x = np.arange(count) * (SCALE // count)
    words = words.astype(np.int64)
    base = int(words[0]) & ~0x7FFFFF
    found = []
    for start in range(0, 1 << 23, count):
        skip = 1 if start == 0 else 0
        y = (words[start + skip:start + count] - base).astype(np.float64)
        found.append(Segment(x[skip:], y, y + 1))
    return found, base


def of_fixed_point(points, results, scale):
    """Segments by the bits of the points above 17, results in units of 1 / scale."""
    value = floats(results) * scale
    width = floats(results + 1) * scale - value
    return [Segment(points[k] & (SCALE - 1), value[k], (value + width)[k])
            for k in (points >> 17 == s for s in range(int(points.max() >> 17) + 1))]


def turns(high):
    """The phases in 2^-25 turns of all arguments of one exponent: times 1 / 2 pi, towards zero."""
    words = (np.uint32(high) << np.uint32(23)) + np.arange(1 << 23, dtype=np.uint32)
    product = floats(words) * np.float64(np.float32(0.15915493667125702))
    rounded = product.astype(np.float32)
    towards_zero = rounded.view(np.uint32) - (rounded.astype(np.float64) > product)
    return np.floor(floats(towards_zero) * (1 << 25)).astype(np.int64)


def sine(recordings):
    points, results = [], []
    for high in (127, 126, 125, 124, 123, 122, 121, 120, 119):
        phase, index = np.unique(turns(high), return_index=True)
        first_quadrant = phase < 1 << 23
        points.append(phase[first_quadrant])
        results.append(recordings.section("sin_ftz", high)[index[first_quadrant]])
    return of_fixed_point(np.concatenate(points), np.concatenate(results), 1 << 24)


def hyperbolic_tangent(recordings):
    found = []
    for high, bits in zip(range(119, 130), TANH_BITS):
        found += of_fixed_point(np.arange(1 << (17 + bits)),
                                recordings.section("tanh", high)[::1 << (6 - bits)], 1 << 24)
    return found


def main():
    recordings, rows = Recordings(sys.argv[1]), {}
    rows["Reciprocal"] = report("rcp", of_last_place(recordings.section("rcp_ftz", 127), 7)[0])
    for name in ("rsqrt", "sqrt"):
        both = []
        for high in (127, 128):
            segments, base = of_last_place(recordings.section(f"{name}_ftz", high), 6)
            offset = (base - 0x3F800000) * SCALE
            for s in segments:
                s.low, s.high = s.low + offset, s.high + offset
            both += segments
        rows[{"rsqrt": "ReciprocalRoot", "sqrt": "Root"}[name]] = report(name, both)
    rows["Exponential"] = report("ex2", of_last_place(recordings.section("ex2_ftz", 127), 6)[0])
    rows["Logarithm"] = report("lg2", of_last_place(recordings.section("lg2_ftz", 128), 6)[0])
    rows["Sine"] = report("sin", sine(recordings))
    rows["Tanh"] = report("tanh", hyperbolic_tangent(recordings))
    lines = ["// The tables of the special-function unit of an H200, found from recordings by",
             "// tools/ptx/fit_special_functions.py. What the numbers mean: special_function_unit.h.",
             "#pragma once", "", '#include "sim/insn/scalar/special_function_unit.h"', "",
             "namespace tilewright::sim::special {", ""]
    for name, table in rows.items():
        lines.append(f"inline constexpr Segments<{len(table)}> k{name} = {{")
        for member, values in zip(("constant", "linear", "square"), zip(*table)):
            line = f"    .{member} = {{"
            for value in values:
                if len(line) + len(str(value)) > 97:
                    lines.append(line.rstrip())
                    line = " " * 8
                line += f"{value}, "
            lines.append(line[:-2] + "},")
        lines[-1] = lines[-1][:-1] + "};"
        lines.append("")
    lines += ["}  // namespace tilewright::sim::special"]
    pathlib.Path(sys.argv[2]).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
