"""Cases of make_ptx_tests.py for floats: arithmetic, comparisons, conversions, special functions."""

import math
from fractions import Fraction

from ptx_test_kernels import (BF16, F16, F32, F64, FORMATS, LANES, b, by_type, edges, finish, float_cases,
        float_op,
                              from_value, int_cases, is_nan, kernel, move_nan, number, rng, s, signed, u, v_add,
                              v_div, v_mul, v_neg, v_sqrt)


def float_arithmetic():
    for t, fmt in (("f32", F32), ("f64", F64)):
        B, two, three = b(fmt.bits), float_cases(fmt, 2), float_cases(fmt, 3)
        for mode in ("rn", "rz", "rm", "rp"):
            for options in ("", ".ftz", ".sat", ".ftz.sat") if t == "f32" else ("",):
                o = {"ftz": "ftz" in options, "sat": "sat" in options}
                kernel("add", f"add.{mode}{options}.{t}", B, [B] * 2, two,
                       float_op(fmt, lambda x, y: v_add(x, y, mode), mode, **o))
                kernel("sub", f"sub.{mode}{options}.{t}", B, [B] * 2, two,
                       float_op(fmt, lambda x, y: v_add(x, v_neg(y), mode), mode, **o))
                kernel("mul", f"mul.{mode}{options}.{t}", B, [B] * 2, two, float_op(fmt, v_mul, mode, **o))
                kernel("fma", f"fma.{mode}{options}.{t}", B, [B] * 3, three,
                       float_op(fmt, lambda x, y, z: v_add(v_mul(x, y), z, mode), mode, **o))
            kernel("div", f"div.{mode}.{t}", B, [B] * 2, two, float_op(fmt, v_div, mode))
            one = [row[:1] for row in two]
            kernel("rcp", f"rcp.{mode}.{t}", B, [B], one,
                   float_op(fmt, lambda x: v_div(number(Fraction(1)), x), mode))
            kernel("sqrt", f"sqrt.{mode}.{t}", B, [B], one, float_op(fmt, v_sqrt, mode))
    kernel("mad", "mad.rn.f32", "b32", ["b32"] * 3, float_cases(F32, 3),
           float_op(F32, lambda x, y, z: v_add(v_mul(x, y), z)))


def half_arithmetic():
    for t, fmt in (("f16", F16), ("bf16", BF16)):
        two, three = float_cases(fmt, 2), float_cases(fmt, 3)
        packed = lambda fn: lambda *w: fn(*[x & 0xFFFF for x in w]) | fn(*[x >> 16 for x in w]) << 16
        for options in ("", ".ftz", ".sat") if t == "f16" else ("",):
            o = {"ftz": "ftz" in options, "sat": "sat" in options}
            operations = {"add": float_op(fmt, v_add, **o), "mul": float_op(fmt, v_mul, **o),
                          "sub": float_op(fmt, lambda x, y: v_add(x, v_neg(y)), **o)}
            for name, fn in operations.items():
                kernel(name, f"{name}.rn{options}.{t}", "b16", ["b16"] * 2, two, fn)
                kernel(name, f"{name}.rn{options}.{t}x2", "b32", ["b32"] * 2,
                       [(x | y << 16, y | x << 16) for x, y in two], packed(fn))
            fn = float_op(fmt, lambda x, y, z: v_add(v_mul(x, y), z), **o)
            kernel("fma", f"fma.rn{options}.{t}", "b16", ["b16"] * 3, three, fn)
        fn = float_op(fmt, lambda x, y, z: v_add(v_mul(x, y), z), relu=True)
        kernel("fma", f"fma.rn.relu.{t}x2", "b32", ["b32"] * 3, [(x | y << 16, y | x << 16, z | z << 16) for x,
                y, z in three],
               packed(fn))


def min_max_of(fmt, is_max, nan=False, ftz=False):
    def run(x, y):
        if ftz:
            x, y = fmt.flush(x), fmt.flush(y)
        a, c = fmt.decode(x), fmt.decode(y)
        if a[0] == "nan" or c[0] == "nan":
            if fmt is F64 and a[0] == c[0]:
                return move_nan(fmt, fmt, y)
            if nan or a[0] == c[0]:
                return fmt.nan
            return y if a[0] == "nan" else x
        key = lambda code: -(code & (fmt.sign - 1)) - 1 if code & fmt.sign else code
        return max(x, y, key=key) if is_max else min(x, y, key=key)
    return run


