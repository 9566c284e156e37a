#!/usr/bin/env python3
"""Writes src/ptx/tcgen05_ld_st.h: inline assembly cannot spell a list of registers from a template argument,
so the lists are made here. --check only compares (the tests use it)."""

import sys

import generated_header

COUNTS = [1, 8, 16, 32, 64]  # registers a thread that kernels use; add what a new one needs

HEAD = '''// clang-format off
// Made by tools/make_tcgen05_wrappers.py; edit that.
//
// Between Tensor Memory and registers, shape .32x32b: thread t of a warp has lane t of the warp's own 32 lanes,
// register i the column i from the address on. Warp w of a warpgroup owns lanes 32w..32w+31, whatever lane the
// address names. PTX ISA: "tcgen05.ld", "tcgen05.st". Layout: arch/fragments/tmem.h.
//
// Asynchronous: loaded registers may be read after tcgen05_wait_ld, what was stored after tcgen05_wait_st.
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// tcgen05.ld.sync.aligned.32x32b.xCount: all lanes of a warp, with the same address.
template <int Count>
__device__ void tcgen05_ld_32x32b(float (&d)[Count], std::uint32_t address);

/// tcgen05.st.sync.aligned.32x32b.xCount, the inverse.
template <int Count>
__device__ void tcgen05_st_32x32b(std::uint32_t address, const std::uint32_t (&s)[Count]);

'''


def wrapped(items, indent, width=118):
    """Items joined by commas, in lines of a call's argument."""
    lines, line = [], ""
    for i, item in enumerate(items):
        item += "," if i + 1 < len(items) else ""
        if line and len(line) + len(item) + 1 > width - indent:
            lines.append(line)
            line = ""
        line += (" " if line else "") + item
    return ("\n" + " " * indent).join(lines + [line])


def register_list(first, count):
    """The assembler's list as strings of 20 names."""
    names = [f"%{first + i}" + (", " if i + 1 < count else "") for i in range(count)]
    strings = ['"' + "".join(names[i:i + 20]) + '"' for i in range(0, count, 20)]
    strings[0] = '"{' + strings[0][1:]
    strings[-1] = strings[-1][:-1] + '}"'
    return ("\n" + " " * 15).join(strings)


def functions(n):
    outputs = wrapped([f'"=f"(d[{i}])' for i in range(n)], 17)
    inputs = wrapped([f'"r"(s[{i}])' for i in range(n)], 17)
    return f'''template <>
__device__ inline void tcgen05_ld_32x32b<{n}>(float (&d)[{n}], std::uint32_t address) {{
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x{n}.b32 "
               {register_list(0, n)} ", [%{n}];"
               : {outputs}
               : "r"(address) : "memory");
}}
template <>
__device__ inline void tcgen05_st_32x32b<{n}>(std::uint32_t address, const std::uint32_t (&s)[{n}]) {{
  asm volatile("tcgen05.st.sync.aligned.32x32b.x{n}.b32 [%0], "
               {register_list(1, n)} ";" ::
               "r"(address),
                 {inputs} : "memory");
}}

'''


def main():
    text = HEAD + "".join(functions(n) for n in COUNTS) + "}  // namespace tilewright::ptx\n"
    return generated_header.write_or_check(__doc__, __file__, "src/ptx/tcgen05_ld_st.h", text)


if __name__ == "__main__":
    sys.exit(main())
