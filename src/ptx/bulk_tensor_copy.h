// Tensor copies by tensor map (TMA). PTX ISA: "cp.async.bulk.tensor".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Copies the box of a 2-D tensor map that starts at element (x, y), x innermost, to shared memory.
/// Asynchronous, by the async proxy; the bytes are announced to `barrier` (complete_tx) when they
/// are visible. `x` must be a multiple of 16 bytes, else the GPU raises an illegal instruction;
/// either may be negative or past the end.
__device__ inline void cp_async_bulk_tensor_2d_shared_global(std::uint32_t destination,
                                                             const void* tensor_map, std::int32_t x,
                                                             std::int32_t y,
                                                             std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%2, %3}], "
      "[%4];" ::"r"(destination),
      "l"(tensor_map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}

}  // namespace tilewright::ptx