def signs_and_comparisons():
    for t, fmt in FORMATS.items():
        B, two = b(fmt.bits), float_cases(fmt, 2)
        numbers = [(x,) for x, _ in two if fmt.decode(x)[0] != "nan"]
        kernel("neg", f"neg.{t}", B, [B], numbers, lambda x: x ^ fmt.sign)
        kernel("abs", f"abs.{t}", B, [B], numbers, lambda x: x & (fmt.sign - 1))
        for op in ("min", "max"):
            kernel(op, f"{op}.{t}", B, [B] * 2, two, min_max_of(fmt, op == "max"))
            if t != "f64":
                kernel(op, f"{op}.NaN.{t}", B, [B] * 2, two, min_max_of(fmt, op == "max", nan=True))
            if t == "f32":
                kernel(op, f"{op}.ftz.{t}", B, [B] * 2, two, min_max_of(fmt, op == "max", ftz=True))
                inner = min_max_of(fmt, op == "max")

                def xorsign(x, y):
                    r = inner(x & 0x7FFFFFFF, y & 0x7FFFFFFF)
                    return r if fmt.decode(r)[0] == "nan" else r | (x ^ y) & fmt.sign
                kernel(op, f"{op}.xorsign.abs.f32", B, [B] * 2, two, xorsign)
        value = lambda v: signed(v) if v[0] == "num" else -math.inf if v[1] else math.inf

        def holds(op, x, y):
            a, c = fmt.decode(x), fmt.decode(y)
            if a[0] == "nan" or c[0] == "nan":
                return int(op in ("equ", "neu", "ltu", "leu", "gtu", "geu", "nan"))
            p, q = value(a), value(c)
            return int({"eq": p == q, "ne": p != q, "lt": p < q, "le": p <= q, "gt": p > q, "ge": p >= q,
                        "nu": True, "na": False}[op[:2]])
        rows = [(x, x if i % 7 == 3 else y) for i, (x, y) in enumerate(two)]
        for op in "eq ne lt le gt ge equ neu ltu leu gtu geu num nan".split():
            kernel("setp", f"setp.{op}.{t}", "pred", [B] * 2, rows, lambda x, y: holds(op, x, y))
            if t == "f32":
                kernel("set", f"set.{op}.u32.f32", "b32", [B] * 2, rows, lambda x, y: -holds(op, x, y))
        if t in ("f32", "f64"):
            kernel("copysign", f"copysign.{t}", B, [B] * 2, two, lambda x, y: x & fmt.sign | y & (fmt.sign - 1))
            classes = {"finite": lambda v, c: v[0] == "num", "infinite": lambda v, c: v[0] == "inf",
                       "number": lambda v, c: v[0] != "nan", "notanumber": lambda v, c: v[0] == "nan",
                       "normal": lambda v, c: v[0] == "num" and (c & fmt.inf or not v[2]),
                       "subnormal": lambda v, c: v[0] == "num" and not c & fmt.inf and v[2]}
            for name, fn in classes.items():
                kernel("testp", f"testp.{name}.{t}", "pred", [B], [(x,) for x in edges(fmt)],
                        lambda x: int(bool(fn(fmt.decode(x), x))))
    for t in ("b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64"):
        f, n = by_type(t)
        rows = [(x, x if i % 5 == 0 else y) for i, (x, y) in enumerate(int_cases([n, n]))]
        names = {"eq": lambda p, q: p == q, "ne": lambda p, q: p != q, "lt": lambda p, q: p < q,
                 "le": lambda p, q: p <= q, "gt": lambda p, q: p > q, "ge": lambda p, q: p >= q}
        more = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"} if t[0] == "u" else {}
        for op in (["eq", "ne"] if t[0] == "b" else list(names) + list(more)):
            fn = names[more.get(op, op)]
            kernel("setp", f"setp.{op}.{t}", "pred", [b(n)] * 2, rows, lambda x, y: int(fn(f(x, n), f(y, n))))
    rows = [(x, y, i & 1) for i, (x, y) in enumerate(int_cases([32, 32]))]
    for combine, g in (("and", lambda p, q: p & q), ("or", lambda p, q: p | q), ("xor", lambda p, q: p ^ q)):
        kernel("setp", f"setp.lt.{combine}.s32", ["pred", "pred"], ["b32", "b32", "pred"], rows,
               lambda x, y, c: (g(int(s(x, 32) < s(y, 32)), c), g(int(s(x, 32) >= s(y, 32)),
                       c)), operands="%p0|%p1, %r2, %r3, %p4")
        kernel("setp", f"setp.lt.{combine}.s32", "pred", ["b32", "b32", "pred"], rows,
               lambda x, y, c: g(int(s(x, 32) < s(y, 32)), 1 - c), f"setp_lt_{combine}_not", "%p0, %r1, %r2, !%p3")
    kernel("set", "set.lt.f32.s32", "b32", ["b32"] * 2, [r[:2] for r in rows], lambda x, y: 0x3F800000 * (s(x,
            32) < s(y, 32)))


