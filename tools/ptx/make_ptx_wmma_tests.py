#!/usr/bin/env python3
"""Writes tests/ptx/wmma.ptx: matrices in memory, loaded, multiplied and stored as a whole.

    python3 tools/ptx/make_ptx_wmma_tests.py

Fragments are opaque, so that only memory is compared. Numbers are small integers, whose sums are exact in every
order; that they are rounded as mma.sync rounds is told by kernels that do the same product both ways.
"""

import struct

from ptx_test_bytes import case, write_files
from ptx_test_numbers import rng

SHAPES16 = [(16, 16, 16), (32, 8, 16), (8, 32, 16)]
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s8": 8, "u8": 8, "s32": 32, "s4": 4, "u4": 4,
        "b1": 1}


def encoded(kind, x):
    if kind == "f16": return int.from_bytes(struct.pack("<e", x), "little")
    if kind == "bf16": return int.from_bytes(struct.pack("<f", x), "little") >> 16
    if kind in ("tf32", "f32"): return int.from_bytes(struct.pack("<f", x), "little")
    if kind == "f64": return int.from_bytes(struct.pack("<d", x), "little")
    return x & ((1 << BITS[kind]) - 1)


def value(kind):
    if kind == "b1": return rng.getrandbits(1)
    if kind in ("u8", "u4"): return rng.randrange(1 << BITS[kind])
    if kind in ("s8", "s4"): return rng.randrange(-(1 << BITS[kind] - 1), 1 << BITS[kind] - 1)
    if kind == "s32": return rng.randrange(-100000, 100000)
    return rng.randrange(-8, 9)


