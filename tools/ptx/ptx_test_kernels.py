"""Values, cases and kernel texts for make_ptx_tests.py: exact fractions rounded by the definition of a format."""

import collections
import math
import pathlib
import random
from fractions import Fraction

ROOT = pathlib.Path(__file__).resolve().parents[2]
rng = random.Random(20)
FILES = collections.defaultdict(list)  # file -> kernels
LANES = 32


# ------------------------------------------------------------------------------------------- values
class Format:
    def __init__(self, exponent_bits, mantissa_bits, nan):
        self.e, self.m, self.nan = exponent_bits, mantissa_bits, nan
        self.bits = 1 + exponent_bits + mantissa_bits
        self.bias = (1 << (exponent_bits - 1)) - 1
        self.inf = ((1 << exponent_bits) - 1) << mantissa_bits
        self.sign = 1 << (self.bits - 1)

    def decode(self, code):
        """('nan',) or ('inf', sign) or ('num', sign, magnitude as a fraction)."""
        sign, mag = code >> (self.bits - 1) & 1, code & (self.sign - 1)
        field, mantissa = mag >> self.m, mag & ((1 << self.m) - 1)
        if field == (1 << self.e) - 1:
            return ("nan",) if mantissa else ("inf", sign)
        if field == 0:
            return "num", sign, Fraction(mantissa) * Fraction(2) ** (1 - self.bias - self.m)
        return "num", sign, Fraction(mantissa | 1 << self.m) * Fraction(2) ** (field - self.bias - self.m)

    def encode(self, sign, x, mode="rn"):
        """The code of the magnitude x >= 0, rounded."""
        if x == 0:
            return sign * self.sign
        x = Fraction(x)
        exponent = max(x.numerator.bit_length() - x.denominator.bit_length(), 1 - self.bias)
        while Fraction(2) ** (exponent + 1) <= x:
            exponent += 1
        while exponent > 1 - self.bias and Fraction(2) ** exponent > x:
            exponent -= 1
        scaled = x / Fraction(2) ** (exponent - self.m)
        kept, rest = scaled.numerator // scaled.denominator, scaled - scaled.numerator // scaled.denominator
        up = {"rn": rest > Fraction(1, 2) or rest == Fraction(1, 2) and kept & 1,
              "rz": False, "rm": sign and rest > 0, "rp": not sign and rest > 0,
              "rna": rest >= Fraction(1, 2)}[mode]
        kept += bool(up)
        code = ((exponent - 1 + self.bias) << self.m) + kept
        if code >= self.inf:
            stays = mode == "rz" or mode == "rm" and not sign or mode == "rp" and sign
            code = self.inf - 1 if stays else self.inf
        return code | sign * self.sign

    def flush(self, code):
        return code & self.sign if (code & self.inf) == 0 else code


F16, BF16 = Format(5, 10, 0x7FFF), Format(8, 7, 0x7FFF)
F32, F64 = Format(8, 23, 0x7FFFFFFF), Format(11, 52, 0xFFF8000000000000)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


def from_value(fmt, v, mode="rn"):
    if v[0] == "nan":
        return fmt.nan
    return v[1] * fmt.sign | fmt.inf if v[0] == "inf" else fmt.encode(v[1], v[2], mode)


def signed(v):
    return -v[2] if v[1] else v[2]


def number(x, zero_sign=0):
    return ("num", int(x < 0) if x else zero_sign, abs(x))


def v_mul(a, b):
    if a[0] == "nan" or b[0] == "nan":
        return ("nan",)
    sign = a[1] ^ b[1]
    if a[0] == "inf" or b[0] == "inf":
        other = b if a[0] == "inf" else a
        return ("nan",) if other[0] == "num" and other[2] == 0 else ("inf", sign)
    return "num", sign, a[2] * b[2]


def v_add(a, b, mode="rn"):
    if a[0] == "nan" or b[0] == "nan":
        return ("nan",)
    if a[0] == "inf" and b[0] == "inf":
        return a if a[1] == b[1] else ("nan",)
    if a[0] == "inf" or b[0] == "inf":
        return a if a[0] == "inf" else b
    total = signed(a) + signed(b)
    same = a[1] == b[1] and a[2] == 0 and b[2] == 0
    return number(total, a[1] if same else int(mode == "rm"))