def special_values():
    """Points at which the functions are exact, and the limits."""
    f = lambda x: F32.encode(int(x < 0), Fraction(abs(x)))
    inf, nan, minus = F32.inf, F32.nan, F32.sign
    points = {"ex2": [(0, f(1)), (minus, f(1)), (f(3), f(8)), (f(-4), f(Fraction(1, 16))), (minus | inf, 0),
            (inf, inf),
                      (nan, nan), (f(126), f(2**126)), (f(128), inf)],
              "lg2": [(0, minus | inf), (f(1), 0), (f(8), f(3)), (f(Fraction(1, 4)), f(-2)), (inf, inf), (f(-1),
                      nan), (nan, nan)],
              "rsqrt": [(f(4), f(Fraction(1, 2))), (f(1), f(1)), (0, inf), (minus, minus | inf), (inf, 0),
                      (f(-4), nan), (nan, nan)],
              "sin": [(0, 0), (minus, minus), (inf, nan), (nan, nan)], "cos": [(0, f(1)), (minus, f(1)), (inf,
                      nan), (nan, nan)],
              "tanh": [(0, 0), (minus, minus), (inf, f(1)), (minus | inf, f(-1)), (nan, nan)],
              "rcp": [(f(2), f(Fraction(1, 2))), (0, inf), (minus, minus | inf), (inf, 0), (minus | inf, minus),
                      (nan, nan)],
              "sqrt": [(f(4), f(2)), (0, 0), (minus, minus), (inf, inf), (f(-1), nan), (nan, nan)]}
    for op, table in points.items():
        for ftz in ("",) if op == "tanh" else ("", ".ftz"):
            kernel(op, f"{op}.approx{ftz}.f32", "b32", ["b32"], [(x,) for x, _ in table], lambda x: dict(table)[x])


def convert_float(to, source, mode="rn"):
    """NaNs survive between f64 and the others, and from bf16 to f32; else they become canonical."""
    def run(x):
        if is_nan(source, x) and F64 in (to, source):
            return move_nan(to, source, x)
        if is_nan(source, x) and source is BF16 and to is F32:
            return x << 16
        return from_value(to, source.decode(x), mode)
    return run


