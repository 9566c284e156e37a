#!/usr/bin/env python3
"""Writes the files of tests/ptx for control flow, calls, barriers and contraction.

    python3 tools/make_ptx_control_tests.py

tests/sim/insn/ptx_case.h says how data lies in memory.
"""

import struct

from ptx_test_bytes import LANES, case, write_files
from ptx_test_numbers import FLOATS, f16_code, f32_code, rng, round_to


def words(values): return b"".join((v & (1 << 64) - 1).to_bytes(8, "little") for v in values)


# Contraction: what becomes fma is rounded once, what does not twice. Which is which: ptxas's SASS.

def bf16_code(v): return round_to(v, 7, -126, 8)
def f64_code(v): return round_to(v, 52, -1022, 11)


def f64_value(code):
    return __import__("fractions").Fraction(struct.unpack("<d", struct.pack("<Q", code))[0])


KINDS = {"f32": (32, FLOATS["f32"][1], f32_code), "f64": (64, f64_value, f64_code),
         "f16": (16, FLOATS["f16"][1], f16_code), "bf16": (16, FLOATS["bf16"][1], bf16_code)}


def near_one(kind):
    """Codes of random numbers from 0.5 to 2, all bits used."""
    bits = KINDS[kind][0]
    mantissa = {"f32": 23, "f64": 52, "f16": 10, "bf16": 7}[kind]
    bias = {"f32": 127, "f64": 1023, "f16": 15, "bf16": 127}[kind]
    return rng.getrandbits(1) << (bits - 1) | (bias - rng.getrandbits(1)) << mantissa | rng.getrandbits(mantissa)


def contraction(name, kind, text, result, file="contract", machine=None, pair=False, target="sm_90a"):
    """result(r, a, b, c) gives the values; r rounds once and is called where the instruction rounds.
    %x0 .. %x2 are inputs a, b, c, %y0 and %y1 the results."""
    bits, value, code = KINDS[kind]
    lanes = 2 if pair else 1
    inputs = [[[near_one(kind) for _ in range(lanes)] for _ in range(LANES)] for _ in range(3)]
    outputs = [[], []]
    r = lambda v: value(code(v))
    for lane in range(LANES):
        packed = [0, 0]
        for part in range(lanes):
            got = result(r, *(value(inputs[i][lane][part]) for i in range(3)))
            got = got if isinstance(got, tuple) else (got, 0)
            for i in range(2): packed[i] |= code(got[i]) << bits * part
        for i in range(2): outputs[i].append(packed[i])
    width = bits * lanes
    prefix = {16: "%h", 32: "%f" if kind == "f32" else "%r", 64: "%d"}[width]
    store = f"b{width}"
    declared = ""
    if kind == "f64": declared, prefix = ".reg .f64 %e<16>;", "%e"
    body = declared + "\n" + "\n".join(f"ld.global.{store} {prefix}{i}, [%d91+{256 * i}];" for i in range(3))
    body += f"\nmov.{store} {prefix}9, {prefix}0;\n" + text.replace("%x", prefix).replace("%y", prefix + "1")
    body += "".join(f"\nst.global.{store} [%d92+{256 * i}], {prefix}1{i};" for i in range(2))
    data = b"".join(words(v[part] if lanes == 1 else v[0] | v[1] << bits for v in row for part in [0])
                    for row in inputs)
    zero = "" if "%y1" in text else f"mov.{store} {prefix}11, 0{'f00000000' if kind == 'f32' else 'd0000000000000000' if kind == 'f64' else ''};"
    body = body.replace(f"mov.{store} {prefix}9, {prefix}0;", zero)
    case(file, name, body, data, b"".join(words(o) for o in outputs), machine=machine, target=target)


