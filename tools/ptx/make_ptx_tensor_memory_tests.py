#!/usr/bin/env python3
"""Writes the files of tests/ptx for Tensor Memory: allocation, ld and st, cp, shift, commit.

    python3 tools/ptx/make_ptx_tensor_memory_tests.py

Where a value lies is found here from the other side: for every lane and column of the manual's figures, which
thread and register hold it. No recordings of a device exist for these files.
"""

import struct

from ptx_test_bytes import case, write_files
from ptx_test_numbers import rng

TARGET = "sm_100a"


def random_words(count):
    return [rng.getrandbits(32) for _ in range(count)]


def packed(words):
    return struct.pack(f"<{len(words)}I", *words)


def registers(first, count):
    return "{" + ", ".join(f"%r{first + i}" for i in range(count)) + "}"


def alloc(columns, group=1, sync="bar.sync 0;"):
    """%r380: the address."""
    return f"""
    .shared .align 4 .b32 base_{{k}};
    setp.lt.u32 %p14, %r390, 32;
    @!%p14 bra HAS_BASE;
    mov.u32 %r381, base_{{k}};
    tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [%r381], {columns};
    tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned;
    HAS_BASE:
    {sync}
    ld.shared.b32 %r380, [base_{{k}}];"""


def dealloc(columns, group=1, sync="bar.sync 0;"):
    return f"""
    {sync}
    @!%p14 bra HAS_FREED;
    mov.u32 %r382, {columns};
    tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %r380, %r382;
    HAS_FREED:"""


def body(text, columns, name, **options):
    return (alloc(columns, **options) + text + dealloc(columns, **options)).replace("{k}", name)


# The figures: which (thread, register) holds a lane and column of one repetition, and how wide that is.

def holder(shape, lane, column):
    if shape == "32x32b":
        return lane, 0
    upper, row = divmod(lane, 8)
    if shape == "16x64b":  # two columns: threads of a row side by side, the rows from 8 on in the odd ones
        return 4 * row + 2 * column + upper, 0
    if shape == "16x128b":
        return 4 * row + column, upper
    if shape == "16x256b":
        return 4 * row + column // 2, 2 * upper + column % 2
    raise ValueError(shape)


WIDTH = {"32x32b": 1, "16x64b": 2, "16x128b": 4, "16x256b": 8, "16x32bx2": 1}
COUNT = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
LANES = {"32x32b": 32}


def held(shape, repetitions, split=0):
    """(thread, register) -> (lane, column)"""
    out = {}
    if shape == "16x32bx2":
        for lane in range(16):
            for column in range(repetitions):
                out[lane, column] = lane, column
                out[lane + 16, column] = lane, column + split
        return out
    for lane in range(LANES.get(shape, 16)):
        for repetition in range(repetitions):
            for column in range(WIDTH[shape]):
                thread, register = holder(shape, lane, column)
                out[thread, COUNT[shape] * repetition + register] = lane, WIDTH[shape] * repetition + column
    return out


def load_lanes(count, first, start=0):
    """Registers from `in`: word (start + i) * 32 + thread."""
    return "\n".join(f"mad.wide.u32 %d1, %r390, 4, %d93; ld.global.b32 %r{first + i}, [%d1+{(start + i) * 128}];"
                     for i in range(count))


def store_lanes(count, first):
    return "\n".join(f"mad.wide.u32 %d2, %r390, 4, %d94; st.global.b32 [%d2+{i * 128}], %r{first + i};"
                     for i in range(count))


def power(count):
    return 1 << (count - 1).bit_length()


