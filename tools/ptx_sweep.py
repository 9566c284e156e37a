"""Operands for sweeps: thousands of words rich in special values, the same as in tests/sim/insn/ptx_sweep.h."""

M64 = (1 << 64) - 1
COUNT = 2048  # sets of operands

SPECIAL16 = [0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x3C00, 0xBC00, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 0xFFFF, 0x7FFF,
             0x3F80, 0xBF80, 0x7F7F, 0x7F80, 0xFF80, 0x7FC0, 0x80, 0x7F, 0x3C01, 0x6400, 0x5800]
SPECIAL32 = [0, 0x80000000, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x807FFFFF, 0x3F800000, 0xBF800000, 0x3F800001, 0x3F7FFFFF,
             0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0x7FFFFFFF, 0x4B000000,
             0x4B800001, 0x4EFFFFFF, 0x4F000000, 0xCF000000, 0x4F800000, 0x5F000000, 0x3F000000, 0x3EFFFFFF, 0x33800000,
             0x477FE000, 0x477FF000, 0x38800000, 0x337FFFFF, 0x43E00000, 0x47600000, 0x7F7F8000]
SPECIAL64 = [0, 1 << 63, 1, 0xFFFFFFFFFFFFF, 0x10000000000000, 0x3FF0000000000000, 0xBFF0000000000000,
             0x3FF0000000000001, 0x3FEFFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000,
             0x7FF8000000000000, 0x7FF0000000000001, M64, M64 >> 1, 0x4330000000000000, 0x41E0000000000000,
             0xC1E0000000200000, 0x43E0000000000000, 0x47EFFFFFE0000000, 0x47EFFFFFF0000000, 0x3810000000000000,
             0x36A0000000000000, 0x3690000000000001, 0x3FE0000000000000]


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
