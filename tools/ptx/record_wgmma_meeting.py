#!/usr/bin/env python3
"""Measures on a GPU when the four warps of a warpgroup wait for each other at wgmma.

    python3 tools/ptx/record_wgmma_meeting.py

Needs libcuda.so.1 and nothing else. A of 64 x 64 is all ones and B of 64 x 64 all NaN; each warp writes 2 into its
quarter of B, then come four wgmmas, so that 128 is right everywhere. One warp is late at a chosen place. Prints
the number of wrong results and, per place, the cycles after which each warp was where, seen from the barrier
before: the lowest over all CTAs, of the late warp and of the others.
"""

import ctypes

from run_ptx_on_gpu import Gpu

CTAS = 264
PLACES = ["quarter written", "after wgmma.fence", "after the first wgmma", "after the last wgmma", "after commit",
          "after wait_group"]


def fill_quarter(first_step):
    """The warp's 16 columns of two k-steps: words of 2.0 in bf16."""
    lines = []
    for step in (first_step, first_step + 1):
        for word in range(0, 512, 128):
            lines.append(f"st.shared.b32 [%q+{8192 + 2048 * step + word}], %two;")
    return lines + ["fence.proxy.async.shared::cta;"]


def late(place):
    """The late warp spins for param delay cycles, if this is its place."""
    return [f"setp.ne.u32 %p, %place, {place};", f"@%p bra on{place};", "mov.u32 %s, %clock;", f"spin{place}:",
            "mov.u32 %e, %clock;", "sub.u32 %e, %e, %s;", "setp.lt.u32 %p, %e, %delay;", f"@%p bra spin{place};",
            f"on{place}:"]


def stamp(i):
    return [f"mov.u32 %e, %clock;", f"sub.u32 %t{i}, %e, %begin;"]


def unless(flag, comparison, label):
    return [f"and.b32 %s, %flags, {flag};", f"setp.{comparison}.u32 %p, %s, 0;", f"@%p bra {label};"]


def product(step, a):
    d = "{" + ", ".join(f"%d{i}" for i in range(32)) + "}"
    immediates = "1, 1, 0, 0" if a == "%ad" else "1, 1, 0"
    return [f"add.u64 %ad, %a, {128 * step};", f"add.u64 %bd, %a, {512 + 128 * step};",
            f"wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {d}, {a}, %bd, 1, {immediates};"]


def kernel(name, a):
    lines = [".reg .pred %p;", ".reg .b32 %r, %x, %s, %e, %q, %one, %two;",
             ".reg .b32 %place, %delay, %late, %flags, %begin, %wrong;",
             ".reg .b32 %t<8>;", ".reg .b64 %a, %ad, %bd, %o, %w;", ".reg .f32 %d<32>;",
             ".shared .align 1024 .b8 tiles[16384];", "ld.param.u64 %o, [out];", "ld.param.u32 %place, [place];",
             "ld.param.u32 %late, [late];", "ld.param.u32 %delay, [delay];", "ld.param.u32 %flags, [flags];",
             "mov.u32 %r, %tid.x;", "shr.u32 %x, %r, 5;", "setp.eq.u32 %p, %x, %late;",
             "selp.u32 %place, %place, 99, %p;", "mov.u32 %two, 0x40004000;", "mov.u32 %one, 0x3f803f80;",
             "mov.u32 %q, tiles;",
             "shl.b32 %s, %r, 2;", "add.u32 %q, %q, %s;"]
    for at in range(0, 16384, 512):
        lines.append(f"st.shared.b32 [%q+{at}], {'0x3f803f80' if at < 8192 else '0xffffffff'};")
    # quarter of the warp: 512 bytes of each k-step
    lines += ["fence.proxy.async.shared::cta;", "bar.sync 0;", "mov.u32 %q, tiles;", "shl.b32 %s, %x, 9;",
              "add.u32 %q, %q, %s;", "and.b32 %s, %r, 31;", "shl.b32 %s, %s, 2;", "add.u32 %q, %q, %s;",
              "mov.u32 %s, tiles;", "shr.u32 %s, %s, 4;", "cvt.u64.u32 %a, %s;", "or.b64 %a, %a, 0x1000080000;"]
    lines += [f"mov.f32 %d{i}, 0f00000000;" for i in range(32)]
    lines += ["bar.sync 0;", "mov.u32 %begin, %clock;", *late(0), *fill_quarter(0)]
    lines += [*unless(1, "ne", "second_later"), *fill_quarter(2), "second_later:",
              *unless(2, "eq", "no_barrier"), "bar.sync 0;", "no_barrier:", *stamp(0), *late(1),
              "wgmma.fence.sync.aligned;", *stamp(1), *product(0, a), *stamp(2)]
    lines += [*product(1, a), *late(2), *unless(1, "eq", "second_there"),
              *fill_quarter(2), "second_there:", *product(2, a), *product(3, a), *stamp(3), *late(3),
              "wgmma.commit_group.sync.aligned;", *stamp(4), *late(4), "wgmma.wait_group.sync.aligned 0;",
              *stamp(5)]
    # flag 4: who is not late spoils B at once
    lines += [*unless(4, "eq", "kept"), "setp.eq.u32 %p, %x, %late;", "@%p bra kept;", "mov.u32 %s, tiles;",
              "and.b32 %e, %r, 31;", "shl.b32 %e, %e, 2;", "add.u32 %s, %s, %e;"]
    lines += [f"st.shared.b32 [%s+{at}], 0xffffffff;" for at in range(8192, 16384, 128)]
    lines += ["kept:", "mov.u32 %wrong, 0;"]
    for i in range(32):
        lines += [f"setp.neu.f32 %p, %d{i}, 0f43000000;", "selp.u32 %s, 1, 0, %p;", "add.u32 %wrong, %wrong, %s;"]
    lines += ["mov.u32 %s, %ctaid.x;", "mad.lo.u32 %s, %s, 128, %r;", "mad.wide.u32 %o, %s, 32, %o;",
              "st.global.b32 [%o], %wrong;"]
    lines += [f"st.global.b32 [%o+{4 + 4 * i}], %t{i};" for i in range(6)]
    params = ".param .u64 out, .param .u32 place, .param .u32 late, .param .u32 delay, .param .u32 flags"
    return f".visible .entry {name}({params}) {{\n  " + "\n  ".join(lines + ["ret;"]) + "\n}\n"


