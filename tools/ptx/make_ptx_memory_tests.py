#!/usr/bin/env python3
"""Writes the files of tests/ptx for memory, warp-level and asynchronous instructions.

    python3 tools/ptx/make_ptx_memory_tests.py

The results are computed here, lane by lane, from the manual's definitions. The files run on a device as
well as in the simulator (tests/sim/insn/ptx_case.h says how data lies in memory).
"""

import pathlib
import random
import re

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "ptx"
LANES = range(32)
MASK64 = (1 << 64) - 1
random.seed(7)
files = {}

REGISTERS = """  .reg .pred %p<16>;
  .reg .b16 %h<16>;
  .reg .b32 %r<100>;
  .reg .f32 %f<16>;
  .reg .b64 %d<100>;
  .reg .b128 %q<4>;
"""
PREAMBLE = """  mov.u32 %r90, %tid.x;
  mul.wide.u32 %d90, %r90, 8;
  ld.param.u64 %d93, [in];
  ld.param.u64 %d94, [out];
  add.s64 %d91, %d93, %d90;
  add.s64 %d92, %d94, %d90;
  setp.eq.u32 %p15, %r90, 0;
"""


def case(name, body, inputs, outputs, file=None, target="sm_90a", cluster=1):
    """Adds a kernel. inputs and outputs: lists of 32 words, or functions of the lane."""
    spread = lambda lists: [[x(l) & MASK64 for l in LANES] if callable(x) else x for x in lists]
    kernel = re.sub(r"\W", "_", name)
    lines = [f"// test: {kernel}"]
    if cluster != 1: lines.append(f"// cluster: {cluster}")
    lines += ["// in: " + " ".join(hex(v) for v in x) for x in spread(inputs)]
    lines += ["// out: " + " ".join(hex(v) for v in x) for x in spread(outputs)]
    body = "\n".join("  " + line.strip() for line in body.strip().splitlines())
    head = f".visible .entry {kernel}(.param .u64 in, .param .u64 out)\n{{\n"
    lines.append(f"{head}{REGISTERS}{PREAMBLE}{body}\n  ret;\n}}\n")
    files.setdefault((file or name.split(".")[0], target), []).append("\n".join(lines))


def sign(x, bits):
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


WORDS = [random.getrandbits(64) for _ in LANES]
SMALL = [random.randrange(1 << 32) for _ in LANES]


