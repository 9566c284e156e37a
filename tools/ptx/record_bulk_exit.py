#!/usr/bin/env python3
"""Tries on a GPU whether a bulk store outlives its CTA.

    python3 tools/ptx/record_bulk_exit.py [--rounds 40]

Needs libcuda.so.1 and nothing else. Each CTA fills its shared memory with words of its own, stores them in bulk
and ends: without a commit, with one, waiting until the memory was read, waiting until it was written. The grid is
64 CTAs for every SM, so that other CTAs overwrite the same shared memory at once. Prints how many words arrived
wrong; the variant that waits is what the others are compared with. Exit status 1 if that one is wrong.
"""

import argparse
import ctypes
import sys

from run_ptx_on_gpu import Gpu

THREADS = 256
CASES = [(232192, 1), (232192, 16), (65536, 1), (65536, 64), (16384, 64), (4096, 16)]  # bytes, copies
WAITS = {"no commit": [], "commit": ["commit_group"], "wait_group.read": ["commit_group", "wait_group.read 0"],
         "wait_group": ["commit_group", "wait_group 0"]}


def for_own_words(label, body):
    """`body` for each word of the tile that belongs to the thread: %i its index, %b its byte."""
    return ["mov.u32 %i, %tid.x;", f"{label}:", "shl.b32 %b, %i, 2;", "add.u32 %v, %i, %base;", *body,
            f"add.u32 %i, %i, {THREADS};", "setp.lt.u32 %p, %i, %words;", f"@%p bra {label};"]


def head(name, parameters):
    lines = [f".visible .entry {name}({', '.join('.param ' + p for p in parameters)})", "{", ".reg .pred %p;",
             ".reg .b32 %i, %b, %v, %w, %c, %s, %base, %words, %bytes, %copies, %wrong;",
             ".reg .b64 %out, %at, %n;", "ld.param.u64 %out, [out];", "ld.param.u32 %words, [words];",
             "mov.u32 %c, %ctaid.x;", "shl.b32 %base, %c, 16;", "shl.b32 %bytes, %words, 2;",
             "mul.wide.u32 %at, %c, %bytes;", "add.u64 %out, %out, %at;"]
    return lines


def store_kernel(name, waits):
    lines = head(name, [".u64 out", ".u32 words", ".u32 copies"])
    lines += ["ld.param.u32 %copies, [copies];", "mov.u32 %s, tile;"]
    lines += for_own_words("fill", ["mov.u32 %w, tile;", "add.u32 %w, %w, %b;", "st.shared.u32 [%w], %v;"])
    lines += ["fence.proxy.async.shared::cta;", "bar.sync 0;", "mov.u32 %i, %tid.x;", "setp.ne.u32 %p, %i, 0;",
              "@%p ret;", "div.u32 %b, %bytes, %copies;", "more:",
              "cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], %b;", "add.u32 %s, %s, %b;",
              "cvt.u64.u32 %at, %b;", "add.u64 %out, %out, %at;", "sub.u32 %copies, %copies, 1;",
              "setp.ne.u32 %p, %copies, 0;", "@%p bra more;"]
    return "\n".join(lines + [f"cp.async.bulk.{wait};" for wait in waits] + ["ret;", "}"])


def check_kernel():
    lines = head("check", [".u64 out", ".u32 words", ".u64 count"]) + ["mov.u32 %wrong, 0;"]
    lines += for_own_words("next", ["cvt.u64.u32 %at, %b;", "add.u64 %at, %out, %at;", "ld.global.u32 %w, [%at];",
                                    "setp.ne.u32 %p, %w, %v;", "@%p add.u32 %wrong, %wrong, 1;"])
    return "\n".join(lines + ["ld.param.u64 %at, [count];", "cvt.u64.u32 %n, %wrong;",
                              "red.global.add.u64 [%at], %n;", "ret;", "}"])


def program():
    kernels = [store_kernel(f"store{i}", waits) for i, waits in enumerate(WAITS.values())]
    return "\n".join([".version 8.0", ".target sm_90a", ".address_size 64",
                      ".extern .shared .align 128 .b8 tile[];", *kernels, check_kernel()])


class Runner(Gpu):
    def __init__(self):
        super().__init__()
        module, sms = self.load(program()), ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(sms), 16, 0)
        self.ctas = 64 * sms.value
        self.functions = {name: ctypes.c_void_p() for name in [f"store{i}" for i in range(len(WAITS))] + ["check"]}
        for name, function in self.functions.items():
            self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
            self.call("cuFuncSetAttribute", function, 8, max(size for size, _ in CASES))
        self.out = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(self.out), ctypes.c_size_t(self.ctas * max(s for s, _ in CASES)))

    def enqueue(self, name, shared, *params):
        pointers = (ctypes.c_void_p * len(params))(*[ctypes.addressof(p) for p in params])
        self.call("cuLaunchKernel", self.functions[name], self.ctas, 1, 1, THREADS, 1, 1, shared, None, pointers,
                  None)

    def wrong_words(self, variant, size, copies, rounds):
        words, count = ctypes.c_uint32(size // 4), ctypes.c_uint64()
        self.call("cuMemsetD8_v2", self.buffers[0], ctypes.c_ubyte(0), ctypes.c_size_t(8))
        for _ in range(rounds):
            self.call("cuMemsetD8_v2", self.out, ctypes.c_ubyte(0x55), ctypes.c_size_t(self.ctas * size))
            self.enqueue(f"store{variant}", size, self.out, words, ctypes.c_uint32(copies))
            self.enqueue("check", 0, self.out, words, self.buffers[0])
        self.call("cuMemcpyDtoH_v2", ctypes.byref(count), self.buffers[0], ctypes.c_size_t(8))
        return count.value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40, help="launches of each variant and size (40)")
    args = parser.parse_args()
    runner, failed = Runner(), False
    print(f"{'bytes':>7} {'copies':>6}  {'variant':<16} {'words':>15} {'wrong':>12}")
    for size, copies in CASES:
        for variant, name in enumerate(WAITS):
            wrong = runner.wrong_words(variant, size, copies, args.rounds)
            failed |= name == "wait_group" and wrong != 0
            print(f"{size:>7} {copies:>6}  {name:<16} {args.rounds * runner.ctas * size // 4:>15} {wrong:>12}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
