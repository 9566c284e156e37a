"""Operands for sweeps: words rich in special values, the same as in tests/sim/insn/ptx_sweep.h."""

M64 = (1 << 64) - 1
COUNT = 2048  # sets of operands

SPECIAL16 = [0x0, 0x8000, 0x1, 0x8001, 0x3ff, 0x400, 0x3c00, 0xbc00, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x7c01,
             0xffff, 0x7fff, 0x3f80, 0xbf80, 0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0x80, 0x7f, 0x3c01, 0x6400,
             0x5800]
SPECIAL32 = [0x0, 0x80000000, 0x1, 0x80000001, 0x7fffff, 0x800000, 0x807fffff, 0x3f800000, 0xbf800000,
             0x3f800001, 0x3f7fffff, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001,
             0xffffffff, 0x7fffffff, 0x4b000000, 0x4b800001, 0x4effffff, 0x4f000000, 0xcf000000, 0x4f800000,
             0x5f000000, 0x3f000000, 0x3effffff, 0x33800000, 0x477fe000, 0x477ff000, 0x38800000, 0x337fffff,
             0x43e00000, 0x47600000, 0x7f7f8000]
SPECIAL64 = [0x0, 0x8000000000000000, 0x1, 0xfffffffffffff, 0x10000000000000, 0x3ff0000000000000,
             0xbff0000000000000, 0x3ff0000000000001, 0x3fefffffffffffff, 0x7fefffffffffffff,
             0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x7ff0000000000001,
             0xffffffffffffffff, 0x7fffffffffffffff, 0x4330000000000000, 0x41e0000000000000,
             0xc1e0000000200000, 0x43e0000000000000, 0x47efffffe0000000, 0x47effffff0000000,
             0x3810000000000000, 0x36a0000000000000, 0x3690000000000001, 0x3fe0000000000000]


def mix(z):
    """The end of splitmix64."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
    return z ^ (z >> 31)


def digest(words, start=0):
    for word in words:
        start = mix((start * 3 + word + 0x9E3779B97F4A7C15) & M64)
    return start


def pick(r, special, bits, mantissa):
    """A word of so many bits for a float with such a mantissa."""
    kind, mask = r & 15, (1 << bits) - 1
    word = (r >> 4) & mask
    if kind < 5:
        return special[(r >> 16) % len(special)]
    sign, one = word >> (bits - 1) << (bits - 1), ((1 << (bits - mantissa - 2)) - 1) << mantissa
    near = (((r >> 58) % 25) - 12) << mantissa
    if kind < 8:  # about 1
        return (sign | (one + near + (word & ((1 << mantissa) - 1)))) & mask
    if kind < 10:  # a small integer
        return ((r >> 8 & 255) - 128) & mask
    if kind < 12:  # few bits in the mantissa: ties
        return (sign | (one + near + ((r >> 8 & 31) << (mantissa - 5)))) & mask
    return word



def operand(index, k):
    """Operand k of set `index`."""
    r = mix((index * 8 + k + 0x9E3779B97F4A7C15) & M64)
    if index % 8 == 7 and k > 0:  # near the first operand: cancellation, equality
        flips = (r >> 8 & 1) << 31 | (r >> 9 & 1) << 63 | (r >> 10 & 1) << 15
        return ((operand(index, 0) ^ flips) + r % 5 - 2) & M64
    kind = index >> 9
    if kind == 1:
        return pick(r, SPECIAL32, 32, 23) | pick(mix(r), SPECIAL32, 32, 23) << 32
    if kind == 2:
        return pick(r, SPECIAL64, 64, 52)
    if kind == 3:
        word = 0
        for half in range(4):
            word |= pick(r, SPECIAL16, 16, 10) << (16 * half)
            r = mix(r)
        return word
    return r


def operands(count):
    """For each group of 32 sets: the words of operand 0 of all lanes, of operand 1 and so on."""
    words = [[operand(index, k) for k in range(count)] for index in range(COUNT)]
    return [[words[group + lane][k] for k in range(count) for lane in range(32)] for group in range(0, COUNT, 32)]