def loads_and_stores():
    for t in ("u8", "s8", "b8", "u16", "s16", "b16", "u32", "s32", "b32", "f32", "u64", "s64", "b64", "f64"):
        n = int(t[1:])
        wide = n < 64 and t[0] in "us"
        reg = "%d0" if wide or n == 64 else ("%h0" if n < 16 or n == 16 else "%r0")
        if t == "f32": reg = "%f0"
        store = {"%d0": "b64", "%h0": "b16", "%r0": "b32", "%f0": "f32"}[reg]
        value = lambda l, n=n, t=t, wide=wide: (sign(WORDS[l],
            n) if t[0] == "s" and wide else WORDS[l] & ((1 << n) - 1))
        case(f"ld.global.{t}", f"ld.global.{t} {reg}, [%d91];\nst.global.{store} [%d92], {reg};", [WORDS],
             [lambda l, v=value: v(l)], "ld")
        case(f"st.shared.{t}", f""".shared .align 8 .b8 cell[256];
            mov.u32 %r1, cell; mad.lo.u32 %r1, %r90, 8, %r1; mov.b64 %d1, 0; st.shared.b64 [%r1], %d1;
            ld.global.b64 %d2, [%d91]; {"cvt.u16.u64 %h1, %d2;" if n == 8 else ""}
            {"mov.b64 {%r2, %r3}, %d2; mov.b32 %f1, %r2; st.shared.f32 [%r1], %f1;" if t == "f32" else
             f"st.shared.{t} [%r1], {'%h1' if n == 8 else '%d2'};" }
            ld.shared.b64 %d3, [%r1]; st.global.b64 [%d92], %d3;""", [WORDS],
             [lambda l, n=n: WORDS[l] & ((1 << n) - 1)], "st")
    case("ld.global.v4.u32", """mul.wide.u32 %d1, %r90, 16; add.s64 %d1, %d93, %d1;
        ld.global.v4.u32 {%r1, _, %r2, %r3}, [%d1]; mov.b64 %d2, {%r1, %r3}; st.global.b64 [%d92], %d2;
        cvt.u64.u32 %d3, %r2; st.global.b64 [%d92+256], %d3;""", [WORDS, WORDS],
         [lambda l: (WORDS[2 * l % 32] & 0xffffffff) | (WORDS[(2 * l + 1) % 32] >> 32 << 32),
          lambda l: WORDS[(2 * l + 1) % 32] & 0xffffffff], "ld")
    case("ld.volatile_and_orders", """ld.volatile.global.u32 %r1, [%d91]; ld.relaxed.gpu.global.u32 %r2, [%d91+4];
        ld.acquire.sys.global.u64 %d1, [%d91]; ld.global.nc.L1::no_allocate.L2::128B.v2.u32 {%r3, %r4}, [%d91];
        ldu.global.u32 %r5, [%d93]; add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; cvt.u64.u32 %d2, %r1;
        st.release.gpu.global.b64 [%d92], %d1; st.volatile.global.b64 [%d92+256], %d2;
        cvt.u64.u32 %d3, %r5; st.global.wt.b64 [%d92+512], %d3;""", [WORDS],
         [WORDS, lambda l: (2 * (WORDS[l] & 0xffffffff) + (WORDS[l] >> 32)) & 0xffffffff,
          lambda l: WORDS[0] & 0xffffffff], "ld")
    case("ld.shared.b128", """.shared .align 16 .b8 cell[512];
        mov.u32 %r1, cell; mad.lo.u32 %r1, %r90, 16, %r1; ld.global.b64 %d1, [%d91]; not.b64 %d2, %d1;
        st.shared.v2.b64 [%r1], {%d1, %d2}; ld.shared.b128 %q0, [%r1]; mov.b128 {%d3, %d4}, %q0;
        st.global.b64 [%d92], %d4; st.global.b64 [%d92+256], %d3;""", [WORDS],
         [lambda l: ~WORDS[l], WORDS], "ld")


def atomics():
    def both(op, t, fold, start):
        bits = int(re.search(r"\d+", t).group())
        mask = (1 << bits) - 1
        old, values = [], [w & mask for w in WORDS]
        cell = start
        for l in LANES:
            old.append(cell)
            cell = fold(cell, values[l]) & mask
        b = "%d" if bits == 64 else "%r"
        clear = f"mov.b{bits} {b}1, {start:#x}; @%p15 st.shared.b{bits} [cell], {b}1; bar.warp.sync -1; "
        # One lane after the other, so that the device has the same order.
        loop = lambda insn: f"""mov.u32 %r10, 0;
            {{
            LOOP: setp.eq.u32 %p1, %r10, %r90; {insn} bar.warp.sync -1; add.u32 %r10, %r10, 1;
            setp.lt.u32 %p2, %r10, 32; @%p2 bra LOOP;
            }}"""
        case(f"atom.shared.{op}.{t}", f""".shared .align 8 .b8 cell[8];
            {clear} ld.global.b{bits} {b}2, [%d91];
            {loop(f'@%p1 atom.shared.{op}.{t} {b}3, [cell], {b}2;')}
            st.global.b{bits} [%d92], {b}3; ld.shared.b{bits} {b}4, [cell]; st.global.b{bits} [%d92+256], {b}4;""",
             [WORDS], [old, lambda l, c=cell: c], "atom")
        if op != "exch":
            case(f"red.shared.{op}.{t}", f""".shared .align 8 .b8 cell[8];
                {clear} ld.global.b{bits} {b}2, [%d91];
                {loop(f'@%p1 red.shared.{op}.{t} [cell], {b}2;')}
                ld.shared.b{bits} {b}4, [cell]; st.global.b{bits} [%d92], {b}4;""", [WORDS],
                 [lambda l, c=cell: c], "red")
    for t in ("u32", "u64"):
        both("add", t, lambda x, y: x + y, 5)
        both("min", t, min, (1 << int(t[1:])) - 1)
        both("max", t, max, 0)
    for n in (32, 64):
        signed = lambda f, n=n: (lambda x, y: f(sign(x, n), sign(y, n)))
        both("min", f"s{n}", signed(min), (1 << (n - 1)) - 1)
        both("max", f"s{n}", signed(max), 1 << (n - 1))
        both("and", f"b{n}", lambda x, y: x & y, (1 << n) - 1)
        both("or", f"b{n}", lambda x, y: x | y, 0)
        both("xor", f"b{n}", lambda x, y: x ^ y, 3)
        both("exch", f"b{n}", lambda x, y: y, 9)
    both("inc", "u32", lambda x, y: 0 if x >= y else x + 1, 7)
    both("dec", "u32", lambda x, y: y if x == 0 or x > y else x - 1, 7)
    for n, b in ((16, "%h"), (32, "%r"), (64, "%d")):
        case(f"atom.global.cas.b{n}", f"""ld.global.b{n} {b}1, [%d91]; ld.global.b{n} {b}2, [%d91+256];
            ld.global.b{n} {b}3, [%d91+512]; st.global.b{n} [%d92], {b}1;
            atom.global.cas.b{n} {b}4, [%d92], {b}2, {b}3; st.global.b{n} [%d92+256], {b}4;""",
             [WORDS, lambda l: WORDS[l] if l % 2 else ~WORDS[l], lambda l: WORDS[31 - l]],
             [lambda l, n=n: WORDS[31 - l if l % 2 else l] & ((1 << n) - 1), lambda l,
                 n=n: WORDS[l] & ((1 << n) - 1)], "atom")
    case("red.global.add.vectors", """mov.f32 %f1, 0f3f800000; mov.f32 %f2, 0f40000000;
        mov.b32 %r1, 0x3c004000; mov.b32 %r2, 0x3f804000;
        red.global.add.v2.f32 [%d92], {%f1, %f2}; red.global.add.noftz.f16x2 [%d92+256], %r1;
        red.global.add.noftz.v2.bf16x2 [%d92+512], {%r2, %r2};""",
         [WORDS], [lambda l: 0x400000003f800000, lambda l: 0x3c004000, lambda l: 0x3f8040003f804000], "red")


