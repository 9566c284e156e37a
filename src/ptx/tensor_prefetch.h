// Boxes of tensor maps asked for ahead of their use. PTX ISA: "cp.async.bulk.prefetch.tensor".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Starts to bring the box of a 4-D tensor map that starts at (x, y, z, w), x innermost, into the
/// second cache; nothing says when it is there. Coordinates as in bulk_tensor_copy.h.
__device__ inline void cp_async_bulk_prefetch_tensor_4d_L2(const void* tensor_map, std::int32_t x,
                                                           std::int32_t y, std::int32_t z,
                                                           std::int32_t w) {
  asm volatile(
      "cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %2, %3, %4}];" ::"l"(tensor_map),
      "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

}  // namespace tilewright::ptx
