// Shared-memory addresses as PTX wants them: 32 bits, in the shared window.
// PTX ISA: "cvta", "State Spaces".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// 32-bit address of a generic pointer into this CTA's shared memory.
__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace tilewright::ptx