def shuffles():
    def source(mode, lane, b, c):
        clamp, segment = c & 31, c >> 8 & 31
        first, b = lane & segment, b & 31
        last = first | (clamp & ~segment)
        j = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": first | (b & ~segment)}[mode]
        ok = j >= last if mode == "up" else j <= last
        return (j if ok else lane), ok
    amounts = [random.randrange(32) for _ in LANES]
    for mode in ("up", "down", "bfly", "idx"):
        for c in (0x1f, 0, 0x181f, 0x1c07, 0x1e01):
            case(f"shfl.sync.{mode}_{c:x}", f"""ld.global.u32 %r1, [%d91]; ld.global.u32 %r2, [%d91+256];
                shfl.sync.{mode}.b32 %r3|%p1, %r1, %r2, {c}, -1; selp.u32 %r4, 1, 0, %p1;
                mov.b64 %d1, {{%r3, %r4}}; st.global.b64 [%d92], %d1;""", [SMALL, amounts],
                 [lambda l, m=mode, c=c: SMALL[source(m, l, amounts[l], c)[0]] | source(m, l, amounts[l],
                     c)[1] << 32], "shfl")
    few = [random.randrange(4) for _ in LANES]
    ballot = sum(1 << l for l in LANES if few[l] == 1)
    case("vote.sync", """ld.global.u32 %r1, [%d91]; setp.eq.u32 %p1, %r1, 1; setp.lt.u32 %p2, %r1, 9;
        vote.sync.ballot.b32 %r2, %p1, -1; vote.sync.all.pred %p3, %p2, -1; vote.sync.any.pred %p4, %p1, -1;
        vote.sync.uni.pred %p5, %p1, -1; vote.sync.uni.pred %p6, !%p2, -1; vote.ballot.sync.b32 %r3, !%p1, -1;
        selp.u32 %r4, 1, 0, %p3; selp.u32 %r5, 2, 0, %p4; selp.u32 %r6, 4, 0, %p5; selp.u32 %r7, 8, 0, %p6;
        add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6; add.u32 %r4, %r4, %r7;
        mov.b64 %d1, {%r2, %r3}; st.global.b64 [%d92], %d1; st.global.u32 [%d92+256], %r4;""", [few],
         [lambda l: ballot | (~ballot & 0xffffffff) << 32, lambda l: 1 + 2 + 8], "vote")
    same = lambda l: sum(1 << j for j in LANES if few[j] == few[l])
    case("match.sync", """ld.global.u32 %r1, [%d91]; cvt.u64.u32 %d1, %r1; mov.b64 %d2, 77;
        match.any.sync.b32 %r2, %r1, -1; match.any.sync.b64 %r3, %d1, -1; match.all.sync.b32 %r4|%p1, %r1, -1;
        match.all.sync.b64 %r5|%p2, %d2, -1; selp.u32 %r6, 1, 0, %p1; selp.u32 %r7, 2, 0, %p2;
            add.u32 %r6, %r6, %r7;
        mov.b64 %d3, {%r2, %r3}; st.global.b64 [%d92], %d3; mov.b64 %d3, {%r4, %r5}; st.global.b64 [%d92+256], %d3;
        st.global.u32 [%d92+512], %r6;""", [few],
         [lambda l: same(l) | same(l) << 32, lambda l: 0xffffffff << 32, lambda l: 2], "match")
    for op, t, f in (("add", "u32", sum), ("min", "u32", min), ("max", "u32", max), ("add", "s32", sum),
                     ("min", "s32", lambda v: min(sign(x, 32) for x in v)), ("max", "s32",
                         lambda v: max(sign(x, 32) for x in v)),
                     ("and", "b32", lambda v: __import__("functools").reduce(lambda a, b: a & b, v)),
                     ("or", "b32", lambda v: __import__("functools").reduce(lambda a, b: a | b, v)),
                     ("xor", "b32", lambda v: __import__("functools").reduce(lambda a, b: a ^ b, v))):
        case(f"redux.sync.{op}.{t}", f"""ld.global.u32 %r1, [%d91]; redux.sync.{op}.{t} %r2, %r1, -1;
            st.global.u32 [%d92], %r2;""", [SMALL], [lambda l, f=f: f(SMALL) & 0xffffffff], "redux")
    case("elect.sync", """elect.sync %r1|%p1, -1; selp.u32 %r2, 1, 0, %p1; activemask.b32 %r3;
        mov.b64 %d1, {%r1, %r2}; st.global.b64 [%d92], %d1; st.global.u32 [%d92+256], %r3;""", [[0]],
         [lambda l: (1 << 32 if l == 0 else 0), lambda l: 0xffffffff], "elect")