def v_neg(a):
    return a if a[0] == "nan" else (a[0], 1 - a[1]) + a[2:]


def v_div(a, b):
    if a[0] == "nan" or b[0] == "nan":
        return ("nan",)
    sign = a[1] ^ b[1]
    if a[0] == "inf":
        return ("nan",) if b[0] == "inf" else ("inf", sign)
    if b[0] == "inf":
        return "num", sign, Fraction(0)
    if b[2] == 0:
        return ("nan",) if a[2] == 0 else ("inf", sign)
    return "num", sign, a[2] / b[2]


def v_sqrt(a):
    """Good for 80 bits and sticky."""
    if a[0] == "nan" or (a[1] and not (a[0] == "num" and a[2] == 0)):
        return ("nan",)
    if a[0] == "inf" or a[2] == 0:
        return a
    scaled = a[2] * Fraction(4) ** 700
    root = math.isqrt(scaled.numerator // scaled.denominator)
    exact = Fraction(root * root) == scaled
    return "num", 0, (Fraction(root) + (0 if exact else Fraction(1, 3))) / Fraction(2) ** 700


def finish(fmt, code, ftz=False, sat=False, relu=False):
    if ftz:
        code = fmt.flush(code)
    is_nan = (code & (fmt.sign - 1)) > fmt.inf
    if sat:
        one = fmt.encode(0, Fraction(1))
        code = 0 if is_nan or code & fmt.sign else min(code, one)
    if relu and not is_nan and code & fmt.sign:
        code = 0
    return code


def is_nan(fmt, code):
    return (code & (fmt.sign - 1)) > fmt.inf


def move_nan(to, source, code):
    """A NaN taken over into another format, quiet."""
    payload = code & ((1 << source.m) - 1)
    payload = payload << to.m - source.m if to.m >= source.m else payload >> source.m - to.m
    return (to.sign if code & source.sign else 0) | to.inf | 1 << (to.m - 1) | payload


def is_tiny(fmt, v, mode):
    """Below the smallest normal number after rounding with an exponent that has no lower end."""
    wide = Format(fmt.e + 3, fmt.m, 0)
    return v[0] == "num" and wide.decode(wide.encode(v[1], v[2], mode))[2] < Fraction(2) ** (1 - fmt.bias)


def float_op(fmt, fn, mode="rn", ftz=False, **options):
    """f64 hands on the first NaN among its operands."""
    def run(*codes):
        if fmt is F64 and any(is_nan(fmt, c) for c in codes):
            return next(move_nan(fmt, fmt, c) for c in codes if is_nan(fmt, c))
        v = fn(*[fmt.decode(fmt.flush(c) if ftz else c) for c in codes])
        if ftz and is_tiny(fmt, v, mode):
            v = ("num", v[1], Fraction(0))
        return finish(fmt, from_value(fmt, v, mode), ftz, **options)
    return run


def edges(fmt):
    one = fmt.encode(0, Fraction(1))
    low = (1 << fmt.m)
    positive = [0, 1, low - 1, low, low + 1, one - 1, one, one + 1, fmt.inf - 1, fmt.inf, fmt.inf | 1,
                fmt.inf | 1 << (fmt.m - 1)]
    return positive + [c | fmt.sign for c in positive]


def float_cases(fmt, count):
    """Edges against edges, then numbers that are near each other."""
    pool, rows = edges(fmt), []
    for _ in range(10):
        rows.append([rng.choice(pool) for _ in range(count)])
    while len(rows) < LANES:
        center = rng.randrange(1, (1 << fmt.e) - 1)
        row = []
        for _ in range(count):
            field = min(max(center + rng.randint(-4, 4), 0), (1 << fmt.e) - 2)
            row.append(rng.getrandbits(1) << (fmt.bits - 1) | field << fmt.m | rng.getrandbits(fmt.m))
        if count == 3 and rng.random() < 0.6:  # c of the size of a product
            field = (row[0] & fmt.inf) + (row[1] & fmt.inf) - (fmt.bias << fmt.m)
            field = min(max(field >> fmt.m, 0), (1 << fmt.e) - 2)
            row[2] = rng.getrandbits(1) << (fmt.bits - 1) | field << fmt.m | rng.getrandbits(fmt.m)
        rows.append(row)
    return rows


def int_cases(bits_of_operands):
    rows = []
    for i in range(LANES):
        row = []
        for bits in bits_of_operands:
            pool = [0, 1, 2, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, rng.getrandbits(bits)]
            row.append(rng.choice(pool) if i < 14 else rng.getrandbits(rng.randint(1, bits)))
        rows.append(row)
    return rows


def s(x, bits):
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def u(x, bits):
    return x & ((1 << bits) - 1)


# ------------------------------------------------------------------------------------------ kernels
WIDTH = {"pred": 1, "b8": 8, "b16": 16, "b32": 32, "b64": 64}


def kernel(file, text, to, sources, cases, fn, name=None, operands=None, before=(), target=90):
    """text: the instruction up to its operands; to, sources: b16, b32, b64 or pred of each."""
    to = [to] if isinstance(to, str) else to
    name = name or text.replace(".", "_").replace("::", "_")
    index = len([k for k in FILES[file] if k[0].startswith(name)])
    name = f"{name}_{index}" if index else name
    registers = {"pred": "%p", "b16": "%h", "b32": "%r", "b64": "%d"}
    reg = lambda kind, k: f"{registers[kind]}{k}"
    body = ["mov.u32 %r90, %tid.x;", "mul.wide.u32 %d90, %r90, 8;", "ld.param.u64 %d91, [in];",
            "ld.param.u64 %d92, [out];", "add.s64 %d91, %d91, %d90;", "add.s64 %d92, %d92, %d90;"]
    n = len(to)
    for k, kind in enumerate(sources):
        if kind == "pred":
            body += [f"ld.global.b32 %r91, [%d91+{256 * k}];", f"setp.ne.b32 {reg(kind, n + k)}, %r91, 0;"]
        else:
            body += [f"ld.global.{kind} {reg(kind, n + k)}, [%d91+{256 * k}];"]
    body += before
    if operands is None:
        names = [reg(kind, k) for k, kind in enumerate([*to, *sources])]
        operands = ", ".join(names)
    body += [f"{text} {operands};"] if text else operands
    for k, kind in enumerate(to):
        if kind == "pred":
            body += [f"selp.b32 %r91, 1, 0, {reg(kind, k)};", f"st.global.b32 [%d92+{256 * k}], %r91;"]
        else:
            body += [f"st.global.{kind} [%d92+{256 * k}], {reg(kind, k)};"]
    results = []
    for row in cases:
        result = fn(*row)
        results.append(result if isinstance(result, (list, tuple)) else [result])
    lines = [f"// test: {name}"]
    lines += ["// in: " + " ".join(hex(row[k]) for row in cases) for k in range(len(sources))]
    lines += ["// out: " + " ".join(hex(int(u(r[k], WIDTH[to[k]]))) for r in results) for k in range(n)]
    lines += [f".visible .entry {name}(.param .u64 in, .param .u64 out)", "{",
              "  .reg .pred %p<16>;", "  .reg .b16 %h<16>;", "  .reg .b32 %r<100>;", "  .reg .b64 %d<100>;"]
    lines += ["  " + line for line in body] + ["  ret;", "}"]
    FILES[file].append((name, target, "\n".join(lines)))


def write():
    folder = ROOT / "tests" / "ptx"
    folder.mkdir(exist_ok=True)
    for file, kernels in FILES.items():
        target = max(k[1] for k in kernels)
        head = [f"// {file}: made by tools/ptx/make_ptx_tests.py, which says how the results are found.",
                ".version 9.0" if target > 90 else ".version 8.3", f".target sm_{target}a", ".address_size 64"]
        (folder / f"{file}.ptx").write_text("\n\n".join(["\n".join(head)] + [k[2] for k in kernels]) + "\n")


def b(bits):
    return f"b{bits}"


def by_type(t):
    """The interpretation of a register by an integer type's name."""
    return (s if t[0] == "s" else u), int(t[1:])