def laid_out(matrix, kind, layout, stride):
    """Bytes of a matrix; what is between its lines is ones."""
    lines = matrix if layout == "row" else [list(c) for c in zip(*matrix)]
    bits, at = BITS[kind], 0
    whole = (1 << stride * len(lines) * bits) - 1
    for i, line in enumerate(lines):
        for j, x in enumerate(line):
            at = (i * stride + j) * bits
            whole = whole & ~(((1 << bits) - 1) << at) | encoded(kind, x) << at
    return whole.to_bytes(stride * len(lines) * bits // 8, "little")


def num_registers(part, kind, m, n, k):
    if part in "ab" and kind == "f16": return 8
    elems = {"a": m * k, "b": n * k}.get(part, m * n)
    return max(1, elems // 32 // max(1, (64 if kind == "f64" else 32) // BITS[kind]))


def registers(first, part, kind, *shape):
    letter = "d" if kind == "f64" else "r"
    return "{" + ", ".join(f"%{letter}{first + i}" for i in range(num_registers(part, kind, *shape))) + "}"


def product(a, b, c, combine):
    return [[c[i][j] + sum(combine(a[i][k], b[k][j]) for k in range(len(b))) for j in range(len(b[0]))]
            for i in range(len(a))]


class Product:
    def __init__(self, shape, kind, sums, layouts=("row", "col", "row", "row"), pad=8, result=None):
        self.m, self.n, self.k = self.shape = shape
        self.kind, self.sums, self.layouts, self.pad, self.result = kind, sums, layouts, pad, result or sums
        self.matrices = [self.matrix(self.m, self.k, kind), self.matrix(self.k, self.n, kind),
                         self.matrix(self.m, self.n, sums)]

    @staticmethod
    def matrix(rows, columns, kind): return [[value(kind) for _ in range(columns)] for _ in range(rows)]

    def stride(self, i):
        rows, columns = [(self.m, self.k), (self.k, self.n), (self.m, self.n), (self.m, self.n)][i]
        return (columns if self.layouts[i] == "row" else rows) + (0 if BITS[self.kind] < 8 else self.pad)

    def add(self, name, op="", suffix="", modifier="", combine=lambda x, y: x * y, clamp=None, space=".global"):
        """One kernel: a, b and c lie one after the other in `in`."""
        memory, lines, text = b"", "m{}n{}k{}".format(*self.shape), []
        kinds = [self.kind, self.kind, self.sums, self.result]
        if space == ".shared": text += [".shared .align 128 .b8 tile[8192];", "mov.u32 %r380, tile;"]
        for i, part in enumerate("abc"):
            layout, stride = self.layouts[i], self.stride(i)
            operand = "" if stride == self.stride(i) - self.pad else f", {stride}"
            regs = registers(100 * (i + 1) // (5 if self.kind == "f64" else 1), part, kinds[i], *self.shape)
            text.append(f"add.s64 %d95, %d93, {len(memory)};")
            text.append(f"wmma.load.{part}.sync.aligned.{layout}.{lines}.global.{kinds[i]} {regs}, "
                        f"[%d95]{operand};")
            memory += laid_out(self.matrices[i], kinds[i], layout, stride)
            memory += bytes(-len(memory) % 128)
        scale = 5 if self.kind == "f64" else 1
        types = f"{self.result}.{self.sums}" if self.kind == "f16" else \
            f"{self.result}.{self.kind}.{self.kind}.{self.sums}"
        sets = [registers(100 * i // scale, part, kind, *self.shape)
                for i, part, kind in zip(range(4), "dabc", (self.result, *kinds[:3]))]
        a_layout, b_layout = self.layouts[:2]
        text.append(f"wmma.mma{op}.sync.aligned.{a_layout}.{b_layout}.{lines}{modifier}.{types}{suffix} "
                    + ", ".join(sets) + ";")
        to, stride = ("%r380" if space == ".shared" else "%d94"), self.stride(3)
        text.append(f"wmma.store.d.sync.aligned.{self.layouts[3]}.{lines}{space}.{self.result} [{to}], {sets[0]}, "
                    f"{stride};")
        result = product(*self.matrices, combine)
        if clamp: result = [[clamp(x) for x in row] for row in result]
        out = bytearray(laid_out(result, self.result, self.layouts[3], stride))
        self.clear_padding(out, stride)
        if space == ".shared": text += self.copied_out(len(out))
        case("wmma", name, "\n".join(text), memory, out, target="sm_90")

    def clear_padding(self, out, stride):
        """The buffer is zero before, and nothing may be written between the lines."""
        size, length = BITS[self.result] // 8, self.n if self.layouts[3] == "row" else self.m
        for line in range(len(out) // (stride * size)):
            start, end = (line * stride + length) * size, (line + 1) * stride * size
            out[start:end] = bytes(end - start)

    @staticmethod
    def copied_out(size):
        """From shared memory; what the store leaves out is not copied: there is no padding then."""
        return ["bar.sync 0;",
                "mul.lo.u32 %r381, %r390, 4; add.u32 %r382, %r380, %r381; cvt.u64.u32 %d96, %r381;",
                "add.s64 %d96, %d94, %d96; mov.u32 %r383, 0;",
                f"{{\nLOOP: ld.shared.b32 %r384, [%r382]; st.global.b32 [%d96], %r384; add.u32 %r382, %r382, 128;",
                f"add.s64 %d96, %d96, 128; add.u32 %r383, %r383, 128; setp.lt.u32 %p1, %r383, {size};",
                "@%p1 bra LOOP;\n}"]


def saturated(x): return max(-2**31, min(2**31 - 1, x))


def exact_products():
    layouts = [(a, b, c, d) for a in ("row", "col") for b in ("row", "col")
               for c, d in (("row", "col"), ("col", "row"), ("row", "row"))]
    for s, shape in enumerate(SHAPES16):
        name = "m{}n{}k{}".format(*shape)
        for i, four in enumerate(layouts):
            if i % 3 == s: Product(shape, "f16", "f32", four).add(f"{name}_f16_f32_" + "_".join(four))
        for sums, result in (("f16", "f16"), ("f16", "f32"), ("f32", "f16")):
            Product(shape, "f16", sums, layouts[5 + s], result=result).add(f"{name}_f16_sums_{sums}_{result}")
        for kind, sums in (("bf16", "f32"), ("s8", "s32"), ("u8", "s32")):
            for four in (layouts[s], layouts[7 + s]):
                Product(shape, kind, sums, four, pad=16).add(f"{name}_{kind}_" + "_".join(four))
    for four in layouts[::4]:
        Product((16, 16, 8), "tf32", "f32", four).add("m16n16k8_tf32_" + "_".join(four))
        Product((8, 8, 4), "f64", "f64", four).add("m8n8k4_f64_" + "_".join(four))
    for kind in ("s4", "u4"): Product((8, 8, 32), kind, "s32").add(f"m8n8k32_{kind}")
    Product((8, 8, 128), "b1", "s32").add("m8n8k128_xor", op=".xor.popc", combine=lambda x, y: x ^ y)
    Product((8, 8, 128), "b1", "s32").add("m8n8k128_and", op=".and.popc", combine=lambda x, y: x & y)
    large = Product((16, 16, 16), "s8", "s32")
    large.matrices[2] = [[rng.choice((2**31 - 5, -2**31 + 5)) for _ in range(16)] for _ in range(16)]
    large.add("m16n16k16_s8_satfinite", suffix=".satfinite", clamp=saturated)
    Product((16, 16, 16), "u8", "s32", pad=0).add("m16n16k16_u8_to_shared", space=".shared")


def rounded_as_mma_sync():
    """Random fp16 numbers of all sizes, fp32 sums: wmma's result lies in memory, and mma.sync's must equal it."""
    for layout in ("row", "col"):
        halves = [rng.getrandbits(16) & 0xbbff | 0x400 for _ in range(512)]
        sums = [rng.getrandbits(32) & 0xc0ffffff | 0x30000000 for _ in range(256)]
        memory = struct.pack("<512H", *halves) + struct.pack("<256I", *sums)
        a, b, c = ("{" + ", ".join(f"%r{x + i}" for i in range(8)) + "}" for x in (100, 200, 300))
        text = [f"add.s64 %d95, %d93, 512; add.s64 %d96, %d93, 1024;",
                f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {a}, [%d93];",
                f"wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {b}, [%d95];",
                f"wmma.load.c.sync.aligned.{layout}.m16n16k16.global.f32 {c}, [%d96];",
                f"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {c}, {a}, {b}, {c};",
                f"wmma.store.d.sync.aligned.{layout}.m16n16k16.global.f32 [%d94], {c}; bar.sync 0;",
                # Lane 4g + q: rows g and g + 8, columns 2q and 2q + 1 of each half.
                "shr.u32 %r1, %r390, 2; and.b32 %r2, %r390, 3; shl.b32 %r3, %r1, 5; shl.b32 %r4, %r2, 2;",
                "add.u32 %r5, %r3, %r4; cvt.u64.u32 %d97, %r5; add.s64 %d97, %d93, %d97;",
                "ld.global.b32 %r10, [%d97]; ld.global.b32 %r11, [%d97+256]; ld.global.b32 %r12, [%d97+16];",
                "ld.global.b32 %r13, [%d97+272]; mov.u32 %r99, 0;"]
        steps = (4, 64) if layout == "col" else (64, 4)  # bytes from row to row, from column to column
        for half in range(2):
            text += [f"ld.global.b32 %r14, [%d97+{512 + 256 * half}];",
                     f"ld.global.b32 %r15, [%d97+{528 + 256 * half}];",
                     f"mul.lo.u32 %r6, %r1, {steps[0]}; mad.lo.u32 %r6, %r2, {2 * steps[1]}, %r6;",
                     "cvt.u64.u32 %d98, %r6;",
                     "add.s64 %d99, %d94, %d98; add.s64 %d98, %d96, %d98;"]
            places = [8 * i * steps[0] + (8 * half + j) * steps[1] for i in range(2) for j in range(2)]
            for i, place in enumerate(places): text.append(f"ld.global.b32 %r{20 + i}, [%d98+{place}];")
            text.append("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r30, %r31, %r32, %r33}, "
                        "{%r10, %r11, %r12, %r13}, {%r14, %r15}, {%r20, %r21, %r22, %r23};")
            for i, place in enumerate(places):
                text.append(f"ld.global.b32 %r40, [%d99+{place}]; xor.b32 %r40, %r40, %r{30 + i}; "
                            "or.b32 %r99, %r99, %r40;")
        text += ["bar.sync 0;"] + [f"st.global.b64 [%d92+{256 * i}], 0;" for i in range(4)]
        # 7, and any bit in which the two differed.
        text += ["bar.sync 0; cvt.u64.u32 %d97, %r99; shl.b64 %d97, %d97, 8; or.b64 %d97, %d97, 7;",
                 "st.global.b64 [%d92], %d97;"]
        case("wmma", f"rounded_as_mma_sync_{layout}", "\n".join(text), memory,
             struct.pack("<128Q", *([7] * 32 + [0] * 96)), target="sm_90")


def main():
    exact_products()
    rounded_as_mma_sync()
    write_files("make_ptx_wmma_tests.py")


if __name__ == "__main__":
    main()
