// Stores to shared memory by its address, of widths that C++ has no type for. PTX ISA: "st".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

__device__ inline void st_shared_u16(std::uint32_t address, std::uint16_t value) {
  asm volatile("st.shared.u16 [%0], %1;" ::"r"(address), "h"(value) : "memory");
}

/// 16 bytes; the address is a multiple of that.
__device__ inline void st_shared_v4_u32(std::uint32_t address, const std::uint32_t (&x)[4]) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(x[0]), "r"(x[1]),
               "r"(x[2]), "r"(x[3])
               : "memory");
}

}  // namespace tilewright::ptx