def float_conversions():
    order = ["f16", "bf16", "f32", "f64"]
    for source in order:
        a = FORMATS[source]
        one = [(x,) for x, _ in float_cases(a, 2)]
        for to in order:
            c = FORMATS[to]
            if source == to or {source, to} == {"f16", "bf16"} or {source, to} == {"bf16", "f64"}:
                continue
            if a.bits > c.bits:
                modes = ["rn", "rz"] if to == "bf16" else ["rn", "rz", "rm", "rp"]
                for mode in modes:
                    if to == "bf16" or (source, to) == ("f32", "f16") and mode in ("rm", "rp"):
                        if mode in ("rm", "rp"):
                            continue
                    kernel("cvt", f"cvt.{mode}.{to}.{source}", b(c.bits), [b(a.bits)], one, convert_float(c, a,
                            mode))
            else:
                kernel("cvt", f"cvt.{to}.{source}", b(c.bits), [b(a.bits)], one, convert_float(c, a))
        rounders = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}
        near = [(a.encode(rng.getrandbits(1), Fraction(rng.getrandbits(9),
                2 ** rng.randrange(10))),) for _ in range(12)] + one[:20]
        for mode, rounder in rounders.items():
            for to in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64") if source != "bf16" else ("s32",
                    "u32"):
                g, m = by_type(to)
                low, high = (-(1 << (m - 1)), (1 << (m - 1)) - 1) if to[0] == "s" else (0, (1 << m) - 1)

                def to_integer(x):
                    v = a.decode(x)
                    if v[0] == "nan":
                        return 1 << (m - 1) if source == "f64" or m == 64 else 0
                    return g((low if v[1] else high) if v[0] == "inf" else min(max(rounder(signed(v)), low),
                            high), m)
                kernel("cvt", f"cvt.{mode}.{to}.{source}", b(max(m, 16)), [b(a.bits)],
                       [r for r in near if m > 8 or a.decode(r[0])[0] != "nan"], to_integer)
            if source in ("f32", "f64"):
                def integral(x):
                    v = a.decode(x)
                    if v[0] == "nan" and a is F64:
                        return move_nan(a, a, x)
                    return from_value(a, v) if v[0] != "num" else a.encode(v[1], Fraction(abs(rounder(signed(v)))))
                kernel("cvt", f"cvt.{mode}.{source}.{source}", b(a.bits), [b(a.bits)], near, integral)
    for to in ("f16", "f32", "f64"):
        c = FORMATS[to]
        for source in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
            f, n = by_type(source)
            for mode in ("rn", "rz", "rm", "rp"):
                kernel("cvt", f"cvt.{mode}.{to}.{source}", b(c.bits), [b(max(n, 16))], int_cases([max(n, 16)]),
                       lambda x: from_value(c, number(Fraction(f(x, n))), mode))
    one = [(x,) for x, _ in float_cases(F32, 2)]
    kernel("cvt", "cvt.sat.f32.f32", "b32", ["b32"], one, lambda x: finish(F32, from_value(F32, F32.decode(x)),
            sat=True))
    kernel("cvt", "cvt.ftz.f32.f32", "b32", ["b32"], one, lambda x: F32.flush(from_value(F32, F32.decode(x))))
    for to, c in (("f16", F16), ("bf16", BF16)):
        two = float_cases(F32, 2) + [(c.encode(i & 1,
                Fraction(2) ** -i * 3) << 16 if c is BF16 else F32.encode(i & 1, Fraction(4097 + i,
                        4096)),) * 2 for i in range(4)]
        for mode in ("rn", "rz"):
            for relu in ("", ".relu"):
                one_code = lambda x: finish(c, from_value(c, F32.decode(x), mode), relu=bool(relu))
                kernel("cvt", f"cvt.{mode}{relu}.{to}x2.f32", "b32", ["b32"] * 2, two[:LANES], lambda x,
                        y: one_code(x) << 16 | one_code(y))
                kernel("cvt", f"cvt.{mode}{relu}.{to}.f32", "b16", ["b32"], one, lambda x: one_code(x))


FP8 = {"e4m3": (4, 3, 448, 0x7E), "e5m2": (5, 2, 57344, 0x7B), "e3m2": (3, 2, 28, 0x1F), "e2m3": (2, 3,
        Fraction(15, 2), 0x1F),
       "e2m1": (2, 1, 6, 7)}


def narrow_value(t, code):
    """The value of a code of 8 bits or fewer."""
    e, m, _, top = FP8[t]
    sign, mag = code >> (e + m) & 1, code & ((1 << (e + m)) - 1)
    if t in ("e4m3", "e5m2") and mag > top:
        return ("inf", sign) if t == "e5m2" and mag == 0x7C else ("nan",)
    bias = (1 << (e - 1)) - 1
    field, mantissa = mag >> m, mag & ((1 << m) - 1)
    exponent = max(field, 1) - bias - m
    return "num", sign, Fraction(mantissa | (1 << m if field else 0)) * Fraction(2) ** exponent


def narrow_code(t, v, relu=False):
    """The nearest code by looking at all of them; ties to the even code, beyond the end the last."""
    e, m, largest, top = FP8[t]
    if v[0] == "nan":
        return 0x7F if t in ("e4m3", "e5m2") else top
    if relu and v[1]:
        return 0
    x = largest if v[0] == "inf" else min(v[2], largest)
    best = min(range(top + 1), key=lambda c: (abs(narrow_value(t, c)[2] - x), c & 1))
    return best | v[1] << (e + m)


