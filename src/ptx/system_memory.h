// Words that other GPUs write and read meanwhile. PTX ISA: "ld", "st", ".relaxed".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// 16 aligned bytes: each 4 of them are whole, and nothing is ordered by them.
__device__ inline uint4 ld_relaxed_sys_v4_u32(const void* from) {
  uint4 words;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(from)
               : "memory");
  return words;
}
__device__ inline void st_relaxed_sys_v4_u32(void* to, const uint4& words) {
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words.x),
               "r"(words.y), "r"(words.z), "r"(words.w)
               : "memory");
}

/// Four aligned bytes, of the host's memory as well.
__device__ inline std::uint32_t ld_relaxed_sys_u32(const std::uint32_t* from) {
  std::uint32_t word;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory");
  return word;
}

}  // namespace tilewright::ptx
