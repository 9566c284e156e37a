#!/usr/bin/env python3
"""Writes tests/ptx/*.ptx: one file per instruction, its results computed here with exact fractions.

    python3 tools/ptx/make_ptx_tests.py

Nothing is shared with the simulator: integers are Python's, floats are fractions that are rounded by
the definition of the format. The files run on a device as well as in the simulator
(tests/sim/insn/ptx_case.h says how data lies in memory).
"""

from ptx_test_floats import (approximations, blackwell, float_arithmetic, float_conversions, half_arithmetic,
                             narrow_conversions, signs_and_comparisons, special_values, undocumented)
from ptx_test_kernels import F32, LANES, b, by_type, float_cases, int_cases, kernel, rng, s, u, write


def integers():
    for t in ("u16", "s16", "u32", "s32", "u64", "s64"):
        f, n = by_type(t)
        B, two, three = b(n), int_cases([n, n]), int_cases([n, n, n])
        kernel("add", f"add.{t}", B, [B, B], two, lambda x, y: x + y)
        kernel("sub", f"sub.{t}", B, [B, B], two, lambda x, y: x - y)
        kernel("mul", f"mul.lo.{t}", B, [B, B], two, lambda x, y: x * y)
        kernel("mul", f"mul.hi.{t}", B, [B, B], two, lambda x, y: f(x, n) * f(y, n) >> n)
        kernel("mad", f"mad.lo.{t}", B, [B] * 3, three, lambda x, y, z: x * y + z)
        kernel("mad", f"mad.hi.{t}", B, [B] * 3, three, lambda x, y, z: (f(x, n) * f(y, n) >> n) + z)
        if n < 64:
            kernel("mul", f"mul.wide.{t}", b(2 * n), [B, B], two, lambda x, y: f(x, n) * f(y, n))
            kernel("mad", f"mad.wide.{t}", b(2 * n), [B, B, b(2 * n)], int_cases([n, n, 2 * n]),
                   lambda x, y, z: f(x, n) * f(y, n) + z)
        nonzero = [(x, y or 1) for x, y in two]
        quotient = lambda x, y: abs(f(x, n)) // abs(f(y, n)) * (1 if (f(x, n) < 0) == (f(y, n) < 0) else -1)
        kernel("div", f"div.{t}", B, [B, B], nonzero, quotient)
        kernel("rem", f"rem.{t}", B, [B, B], nonzero, lambda x, y: f(x, n) - quotient(x, y) * f(y, n))
        kernel("min", f"min.{t}", B, [B, B], two, lambda x, y: min(f(x, n), f(y, n)))
        kernel("max", f"max.{t}", B, [B, B], two, lambda x, y: max(f(x, n), f(y, n)))
        kernel("sad", f"sad.{t}", B, [B] * 3, three, lambda x, y, z: z + abs(f(x, n) - f(y, n)))
        if t[0] == "s":
            kernel("abs", f"abs.{t}", B, [B], int_cases([n]), lambda x: abs(s(x, n)))
            kernel("neg", f"neg.{t}", B, [B], int_cases([n]), lambda x: -x)
    clamp = lambda x: min(max(x, -2**31), 2**31 - 1)
    two, three = int_cases([32, 32]), int_cases([32, 32, 32])
    kernel("add", "add.sat.s32", "b32", ["b32"] * 2, two, lambda x, y: clamp(s(x, 32) + s(y, 32)))
    kernel("sub", "sub.sat.s32", "b32", ["b32"] * 2, two, lambda x, y: clamp(s(x, 32) - s(y, 32)))
    kernel("mad", "mad.hi.sat.s32", "b32", ["b32"] * 3, three,
           lambda x, y, z: clamp((s(x, 32) * s(y, 32) >> 32) + s(z, 32)))
    pairs = lambda x, y, g: u(g(x, y), 16) | u(g(x >> 16, y >> 16), 16) << 16
    for t in ("u16x2", "s16x2"):
        f = u if t[0] == "u" else s
        kernel("add", f"add.{t}", "b32", ["b32"] * 2, two, lambda x, y: pairs(x, y, lambda p, q: p + q))
        kernel("min", f"min.{t}", "b32", ["b32"] * 2, two,
               lambda x, y: pairs(x, y, lambda p, q: min(f(p, 16), f(q, 16))))
        kernel("max", f"max.{t}", "b32", ["b32"] * 2, two,
               lambda x, y: pairs(x, y, lambda p, q: max(f(p, 16), f(q, 16))))
    kernel("max", "max.relu.s16x2", "b32", ["b32"] * 2, two,
           lambda x, y: pairs(x, y, lambda p, q: max(s(p, 16), s(q, 16), 0)))
    kernel("min", "min.relu.s32", "b32", ["b32"] * 2, two, lambda x, y: max(min(s(x, 32), s(y, 32)), 0))
    for t in ("u32", "s32"):
        f, _ = by_type(t)
        low = lambda x, y: f(x, 24) * f(y, 24)
        for half, shift in (("lo", 0), ("hi", 16)):
            kernel("mul24", f"mul24.{half}.{t}", "b32", ["b32"] * 2, two, lambda x, y: low(x, y) >> shift)
            kernel("mad24", f"mad24.{half}.{t}", "b32", ["b32"] * 3, three, lambda x, y, z: (low(x,
                    y) >> shift) + z)
    for n in (32, 64):
        B, m = b(n), (1 << n) - 1
        four = int_cases([n] * 4)

        def carry_chain(op):
            r = "%r" if n == 32 else "%d"
            return [f"{op}.cc.u{n} {r}0, {r}2, {r}4;", f"{op}c.u{n} {r}1, {r}3, {r}5;"]
        for op, sign in (("add", 1), ("sub", -1)):
            def wide(xl, xh, yl, yh):
                total = (xl | xh << n) + sign * (yl | yh << n)
                return total & m, total >> n & m
            kernel(f"{op}c", "", [B, B], [B] * 4, four, wide, f"{op}c_u{n}", carry_chain(op))
            kernel(f"{op}.cc", "", [B, B], [B] * 4, four, wide, f"{op}_cc_u{n}", carry_chain(op))
    body = ["mad.lo.cc.u32 %r0, %r2, %r3, %r4;", "madc.hi.u32 %r1, %r2, %r3, %r5;"]
    kernel("madc", "", ["b32", "b32"], ["b32"] * 4, int_cases([32] * 4),
           lambda x, y, zl, zh: ((x * y + (zl | zh << 32)) & 0xFFFFFFFF,
                   (x * y + (zl | zh << 32)) >> 32), "madc_u32", body)