def move(name, shape, repetitions, is_load, is_packed=False, split=0, lane_base=0):
    """32 lanes of the whole are written by .32x32b, then moved; a store is read back by .32x32b."""
    where = held(shape, repetitions, split if not is_packed else 0)
    columns = 1 + max(c for _, c in where.values())
    count = COUNT[shape] * repetitions
    if is_packed and shape == "16x32bx2":
        columns = 2 * repetitions + split
    elif is_packed:
        columns *= 2
    width = power(columns)
    cells = {(lane, c): rng.getrandbits(32) for lane in range(32) for c in range(width)}
    data = [cells[lane, c] for c in range(width) for lane in range(32)]

    def columns_of(thread, register):
        lane, c = where[thread, register]
        shift = split if is_packed and shape == "16x32bx2" and thread >= 16 else 0
        return lane + lane_base, [2 * c + shift, 2 * c + 1 + shift] if is_packed else [c]

    fill = load_lanes(width, 100) + f"""
    tcgen05.st.sync.aligned.32x32b.x{width}.b32 [%r380], {registers(100, width)};
    tcgen05.wait::st.sync.aligned;"""
    operand = f", {split}" if shape == "16x32bx2" else ""
    text = f"sync.aligned.{shape}.x{repetitions}"
    at = f"add.u32 %r379, %r380, {lane_base << 16};"
    if is_load:
        form = text + (".pack::16b" if is_packed else "")
        text = f"""{at} tcgen05.ld.{form}.b32 {registers(1, count)}, [%r379]{operand};
        tcgen05.wait::ld.sync.aligned;""" + store_lanes(count, 1)
        out = []
        for register in range(count):
            for thread in range(32):
                lane, at_columns = columns_of(thread, register)
                if is_packed:
                    low, high = (cells[lane, c] & 0xffff for c in at_columns)
                    out.append(low | high << 16)
                else:
                    out.append(cells[lane, at_columns[0]])
    else:
        stored = random_words(32 * count)
        text = load_lanes(count, 1, width) + f"""
        {at} tcgen05.st.{text}{'.unpack::16b' if is_packed else ''}.b32 [%r379]{operand}, {registers(1, count)};
        tcgen05.wait::st.sync.aligned;
        tcgen05.ld.sync.aligned.32x32b.x{width}.b32 {registers(200, width)}, [%r380];
        tcgen05.wait::ld.sync.aligned;""" + store_lanes(width, 200)
        data = data + stored
        for register in range(count):
            for thread in range(32):
                lane, at_columns = columns_of(thread, register)
                value = stored[32 * register + thread]
                for half, c in enumerate(at_columns):
                    cells[lane, c] = value >> 16 * half & 0xffff if is_packed else value
        out = [cells[lane, c] for c in range(width) for lane in range(32)]
    case("tcgen05_ld" if is_load else "tcgen05_st", name, body(fill + text, max(32, width), name), packed(data),
         packed(out), target=TARGET)


def moves():
    for is_load in (True, False):
        word = "ld" if is_load else "st"
        for shape in WIDTH:
            for repetitions in (1, 2, 4):
                split = 8 if shape == "16x32bx2" else 0
                move(f"{word}_{shape}_x{repetitions}", shape, repetitions, is_load, split=split)
            move(f"{word}_{shape}_x2_{'pack' if is_load else 'unpack'}", shape, 2, is_load, True,
                 split=4 if shape == "16x32bx2" else 0)
        move(f"{word}_16x64b_x2_upper", "16x64b", 2, is_load, lane_base=16)


# tcgen05.cp: the source is laid out here, row by row, and goes where the manual's table says.

def descriptor(start, leading, stride, swizzle=0):
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | swizzle << 61


def place(row, byte, row_bytes, swizzle):
    """Core matrices of 8 rows by 16 bytes, one after the other along the row; or rows of 32 bytes, swizzled."""
    if swizzle:
        at = row * 32 + byte
        return at ^ (at >> 7 & 1) << 4
    return row // 8 * (row_bytes // 16 * 128) + byte // 16 * 128 + row % 8 * 16 + byte % 16