def contractions(file="contract", machine=None):
    """With machine = separate_mul_add every operation is rounded on its own."""
    fuse = (lambda r, v: v) if machine is None else (lambda r, v: r(v))  # what happens to a product
    name = lambda n: n if machine is None else "separate_" + n
    def add(n, kind, text, result, **more): contraction(name(n), kind, text, result, file, machine, **more)
    for kind in KINDS:
        add(f"add_{kind}", kind, f"mul.{kind} %x3, %x0, %x1; add.{kind} %y0, %x3, %x2;",
            lambda r, a, b, c: r(fuse(r, a * b) + c))
        add(f"add_commuted_{kind}", kind, f"mul.{kind} %x3, %x0, %x1; add.{kind} %y0, %x2, %x3;",
            lambda r, a, b, c: r(fuse(r, a * b) + c))
        add(f"sub_{kind}", kind, f"mul.{kind} %x3, %x0, %x1; sub.{kind} %y0, %x3, %x2;",
            lambda r, a, b, c: r(fuse(r, a * b) - c))
        add(f"sub_from_{kind}", kind, f"mul.{kind} %x3, %x0, %x1; sub.{kind} %y0, %x2, %x3;",
            lambda r, a, b, c: r(c - fuse(r, a * b)))
        add(f"rounding_named_{kind}", kind, f"mul.rn.{kind} %x3, %x0, %x1; add.{kind} %y0, %x3, %x2; "
            f"mul.{kind} %x4, %x0, %x1; add.rn.{kind} %y1, %x4, %x2;",
            lambda r, a, b, c: (r(r(a * b) + c), r(r(a * b) + c)))
    for kind in ("f16", "bf16"):
        add(f"add_{kind}x2", kind, f"mul.{kind}x2 %x3, %x0, %x1; add.{kind}x2 %y0, %x3, %x2;",
            lambda r, a, b, c: r(fuse(r, a * b) + c), pair=True)
        add(f"sub_from_{kind}x2", kind, f"mul.{kind}x2 %x3, %x0, %x1; sub.{kind}x2 %y0, %x2, %x3;",
            lambda r, a, b, c: r(c - fuse(r, a * b)), pair=True)
    add("two_additions", "f32", "mul.f32 %x3, %x0, %x1; add.f32 %y0, %x3, %x2; sub.f32 %y1, %x3, %x0;",
        lambda r, a, b, c: (r(fuse(r, a * b) + c), r(fuse(r, a * b) - a)))
    add("product_also_stored", "f32", "mul.f32 %x3, %x0, %x1; add.f32 %y0, %x3, %x2; mov.f32 %y1, %x3;",
        lambda r, a, b, c: (r(r(a * b) + c), r(a * b)))
    add("product_twice", "f32", "mul.f32 %x3, %x0, %x1; add.f32 %y0, %x3, %x3;",
        lambda r, a, b, c: r(2 * r(a * b)))
    add("two_products", "f32", "mul.f32 %x3, %x0, %x1; mul.f32 %x4, %x1, %x2; add.f32 %y0, %x3, %x4; "
        "mul.f32 %x5, %x0, %x1; mul.f32 %x6, %x1, %x2; sub.f32 %y1, %x6, %x5;",
        lambda r, a, b, c: (r(fuse(r, a * b) + r(b * c)), r(fuse(r, b * c) - r(a * b))))
    add("single_use_first", "f32", "mul.f32 %x3, %x0, %x1; mul.f32 %x4, %x1, %x2; add.f32 %y1, %x3, %x0; "
        "add.f32 %y0, %x3, %x4;", lambda r, a, b, c: (r(r(a * b) + fuse(r, b * c)), r(r(a * b) + a)))
    add("dot3", "f32", "mul.f32 %x3, %x0, %x0; mul.f32 %x4, %x1, %x1; mul.f32 %x5, %x2, %x2; "
        "add.f32 %x6, %x3, %x4; add.f32 %y0, %x6, %x5;",
        lambda r, a, b, c: r(r(fuse(r, a * a) + r(b * b)) + fuse(r, c * c)))
    add("guarded_addition", "f32", "mul.f32 %x3, %x0, %x1; setp.gt.f32 %p1, %x0, %x2; mov.f32 %y0, %x2; "
        "@%p1 add.f32 %y0, %x3, %x2;", lambda r, a, b, c: r(fuse(r, a * b) + c) if a > c else c)
    add("guarded_product", "f32", "mov.f32 %x3, %x2; setp.gt.f32 %p1, %x0, %x2; @%p1 mul.f32 %x3, %x0, %x1; "
        "add.f32 %y0, %x3, %x2;", lambda r, a, b, c: r((r(a * b) if a > c else c) + c))
    add("other_block", "f32", "mul.f32 %x3, %x0, %x1; setp.gt.f32 %p1, %x0, %x2; @%p1 bra PAST;\n"
        "  bar.warp.sync -1;\nPAST: add.f32 %y0, %x3, %x2;", lambda r, a, b, c: r(r(a * b) + c))
    add("label_nobody_jumps_to", "f32", "mul.f32 %x3, %x0, %x1;\nNEXT: add.f32 %y0, %x3, %x2;",
        lambda r, a, b, c: r(fuse(r, a * b) + c))
    add("loop", "f32", "mov.u32 %r1, 0; mov.f32 %y0, %x2;\nAGAIN: mul.f32 %x3, %y0, %x1; add.f32 %y0, %x3, %x0; "
        "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 3; @%p1 bra AGAIN;", lambda r, a, b, c: r(fuse(r, r(fuse(r, r(fuse(r,
            c * b) + a) * b) + a) * b) + a))
    add("stale_product_in_a_loop", "f32", "mov.u32 %r1, 0; mov.f32 %y0, %x2; mul.f32 %x3, %x0, %x1;\n"
        "AGAIN: add.f32 %y0, %x3, %y0; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 2; @%p1 bra AGAIN;",
        lambda r, a, b, c: r(r(a * b) + r(r(a * b) + c)))
    add("register_used_again", "f32", "mul.f32 %x3, %x0, %x1; add.f32 %x3, %x3, %x2; mul.f32 %x4, %x3, %x1; "
        "add.f32 %x4, %x4, %x0; mov.f32 %y0, %x3; mov.f32 %y1, %x4;", lambda r, a, b, c: (r(fuse(r, a * b) + c),
            r(fuse(r, r(fuse(r, a * b) + c) * b) + a)))
    add("factor_is_constant", "f32", "mul.f32 %x3, %x0, 0f40490fdb; sub.f32 %y0, 0f3f800000, %x3;",
        lambda r, a, b, c: r(1 - fuse(r, a * FLOATS["f32"][1](0x40490fdb))))
    add("saturated", "f32", "mul.f32 %x3, %x0, %x1; add.sat.f32 %y0, %x3, %x2; mul.sat.f32 %x4, %x0, %x1; "
        "add.f32 %y1, %x4, %x2;", lambda r, a, b, c: (min(max(r(fuse(r, a * b) + c), 0), 1),
            r(min(max(r(a * b), 0), 1) + c)))


def f32x2():
    for name, product, total in (("unnamed", "", ""), ("named", ".rn", ".rn"), ("mixed", "", ".rn")):
        data = [[near_one("f32") | near_one("f32") << 32 for _ in range(LANES)] for _ in range(3)]
        value = FLOATS["f32"][1]
        half = lambda lane, part: f32_code(value(data[0][lane] >> part & 0xffffffff) *
                                           value(data[1][lane] >> part & 0xffffffff) +
                                           value(data[2][lane] >> part & 0xffffffff))
        out = [half(lane, 0) | half(lane, 32) << 32 for lane in range(LANES)]
        case("contract_f32x2", f"f32x2_{name}", f"""ld.global.b64 %d1, [%d91]; ld.global.b64 %d2, [%d91+256];
        ld.global.b64 %d3, [%d91+512]; mul{product}.f32x2 %d4, %d1, %d2; add{total}.f32x2 %d5, %d4, %d3;
        st.global.b64 [%d92], %d5;""", b"".join(map(words, data)), words(out), target="sm_100")


def main():
    contractions()
    contractions("contract_off", "separate_mul_add")
    f32x2()
    write_files("make_ptx_control_tests.py")


if __name__ == "__main__":
    main()
