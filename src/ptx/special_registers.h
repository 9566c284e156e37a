// Special registers, read where the text says so. PTX ISA: "Special Registers".
#pragma once

namespace tilewright::ptx {

/// threadIdx.x, read anew at every call: what follows from it is computed again instead of being
/// kept in a register across a loop that has none to spare.
__device__ inline int mov_tid_x() {
  int idx;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(idx));
  return idx;
}

/// Has a word in a register where the text says so, though it is not used: a parameter's line of
/// the constant cache is fetched by then.
__device__ inline void read_u32(unsigned word) {
  asm volatile("" ::"r"(word));
}

}  // namespace tilewright::ptx
