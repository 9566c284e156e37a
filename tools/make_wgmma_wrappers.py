#!/usr/bin/env python3
"""Writes src/ptx/wgmma_mma_async.h: inline assembly cannot spell a list of N/2 registers from a template
argument, so the lists are made here. --check only compares (the tests use it)."""

import sys

import generated_header

EXTENTS = [8, 24, 32, 64, 80, 96, 128, 160, 176, 192, 224, 256]  # values of N in use

HEAD = '''// clang-format off
// Made by tools/make_wgmma_wrappers.py; edit that.
//
// Matrix multiply of one warpgroup: accumulator in registers, A from registers or shared memory, B from
// shared memory. PTX ISA: "wgmma.mma_async". Fragments: arch/fragments/wgmma.h; descriptors:
// arch/smem_descriptor.h.
//
// Asynchronous: d and a register a must not be touched between the call and the wgmma_wait_group that covers it;
// before the first call, and after touching them, wgmma_fence. Shared memory is read by the async proxy.
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// wgmma.mma_async.sync.aligned.m64nN<shape and types>: d += a * b, or d = a * b if `accumulate` is false.
/// A given as 64 bits is a descriptor, as four registers a fragment. ImmTrans: 0 = K-major, 1 = MN-major.
template <int N>
struct wgmma_mma_async;

'''

# One function. P0.. are the numbers of the operands that follow the N/2 of d.
BODY = r'''#define TILEWRIGHT_UNWRAP(...) __VA_ARGS__
#define TILEWRIGHT_WGMMA_ASM(N, SHAPE_TYPES, D, OUT, A, B, PREDICATE, TAIL, ...)                                 \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " PREDICATE ", 0;\n"                                            \
               "wgmma.mma_async.sync.aligned.m64n" #N SHAPE_TYPES " " D ", " A ", " B ", p, 1, 1" TAIL ";\n}\n"  \
               : TILEWRIGHT_UNWRAP OUT                                                                           \
               : __VA_ARGS__)
#define TILEWRIGHT_WGMMA_16(NAME, SHAPE_TYPES, N, D, OUT, P0, P1, P2, P3, P4, P5, P6)                            \
  template <int ImmTransA, int ImmTransB>                                                                        \
  static __device__ void NAME(float (&d)[N / 2], std::uint64_t a, std::uint64_t b, bool accumulate) {            \
    TILEWRIGHT_WGMMA_ASM(N, SHAPE_TYPES, D, OUT, P0, P1, P2, ", " P3 ", " P4, "l"(a), "l"(b),                    \
                         "r"(static_cast<int>(accumulate)), "n"(ImmTransA), "n"(ImmTransB));                     \
  }                                                                                                              \
  template <int ImmTransB>                                                                                       \
  static __device__ void NAME(float (&d)[N / 2], const std::uint32_t (&a)[4], std::uint64_t b,                   \
                              bool accumulate) {                                                                 \
    TILEWRIGHT_WGMMA_ASM(N, SHAPE_TYPES, D, OUT, "{" P0 ", " P1 ", " P2 ", " P3 "}", P4, P5, ", " P6, "r"(a[0]), \
                         "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)),             \
                         "n"(ImmTransB));                                                                        \
  }
#define TILEWRIGHT_WGMMA_K_MAJOR(NAME, SHAPE_TYPES, N, D, OUT, P0, P1, P2, P3, P4, P5, P6)                       \
  static __device__ void NAME(float (&d)[N / 2], std::uint64_t a, std::uint64_t b, bool accumulate) {            \
    TILEWRIGHT_WGMMA_ASM(N, SHAPE_TYPES, D, OUT, P0, P1, P2, "", "l"(a), "l"(b),                                 \
                         "r"(static_cast<int>(accumulate)));                                                     \
  }                                                                                                              \
  static __device__ void NAME(float (&d)[N / 2], const std::uint32_t (&a)[4], std::uint64_t b,                   \
                              bool accumulate) {                                                                 \
    TILEWRIGHT_WGMMA_ASM(N, SHAPE_TYPES, D, OUT, "{" P0 ", " P1 ", " P2 ", " P3 "}", P4, P5, "", "r"(a[0]),      \
                         "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)));            \
  }
#define TILEWRIGHT_WGMMA(N, ...)                                                                                 \
  template <>                                                                                                    \
  struct wgmma_mma_async<N> {                                                                                    \
    TILEWRIGHT_WGMMA_16(k16_f32_bf16_bf16, "k16.f32.bf16.bf16", N, __VA_ARGS__)                                  \
    TILEWRIGHT_WGMMA_16(k16_f32_f16_f16, "k16.f32.f16.f16", N, __VA_ARGS__)                                      \
    TILEWRIGHT_WGMMA_K_MAJOR(k32_f32_e4m3_e4m3, "k32.f32.e4m3.e4m3", N, __VA_ARGS__)                             \
    TILEWRIGHT_WGMMA_K_MAJOR(k8_f32_tf32_tf32, "k8.f32.tf32.tf32", N, __VA_ARGS__)                               \
  };

'''

TAIL = '''#undef TILEWRIGHT_WGMMA
#undef TILEWRIGHT_WGMMA_K_MAJOR
#undef TILEWRIGHT_WGMMA_16
#undef TILEWRIGHT_WGMMA_ASM
#undef TILEWRIGHT_UNWRAP

}  // namespace tilewright::ptx
'''


def wrapped(items, indent, width=118):
    """Items joined by commas, in lines of a macro call's argument."""
    lines, line = [], ""
    for i, item in enumerate(items):
        item += "," if i + 1 < len(items) else ""
        if line and len(line) + len(item) + 1 > width - indent:
            lines.append(line)
            line = ""
        line += (" " if line else "") + item
    return ("\n" + " " * indent).join(lines + [line])


def extent(n):
    count = n // 2
    names = [f"%{i}" + (", " if i + 1 < count else "") for i in range(count)]
    strings = ['"' + "".join(names[i:i + 20]) + '"' for i in range(0, count, 20)]
    strings[0] = '"{' + strings[0][1:]
    strings[-1] = strings[-1][:-1] + '}"'
    out = wrapped([f'"+f"(d[{i}])' for i in range(count)], 18)
    after = ", ".join(f'"%{count + i}"' for i in range(7))
    separator = "\n" + " " * 17
    arguments = separator.join([f"{n},", separator.join(strings) + ",", f"({out}),", after])
    return f"TILEWRIGHT_WGMMA({arguments})\n\n"


def main():
    text = HEAD + BODY + "".join(extent(n) for n in EXTENTS) + TAIL
    return generated_header.write_or_check(__doc__, __file__, "src/ptx/wgmma_mma_async.h", text)


if __name__ == "__main__":
    sys.exit(main())
