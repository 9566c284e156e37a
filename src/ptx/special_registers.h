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

}  // namespace tilewright::ptx