def bit_operations():
    for n in (16, 32, 64):
        B, two = b(n), int_cases([n, n])
        kernel("and", f"and.b{n}", B, [B, B], two, lambda x, y: x & y)
        kernel("or", f"or.b{n}", B, [B, B], two, lambda x, y: x | y)
        kernel("xor", f"xor.b{n}", B, [B, B], two, lambda x, y: x ^ y)
        kernel("not", f"not.b{n}", B, [B], int_cases([n]), lambda x: ~x)
        kernel("cnot", f"cnot.b{n}", B, [B], int_cases([n]), lambda x: int(x == 0))
        shifts = [(x, rng.choice([0, 1, n - 1, n, n + 1, 31, 64, 2**31, rng.randrange(n)])) for x, _ in two]
        kernel("shl", f"shl.b{n}", B, [B, "b32"], shifts, lambda x, k: x << k if k < n else 0)
        kernel("shr", f"shr.u{n}", B, [B, "b32"], shifts, lambda x, k: x >> k if k < n else 0)
        kernel("shr", f"shr.s{n}", B, [B, "b32"], shifts, lambda x, k: s(x, n) >> min(k, n))
    preds = [(i & 1, i >> 1 & 1) for i in range(LANES)]
    kernel("and", "and.pred", "pred", ["pred"] * 2, preds, lambda x, y: x & y)
    kernel("or", "or.pred", "pred", ["pred"] * 2, preds, lambda x, y: x | y)
    kernel("xor", "xor.pred", "pred", ["pred"] * 2, preds, lambda x, y: x ^ y)
    kernel("not", "not.pred", "pred", ["pred"], [(p,) for p, _ in preds], lambda x: 1 - x)
    three = int_cases([32, 32, 32])
    for table in (0x80, 0xFE, 0x96, 0xE8, 0xCA, 0x1B, 0x00, 0xFF):
        row = lambda x, y, z, i: (x >> i & 1) * 4 + (y >> i & 1) * 2 + (z >> i & 1)
        lop = lambda x, y, z: sum((table >> row(x, y, z, i) & 1) << i for i in range(32))
        kernel("lop3", "lop3.b32", "b32", ["b32"] * 3, three, lop, f"lop3_{table:02x}",
                f"%r0, %r1, %r2, %r3, {table}")
    kernel("lop3", "lop3.or.b32", ["b32", "pred"], ["b32", "b32", "b32", "pred"],
           [(*row, i & 1) for i, row in enumerate(three)],
           lambda x, y, z, q: (x & y & z, int(x & y & z != 0) | q), operands="%r0|%p1, %r2, %r3, %r4, 0x80, %p5")
    amounts = [(x, y, rng.choice([0, 1, 31, 32, 33, 100, rng.randrange(32)])) for x, y, _ in three]
    for mode in ("clamp", "wrap"):
        k = lambda z: z & 31 if mode == "wrap" else min(z, 32)
        kernel("shf", f"shf.l.{mode}.b32", "b32", ["b32"] * 3, amounts, lambda x, y,
                z: ((y << 32 | x) << k(z)) >> 32)
        kernel("shf", f"shf.r.{mode}.b32", "b32", ["b32"] * 3, amounts, lambda x, y, z: (y << 32 | x) >> k(z))
        fields = [(rng.randrange(40), rng.randrange(40)) for _ in range(LANES)]
        kernel("bmsk", f"bmsk.{mode}.b32", "b32", ["b32"] * 2, fields, lambda x, y: ((1 << k(y)) - 1) << k(x))
        sized = [(x, y) for (x, _, _), (_, y) in zip(three, fields)]
        kernel("szext", f"szext.{mode}.u32", "b32", ["b32"] * 2, sized, lambda x, y: u(x, k(y)))
        kernel("szext", f"szext.{mode}.s32", "b32", ["b32"] * 2, sized, lambda x, y: s(x, k(y)) if k(y) else 0)
    for n in (32, 64):
        B, one = b(n), int_cases([n])
        kernel("popc", f"popc.b{n}", "b32", [B], one, lambda x: bin(x).count("1"))
        kernel("clz", f"clz.b{n}", "b32", [B], one, lambda x: n - x.bit_length())
        kernel("brev", f"brev.b{n}", B, [B], one, lambda x: int(f"{x:0{n}b}"[::-1], 2))
        for t in ("u", "s"):
            top = lambda x: (~x & ((1 << n) - 1) if t == "s" and x >> (n - 1) else x).bit_length() - 1
            kernel("bfind", f"bfind.{t}{n}", "b32", [B], one, top)
            kernel("bfind", f"bfind.shiftamt.{t}{n}", "b32", [B], one,
                    lambda x: n - 1 - top(x) if top(x) >= 0 else -1)
            fields = [(x, rng.choice([0, 1, n // 2, n - 1, n, 200, rng.randrange(n)]),
                       rng.choice([0, 1, n // 2, n, n + 3, 255, rng.randrange(n)])) for (x,) in one]

            def extract(x, pos, length):
                fill = 0 if t == "u" or length == 0 else x >> min(pos + length - 1, n - 1) & 1
                return sum((x >> (pos + i) & 1 if i < length and pos + i < n else fill) << i for i in range(n))
            kernel("bfe", f"bfe.{t}{n}", B, [B, "b32", "b32"], fields, extract)
        fields = [(x, y, rng.choice([0, n - 1, n, rng.randrange(n)]), rng.choice([0, n, 255, rng.randrange(n)]))
                  for x, y in int_cases([n, n])]

        def insert(x, y, pos, length):
            for i in range(length):
                if pos + i < n:
                    y = y & ~(1 << (pos + i)) | (x >> i & 1) << (pos + i)
            return y
        kernel("bfi", f"bfi.b{n}", B, [B, B, "b32", "b32"], fields, insert)

    def nth_set(mask, base, offset):
        offset = s(offset, 32)
        if offset == 0:
            return base if mask >> base & 1 else -1
        order = range(base, 32) if offset > 0 else range(base, -1, -1)
        found = [i for i in order if mask >> i & 1]
        return found[abs(offset) - 1] if len(found) >= abs(offset) else -1
    kernel("fns", "fns.b32", "b32", ["b32"] * 3,
           [(rng.getrandbits(32), rng.randrange(32), u(rng.randint(-6, 6), 32)) for _ in range(LANES)], nth_set)

    def permute(x, y, selectors):
        data, result = [(y << 32 | x) >> (8 * i) & 255 for i in range(8)], 0
        for i in range(4):
            nibble = selectors >> (4 * i) & 15
            byte = data[nibble & 7]
            result |= (byte if nibble < 8 else 255 * (byte >> 7)) << (8 * i)
        return result
    kernel("prmt", "prmt.b32", "b32", ["b32"] * 3, three, permute)
    for selector in (0x5410, 0x7632, 0x3340, 0xBA98):
        kernel("prmt", "prmt.b32", "b32", ["b32"] * 2, [row[:2] for row in three],
               lambda x, y: permute(x, y, selector), f"prmt_{selector:04x}", f"%r0, %r1, %r2, {selector}")
    modes = {"f4e": lambda c: [c, c + 1, c + 2, c + 3], "b4e": lambda c: [c % 8, (c - 1) % 8, (c - 2) % 8,
            (c - 3) % 8],
             "rc8": lambda c: [c] * 4, "ecl": lambda c: [max(i, c) for i in range(4)],
             "ecr": lambda c: [min(i, c) for i in range(4)], "rc16": lambda c: [0, 1, 0,
                     1] if c % 2 == 0 else [2, 3, 2, 3]}
    for mode, pick in modes.items():
        kernel("prmt", f"prmt.b32.{mode}", "b32", ["b32"] * 3, three,
               lambda x, y, c: permute(x, y, sum(j << 4 * i for i, j in enumerate(pick(c & 3)))))
    for ta in ("u", "s"):
        for tb in ("u", "s"):
            fa, fb = (s if ta == "s" else u), (s if tb == "s" else u)
            kernel("dp4a", f"dp4a.{ta}32.{tb}32", "b32", ["b32"] * 3, three,
                   lambda x, y, z: z + sum(fa(x >> 8 * i, 8) * fb(y >> 8 * i, 8) for i in range(4)))
            for half, k in (("lo", 0), ("hi", 16)):
                kernel("dp2a", f"dp2a.{half}.{ta}32.{tb}32", "b32", ["b32"] * 3, three,
                       lambda x, y, z: z + sum(fa(x >> 16 * i, 16) * fb(y >> (k + 8 * i), 8) for i in range(2)))


def moves():
    for n in (16, 32, 64):
        B, rows = b(n), [(x, y, i & 1) for i, (x, y) in enumerate(int_cases([n, n]))]
        kernel("mov", f"mov.b{n}", B, [B], int_cases([n]), lambda x: x)
        kernel("selp", f"selp.b{n}", B, [B, B, "pred"], rows, lambda x, y, p: x if p else y)
        kernel("slct", f"slct.b{n}.s32", B, [B, B, "b32"], int_cases([n, n, 32]), lambda x, y,
                c: y if c >> 31 else x)
        kernel("slct", f"slct.b{n}.f32", B, [B, B, "b32"], [(x, y, c) for (x, y, _), (c, _) in zip(rows,
                float_cases(F32, 2))],
               lambda x, y, c: x if F32.decode(c)[0] != "nan" and (not c >> 31 or c == 1 << 31) else y)
    kernel("mov", "mov.b32", "b32", ["b16", "b16"], int_cases([16, 16]), lambda x, y: x | y << 16, "pack_b32",
            "%r0, {%h1, %h2}")
    kernel("mov", "mov.b64", "b64", ["b32", "b32"], int_cases([32, 32]), lambda x, y: x | y << 32, "pack_b64",
            "%d0, {%r1, %r2}")
    kernel("mov", "mov.b64", "b64", ["b16"] * 4, int_cases([16] * 4), lambda *w: sum(x << 16 * i for i,
            x in enumerate(w)),
           "pack4_b64", "%d0, {%h1, %h2, %h3, %h4}")
    kernel("mov", "mov.b32", ["b16", "b16"], ["b32"], int_cases([32]), lambda x: (x & 0xFFFF, x >> 16),
            "unpack_b32", "{%h0, %h1}, %r2")
    kernel("mov", "mov.b64", ["b32"], ["b64"], int_cases([64]), lambda x: x >> 32, "unpack_sink", "{_, %r0}, %d1")
    kernel("mov", "mov.b64", ["b16"] * 4, ["b64"], int_cases([64]),
            lambda x: [x >> 16 * i & 0xFFFF for i in range(4)],
           "unpack4_b64", "{%h0, %h1, %h2, %h3}, %d4")
    kernel("mov", "mov.pred", "pred", ["pred"], [(i & 1,) for i in range(LANES)], lambda p: p)
    kernel("mov", "mov.f32", "b32", ["b32"], [(0,)], lambda _: 0x3FC00000, "mov_float", "%r0, 1.5")
    kernel("mov", "mov.u32", "b32", ["b32"], [(i,) for i in range(LANES)], lambda i: i, "mov_laneid",
            "%r0, %laneid")


def addresses_and_hints():
    for space in ("global", "shared", "local", "param"):
        body = [f"cvta.{space}.u64 %d2, %d1;", f"cvta.to.{space}.u64 %d0, %d2;"]
        kernel("cvta", "", "b64", ["b64"], [(rng.getrandbits(16),) for _ in range(LANES)], lambda x: x,
                f"cvta_{space}", body)
    body = ["mov.u64 %d2, 2048;", "cvta.shared.u64 %d3, %d2;", "isspacep.shared %p0, %d3;",
            "isspacep.global %p1, %d3;"]
    kernel("isspacep", "", ["pred", "pred"], ["b32"], [(0,)], lambda _: (1, 0), "isspacep", body)
    body = ["mov.u32 %r3, 0;", "mapa.shared::cluster.u32 %r0, %r2, %r3;",
            "getctarank.shared::cluster.u32 %r1, %r0;"]
    for file in ("mapa", "getctarank"):
        kernel(file, "", ["b32", "b32"], ["b32"], [(1024 + 16 * i,) for i in range(LANES)], lambda x: (x, 0),
                file, body)
    hints = {"nanosleep": ["nanosleep.u32 20;"], "griddepcontrol": ["griddepcontrol.wait;",
            "griddepcontrol.launch_dependents;"],
             "pmevent": ["pmevent 7;"], "prefetch": ["prefetch.global.L2 [%d91];", "prefetch.global.L1 [%d91];"],
             "prefetchu": ["prefetchu.L1 [%d91];"],
             "applypriority": ["applypriority.global.L2::evict_normal [%d93], 128;"],
             "discard": ["discard.global.L2 [%d93], 128;"],
             "createpolicy": ["createpolicy.fractional.L2::evict_first.b64 %d5, 1.0;"]}
    for name, body in hints.items():
        if name in ("discard", "applypriority"):
            body = ["ld.param.u64 %d93, [in];", "add.s64 %d93, %d93, 256;"] + body
        kernel(name, "", "b32", ["b32"] + ["b32"] * 2 * (name == "discard"), [(7, 0,
                0) if name == "discard" else (7,)],
               lambda x, *_: x, name, body + ["mov.b32 %r0, %r1;"])


def integer_conversions():
    kinds = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]
    for source in kinds:
        f, n = by_type(source)
        for to in kinds:
            g, m = by_type(to)
            if source == to:
                continue
            B, D = b(max(n, 16)), b(max(m, 16))
            low, high = (-(1 << (m - 1)), (1 << (m - 1)) - 1) if to[0] == "s" else (0, (1 << m) - 1)
            kernel("cvt", f"cvt.{to}.{source}", D, [B], int_cases([max(n, 16)]), lambda x: g(f(x, n), m))
            if f(1 << (n - 1), n) < low or (1 << n) - 1 - (source[0] == "s") * (1 << (n - 1)) > high:
                kernel("cvt", f"cvt.sat.{to}.{source}", D, [B], int_cases([max(n, 16)]), lambda x: min(max(f(x,
                        n), low), high))
    clip = lambda x, n, t: min(max(s(x, 32), -(1 << (n - 1)) if t == "s" else 0), (1 << (n - (t == "s"))) - 1)
    for t in ("u", "s"):
        kernel("cvt.pack", f"cvt.pack.sat.{t}16.s32", "b32", ["b32"] * 2, int_cases([32, 32]),
               lambda x, y: u(clip(x, 16, t), 16) << 16 | u(clip(y, 16, t), 16))
        kernel("cvt.pack", f"cvt.pack.sat.{t}8.s32.b32", "b32", ["b32"] * 3, int_cases([32] * 3),
               lambda x, y, z: z << 16 | u(clip(x, 8, t), 8) << 8 | u(clip(y, 8, t), 8))


def main():
    for section in (integers, bit_operations, float_arithmetic, half_arithmetic, signs_and_comparisons, moves,
                    addresses_and_hints, special_values, integer_conversions, float_conversions,
                    narrow_conversions, blackwell,
                    undocumented, approximations):
        section()
    write()


if __name__ == "__main__":
    main()
