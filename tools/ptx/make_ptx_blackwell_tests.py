#!/usr/bin/env python3
"""Writes the files of tests/ptx for what sm_100a adds to memory and launches.

    python3 tools/ptx/make_ptx_blackwell_tests.py

Results are found here, in loops over single elements and bits. No recordings of a device exist for these files.
"""

import struct

from make_ptx_tensor_tests import SETUP, WAIT, coordinates, dump, random_bytes
from ptx_test_bytes import case, write_files
from ptx_test_numbers import rng, swizzled

TARGET = "sm_100a"
SPECIAL = [0, 0x80000000, 1, 0x80000001, 0x7f800000, 0xff800000, 0x7fc00000, 0xffffffff, 0x3f800000, 0xbf800000]
SETUP_ALONE = SETUP.replace("mov.b64 %d80, map0; cvta.param.u64 %d80, %d80;", "")


def words(values, bits=64):
    return b"".join(struct.pack({64: "<Q", 32: "<I"}[bits], v & ((1 << bits) - 1)) for v in values)


def bits_at(data, at, count):
    """Little endian: bit i of memory is bit i % 8 of byte i / 8."""
    return int.from_bytes(data, "little") >> at & ((1 << count) - 1)


def cluster_launch_control():
    """Every cluster's work is done once, by whoever takes it over; a CTA goes on until there is none left."""
    def loop(first_item, response_rank, ctaid, try_cancel):
        return SETUP_ALONE.format(size=512) + f"""
        .shared .align 16 .b128 response; mov.u32 %r5, response; .reg .b128 %q<2>;
        {first_item}
        mov.u32 %r20, 0;
        AGAIN:
        {try_cancel}
        cvt.u64.u32 %d1, %r10; mul.lo.u64 %d2, %d1, 256; add.s64 %d3, %d92, %d2;
        mad.lo.u32 %r11, %r10, 100, %r390; cvt.u64.u32 %d4, %r11; st.global.u64 [%d3], %d4;
        {{
        WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p14, [%r2], %r20; @!%p14 bra WAIT;
        }}
        xor.b32 %r20, %r20, 1; ld.shared.b128 %q0, [%r5];
        {response_rank}
        clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q0;
        @!%p1 bra LAST;
        {ctaid}
        bra AGAIN;
        LAST:"""

    expect = "@%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;"
    one = f"""fence.proxy.async.shared::cta; bar.warp.sync -1; {expect}
    @%p15 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r5], [%r2];"""
    generic = f"""fence.proxy.async; bar.warp.sync -1; {expect} cvt.u64.u32 %d30, %r5; cvta.shared.u64 %d30, %d30;
    cvt.u64.u32 %d31, %r2; cvta.shared.u64 %d31, %d31;
    @%p15 clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [%d30], [%d31];"""
    name = "clusterlaunchcontrol.query_cancel.get_first_ctaid"
    x = f"{name}::x.b32.b128 %r10, %q0;"
    add = "add.u32 %r10, %r10, %r12; add.u32 %r10, %r10, %r13;"
    yz = f"{name}::y.b32.b128 %r12, %q0; {name}::z.b32.b128 %r13, %q0; {add}"
    v4 = f"{name}.v4.b32.b128 {{%r10, %r12, %r13, _}}, %q0; {add}"
    done = lambda n: words(100 * item + l for item in range(n) for l in range(32))
    item = "mov.u32 %r10, %ctaid.x;"
    case("clusterlaunchcontrol", "take_over", loop(item, "", x + yz, one), b"", done(7), grid=7, target=TARGET)
    case("clusterlaunchcontrol", "take_over_generic", loop(item, "", v4, generic), b"", done(7), grid=7,
         target=TARGET)
    case("clusterlaunchcontrol", "one_cluster", loop(item, "", v4, one), b"", done(1), grid=1, target=TARGET)
    # The two CTAs of a cluster get the same response, and do what the CTA of their rank would have done.
    # Both have to be done with the last one before the next is asked for.
    meet = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
    bytes_ = ".mbarrier::complete_tx::bytes"
    both = f"""fence.proxy.async.shared::cta; bar.warp.sync -1; {expect} {meet}
    mov.u32 %r14, %cluster_ctarank; setp.eq.u32 %p2, %r14, 0; and.pred %p2, %p2, %p15;
    @%p2 clusterlaunchcontrol.try_cancel.async.shared::cta{bytes_}.multicast::cluster::all.b128 [%r5], [%r2];"""
    case("clusterlaunchcontrol", "take_over_pairs",
         loop(item, "", v4 + " mov.u32 %r14, %cluster_ctarank; add.u32 %r10, %r10, %r14;", both) + f" {meet}", b"",
         done(10), grid=10, cluster=2, target=TARGET)
    count = "red.global.add.u64 [%d3+2048], 1;"
    body = loop(item, count, x, one)
    case("clusterlaunchcontrol", "take_over_counted", body, b"", done(8) + words([1] * 256), grid=8, target=TARGET)


