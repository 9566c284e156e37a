#!/usr/bin/env python3
"""Writes the files of tests/ptx for tcgen05.mma.

    python3 tools/ptx/make_ptx_tcgen05_mma_tests.py

Images of shared memory and Tensor Memory are laid out here by the manual's formulas; products are summed with
fractions, of numbers that every unit adds exactly. tests/sim/insn/ptx_case.h says how data lies in memory.
"""

import functools
from fractions import Fraction

from ptx_test_bytes import case, write_files
from ptx_test_numbers import f16_code, f32_code, minifloat, rng

# name: bits, value, number in the instruction descriptor
TYPES = {"f16": (16, minifloat(5, 10), 0), "bf16": (16, minifloat(8, 7), 1), "tf32": (32, minifloat(8, 23), 2),
         "e4m3": (8, minifloat(4, 3), 0), "e5m2": (8, minifloat(5, 2), 1), "e2m3": (6, minifloat(2, 3), 3),
         "e3m2": (6, minifloat(3, 2), 4), "e2m1": (4, minifloat(2, 1), 5),
         "u8": (8, lambda c: c, 0), "s8": (8, lambda c: c - 256 if c > 127 else c, 1)}
K_OF = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
SPANS = {0: 0, 32: 6, 64: 4, 128: 2, "128atom32": 1}  # swizzle: bits 63..61
WANTED = {Fraction(n, 2) for n in range(-8, 9)}


@functools.lru_cache(None)
def codes_of(kind):
    bits, value, _ = TYPES[kind]
    if kind in ("s8", "u8"): return list(range(256))
    if kind == "tf32": return [f32_code(Fraction(v)) for v in (0, 1, -1, 2, -3, 4, Fraction(1, 2))]
    finite = [c for c in range(1 << bits) if kind not in ("f16", "bf16", "e5m2") or abs(value(c)) < 8]
    return [c for c in finite if value(c) in WANTED and c != 1 << (bits - 1)]


