// Atomic operations between CTAs. PTX ISA: "atom".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Adds, and returns what was there. A thread that reads the sum sees what this thread wrote
/// before, and what threads wrote that met it at a barrier; and the other way round.
__device__ inline std::uint64_t atom_add_acq_rel_gpu_u64(void* to, std::uint64_t value) {
  std::uint64_t before;
  asm volatile("atom.add.acq_rel.gpu.global.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(__cvta_generic_to_global(to)), "l"(value)
               : "memory");
  return before;
}

}  // namespace tilewright::ptx