def module():
    return (".version 8.7\n.target sm_90a\n.address_size 64\n\n" + kernel("from_shared", "%ad")
            + kernel("from_registers", "{%one, %one, %one, %one}"))


def run(gpu, function, place, late_warp, delay, flags):
    words = CTAS * 128 * 8
    result = (ctypes.c_uint32 * words)()
    out = ctypes.c_uint64()
    gpu.call("cuMemAlloc_v2", ctypes.byref(out), ctypes.c_size_t(4 * words))
    values = [out] + [ctypes.c_uint32(v) for v in (place, late_warp, delay, flags)]
    params = (ctypes.c_void_p * 5)(*[ctypes.addressof(v) for v in values])
    gpu.call("cuLaunchKernel", function, CTAS, 1, 1, 128, 1, 1, 0, None, params, None)
    gpu.call("cuMemcpyDtoH_v2", result, out, ctypes.c_size_t(4 * words))
    gpu.call("cuMemFree_v2", out)
    words = list(result)
    rows = {warp: [words[at:at + 8] for at in range(256 * warp, CTAS * 1024, 1024)] for warp in range(4)}
    stamps = {who: [min(row[1 + i] for warp in warps for row in rows[warp]) for i in range(6)]
              for who, warps in (("late", [late_warp]), ("others", [w for w in range(4) if w != late_warp]))}
    return sum(words[0::8]), stamps


def measure(gpu, module, name):
    function = ctypes.c_void_p()
    gpu.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
    num_wrong, num_cases = {}, 0
    for flags, what in ((0, "quarters, then wgmma"), (2, "with a barrier"),
                        (1, "half of the quarters between two wgmmas"), (4, "B overwritten after one warp's wait"),
                        (6, "the same with a barrier before")):
        for place in range(5):
            for late_warp in range(4):
                for delay in (0, 300, 3000, 30000, 300000):
                    wrong, stamps = run(gpu, function, place, late_warp, delay, flags)
                    num_wrong[what] = num_wrong.get(what, 0) + wrong
                    num_cases += 1
                    if late_warp in (0, 3) and delay in (0, 30000) or wrong:
                        print(f"{name} {what:42} late at {place} warp {late_warp} by {delay:6}: {wrong:8} wrong, "
                              f"late {stamps['late']} others {stamps['others']}", flush=True)
    print(name, num_cases, "cases, wrong results:", num_wrong)


def main():
    gpu = Gpu()
    module_ = gpu.load(module())
    print("cycles:", "; ".join(PLACES))
    measure(gpu, module_, "from_shared")
    measure(gpu, module_, "from_registers")


if __name__ == "__main__":
    main()