SHAPES = {  # rows, bytes, lanes of a row
    "128x256b": (128, 32, lambda r: [r]),
    "4x256b": (4, 32, lambda r: [32 * r]),
    "128x128b": (128, 16, lambda r: [r]),
    "64x128b.warpx2::02_13": (64, 16, lambda r: [r, r + 64]),
    "64x128b.warpx2::01_23": (64, 16, lambda r: [r % 32 + 64 * (r // 32), r % 32 + 64 * (r // 32) + 32]),
    "32x128b.warpx4": (32, 16, lambda r: [r, r + 32, r + 64, r + 96]),
}


def expanded(chunk, form):
    """16 elements of 4 or 6 bits to a byte each."""
    if not form:
        return chunk
    bits = 4 if "b4" in form else 6
    number = int.from_bytes(chunk, "little")
    return bytes((number >> bits * i & (1 << bits) - 1) << (2 if bits == 4 else 1) for i in range(16))


WAIT = """{
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p13, [%r370], 0; @!%p13 bra WAIT;
    }
    tcgen05.fence::after_thread_sync;"""
FILL = """
    mov.u32 %r100, 0xabcd;
    shl.b32 %r101, %r390, 16; and.b32 %r101, %r101, 0x600000; add.u32 %r101, %r380, %r101;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r101], {%r100, %r100, %r100, %r100, %r100, %r100, %r100, %r100};
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;"""
BARRIER = """
    .shared .align 8 .b64 barrier_{k};
    mov.u32 %r370, barrier_{k};
    @%p15 mbarrier.init.shared::cta.b64 [%r370], 1;
    fence.mbarrier_init.release.cluster;"""
READ = f"""
    tcgen05.ld.sync.aligned.32x32b.x8.b32 {registers(110, 8)}, [%r101];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.fence::before_thread_sync;"""


def source(bytes_count, rank_bytes=0):
    """`in` to shared memory, 128 threads, words of 4 bytes. %r371: where."""
    text = f"""
    .shared .align 1024 .b8 source_{{k}}[{max(bytes_count, 1024)}];
    mov.u32 %r371, source_{{k}};
    mad.lo.u32 %r372, %r390, 4, %r371;
    mul.lo.u32 %r378, %r389, {rank_bytes}; cvt.u64.u32 %d10, %r378; add.s64 %d10, %d10, %d93;
    mad.wide.u32 %d1, %r390, 4, %d10;"""
    for at in range(0, bytes_count, 512):
        guard = ""
        if bytes_count - at < 512:
            text += f"\nsetp.lt.u32 %p12, %r390, {(bytes_count - at) // 4};"
            guard = "@%p12 "
        text += f"\n{guard}ld.global.b32 %r373, [%d1+{at}]; {guard}st.shared.b32 [%r372+{at}], %r373;"
    return text + "\nfence.proxy.async.shared::cta;"


def results(rank_bytes=0):
    """Thread t of 8 columns to word 8 t + column."""
    text = f"""
    mad.lo.u32 %r374, %r389, {rank_bytes}, 0; cvt.u64.u32 %d11, %r374; add.s64 %d11, %d11, %d94;
    mad.wide.u32 %d2, %r390, 32, %d11;"""
    return text + "\n".join(f"st.global.b32 [%d2+{4 * i}], %r{110 + i};" for i in range(8))


def copy(shape, form="", swizzle=0, pair=False):
    rows, row_bytes, lanes = SHAPES[shape]
    name = "cp_" + shape.replace(".", "_").replace("::", "_") + (f"_{form[-8:]}" if form else "")
    name += ("_swizzled" if swizzle else "") + ("_pair" if pair else "")
    size = -(-rows // 8) * 8 * row_bytes
    group = 2 if pair else 1
    sync = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" if pair else "bar.sync 0;"
    data, out = b"", b""
    for _ in range(group):
        image = bytearray(rng.getrandbits(8) for _ in range(size))
        cells = [bytearray(struct.pack("<I", 0xabcd) * 8) for _ in range(128)]
        for row in range(rows):
            for chunk in range(row_bytes // 16):
                raw = bytes(image[place(row, 16 * chunk + i, row_bytes, swizzle)] for i in range(16))
                for lane in lanes(row):
                    cells[lane][16 * chunk:16 * chunk + 16] = expanded(raw, form)
        data += bytes(image)
        out += b"".join(map(bytes, cells))
    stride = 256 if swizzle else row_bytes // 16 * 128
    spread = ".multicast::cluster" if pair else ""
    mask = ", %h1" if pair else ""
    fixed = descriptor(0, 128, stride, swizzle)
    text = BARRIER + FILL + source(size, size if pair else 0) + f"""
    {sync}
    tcgen05.fence::after_thread_sync;
    setp.eq.and.u32 %p11, %r389, 0, %p15;
    shr.u32 %r375, %r371, 4; and.b32 %r375, %r375, 0x3fff; cvt.u64.u32 %d20, %r375;
    or.b64 %d20, %d20, {fixed};
    mov.b16 %h1, 3;
    @%p11 tcgen05.cp.cta_group::{group}.{shape}{form} [%r380], %d20;
    @%p11 tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster{spread}.b64 [%r370]{mask};
    """ + WAIT + READ + results(4096 if pair else 0)
    text = "mov.u32 %r389, %cluster_ctarank;\n" + body(text, 32, name, group=group, sync=sync)
    case("tcgen05_cp", name, text.replace("{k}", name), data, out, threads=128, cluster=group, target=TARGET)


def copies():
    for shape in SHAPES:
        copy(shape)
    copy("128x256b", swizzle=6)
    copy("128x256b", pair=True)
    copy("32x128b.warpx4", pair=True)
    for form in (".b8x16.b4x16_p64", ".b8x16.b6x16_p32"):
        copy("128x128b", form)
    copy("64x128b.warpx2::02_13", ".b8x16.b6x16_p32")


def shift():
    """Every row gets the next one's 8 columns; the last of each 32 rows keeps its own."""
    data = random_words(1024)
    out = [data[8 * (lane + (lane % 32 != 31)) + c] for lane in range(128) for c in range(8)]
    load = "mad.wide.u32 %d1, %r390, 32, %d93;" + "".join(
        f"ld.global.b32 %r{120 + i}, [%d1+{4 * i}];" for i in range(8))
    text = BARRIER + FILL + load + f"""
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r101], {registers(120, 8)};
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    @%p15 tcgen05.shift.cta_group::1.down [%r380];
    cvt.u64.u32 %d3, %r370; cvta.shared.u64 %d3, %d3;
    @%p15 tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%d3];
    """ + WAIT + READ + results()
    text = "mov.u32 %r389, 0;\n" + body(text, 32, "shift")
    case("tcgen05_shift", "shift", text.replace("{k}", "shift"), packed(data), packed(out), threads=128,
         target=TARGET)


def allocations():
    """The addresses of three allocations, the second given back before the third; then a wait for columns."""
    text = """
    .shared .align 4 .b8 base[16];
    mov.u32 %r1, base; cvt.u64.u32 %d1, %r1; cvta.shared.u64 %d1, %d1;
    tcgen05.alloc.cta_group::1.sync.aligned.b32 [%d1], 128;
    mov.u32 %r2, 64;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1+4], %r2;
    bar.warp.sync -1;
    ld.shared.b32 %r3, [%r1]; ld.shared.b32 %r4, [%r1+4];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 128;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1+8], 64;
    bar.warp.sync -1;
    ld.shared.b32 %r5, [%r1+8];
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 64;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 64;
    st.global.v2.b32 [%d92], {%r4, %r5};"""
    case("tcgen05_alloc", "alloc_first_fit", text, b"", struct.pack("<II", 128, 0) * 32, target=TARGET)
    text = """
    .shared .align 4 .b8 base[16];
    mov.u32 %r1, base; shr.u32 %r2, %r390, 5; mad.lo.u32 %r1, %r2, 4, %r1;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 512;
    bar.warp.sync -1;
    ld.shared.b32 %r3, [%r1];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 512;
    add.u32 %r3, %r3, %r2;
    mad.wide.u32 %d1, %r390, 4, %d94; st.global.b32 [%d1], %r3;"""
    case("tcgen05_alloc", "alloc_waits_for_columns", text, b"", packed([0] * 32 + [1] * 32), threads=64,
         target=TARGET)
    text = body("""
    mov.u32 %r5, %cluster_ctarank; mad.lo.u32 %r6, %r5, 32, %r390; mad.wide.u32 %d1, %r6, 4, %d94;
    add.u32 %r7, %r380, %r5; st.global.b32 [%d1], %r7;""", 64, "alloc_pair", group=2)
    case("tcgen05_alloc", "alloc_pair", text, b"", packed([0] * 32 + [1] * 32), cluster=2, target=TARGET)


if __name__ == "__main__":
    moves()
    copies()
    shift()
    allocations()
    write_files("make_ptx_tensor_memory_tests.py")