def matrices():
    halves = [[random.getrandbits(16) for _ in range(8)] for _ in range(32)]  # 4 matrices of 8 rows
    rows = lambda l: [sum(h << 16 * i for i, h in enumerate(halves[l][4 * j:4 * j + 4])) for j in range(2)]
    ins = [lambda l: rows(l)[0], lambda l: rows(l)[1]]
    load = """.shared .align 16 .b8 tile[512]; mov.u32 %r1, tile; mad.lo.u32 %r1, %r90, 16, %r1;
        ld.global.b64 %d1, [%d91]; ld.global.b64 %d2, [%d91+256];"""
    plain = lambda m, l: halves[8 * m + l // 4][2 * (l % 4)] | halves[8 * m + l // 4][2 * (l % 4) + 1] << 16
    trans = lambda m, l: halves[8 * m + 2 * (l % 4)][l // 4] | halves[8 * m + 2 * (l % 4) + 1][l // 4] << 16
    for word, get in (("", plain), (".trans", trans)):
        case(f"ldmatrix.x4{word}", f"""{load} st.shared.v2.b64 [%r1], {{%d1, %d2}}; bar.warp.sync -1;
            ldmatrix.sync.aligned.m8n8.x4{word}.shared.b16 {{%r2, %r3, %r4, %r5}}, [%r1];
            mov.b64 %d3, {{%r2, %r3}}; st.global.b64 [%d92], %d3; mov.b64 %d3, {{%r4, %r5}};
                st.global.b64 [%d92+256], %d3;""",
             ins, [lambda l, g=get: g(0, l) | g(1, l) << 32, lambda l, g=get: g(2, l) | g(3, l) << 32], "ldmatrix")
        regs = [lambda l, g=get: g(0, l) | g(1, l) << 32, lambda l, g=get: g(2, l) | g(3, l) << 32]
        case(f"stmatrix.x4{word}", f"""{load} mov.b64 {{%r2, %r3}}, %d1; mov.b64 {{%r4, %r5}}, %d2;
            stmatrix.sync.aligned.m8n8.x4{word}.shared.b16 [%r1], {{%r2, %r3, %r4, %r5}}; bar.warp.sync -1;
            ld.shared.v2.b64 {{%d3, %d4}}, [%r1]; st.global.b64 [%d92], %d3; st.global.b64 [%d92+256], %d4;""",
             regs, ins, "stmatrix")
    case("movmatrix", """ld.global.u32 %r1, [%d91]; movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;
        st.global.u32 [%d92], %r2;""", [lambda l: plain(0, l)], [lambda l: trans(0, l)], "movmatrix")


def mma():
    def integer(k, signed_a, signed_b):
        a = [[random.getrandbits(8) for _ in range(k)] for _ in range(16)]
        b = [[random.getrandbits(8) for _ in range(k)] for _ in range(8)]
        word = lambda row, at: sum(row[at + e] << 8 * e for e in range(4))
        na, nb = k // 8, k // 16
        ra = lambda r: (lambda l: word(a[l // 4 + 8 * (r % 2)], 4 * (l % 4) + 16 * (r // 2)))
        rb = lambda r: (lambda l: word(b[l // 4], 4 * (l % 4) + 16 * r))
        val = lambda x, s: sign(x, 8) if s else x
        d = lambda i: (lambda l: sum(val(a[l // 4 + 8 * (i // 2)][x],
            signed_a) * val(b[2 * (l % 4) + i % 2][x], signed_b)
                                     for x in range(k)) + 3 & 0xffffffff)
        ta, tb = "s8" if signed_a else "u8", "s8" if signed_b else "u8"
        regs = lambda first, n: "{" + ", ".join(f"%r{first + i}" for i in range(n)) + "}"
        body = "".join(f"ld.global.u32 %r{10 + i}, [%d91+{256 * i}];\n" for i in range(na + nb))
        body += "mov.u32 %r9, 3;\n"
        body += f"mma.sync.aligned.m16n8k{k}.row.col.s32.{ta}.{tb}.s32 {regs(30, 4)}, {regs(10, na)}, "
        body += f"{regs(10 + na, nb)}, {{%r9, %r9, %r9, %r9}};\n"
        body += "".join(f"st.global.u32 [%d92+{256 * i}], %r{30 + i};\n" for i in range(4))
        case(f"mma.m16n8k{k}.{ta}.{tb}", body, [ra(r) for r in range(na)] + [rb(r) for r in range(nb)],
            [d(i) for i in range(4)], "mma")
    integer(32, True, False)
    integer(32, False, False)
    integer(16, True, True)


def asynchronous():
    setup = """.shared .align 16 .b8 buffer[1024]; .shared .align 8 .b64 bar;
        mov.u32 %r1, buffer; mov.u32 %r2, bar; mad.lo.u32 %r3, %r90, 8, %r1;
        ld.global.b64 %d1, [%d91];"""
    poll = """{
        WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0; @!%p1 bra WAIT;
        }"""
    case("cp.async", f"""{setup} cp.async.ca.shared.global [%r3], [%d91], 8; cp.async.commit_group;
        cp.async.ca.shared.global [%r3+256], [%d91], 8, 4; cp.async.commit_group; cp.async.wait_group 1;
        ld.shared.b64 %d2, [%r3]; cp.async.wait_all; ld.shared.b64 %d3, [%r3+256];
        st.global.b64 [%d92], %d2; st.global.b64 [%d92+256], %d3;""", [WORDS],
         [WORDS, lambda l: WORDS[l] & 0xffffffff], "cp.async")
    for noinc, count in ((".noinc", 32), ("", 32)):
        extra = "" if noinc else "mbarrier.arrive.shared::cta.b64 _, [%r2];"
        case(f"cp.async.mbarrier.arrive{noinc}",
            f"""{setup} @%p15 mbarrier.init.shared::cta.b64 [%r2], {count}; bar.warp.sync -1;
            cp.async.ca.shared.global [%r3], [%d91], 8; cp.async.mbarrier.arrive{noinc}.shared::cta.b64 [%r2];
                {extra}
            {poll} xor.b32 %r4, %r3, 8; ld.shared.b64 %d2, [%r4]; st.global.b64 [%d92], %d2;""", [WORDS],
             [lambda l: WORDS[l ^ 1]], "cp.async")
    case("cp.async.bulk", f"""{setup}
        @%p15 mbarrier.init.shared::cta.b64 [%r2], 1; fence.mbarrier_init.release.cluster; bar.warp.sync -1;
        @%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;
        @%p15 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d93], 256, [%r2];
        {poll} ld.shared.b64 %d2, [%r3]; not.b64 %d3, %d2; st.shared.b64 [%r3+256], %d3;
        fence.proxy.async.shared::cta; bar.warp.sync -1; add.u32 %r5, %r1, 256;
        cp.async.bulk.prefetch.L2.global [%d93], 256;
        @%p15 cp.async.bulk.global.shared::cta.bulk_group [%d94], [%r5], 256;
        add.s64 %d5, %d94, 256; @%p15 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [%d5], [%r1], 256;
        @%p15 cp.async.bulk.commit_group; @%p15 cp.async.bulk.wait_group.read 0;
            @%p15 cp.async.bulk.wait_group 0;""", [WORDS],
         [lambda l: ~WORDS[l], WORDS], "cp.async.bulk")
    case("st.async", f"""{setup} @%p15 mbarrier.init.shared::cta.b64 [%r2], 1; bar.warp.sync -1;
        @%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 384; bar.warp.sync -1;
        mov.b64 %d4, 0; st.shared.b64 [%r3+256], %d4; fence.proxy.async.shared::cta;
        bar.warp.sync -1; mov.u32 %r6, 1; add.u32 %r7, %r1, 256;
        st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r3], %d1, [%r2];
        red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r7], %r6, [%r2];
        {poll} ld.shared.b64 %d2, [%r3]; ld.shared.u32 %r8, [%r1+256]; mov.u32 %r9, %cluster_ctarank;
        setp.ne.u32 %p3, %r9, 0; @%p3 ret; st.global.b64 [%d92], %d2;
            st.global.u32 [%d92+256], %r8;""",
         [WORDS], [WORDS, lambda l: 32], "st.async", cluster=2)  # illegal on a device without clusters
    case("mbarrier", f"""{setup} @%p15 mbarrier.init.shared::cta.b64 [%r2], 34; bar.warp.sync -1;
        mbarrier.arrive.shared::cta.b64 %d2, [%r2]; bar.warp.sync -1;
            mbarrier.test_wait.shared::cta.b64 %p1, [%r2], %d2;
        selp.u32 %r4, 1, 0, %p1; @%p15 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], 64; bar.warp.sync -1;
        @%p15 mbarrier.arrive.noComplete.shared::cta.b64 %d3, [%r2], 1; bar.warp.sync -1;
        @%p15 mbarrier.pending_count.b64 %r5, %d3; @!%p15 mov.u32 %r5, 2;
        @%p15 mbarrier.arrive_drop.shared::cta.b64 %d4, [%r2]; bar.warp.sync -1;
        mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r2], 0; selp.u32 %r6, 2, 0, %p1;
        @%p15 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r2], 64;
        {poll} mbarrier.try_wait.shared::cta.b64 %p2, [%r2], %d2; selp.u32 %r7, 4, 0, %p2;
        add.u32 %r4, %r4, %r6; add.u32 %r4, %r4, %r7; bar.warp.sync -1; @%p15 mbarrier.inval.shared::cta.b64 [%r2];
        st.global.u32 [%d92], %r4;
            st.global.u32 [%d92+256], %r5;""", [WORDS], [lambda l: 4, lambda l: 2], "mbarrier")
    case("fences", f"""{setup} membar.cta; membar.gl; membar.sys; fence.sc.cta; fence.acq_rel.gpu;
        fence.acq_rel.cluster;
        fence.proxy.alias; fence.proxy.async; fence.proxy.async.global; fence.proxy.async.shared::cta;
        fence.mbarrier_init.release.cluster; fence.proxy.tensormap::generic.release.gpu;
            st.global.b64 [%d92], %d1;""",
         [WORDS], [WORDS], "fence")


def main():
    loads_and_stores()
    atomics()
    shuffles()
    matrices()
    mma()
    asynchronous()
    for (name, target), kernels in files.items():
        header = (f"// {name}: made by tools/ptx/make_ptx_memory_tests.py, which says how the results are found.\n"
                  f".version 8.3\n.target {target}\n.address_size 64\n\n")
        (OUT / f"{name}.ptx").write_text(header + "\n".join(kernels))


if __name__ == "__main__":
    main()