def narrow_conversions():
    two = float_cases(F32, 2)
    near = lambda t: F32.encode(rng.getrandbits(1), Fraction(rng.getrandbits(12),
            2 ** rng.randrange(16)) if t != "e5m2"
                                else Fraction(rng.getrandbits(12)) * Fraction(2) ** rng.randint(-24, 6))
    for t in FP8:
        target, slot = (90, 8) if t in ("e4m3", "e5m2") else (100, 4 if t == "e2m1" else 8)
        file = "cvt_fp8" if target == 90 else "cvt_sm100"
        rows = two[:12] + [(near(t), near(t)) for _ in range(20)]
        for relu in ("", ".relu"):
            code = lambda v: narrow_code(t, v, bool(relu))
            halves = lambda x: code(F16.decode(x >> 16)) << slot | code(F16.decode(x & 0xFFFF))
            if slot == 8:
                kernel(file, f"cvt.rn.satfinite{relu}.{t}x2.f32", "b16", ["b32"] * 2, rows,
                       lambda x, y: code(F32.decode(x)) << 8 | code(F32.decode(y)), target=target)
            if target == 90:
                pairs = [(from_value(F16, F32.decode(x)) << 16 | y & 0xFFFF,) for x, y in rows]
                kernel(file, f"cvt.rn.satfinite{relu}.{t}x2.f16x2", "b16", ["b32"], pairs, halves, target=target)
            wide = lambda c: finish(F16, from_value(F16, narrow_value(t, c)), relu=bool(relu))
            if slot == 8:
                mask = (1 << (1 + FP8[t][0] + FP8[t][1])) - 1
                codes = [(rng.getrandbits(16) & (mask << 8 | mask),) for _ in range(LANES)]
                kernel(file, f"cvt.rn{relu}.f16x2.{t}x2", "b32", ["b16"], codes,
                       lambda x: wide(x >> 8) << 16 | wide(x & 0xFF), target=target)


def blackwell():
    """Forms that sm_100a has and sm_90a lacks."""
    two, three = float_cases(F32, 2), float_cases(F32, 3)
    pair = lambda fn: lambda *w: fn(*[x & 0xFFFFFFFF for x in w]) | fn(*[x >> 32 for x in w]) << 32
    double = lambda rows: [[x | rng.choice(rows)[0] << 32 for x in row] for row in rows]
    for mode in ("rn", "rz", "rm", "rp"):
        for ftz in ("", ".ftz"):
            o = {"ftz": bool(ftz)}
            kernel("f32x2", f"add.{mode}{ftz}.f32x2", "b64", ["b64"] * 2, double(two), pair(float_op(F32,
                    lambda x, y: v_add(x, y, mode), mode, **o)), target=100)
            kernel("f32x2", f"mul.{mode}{ftz}.f32x2", "b64", ["b64"] * 2, double(two), pair(float_op(F32, v_mul,
                    mode, **o)), target=100)
            kernel("f32x2", f"fma.{mode}{ftz}.f32x2", "b64", ["b64"] * 3, double(three),
                   pair(float_op(F32, lambda x, y, z: v_add(v_mul(x, y), z, mode), mode, **o)), target=100)
    for op in ("min", "max"):
        g = min_max_of(F32, op == "max")
        kernel("min_max_3", f"{op}.f32", "b32", ["b32"] * 3, three, lambda x, y, z: g(g(x, y), z), f"{op}3",
                target=100)
    for t, fmt in (("f16", F16), ("bf16", BF16)):
        halves = [row[0] for row in float_cases(fmt, 1)]
        for mode in ("rn", "rz"):
            kernel("mixed_precision", f"add.{mode}.f32.{t}", "b32", ["b16", "b32"], [(h, y) for h, (_,
                    y) in zip(halves, two)],
                   lambda x, y: from_value(F32, v_add(fmt.decode(x), F32.decode(y), mode), mode), target=100)
            kernel("mixed_precision", f"sub.{mode}.f32.{t}", "b32", ["b16", "b32"], [(h, y) for h, (_,
                    y) in zip(halves, two)],
                   lambda x, y: from_value(F32, v_add(fmt.decode(x), v_neg(F32.decode(y)), mode),
                           mode), target=100)
            kernel("mixed_precision", f"fma.{mode}.f32.{t}", "b32", ["b16", "b16", "b32"],
                   [(h, rng.choice(halves), y) for h, (_, y) in zip(halves, two)],
                   lambda x, y, z: from_value(F32, v_add(v_mul(fmt.decode(x), fmt.decode(y)), F32.decode(z),
                           mode), mode), target=100)