class Image:
    """Rows by k of an operand in shared memory, as a descriptor with this swizzle wants it."""

    def __init__(self, rows, k, bits, container, span, mn_major):
        self.rows, self.k, self.bits, self.container = rows, k, bits, container
        self.swizzle, self.mn_major = span, mn_major
        self.span = 128 if span == "128atom32" else span or 16
        self.atom = 4 if span == "128atom32" and mn_major else 8
        row_bytes = k * container // 8
        if not mn_major:
            self.leading, self.stride = (128, row_bytes // 16 * 128) if span == 0 else (16, 8 * self.span)
        elif span == 0: self.leading, self.stride = 128, k // 8 * 128
        else: self.leading, self.stride = k * self.span, self.atom * self.span
        places = [self.place(r, i) for r in range(rows) for i in range(k)]
        self.size = -(-(max(places) // 8 + 16) // 1024) * 1024

    def bit(self, index):  # along the contiguous index
        if self.container == 8 and self.bits < 8: return index // 16 * 128 + index % 16 * self.bits
        return index * self.container

    def linear(self, byte, other):
        if not self.mn_major:
            line = other // 8 * self.stride + other % 8 * self.span
            return line + (byte // 16 * self.leading + byte % 16 if self.swizzle == 0 else byte)
        if self.swizzle == 0:
            return byte // 16 * self.stride + byte % 16 + other % 8 * 16 + other // 8 * self.leading
        return (byte // self.span * self.leading + byte % self.span + other % self.atom * self.span
                + other // self.atom * self.stride)

    def place(self, row, k):
        """The element's first bit."""
        contiguous, other = (row, k) if self.mn_major else (k, row)
        bit = self.bit(contiguous)
        at = self.linear(bit // 8, other)
        if self.swizzle == "128atom32": at ^= (at >> 7 & 3) << 5
        else: at ^= (at >> 7 & {0: 0, 32: 1, 64: 3, 128: 7}[self.swizzle]) << 4
        return at * 8 + bit % 8

    def bytes(self, codes):
        image = bytearray(rng.getrandbits(8) for _ in range(self.size))  # what is not read may be anything
        for r, line in enumerate(codes):
            for i, code in enumerate(line):
                first = self.place(r, i)
                for b in range(self.bits):
                    at, mask = (first + b) // 8, 1 << (first + b) % 8
                    image[at] = image[at] & ~mask | (mask if code >> b & 1 else 0)
        return image

    def descriptor(self):
        return self.leading // 16 << 16 | self.stride // 16 << 32 | 1 << 46 | SPANS[self.swizzle] << 61


def place_of_d(m, n, pair, ws, row, column):
    """CTA, lane and column of an element of D."""
    if ws and m < 128:
        parts = 128 // m
        return 0, row + column // (n // parts) * m, column % (n // parts)
    if pair and m == 128: return row // 64, row % 64 + 64 * (column >= n // 2), column % (n // 2)
    if pair: return row // 128, row % 128, column
    return (0, row // 16 * 32 + row % 16, column) if m == 64 else (0, row, column)


def rows_of_part(m, pair, ws):
    """Where A's rows stand in Tensor Memory: for every copy, (row, copy, CTA, lane)."""
    copies = 128 // m if ws else 2 if pair and m == 128 else 1
    width = 8
    return [(row, copy) + place_of_d(m, width * copies, pair, ws, row, copy * width)[:2]
            for row in range(m) for copy in range(copies)]


A_AT, SFA_AT, SFB_AT = 256, 320, 384  # columns of Tensor Memory, D begins at 0


class Cells:
    """What the threads put into Tensor Memory before: {(CTA, column): 128 words}."""

    def __init__(self): self.columns = {}

    def set(self, cta, lane, column, value, mask=0xffffffff):
        words = self.columns.setdefault((cta, column), [0] * 128)
        words[lane] = words[lane] & ~mask | value & mask


class Scales:
    """Block scales: random codes of a small number, put into all four quarters of the lanes."""

    def __init__(self, kind, k, block):
        self.ue4m3 = kind == "ue4m3"
        self.pick = (lambda: rng.choice([0x30, 0x34, 0x38, 0x3c, 0x40])) if self.ue4m3 else \
            (lambda: rng.randrange(125, 130))
        self.block, self.count = block, k // block

    def value(self, code): return minifloat(4, 3)(code) if self.ue4m3 else Fraction(2) ** (code - 127)

    def table(self, rows): return [[self.pick() for _ in range(self.count)] for _ in range(rows)]

    def put(self, cells, cta, at, local_row, codes, scale_id, quarters=range(4)):
        for i, code in enumerate(codes):
            byte = scale_id + i
            for quarter in quarters:
                cells.set(cta, 32 * quarter + local_row % 32, at + local_row // 32, code << 8 * byte,
                          0xff << 8 * byte)


def mma(name, kind, a_type, b_type, m=128, n=8, pair=False, ws=False, span_a=32, span_b=32, a_mn=False,
        b_mn=False, a_in_tmem=False, negate=(1, 1), d_type=None, old=None, steps=1, scale=None, block=None,
        vector="", ids=(0, 0), mask=None, input_shift=None, saturate=False, modifiers="", half=0, shift_a=False,
        columns_out=4, file="tcgen05_mma", random_values=False, machine=None,
        two_matrices=False):
    is_integer, is_fp4, is_scaled = kind == "i8", kind in ("mxf4", "mxf4nvf4"), scale is not None
    ctas = 2 if pair else 1
    k_step = K_OF[kind]
    k = k_step * steps
    d_type = d_type or ("s32" if is_integer else "f32")
    (a_bits, a_value, a_number), (b_bits, b_value, b_number) = TYPES[a_type], TYPES[b_type]
    container = 4 if is_fp4 else max(8, a_bits)
    pick = random_code if random_values else lambda kind: rng.choice(codes_of(kind))
    a = [[pick(a_type) for _ in range(k)] for _ in range(m)]
    b = [[pick(b_type) for _ in range(k)] for _ in range(n)]
    # In Tensor Memory, the rows for each part of D's columns stand apart; they may even differ.
    copies = [a] + [[[pick(a_type) for _ in range(k)] for _ in range(m)] if two_matrices else a for _ in range(3)]
    parts = 128 // m if ws else 2 if pair and m == 128 else 1
    olds = {}
    cells = Cells()

    # Shared memory of each CTA: A's part, B's part.
    image_a = None if a_in_tmem else Image(m // ctas, k, a_bits, container, span_a, a_mn)
    image_b = Image(n // ctas, k, b_bits, container, span_b, b_mn)
    shared = []
    for cta in range(ctas):
        data = bytearray()
        if image_a: data += image_a.bytes(a[cta * m // ctas:(cta + 1) * m // ctas])
        at_b = len(data)
        data += image_b.bytes(b[cta * n // ctas:(cta + 1) * n // ctas])
        shared.append(data)
    # Tensor Memory.
    if a_in_tmem:
        width = container if container != 8 else 8
        lift = {(8, 4): 2, (8, 6): 1}.get((container, a_bits), 0)
        for row, copy, cta, lane in rows_of_part(m, pair, ws):
            for i in range(k):
                cell, place = divmod(i * width, 32)
                cells.set(cta, lane + half, A_AT + cell, copies[copy][row][i] << lift << place,
                          (1 << width) - 1 << place)
    a_scales = b_scales = None
    if is_scaled:
        table = Scales(scale, k_step, block)
        a_scales, b_scales = table.table(m), table.table(n)
        for row in range(m): table.put(cells, row * ctas // m, SFA_AT, row % (m // ctas), a_scales[row], ids[0])
        for column in range(n):
            for cta in range(ctas):
                if pair and m == 128:
                    quarters = (0, 1) if column < n // 2 else (2, 3)
                    table.put(cells, cta, SFB_AT, column % (n // 2), b_scales[column], ids[1], quarters)
                else: table.put(cells, cta, SFB_AT, column, b_scales[column], ids[1])
    if old is not None or mask is not None:
        for row in range(m):
            for column in range(n):
                value = rng.choice([-3, 0, 1, 5, 100]) if old is None else old() if callable(old) else old
                olds[row, column] = value
                cta, lane, at = place_of_d(m, n, pair, ws, row, column)
                cells.set(cta, lane + half, at, encoded(value, d_type))

    @functools.lru_cache(None)
    def product(code_a, code_b, scale_a, scale_b):
        value = a_value(code_a) * b_value(code_b) * (negate[0] * negate[1])
        return value if scale_a is None else value * table.value(scale_a) * table.value(scale_b)

    def result(row, column):
        cta, lane, _ = place_of_d(m, n, pair, ws, row, column)
        if mask is not None and mask[4 * cta + lane // 32] >> lane % 32 & 1: return olds[row, column]
        total = Fraction(olds.get((row, column), 0)) if old is not None else Fraction(0)
        if input_shift is not None: total /= 1 << input_shift
        row_a = row
        for step in range(steps):
            if shift_a and step and row % 32 != 31: row_a = row + 1
            for i in range(step * k_step, (step + 1) * k_step):
                i_a = i - step * k_step if shift_a else i
                j = (i - step * k_step) // block if is_scaled else None
                scales = (a_scales[row][j], b_scales[column][j]) if is_scaled else (None, None)
                value = product(copies[column // (n // parts)][row_a][i_a], b[column][i], *scales)
                if value: total += value
        if saturate: total = max(-2**31, min(2**31 - 1, total))
        return total

    idesc = n >> 3 << 17 | m >> 4 << 24 | (negate[0] < 0) << 13 | (negate[1] < 0) << 14 | a_mn << 15 | b_mn << 16
    if is_fp4: idesc |= 1 << 7 | 1 << 10
    else: idesc |= a_number << 7 | b_number << 10
    if is_scaled: idesc |= (scale == "ue8m0") << 23 | ids[0] << 29 | ids[1] << 4
    else: idesc |= {"f16": 0, "f32": 1, "s32": 2}[d_type] << 4 | saturate << 3

    # The threads: 128 in each CTA.
    group = f"cta_group::{ctas}"
    columns = sorted({column for _, column in cells.columns})
    columns_out = min(columns_out, n // parts)
    size = -(-len(shared[0]) // 1024) * 1024
    per_cta = size + 512 * len(columns)
    inputs = bytearray()
    for cta in range(ctas):
        inputs += shared[cta] + bytes(size - len(shared[cta]))
        for column in columns:
            for word in cells.columns.get((cta, column), [0] * 128): inputs += word.to_bytes(4, "little")
    body = [f".shared .align 1024 .b8 image[{size}]; .shared .align 8 .b64 done; .shared .b32 columns;",
            "mov.u32 %r3, %cluster_ctarank; shr.u32 %r4, %r390, 5; setp.eq.u32 %p3, %r4, 0; "
            "mov.u32 %r5, columns; mov.u32 %r6, done;",
            f"mul.wide.u32 %d10, %r3, {per_cta}; add.s64 %d91, %d91, %d10; add.s64 %d93, %d93, %d10;",
            f"@%p3 tcgen05.alloc.{group}.sync.aligned.shared::cta.b32 [%r5], 512;",
            "@%p15 mbarrier.init.shared::cta.b64 [%r6], 1;"]
    for i in range(0, size, 1024):
        body.append(f"ld.global.b64 %d1, [%d91+{i}]; mov.u32 %r1, image; mad.lo.u32 %r1, %r390, 8, %r1; "
                    f"st.shared.b64 [%r1+{i}], %d1;")
    sync = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" if pair else "bar.sync 0;"
    body.append("fence.proxy.async.shared::cta; fence.mbarrier_init.release.cluster; bar.sync 0; "
                "ld.shared.u32 %r7, [%r5];")
    body.append("shl.b32 %r8, %r4, 21; add.u32 %r9, %r7, %r8; mul.wide.u32 %d5, %r390, 4; add.s64 %d5, %d93, %d5;")
    for i, column in enumerate(columns):
        body.append(f"ld.global.u32 %r10, [%d5+{size + 512 * i}]; "
                    f"tcgen05.st.sync.aligned.32x32b.x1.b32 [%r9+{column}], {{%r10}};")
    body.append("tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync;")
    body.append(sync)
    body.append("tcgen05.fence::after_thread_sync; mov.u32 %r1, image; and.b32 %r1, %r1, 0x3ffff; shr.u32 %r1, "
                "%r1, 4; cvt.u64.u32 %d1, %r1;")
    if image_a: body.append(f"or.b64 %d2, %d1, {image_a.descriptor():#x};")
    body.append(f"add.s64 %d3, %d1, {at_b // 16}; or.b64 %d3, %d3, {image_b.descriptor():#x};")
    body.append(f"mov.u32 %r11, {idesc:#x}; setp.eq.u32 %p4, %r3, 0; and.pred %p5, %p4, %p15; add.u32 %r12, %r7, "
                f"{half << 16};")
    body.append("@!%p5 bra WAIT;")
    for step in range(steps):
        body.append(f"setp.ne.u32 %p2, {int(old is not None or step > 0)}, 0;")
        to_a = "%d6"
        if a_in_tmem: to_a = f"[%r12+{A_AT + (0 if shift_a else step * 8)}]"
        else:
            byte = image_a.linear(image_a.bit(step * k_step) // 8, 0) if not a_mn else \
                image_a.linear(0, step * k_step)
            body.append(f"add.s64 %d6, %d2, {byte // 16};")
        byte = image_b.linear(image_b.bit(step * k_step) // 8, 0) if not b_mn else image_b.linear(0, step * k_step)
        body.append(f"add.s64 %d7, %d3, {byte // 16};")
        words = ""
        if mask is not None:
            body += [f"mov.u32 %r{20 + i}, {word:#x};" for i, word in enumerate(mask)]
            words = ", {" + ", ".join(f"%r{20 + i}" for i in range(len(mask))) + "}"
        scales = ""
        if is_scaled:
            body.append(f"add.u32 %r13, %r7, {SFA_AT}; add.u32 %r14, %r7, {SFB_AT};")
            scales = ", [%r13], [%r14]"
        tail = "" if input_shift is None else f", {input_shift}"
        scale_text = f".block_scale{vector}" if is_scaled else ""
        opcode = f"tcgen05.mma{'.ws' if ws else ''}.{group}.kind::{kind}{scale_text}{modifiers}"
        body.append(f"{opcode} [%r12], {to_a}, %d7, %r11{scales}{words}, %p2{tail};")
    if pair:
        body.append("mov.u16 %h1, 3; tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster"
                    ".multicast::cluster.b64 [%r6], %h1;")
    else: body.append("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r6];")
    body += ["WAIT:", "mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r6], 0;", "@!%p6 bra WAIT;",
             "tcgen05.fence::after_thread_sync;"]
    registers = ", ".join(f"%r{100 + i}" for i in range(columns_out))
    body.append(f"tcgen05.ld.sync.aligned.32x32b.x{columns_out}.b32 {{{registers}}}, [%r9]; "
                "tcgen05.wait::ld.sync.aligned;")
    body.append(f"mul.wide.u32 %d5, %r390, 4; mul.wide.u32 %d10, %r3, {512 * columns_out}; "
                "add.s64 %d5, %d94, %d5; add.s64 %d5, %d5, %d10;")
    if m == 64 and not ws:  # half of the lanes hold nothing
        body.append(f"and.b32 %r15, %r390, 16; setp.eq.u32 %p7, %r15, {half};")
        body += [f"@%p7 st.global.b32 [%d5+{512 * i}], %r{100 + i};" for i in range(columns_out)]
    else: body += [f"st.global.b32 [%d5+{512 * i}], %r{100 + i};" for i in range(columns_out)]
    body += ["tcgen05.fence::before_thread_sync;", sync]
    body.append(f"@%p3 tcgen05.dealloc.{group}.sync.aligned.b32 %r7, 512;")
    body.append(f"@%p3 tcgen05.relinquish_alloc_permit.{group}.sync.aligned;")
    if pair: body.append(sync)
    out = [[[0] * 128 for _ in range(columns_out)] for _ in range(ctas)]
    for row in range(m):
        for column in range(n):
            cta, lane, at = place_of_d(m, n, pair, ws, row, column)
            if at < columns_out: out[cta][at][lane + half] = encoded(result(row, column), d_type)
    outputs = b"".join(word.to_bytes(4, "little") for cta in out for line in cta for word in line)
    case(file, name, "\n".join(body), inputs, outputs, threads=128, cluster=ctas, target="sm_100a",
         machine=machine)


def random_code(kind):
    """Any number that is not infinite or a NaN, but not so large that a sum overflows."""
    if kind == "tf32": return rng.getrandbits(1) << 31 | rng.randrange(110, 140) << 23 | rng.getrandbits(10) << 13
    if kind == "bf16": return rng.getrandbits(1) << 15 | rng.randrange(110, 140) << 7 | rng.getrandbits(7)
    if kind == "f16": return rng.getrandbits(1) << 15 | rng.randrange(0, 22 << 10)
    finite = {"e4m3": 127, "e5m2": 124}.get(kind, 1 << TYPES[kind][0] - 1)
    return rng.getrandbits(1) << TYPES[kind][0] - 1 | rng.randrange(finite)


def encoded(value, d_type):
    if d_type == "s32": return int(value) & 0xffffffff
    return (f16_code if d_type == "f16" else f32_code)(Fraction(value))


def all_dense():
    small = lambda: rng.choice([-3, 0, 1, 5, 64])
    for span in (0, 32, 64, 128):
        mma(f"f16_k_major_{span}", "f16", "f16", "f16", span_a=span, span_b=span, old=small)
        mma(f"bf16_mn_major_{span}", "f16", "bf16", "bf16", n=64 if span == 128 else 32, span_a=span,
            span_b=span, a_mn=True, b_mn=True)
    mma("f16_two_steps", "f16", "f16", "f16", n=16, span_a=64, span_b=128, steps=2)
    mma("f16_to_f16", "f16", "f16", "f16", n=16, d_type="f16", old=small)
    mma("bf16_a_tmem", "f16", "bf16", "bf16", n=16, span_b=64, a_in_tmem=True, steps=2)
    mma("bf16_a_tmem_b_mn", "f16", "bf16", "bf16", n=64, span_b=128, a_in_tmem=True, b_mn=True)
    mma("f16_negated_a", "f16", "f16", "f16", negate=(-1, 1), old=small)
    mma("f16_negated_b", "f16", "f16", "f16", negate=(1, -1))
    mma("f16_m64", "f16", "f16", "f16", m=64, n=24, old=small)
    mma("f16_m64_upper", "f16", "f16", "f16", m=64, n=8, half=16)
    mma("f16_m64_a_tmem", "f16", "f16", "f16", m=64, n=8, a_in_tmem=True, half=16)
    mma("f16_lanes_disabled", "f16", "f16", "f16", old=small, mask=[0x1, 0xffff0000, 0, 0x80000000])
    mma("f16_input_scaled", "f16", "f16", "f16", old=small, input_shift=3)
    mma("f16_mask_and_scale", "f16", "f16", "f16", old=small, mask=[5, 0, 0xf0, 0], input_shift=1)
    mma("f16_collector", "f16", "f16", "f16", modifiers=".collector::a::lastuse")
    mma("f16_ashift", "f16", "f16", "f16", a_in_tmem=True, steps=1, modifiers=".ashift")
    mma("f16_ashift_twice", "f16", "f16", "f16", a_in_tmem=True, steps=2, span_b=64, modifiers=".ashift",
        shift_a=True)
    mma("tf32", "tf32", "tf32", "tf32", span_a=64, old=small)
    mma("tf32_mn_major", "tf32", "tf32", "tf32", n=32, span_a="128atom32", span_b="128atom32", a_mn=True,
        b_mn=True)
    mma("tf32_a_tmem", "tf32", "tf32", "tf32", a_in_tmem=True, input_shift=2, old=small)
    for x, y in (("e4m3", "e5m2"), ("e5m2", "e2m1"), ("e2m1", "e4m3"), ("e2m3", "e3m2"), ("e3m2", "e2m3")):
        mma(f"{x}_{y}", "f8f6f4", x, y, n=16, old=small)
    mma("e4m3_to_f16", "f8f6f4", "e4m3", "e4m3", d_type="f16")
    mma("e4m3_mn_major", "f8f6f4", "e4m3", "e4m3", n=64, span_a=128, span_b=64, a_mn=True, b_mn=True)
    mma("e2m1_e3m2_mn_major", "f8f6f4", "e2m1", "e3m2", n=64, span_a=128, span_b=64, a_mn=True, b_mn=True)
    for x in ("e4m3", "e2m1", "e2m3", "e3m2"): mma(f"{x}_a_tmem", "f8f6f4", x, "e4m3", a_in_tmem=True)
    mma("s8_u8", "i8", "s8", "u8", n=24, old=lambda: rng.randrange(-2**31, 2**31))
    mma("u8_s8_saturating", "i8", "u8", "s8", old=lambda: rng.choice([2**31 - 1, -2**31, 0]), saturate=True)
    mma("s8_a_tmem", "i8", "s8", "s8", a_in_tmem=True)


def all_block_scaled():
    small = lambda: rng.choice([-3, 0, 1, 5, 64])
    for x, y, ids in (("e4m3", "e4m3", (0, 0)), ("e5m2", "e2m1", (1, 2)), ("e3m2", "e2m3", (3, 0))):
        mma(f"mxf8_{x}_{y}", "mxf8f6f4", x, y, scale="ue8m0", block=32, ids=ids, old=small, n=16)
    mma("mxf8_1x", "mxf8f6f4", "e4m3", "e4m3", scale="ue8m0", block=32, vector=".scale_vec::1X", n=40,
        negate=(-1, 1))
    mma("mxf8_a_tmem", "mxf8f6f4", "e2m1", "e4m3", scale="ue8m0", block=32, vector=".block32", a_in_tmem=True)
    mma("mxf8_mn_major", "mxf8f6f4", "e4m3", "e4m3", scale="ue8m0", block=32, n=64, span_a=128, span_b=64,
        a_mn=True, b_mn=True)
    mma("mxf4", "mxf4", "e2m1", "e2m1", scale="ue8m0", block=32, ids=(2, 0), old=small)
    mma("mxf4_2x", "mxf4", "e2m1", "e2m1", scale="ue8m0", block=32, vector=".scale_vec::2X", ids=(0, 2), n=48)
    mma("nvf4_2x", "mxf4nvf4", "e2m1", "e2m1", scale="ue8m0", block=32, vector=".scale_vec::2X", n=16)
    mma("nvf4_block32", "mxf4nvf4", "e2m1", "e2m1", scale="ue8m0", block=32, vector=".block32", ids=(2, 2))
    mma("nvf4_4x", "mxf4nvf4", "e2m1", "e2m1", scale="ue4m3", block=16, vector=".scale_vec::4X", n=72, old=small)
    mma("nvf4_4x_ue8m0", "mxf4nvf4", "e2m1", "e2m1", scale="ue8m0", block=16, vector=".scale_vec::4X")
    mma("nvf4_block16", "mxf4nvf4", "e2m1", "e2m1", scale="ue4m3", block=16, vector=".block16", span_b=0)
    mma("nvf4_a_tmem", "mxf4nvf4", "e2m1", "e2m1", scale="ue4m3", block=16, vector=".block16", a_in_tmem=True)


def all_pairs():
    small = lambda: rng.choice([-3, 0, 1, 5, 64])
    file = "tcgen05_mma_pair"
    mma("pair_m256", "f16", "f16", "f16", m=256, n=16, pair=True, old=small, file=file)
    mma("pair_m128", "f16", "bf16", "bf16", m=128, n=32, pair=True, old=small, file=file)
    mma("pair_m256_a_tmem", "f16", "bf16", "bf16", m=256, n=16, pair=True, a_in_tmem=True, file=file)
    mma("pair_m128_a_tmem", "f8f6f4", "e4m3", "e5m2", m=128, n=32, pair=True, a_in_tmem=True, file=file)
    mma("pair_b_mn", "f16", "f16", "f16", m=256, n=128, pair=True, span_b=128, b_mn=True, file=file)
    mma("pair_tf32", "tf32", "tf32", "tf32", m=128, n=16, pair=True, file=file)
    mma("pair_i8", "i8", "s8", "s8", m=256, n=32, pair=True, file=file)
    masks = [rng.getrandbits(32) for _ in range(8)]
    mma("pair_lanes_disabled", "f16", "f16", "f16", m=256, n=16, pair=True, old=small, mask=masks, file=file)
    mma("pair_m128_lanes_disabled", "f16", "f16", "f16", m=128, n=16, pair=True, old=small, mask=masks, file=file)
    for m in (128, 256):
        mma(f"pair_mxf8_m{m}", "mxf8f6f4", "e4m3", "e4m3", m=m, n=64, pair=True, scale="ue8m0", block=32,
            ids=(1, 3), file=file)
        mma(f"pair_nvf4_m{m}", "mxf4nvf4", "e2m1", "e2m1", m=m, n=64, pair=True, scale="ue4m3", block=16,
            vector=".block16", old=small, file=file)


def all_exact():
    """Sums that the tensor cores round on the way, added exactly instead and rounded once."""
    more = dict(n=8, columns_out=2, random_values=True, machine="exact_mma", file="tcgen05_mma_exact")
    third = lambda: Fraction(rng.randrange(-4096, 4096), 512)
    mma("exact_bf16", "f16", "bf16", "bf16", old=third, **more)
    mma("exact_f16_scaled", "f16", "f16", "f16", old=third, input_shift=7, **more)
    mma("exact_tf32", "tf32", "tf32", "tf32", **more)
    mma("exact_e5m2_e3m2", "f8f6f4", "e5m2", "e3m2", old=third, **more)
    mma("exact_mxf8", "mxf8f6f4", "e4m3", "e2m3", scale="ue8m0", block=32, old=third, **more)
    mma("exact_nvf4", "mxf4nvf4", "e2m1", "e2m1", scale="ue4m3", block=16, vector=".block16", old=third, **more)


def all_ws():
    file = "tcgen05_mma_ws"
    for m in (32, 64, 128):
        mma(f"ws_f16_m{m}", "f16", "f16", "f16", m=m, n=64, ws=True, file=file)
    mma("ws_bf16_old", "f16", "bf16", "bf16", m=32, n=64, ws=True, old=lambda: rng.choice([-3, 0, 7]), file=file,
        modifiers=".collector::b1::fill")
    mma("ws_tf32", "tf32", "tf32", "tf32", m=64, n=64, ws=True, file=file)
    mma("ws_e4m3", "f8f6f4", "e4m3", "e2m1", m=64, n=64, ws=True, file=file)
    mma("ws_i8", "i8", "u8", "s8", m=32, n=64, ws=True, file=file)
    for m in (32, 64, 128):
        mma(f"ws_a_tmem_m{m}", "f16", "bf16", "bf16", m=m, n=64, ws=True, a_in_tmem=True, file=file)
    for m in (32, 64):
        mma(f"ws_several_a_m{m}", "f16", "bf16", "bf16", m=m, n=64, ws=True, a_in_tmem=True, two_matrices=True,
            file=file)


if __name__ == "__main__":
    all_dense()
    all_block_scaled()
    all_pairs()
    all_ws()
    all_exact()
    write_files("make_ptx_tcgen05_mma_tests.py")