def expanded(row, bits):
    """16 elements of a row of 16 bytes, each as a byte."""
    return [bits_at(row, bits * i, bits) for i in range(16)]


def matrices():
    load = """.shared .align 16 .b8 tile[512]; mov.u32 %r30, tile; mad.lo.u32 %r31, %r390, 16, %r30;
    mul.wide.u32 %d1, %r390, 16; add.s64 %d1, %d93, %d1; ld.global.v2.b64 {%d2, %d3}, [%d1];
    st.shared.v2.b64 [%r31], {%d2, %d3}; bar.warp.sync -1;"""
    store = lambda n: " ".join(f"st.global.b32 [%d5+{128 * i}], %r{i + 1};" for i in range(n))
    out = "mul.wide.u32 %d4, %r390, 4; add.s64 %d5, %d94, %d4;"
    memory = random_bytes(512)
    rows = [memory[16 * i:16 * i + 16] for i in range(32)]
    for suffix, bits in (("b8x16.b4x16_p64", 4), ("b8x16.b6x16_p32", 6), ("b8", 8)):
        name = suffix.split(".")[-1]
        for count in (1, 2, 4):
            if bits == 8: break
            registers = ", ".join(f"%r{i + 1}" for i in range(count))
            data = [bytes(expanded(rows[8 * j + l // 4], bits)[4 * (l % 4):4 * (l % 4) + 4])
                    for j in range(count) for l in range(32)]
            case("ldmatrix_bytes", f"m8n16_x{count}_{name}", f"""{load} {out}
            ldmatrix.sync.aligned.m8n16.x{count}.shared.{suffix} {{{registers}}}, [%r31];
            {store(count)}""", memory, b"".join(data), target=TARGET)
        for count in (1, 2):
            registers = ", ".join(f"%r{i + 1}" for i in range(2 * count))
            wide = [expanded(row, bits) for row in rows]
            data = [bytes(wide[16 * j + 4 * (l % 4) + e][l // 4 + 8 * h] for e in range(4))
                    for j in range(count) for h in range(2) for l in range(32)]
            case("ldmatrix_bytes", f"m16n16_x{count}_{name}", f"""{load} {out}
            ldmatrix.sync.aligned.m16n16.x{count}.trans.shared::cta.{suffix} {{{registers}}}, [%r31];
            {store(2 * count)}""", memory, b"".join(data), target=TARGET)
    for count in (1, 2, 4):
        registers = random_bytes(128 * count)
        tile = bytearray(512)
        for j in range(count):
            for l in range(32):
                for e in range(4):
                    row, column = 8 * j + 2 * (l % 4) + e % 2, l // 4 + 8 * (e // 2)
                    tile[16 * row + column] = registers[128 * j + 4 * l + e]
        read = " ".join(f"ld.global.b32 %r{i + 1}, [%d4+{128 * i}];" for i in range(count))
        names = ", ".join(f"%r{i + 1}" for i in range(count))
        case("stmatrix_bytes", f"m16n8_x{count}", f""".shared .align 16 .b8 tile[512]; mov.u32 %r30, tile;
        mad.lo.u32 %r31, %r390, 16, %r30; st.shared.v2.b64 [%r31], {{0, 0}}; bar.warp.sync -1;
        mul.wide.u32 %d4, %r390, 4; add.s64 %d4, %d93, %d4; {read}
        stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8 [%r31], {{{names}}}; bar.warp.sync -1;
        ld.shared.v2.b64 {{%d2, %d3}}, [%r31]; mul.wide.u32 %d1, %r390, 16; add.s64 %d1, %d94, %d1;
        st.global.v2.b64 [%d1], {{%d2, %d3}};""", registers, bytes(tile), target=TARGET)


def wide_accesses():
    """32 bytes of a lane."""
    memory = random_bytes(1024)
    place = "mul.wide.u32 %d1, %r390, 32; add.s64 %d2, %d93, %d1; add.s64 %d3, %d94, %d1;"
    eight = "{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}"
    for name, load, store in (
            ("b32", f"ld.global.v8.b32 {eight}, [%d2];", f"st.global.v8.b32 [%d3], {eight};"),
            ("f32", f"ld.global.nc.L1::no_allocate.L2::256B.v8.f32 {eight}, [%d2];",
             f"st.global.L1::no_allocate.v8.f32 [%d3], {eight};"),
            ("generic", f"ld.v8.u32 {eight}, [%d2];", f"st.v8.s32 [%d3], {eight};"),
            ("hint", "createpolicy.fractional.L2::evict_last.b64 %d9; "
             f"ld.global.L2::cache_hint.v8.b32 {eight}, [%d2], %d9;",
             f"st.global.L2::cache_hint.v8.b32 [%d3], {eight}, %d9;"),
            ("evict", f"ld.global.L1::evict_last.L2::evict_last.v8.b32 {eight}, [%d2];",
             f"st.global.L2::evict_first.v8.b32 [%d3], {eight};"),
            ("b64", "ld.global.v4.b64 {%d4, %d5, %d6, %d7}, [%d2];",
             "st.global.v4.b64 [%d3], {%d4, %d5, %d6, %d7};"),
            ("relaxed", f"ld.relaxed.gpu.global.v8.b32 {eight}, [%d2];",
             f"st.relaxed.gpu.global.v8.b32 [%d3], {eight};")):
        case("ld_256", f"copy_{name}", f"{place} {load} {store}", memory, memory, target=TARGET)
    swapped = b"".join(memory[32 * l:32 * l + 4] + memory[32 * l + 28:32 * l + 32] for l in range(32))
    case("ld_256", "with_sinks", f"""{place} ld.global.v8.b32 {{%r1, _, _, _, _, _, _, %r8}}, [%d2];
    st.global.v2.b32 [%d92], {{%r1, %r8}};""", memory, swapped, target=TARGET)
    case("st_async_global", "st_async_global", """ld.global.b64 %d1, [%d91]; st.async.weak.global.b64 [%d92], %d1;
    ld.global.b64 %d2, [%d91+256]; st.async.release.gpu.global.b64 [%d92+256], %d2;
    mul.wide.u32 %d3, %r390, 4; add.s64 %d3, %d94, %d3; mov.u32 %r1, 7;
    st.global.u32 [%d3+512], %r390; red.async.release.gpu.global.add.u32 [%d3+512], %r1;""", memory[:512],
         memory[:512] + words((l + 7 for l in range(32)), 32), target=TARGET)


def float_code(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def float_reductions():
    values = [1.5, -3.25, 0.0, -0.0, 7.0, -7.5, 2.0, 1e-40] * 4
    codes = [float_code(v) for v in values]
    nan, canonical = 0x7fc01234, 0x7fffffff
    key = lambda c: (struct.unpack("<f", struct.pack("<I", c))[0], 0 if c >> 31 else 1)
    for with_nan in (False, True):
        data = list(codes)
        if with_nan: data[5] = nan
        numbers = [c for c in data if c != nan]
        for op, pick in (("min", min), ("max", max)):
            for is_abs in (False, True):
                for keeps in (False, True):
                    mine = [c & 0x7fffffff for c in numbers] if is_abs else numbers
                    result = canonical if keeps and with_nan else pick(mine, key=key)
                    word = f"{op}{'.abs' if is_abs else ''}{'.NaN' if keeps else ''}"
                    name = "redux_" + word.replace(".", "_") + ("_of_nan" if with_nan else "")
                    case("redux_f32", name, f"""mul.wide.u32 %d1, %r390, 4; add.s64 %d2, %d93, %d1;
                    add.s64 %d3, %d94, %d1; ld.global.f32 %f1, [%d2];
                    redux.sync.{word}.f32 %f2, %f1, -1; st.global.f32 [%d3], %f2;""",
                         words(data, 32), words([result] * 32, 32), target=TARGET)


def of_magnitudes():
    """min and max of three with .abs."""
    codes = [[rng.choice(SPECIAL + [rng.getrandbits(32)]) for _ in range(32)] for _ in range(3)]
    value = lambda c: struct.unpack("<f", struct.pack("<I", c))[0]
    for op, pick in (("min", min), ("max", max)):
        for nan in ("", ".NaN"):
            for ftz in ("", ".ftz"):
                results = []
                for row in zip(*codes):
                    mine = [c & 0x7fffffff for c in row]
                    if ftz: mine = [0 if c < 0x00800000 else c for c in mine]
                    numbers = [c for c in mine if c <= 0x7f800000]
                    is_nan = not numbers or (nan and len(numbers) < 3)
                    results.append(0x7fffffff if is_nan else pick(numbers, key=value))
                reads = " ".join(f"ld.global.f32 %f{i + 1}, [%d2+{128 * i}];" for i in range(3))
                case("min_max_abs", f"{op}{ftz}{nan}_abs", f"""mul.wide.u32 %d1, %r390, 4; add.s64 %d2, %d93, %d1;
                add.s64 %d3, %d94, %d1; {reads} {op}{ftz}{nan}.abs.f32 %f0, %f1, %f2, %f3;
                st.global.f32 [%d3], %f0;""",
                     words(codes[0] + codes[1] + codes[2], 32), words(results, 32), target=TARGET)


def gathered_rows():
    """Four rows of a matrix at a time, at any places; one of them outside of it."""
    pitch, height, columns = 64, 12, 16
    memory = random_bytes(pitch * height)
    text = lambda where: f"element=u16 at={where}+0 dims=32,{height} strides={pitch} box={columns},1"
    rows, column = [7, 2, 12, 5], 8
    piece = lambda r: memory[pitch * r + 2 * column:][:2 * columns] if r < height else bytes(2 * columns)
    linear = b"".join(piece(r) for r in rows)
    for space in ("shared::cluster", "shared::cta"):
        case("tensor_gather", f"gather4_{space}", SETUP.format(size=256) + f"""
        st.shared.b64 [%r3], 0; fence.proxy.async.shared::cta; bar.warp.sync -1;
        @%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {len(linear)};
        @%p15 cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%d80, {coordinates([column, *rows])}];
        @%p15 cp.async.bulk.tensor.2d.{space}.global.tile::gather4.mbarrier::complete_tx::bytes
            [%r1], [%d80, {coordinates([column, *rows])}], [%r2];
        {WAIT} """ + dump(256), memory, linear + bytes(128), maps=[text("in")], target=TARGET)
    tile = random_bytes(128)
    before = bytes(pitch * height)
    after = bytearray(before)
    for i, r in enumerate(rows):
        at = pitch * r + 2 * column
        if r < height: after[at:at + 2 * columns] = tile[32 * i:32 * i + 32]
    case("tensor_gather", "scatter4", SETUP.format(size=256) + f"""
    setp.lt.u32 %p1, %r390, 16; @%p1 ld.global.b64 %d1, [%d91]; @%p1 st.shared.b64 [%r3], %d1;
    fence.proxy.async.shared::cta; bar.warp.sync -1;
    @%p15 cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group
        [%d80, {coordinates([column, *rows])}], [%r1];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;""", tile + bytes(128), bytes(after),
         maps=[text("out")], target=TARGET)


def pairs():
    """Copies into both CTAs of a pair report to the mbarrier of the even one, whose address has bit 24 cleared."""
    memory, bytes_ = random_bytes(512), ".mbarrier::complete_tx::bytes"
    text = "element=u16 at=in+0 dims=16,16 strides=32 box=16,4"
    meet = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
    start = SETUP.format(size=256) + f"""
    mov.u32 %r10, %cluster_ctarank; mul.lo.u32 %r11, %r10, 4; and.b32 %r12, %r2, 0xfeffffff;
    setp.eq.u32 %p1, %r10, 0; and.pred %p2, %p1, %p15;
    st.shared.b64 [%r3], 0; fence.proxy.async.shared::cta; bar.warp.sync -1;"""
    end = f"""@!%p1 bra MEET;
    {WAIT}
    MEET: {meet}
    mul.wide.u32 %d10, %r10, 256; add.s64 %d92, %d92, %d10; ld.shared.b64 %d1, [%r3]; st.global.b64 [%d92], %d1;"""
    # Each loads its own half.
    case("tensor_pair", "pair_own_halves", start + f"""
    @%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256; {meet}
    @%p15 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2
        [%r1], [%d80, {{0, %r11}}], [%r12];
    {end}""", memory, memory[:128] + bytes(128) + memory[128:256] + bytes(128), cluster=2, maps=[text],
         target=TARGET)
    # The even one loads for both, the odd one for both at another place: four times 128 bytes.
    case("tensor_pair", "pair_multicast", start + f"""
    @%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512; {meet} mov.u16 %h1, 3;
    mad.lo.u32 %r13, %r10, 128, %r1;
    @%p15 cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global{bytes_}.multicast::cluster
        [%r13], [%d80, {{0, %r11}}], [%r12], %h1;
    {end}""", memory, memory[:256] * 2, cluster=2, maps=[text], target=TARGET)
    # Two pairs: what rank 1 sends to all of the cluster is counted in ranks 0 and 2.
    meet_4 = f"""@%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256; {meet} mov.u16 %h1, 15;
    setp.eq.u32 %p3, %r10, 1; and.pred %p3, %p3, %p15; and.b32 %r14, %r10, 1; setp.eq.u32 %p1, %r14, 0;"""
    case("tensor_pair", "two_pairs_multicast", start + f"""{meet_4}
    @%p3 cp.async.bulk.tensor.2d.shared::cluster.global{bytes_}.multicast::cluster.cta_group::2
        [%r1], [%d80, {{0, 4}}], [%r12], %h1;
    {end}""", memory, (memory[128:256] + bytes(128)) * 4, cluster=4, maps=[text], target=TARGET)


def packed_tensors():
    """16 elements of 4 or 6 bits in 8, 12 and 16 bytes; bytes in the gaps stay what they were."""
    for element, bits, group, swizzle in (("u4x16_8", 4, 8, "none"), ("u4x16_16", 4, 16, "none"),
                                          ("u4x16_16", 4, 16, "128B"), ("u6x16_16", 6, 16, "none"),
                                          ("u6x16_16", 6, 16, "128B")):
        row_bytes, height, box = 128 * bits // 8, 12, 8
        memory = random_bytes(row_bytes * height)
        text = f"element={element} at=in+0 dims=128,{height} strides={row_bytes} box=128,{box} swizzle={swizzle}"
        y, packed = 6, 16 * bits // 8
        image = bytearray(8 * group * box)
        for r in range(box):
            for g in range(8):
                at = 8 * group * r + group * g
                place = swizzled(at, 128 if swizzle == "128B" else 0)
                from_ = memory[row_bytes * (y + r) + packed * g:][:packed] if y + r < height else bytes(packed)
                image[place:place + packed] = from_
        size = -(-len(image) // 256) * 256
        zeros = "".join(f"st.shared.b64 [%r3+{i}], 0; " for i in range(0, size, 256))
        case("tensor_packed", f"{element}_{swizzle}", SETUP.format(size=size) + f"""
        {zeros} fence.proxy.async.shared::cta; bar.warp.sync -1;
        @%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {row_bytes * box};
        @%p15 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
            [%r1], [%d80, {coordinates([0, y])}], [%r2];
        {WAIT} """ + dump(size), memory, bytes(image), maps=[text], target=TARGET)


def main():
    cluster_launch_control()
    matrices()
    wide_accesses()
    float_reductions()
    of_magnitudes()
    gathered_rows()
    pairs()
    packed_tensors()
    write_files("make_ptx_blackwell_tests.py")


if __name__ == "__main__":
    main()
