// clang-format off
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

template <>
__device__ inline void tcgen05_ld_32x32b<1>(float (&d)[1], std::uint32_t address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 "
               "{%0}" ", [%1];"
               : "=f"(d[0])
               : "r"(address) : "memory");
}
template <>
__device__ inline void tcgen05_st_32x32b<1>(std::uint32_t address, const std::uint32_t (&s)[1]) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], "
               "{%1}" ";" ::
               "r"(address),
                 "r"(s[0]) : "memory");
}

template <>
__device__ inline void tcgen05_ld_32x32b<8>(float (&d)[8], std::uint32_t address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 "
               "{%0, %1, %2, %3, %4, %5, %6, %7}" ", [%8];"
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7])
               : "r"(address) : "memory");
}
template <>
__device__ inline void tcgen05_st_32x32b<8>(std::uint32_t address, const std::uint32_t (&s)[8]) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], "
               "{%1, %2, %3, %4, %5, %6, %7, %8}" ";" ::
               "r"(address),
                 "r"(s[0]), "r"(s[1]), "r"(s[2]), "r"(s[3]), "r"(s[4]), "r"(s[5]), "r"(s[6]), "r"(s[7]) : "memory");
}

template <>
__device__ inline void tcgen05_ld_32x32b<16>(float (&d)[16], std::uint32_t address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x16.b32 "
               "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}" ", [%16];"
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7]),
                 "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]), "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15])
               : "r"(address) : "memory");
}
template <>
__device__ inline void tcgen05_st_32x32b<16>(std::uint32_t address, const std::uint32_t (&s)[16]) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x16.b32 [%0], "
               "{%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16}" ";" ::
               "r"(address),
                 "r"(s[0]), "r"(s[1]), "r"(s[2]), "r"(s[3]), "r"(s[4]), "r"(s[5]), "r"(s[6]), "r"(s[7]), "r"(s[8]),
                 "r"(s[9]), "r"(s[10]), "r"(s[11]), "r"(s[12]), "r"(s[13]), "r"(s[14]), "r"(s[15]) : "memory");
}

template <>
__device__ inline void tcgen05_ld_32x32b<32>(float (&d)[32], std::uint32_t address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 "
               "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
               "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}" ", [%32];"
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7]),
                 "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]), "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15]),
                 "=f"(d[16]), "=f"(d[17]), "=f"(d[18]), "=f"(d[19]), "=f"(d[20]), "=f"(d[21]), "=f"(d[22]),
                 "=f"(d[23]), "=f"(d[24]), "=f"(d[25]), "=f"(d[26]), "=f"(d[27]), "=f"(d[28]), "=f"(d[29]),
                 "=f"(d[30]), "=f"(d[31])
               : "r"(address) : "memory");
}
template <>
__device__ inline void tcgen05_st_32x32b<32>(std::uint32_t address, const std::uint32_t (&s)[32]) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x32.b32 [%0], "
               "{%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "
               "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32}" ";" ::
               "r"(address),
                 "r"(s[0]), "r"(s[1]), "r"(s[2]), "r"(s[3]), "r"(s[4]), "r"(s[5]), "r"(s[6]), "r"(s[7]), "r"(s[8]),
                 "r"(s[9]), "r"(s[10]), "r"(s[11]), "r"(s[12]), "r"(s[13]), "r"(s[14]), "r"(s[15]), "r"(s[16]),
                 "r"(s[17]), "r"(s[18]), "r"(s[19]), "r"(s[20]), "r"(s[21]), "r"(s[22]), "r"(s[23]), "r"(s[24]),
                 "r"(s[25]), "r"(s[26]), "r"(s[27]), "r"(s[28]), "r"(s[29]), "r"(s[30]), "r"(s[31]) : "memory");
}

template <>
__device__ inline void tcgen05_ld_32x32b<64>(float (&d)[64], std::uint32_t address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x64.b32 "
               "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
               "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
               "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "
               "%60, %61, %62, %63}" ", [%64];"
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7]),
                 "=f"(d[8]), "=f"(d[9]), "=f"(d[10]), "=f"(d[11]), "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15]),
                 "=f"(d[16]), "=f"(d[17]), "=f"(d[18]), "=f"(d[19]), "=f"(d[20]), "=f"(d[21]), "=f"(d[22]),
                 "=f"(d[23]), "=f"(d[24]), "=f"(d[25]), "=f"(d[26]), "=f"(d[27]), "=f"(d[28]), "=f"(d[29]),
                 "=f"(d[30]), "=f"(d[31]), "=f"(d[32]), "=f"(d[33]), "=f"(d[34]), "=f"(d[35]), "=f"(d[36]),
                 "=f"(d[37]), "=f"(d[38]), "=f"(d[39]), "=f"(d[40]), "=f"(d[41]), "=f"(d[42]), "=f"(d[43]),
                 "=f"(d[44]), "=f"(d[45]), "=f"(d[46]), "=f"(d[47]), "=f"(d[48]), "=f"(d[49]), "=f"(d[50]),
                 "=f"(d[51]), "=f"(d[52]), "=f"(d[53]), "=f"(d[54]), "=f"(d[55]), "=f"(d[56]), "=f"(d[57]),
                 "=f"(d[58]), "=f"(d[59]), "=f"(d[60]), "=f"(d[61]), "=f"(d[62]), "=f"(d[63])
               : "r"(address) : "memory");
}
template <>
__device__ inline void tcgen05_st_32x32b<64>(std::uint32_t address, const std::uint32_t (&s)[64]) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x64.b32 [%0], "
               "{%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "
               "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, "
               "%41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, "
               "%61, %62, %63, %64}" ";" ::
               "r"(address),
                 "r"(s[0]), "r"(s[1]), "r"(s[2]), "r"(s[3]), "r"(s[4]), "r"(s[5]), "r"(s[6]), "r"(s[7]), "r"(s[8]),
                 "r"(s[9]), "r"(s[10]), "r"(s[11]), "r"(s[12]), "r"(s[13]), "r"(s[14]), "r"(s[15]), "r"(s[16]),
                 "r"(s[17]), "r"(s[18]), "r"(s[19]), "r"(s[20]), "r"(s[21]), "r"(s[22]), "r"(s[23]), "r"(s[24]),
                 "r"(s[25]), "r"(s[26]), "r"(s[27]), "r"(s[28]), "r"(s[29]), "r"(s[30]), "r"(s[31]), "r"(s[32]),
                 "r"(s[33]), "r"(s[34]), "r"(s[35]), "r"(s[36]), "r"(s[37]), "r"(s[38]), "r"(s[39]), "r"(s[40]),
                 "r"(s[41]), "r"(s[42]), "r"(s[43]), "r"(s[44]), "r"(s[45]), "r"(s[46]), "r"(s[47]), "r"(s[48]),
                 "r"(s[49]), "r"(s[50]), "r"(s[51]), "r"(s[52]), "r"(s[53]), "r"(s[54]), "r"(s[55]), "r"(s[56]),
                 "r"(s[57]), "r"(s[58]), "r"(s[59]), "r"(s[60]), "r"(s[61]), "r"(s[62]), "r"(s[63]) : "memory");
}

}  // namespace tilewright::ptx
