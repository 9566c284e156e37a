// Loads that the compiler must leave where they are. PTX ISA: "ld", ".volatile".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Neither repeated, nor removed, nor moved across other memory operations and barriers.
__device__ inline float ld_volatile_shared_f32(std::uint32_t address) {
  float value;
  asm volatile("ld.volatile.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}

}  // namespace tilewright::ptx
