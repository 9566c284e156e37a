#!/usr/bin/env python3
"""Writes the files of tests/ptx for wgmma and mma.sync.

    python3 tools/ptx/make_ptx_wgmma_tests.py

Shared memory images and fragments are laid out here by the manual's formulas; products are summed with
Python's integers and fractions. tests/sim/insn/ptx_case.h says how data lies in memory.
"""

import functools
import struct
from fractions import Fraction

from ptx_test_bytes import case, write_files
from ptx_test_numbers import FLOATS, codes_of_small, f16_code, f32_code, rng, swizzled


# Shared memory images of wgmma operands, from "Asynchronous Warpgroup Level Matrix Shared Memory Layout".

class Image:
    """A rows x k matrix in shared memory, as the descriptor with this swizzle wants it."""

    def __init__(self, rows, k_bytes, element_bytes, span, mn_major):
        self.rows, self.k_bytes, self.span, self.mn_major = rows, k_bytes, span, mn_major
        self.element_bytes = element_bytes
        k = k_bytes // element_bytes
        if not mn_major:
            if span == 0: self.leading, self.stride = 128, k_bytes // 16 * 128
            else: self.leading, self.stride = 16, 8 * span
            self.atom_bytes = rows // 8 * 8 * span  # the next columns, once a swizzled row is full
        elif span == 0: self.stride, self.leading = k // 8 * 128, 128
        else: self.leading, self.stride = k // 8 * 8 * span, 8 * span
        self.size = max(self.place(r, b) for r in (0, rows - 1) for b in (0, k - 1)) + 1
        self.size = -(-self.size // 1024) * 1024

    def linear(self, row, k):
        if not self.mn_major:
            byte = k * self.element_bytes
            if self.span == 0:
                return row // 8 * self.stride + byte // 16 * self.leading + row % 8 * 16 + byte % 16
            atom, byte = divmod(byte, self.span)
            return atom * self.atom_bytes + row // 8 * self.stride + row % 8 * self.span + byte
        byte = row * self.element_bytes
        if self.span == 0:
            return byte // 16 * self.stride + k // 8 * self.leading + k % 8 * 16 + byte % 16
        return byte // self.span * self.leading + k // 8 * self.stride + k % 8 * self.span + byte % self.span

    def place(self, row, k): return swizzled(self.linear(row, k), self.span)

    def bytes(self, codes):
        data = bytearray(self.size)
        for r, line in enumerate(codes):
            for k, code in enumerate(line):
                at = self.place(r, k)
                data[at:at + self.element_bytes] = code.to_bytes(self.element_bytes, "little")
        return data

    def descriptor(self):
        mode = {0: 0, 128: 1, 64: 2, 32: 3}[self.span]
        return self.leading // 16 << 16 | self.stride // 16 << 32 | mode << 62


def registers(first, count): return "{" + ", ".join(f"%r{first + i}" for i in range(count)) + "}"


def fragment_of_a(codes, element_bytes, thread, step_k):
    """The four registers of A that a thread holds, for one step of 32 bytes of k."""
    warp, lane = thread // 32, thread % 32
    words = []
    for r in range(4):
        row = 16 * warp + lane // 4 + 8 * (r % 2)
        first = step_k * 32 // element_bytes + (4 * (lane % 4) + 16 * (r // 2)) // element_bytes
        words.append(sum(codes[row][first + e] << 8 * element_bytes * e for e in range(4 // element_bytes)))
    return words


def wgmma(name, a_kind, b_kind, d_kind, n, span_a=128, span_b=128, a_mn=False, b_mn=False, steps=1,
          a_in_registers=False, negate=(1, 1), old=None, saturate=False, machine=None, random_values=False,
          file="wgmma"):
    bits = {"s8": 8, "u8": 8, "b1": 8}.get(a_kind) or FLOATS[a_kind][0]
    size, k_bytes = bits // 8, 32 * steps
    k = k_bytes // size
    small_a, small_b = codes_of_small(a_kind), codes_of_small(b_kind)
    if random_values:
        pick = lambda table, kind: random_code(kind)
    else:
        pick = lambda table, kind: rng.choice(list(table))
    a = [[pick(small_a, a_kind) for _ in range(k)] for _ in range(64)]
    b = [[pick(small_b, b_kind) for _ in range(k)] for _ in range(n)]
    value_a = small_a.__getitem__ if a_kind in ("s8", "u8", "b1") else FLOATS[a_kind][1]
    value_b = small_b.__getitem__ if b_kind in ("s8", "u8", "b1") else FLOATS[b_kind][1]
    is_integer = a_kind in ("s8", "u8", "b1")
    start = 0 if old is None else old

    @functools.lru_cache(None)
    def result(row, column):
        total = start
        for step in range(steps):
            part = range(step * 32 // size, (step + 1) * 32 // size)
            if a_kind == "b1":
                total += sum(bin(a[row][i] & b[column][i]).count("1") for i in part)
            else:
                total += sum(value_a(a[row][i]) * negate[0] * value_b(b[column][i]) * negate[1] for i in part)
            if saturate: total = max(-2**31, min(2**31 - 1, total))
        if is_integer: return total & 0xffffffff
        return f16_code(Fraction(total)) if d_kind == "f16" else f32_code(Fraction(total))

    image_b = Image(n, k_bytes, size, span_b, b_mn)
    data, at = bytearray(), {}
    if a_in_registers:
        for step in range(steps):
            for r in range(4):
                for thread in range(128):
                    data += fragment_of_a(a, size, thread, step)[r].to_bytes(4, "little")
    else:
        image_a = Image(64, k_bytes, size, span_a, a_mn)
        data += image_a.bytes(a)
    at_b = len(data)
    data += image_b.bytes(b)
    shared_bytes = -(-len(data) // 1024) * 1024
    count = n // 4 if d_kind == "f16" else n // 2
    body = [f".shared .align 1024 .b8 image[{shared_bytes}];"]
    for i in range(0, len(data), 1024):
        body.append(f"ld.global.b64 %d1, [%d91+{i}]; mov.u32 %r1, image; mad.lo.u32 %r1, %r390, 8, %r1; "
                    f"st.shared.b64 [%r1+{i}], %d1;")
    body.append("fence.proxy.async.shared::cta; bar.sync 0; mov.u32 %r1, image; and.b32 %r2, %r1, 1023;")
    body.append(f"shr.u32 %r1, %r1, 4; cvt.u64.u32 %d1, %r1; setp.ne.u32 %p1, %r2, 4096;")
    if not a_in_registers: body.append(f"or.b64 %d2, %d1, {image_a.descriptor():#x};")
    body.append(f"add.s64 %d3, %d1, {at_b // 16}; or.b64 %d3, %d3, {image_b.descriptor():#x};")
    first = start
    if d_kind == "f16": first = f16_code(Fraction(start)) * 0x10001
    elif not is_integer: first = f32_code(Fraction(start))
    body += [f"mov.b32 %r{100 + i}, {first & 0xffffffff:#x};" for i in range(count)]
    suffix = {"b1": ".and.popc"}.get(a_kind, "") or (".satfinite" if saturate else "")
    element_k = 256 if a_kind == "b1" else 32 // size
    head = f"wgmma.mma_async.sync.aligned.m64n{n}k{element_k}{suffix}.{d_kind}.{a_kind}.{b_kind}"
    if a_kind == "b1": head = f"wgmma.mma_async.sync.aligned.m64n{n}k256.s32.b1.b1.and.popc"
    elif saturate: head = f"wgmma.mma_async.sync.aligned.m64n{n}k32.satfinite.s32.{a_kind}.{b_kind}"
    if a_in_registers:
        for i in range(4 * steps):
            body.append(f"mul.wide.u32 %d5, %r390, 4; add.s64 %d5, %d93, %d5; "
                        f"ld.global.u32 %r{10 + i}, [%d5+{512 * i}];")
    body.append("wgmma.fence.sync.aligned;")
    for step in range(steps):
        element = step * 32 // size
        operand_a = registers(10 + 4 * step, 4)
        if not a_in_registers:
            operand_a = "%d6"
            body.append(f"add.s64 %d6, %d2, {image_a.linear(0, element) // 16};")
        body.append(f"add.s64 %d7, %d3, {image_b.linear(0, element) // 16};")
        scale = "1" if old is not None or step else "0"
        body.append(f"setp.ne.u32 %p2, {scale}, 0;")
        tail = ""
        if not is_integer: tail = f", {negate[0]}, {negate[1]}"
        if size == 2: tail += (f", {int(a_mn)}" if not a_in_registers else "") + f", {int(b_mn)}"
        body.append(f"{head} {registers(100, count)}, {operand_a}, %d7, %p2{tail};")
    body.append("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;")
    body.append("mul.wide.u32 %d5, %r390, 4; add.s64 %d5, %d94, %d5;")
    body += [f"st.global.b32 [%d5+{512 * i}], %r{100 + i};" for i in range(count)]
    out = bytearray()
    for i in range(count):
        for thread in range(128):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (i % 2 if d_kind == "f16" else i // 2 % 2)
            column = 8 * (i // 2 if d_kind == "f16" else i // 4) + 2 * (thread % 4)
            if d_kind == "f16":
                out += (result(row, column) | result(row, column + 1) << 16).to_bytes(4, "little")
            else:
                out += result(row, column + i % 2).to_bytes(4, "little")
    case(file, name, "\n".join(body), data, out, threads=128, machine=machine)


def random_code(kind):
    """Any number that is not infinite or a NaN, but not so large that a sum overflows."""
    if kind == "f16": return rng.getrandbits(1) << 15 | rng.randrange(0, 22 << 10)
    if kind == "bf16": return rng.getrandbits(1) << 15 | rng.randrange(110, 140) << 7 | rng.getrandbits(7)
    if kind == "e4m3": return rng.getrandbits(1) << 7 | rng.randrange(0, 127)
    if kind == "e5m2": return rng.getrandbits(1) << 7 | rng.randrange(0, 124)
    return rng.getrandbits(1) << 31 | rng.randrange(110, 140) << 23 | rng.getrandbits(10) << 13


def all_wgmma():
    for span in (0, 32, 64, 128):
        wgmma(f"wgmma_bf16_k_major_{span}", "bf16", "bf16", "f32", 8, span, span, steps=2)
        wgmma(f"wgmma_f16_mn_major_{span}", "f16", "f16", "f32", 64 if span == 128 else 32, span, span, True, True)
        wgmma(f"wgmma_a_mn_{span}_b_k", "bf16", "bf16", "f32", 16, span, 64, True, False, steps=2)
    wgmma("wgmma_a_k_b_mn", "f16", "f16", "f32", 24, 128, 0, False, True, steps=2)
    wgmma("wgmma_tf32", "tf32", "tf32", "f32", 16, 64, 128, steps=2)
    wgmma("wgmma_e4m3", "e4m3", "e4m3", "f32", 16, 128, 128, steps=2)
    wgmma("wgmma_e4m3_e5m2_f16", "e4m3", "e5m2", "f16", 16, 32, 32)
    wgmma("wgmma_e5m2_e4m3", "e5m2", "e4m3", "f32", 8, 0, 128, old=3)
    wgmma("wgmma_f16_f16", "f16", "f16", "f16", 16, 128, 128, old=2, steps=2)
    wgmma("wgmma_s8_u8", "s8", "u8", "s32", 16, 128, 64, steps=2)
    wgmma("wgmma_u8_s8_old", "u8", "s8", "s32", 8, 32, 32, old=-77777)
    wgmma("wgmma_s8_satfinite", "s8", "s8", "s32", 8, 64, 64, old=2**31 - 2000, saturate=True)
    wgmma("wgmma_b1", "b1", "b1", "s32", 8, 64, 64, old=5)
    wgmma("wgmma_a_registers_bf16", "bf16", "bf16", "f32", 8, span_b=128, steps=2, a_in_registers=True)
    wgmma("wgmma_a_registers_b_mn", "f16", "f16", "f32", 64, span_b=128, b_mn=True, a_in_registers=True)
    wgmma("wgmma_a_registers_e4m3", "e4m3", "e5m2", "f32", 8, span_b=32, a_in_registers=True)
    wgmma("wgmma_a_registers_tf32", "tf32", "tf32", "f32", 8, span_b=32, a_in_registers=True)
    wgmma("wgmma_a_registers_s8", "s8", "s8", "s32", 8, span_b=32, a_in_registers=True)
    wgmma("wgmma_negated_a", "f16", "f16", "f32", 8, 32, 32, negate=(-1, 1), old=1)
    wgmma("wgmma_negated_b", "tf32", "tf32", "f32", 8, 32, 32, negate=(1, -1))
    for a, b, d, n in (("bf16", "bf16", "f32", 8), ("f16", "f16", "f32", 8), ("f16", "f16", "f16", 16),
                       ("tf32", "tf32", "f32", 8), ("e4m3", "e5m2", "f32", 8), ("e5m2", "e5m2", "f32", 8)):
        wgmma(f"wgmma_exact_{a}_{b}_{d}", a, b, d, n, 128, 128, old=Fraction(3, 2), random_values=d == "f32",
              machine="exact_mma", file="wgmma_exact")


# mma.sync: the same fragments for one warp.

def mma(name, k, a_kind, b_kind, d_kind, rounding=""):
    bits = {"s4": 4, "u4": 4, "s8": 8, "u8": 8, "b1": 1, "f64": 64}.get(a_kind) or FLOATS[a_kind][0]
    per_register = max(1, 32 // bits)
    is_double, is_integer = a_kind == "f64", d_kind == "s32"
    register_bits = 64 if is_double else 32
    if is_double: pick = lambda: rng.choice([1.5, -2.0, 3.0, 0.25, -7.0, 0.0])
    elif is_integer: pick = lambda: rng.getrandbits(bits)
    else: pick = lambda: rng.choice(list(codes_of_small(a_kind)))
    pick_b = pick if is_double or is_integer else (lambda: rng.choice(list(codes_of_small(b_kind))))
    m = 8 if name.startswith("m8") else 16
    a = [[pick() for _ in range(k)] for _ in range(m)]
    b = [[pick_b() for _ in range(k)] for _ in range(8)]
    c = [[rng.randrange(-9, 10) for _ in range(8)] for _ in range(m)]

    def value(kind, code):
        if is_double: return Fraction(code)
        if kind[0] == "s": return code - (1 << bits) if code >> (bits - 1) else code
        return code if kind[0] in "ub" and kind != "bf16" else FLOATS[kind][1](code)

    def result(row, column):
        if a_kind == "b1": return (sum(x & y for x, y in zip(a[row], b[column])) + c[row][column]) & 0xffffffff
        total = sum(value(a_kind, x) * value(b_kind, y) for x, y in zip(a[row], b[column])) + c[row][column]
        return encoded(total)

    def encoded(total):
        if is_double: return struct.unpack("<Q", struct.pack("<d", float(total)))[0]
        return total & 0xffffffff if is_integer else (f16_code if d_kind == "f16" else f32_code)(Fraction(total))

    def register(matrix, row, first):
        if is_double: return struct.unpack("<Q", struct.pack("<d", matrix[row][first]))[0]
        return sum(matrix[row][first + e] << bits * e for e in range(per_register))
    num_a, num_b = m * k // 32 // per_register, 8 * k // 32 // per_register
    first_k = lambda l, group: per_register * (l % 4) + 4 * per_register * group
    rows = [[register(a, l // 4 + 8 * (r % 2) if m == 16 else l // 4, first_k(l, r // 2)) for l in range(32)]
            for r in range(num_a)]
    rows += [[register(b, l // 4, first_k(l, r)) for l in range(32)] for r in range(num_b)]
    places = [[(l // 4 + 8 * (i // 2), 2 * (l % 4) + i % 2) for l in range(32)] for i in range(m // 4)]
    pack = lambda f: [[f(*places[i][l]) | f(*places[i + 1][l]) << 16 for l in range(32)]
                      for i in range(0, len(places), 2)]
    plain = lambda f: [[f(*at) for at in line] for line in places]
    form = pack if d_kind == "f16" else plain
    rows += form(lambda r, j: encoded(c[r][j]))
    out = form(result)
    t, reg = (("b64", "%d") if is_double else ("b32", "%r"))
    body = [f"ld.global.{t} {reg}{10 + i}, [%d91+{256 * i}];" for i in range(len(rows))]
    names = lambda first, count: "{" + ", ".join(f"{reg}{first + i}" for i in range(count)) + "}"
    suffix = ".and.popc" if a_kind == "b1" else rounding
    n_out = len(out)
    types = f"{d_kind}.{a_kind}.{b_kind}.{d_kind}"
    body.append(f"mma.sync.aligned.m{m}n8k{k}.row.col.{types}{suffix} {names(50, n_out)}, "
                f"{names(10, num_a)}, {names(10 + num_a, num_b)}, {names(10 + num_a + num_b, n_out)};")
    body += [f"st.global.{t} [%d92+{256 * i}], {reg}{50 + i};" for i in range(n_out)]
    to_bytes = lambda lists: b"".join(v.to_bytes(8, "little") for line in lists for v in line)
    case("mma_forms", "mma_" + name, "\n".join(body), to_bytes(rows), to_bytes(out))


def all_mma():
    for kind in ("f16", "bf16"):
        for k in (8, 16): mma(f"m16n8k{k}_{kind}", k, kind, kind, "f32")
    mma("m16n8k8_f16_f16", 8, "f16", "f16", "f16")
    mma("m16n8k16_f16_f16", 16, "f16", "f16", "f16")
    for k in (4, 8): mma(f"m16n8k{k}_tf32", k, "tf32", "tf32", "f32")
    for a, b in (("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3")): mma(f"m16n8k32_{a}_{b}", 32, a, b, "f32")
    for k in (4, 8, 16): mma(f"m16n8k{k}_f64", k, "f64", "f64", "f64", ".rn" if k == 8 else "")
    mma("m8n8k4_f64", 4, "f64", "f64", "f64")
    for k in (16, 32): mma(f"m16n8k{k}_u8_s8", k, "u8", "s8", "s32")
    mma("m8n8k16_s8", 16, "s8", "s8", "s32")
    for k in (32, 64): mma(f"m16n8k{k}_s4_u4", k, "s4", "u4", "s32")
    mma("m8n8k32_u4", 32, "u4", "u4", "s32")
    for k in (128, 256): mma(f"m16n8k{k}_b1", k, "b1", "b1", "s32")
    mma("m8n8k128_b1", 128, "b1", "b1", "s32")


if __name__ == "__main__":
    all_wgmma()
    all_mma()
    write_files("make_ptx_wgmma_tests.py")