def undocumented():
    """What the manual leaves open, as the simulator has it: what a device says is the last word."""
    file = "undocumented"
    for t in ("u16", "s16", "u32", "s32", "u64", "s64"):
        _, n = by_type(t)
        rows = [(x, 0) for x in (0, 1, 5, (1 << n) - 1, 1 << (n - 1))]
        kernel(file, f"div.{t}", b(n), [b(n)] * 2, rows, lambda x, y: -1)
        kernel(file, f"rem.{t}", b(n), [b(n)] * 2, rows, lambda x, y: -1)
    # products next to 2^-126: is a result flushed that only rounding makes normal?
    rows = [(0x3F7FFFFF, 0x00800000), (0xBF7FFFFF, 0x00800000), (0x3F7FFFFE, 0x00800000), (0x3F7FFFFE, 0x00800001)]
    kernel(file, "mul.ftz.f32", "b32", ["b32"] * 2, rows, float_op(F32, v_mul, ftz=True))
    kernel(file, "fma.rn.ftz.f32", "b32", ["b32"] * 3, [(*r, 0) for r in rows],
           float_op(F32, lambda x, y, z: v_add(v_mul(x, y), z), ftz=True))
    nans = [0x7FF8000000000001, 0xFFF8000000000002, 0x7FF0000000000003, 0xFFF0000000000004]
    rows = [(x, y) for x in nans for y in nans]
    for op in ("add", "sub", "mul", "div.rn"):
        kernel(file, f"{op}.f64", "b64", ["b64"] * 2, rows, float_op(F64, v_add))
    for op in ("min", "max"):
        kernel(file, f"{op}.f64", "b64", ["b64"] * 2, rows, min_max_of(F64, op == "max"))
    kernel(file, "fma.rn.f64", "b64", ["b64"] * 3, [(*row, rng.choice(nans)) for row in rows],
           float_op(F64, lambda x, y, z: v_add(v_mul(x, y), z)))
    for op in ("neg", "abs"):
        for t, fmt in FORMATS.items():
            rows = [(fmt.inf | 5,), (fmt.inf | fmt.sign | 1 << (fmt.m - 1) | 3,)]
            kernel(file, f"{op}.{t}", b(fmt.bits), [b(fmt.bits)], rows, lambda x: move_nan(fmt, fmt,
                    x) if t == "f64" else fmt.nan, f"{op}_nan_{t}")
    rows = [(0x3F800000, 0x7F000000), (0x3F800000, 0x7E800001), (0x7F7FFFFF, 0x7F000000), (0x7F800000, 0x7F000000)]
    kernel(file, "div.approx.f32", "b32", ["b32"] * 2, rows, lambda x, y: F32.nan if x == F32.inf else 0)


def approximations():
    """Random arguments, correctly rounded: a device may differ in the last place."""
    functions = {"ex2": lambda x: 2.0**x, "lg2": math.log2, "rcp": lambda x: 1 / x,
            "rsqrt": lambda x: 1 / math.sqrt(x),
                 "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos, "tanh": math.tanh}
    for name, fn in functions.items():
        for low, high in ((Fraction(1, 64), 4), (-20, 0)) if name == "ex2" else ((Fraction(1, 64), 4),):
            rows = [(F32.encode(int(x < 0),
                    abs(x)),) for x in (low + (high - low) * Fraction(rng.random()) for _ in range(LANES))]

            def rounded(code):
                y = Fraction(fn(float(signed(F32.decode(code)))))
                return F32.encode(int(y < 0), abs(y))
            kernel("approximations", f"{name}.approx.f32", "b32", ["b32"], rows, rounded)
    pairs = [(F32.encode(0, Fraction(rng.random()) + 1), F32.encode(0,
            Fraction(rng.random()) * 3 + 1)) for _ in range(LANES)]
    for kind in ("approx", "full"):
        kernel("approximations", f"div.{kind}.f32", "b32", ["b32"] * 2, pairs, float_op(F32, v_div))
