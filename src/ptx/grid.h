// The size of the grid, read where the text says so. PTX ISA: "Special Registers".
#pragma once

namespace tilewright::ptx {

/// gridDim.x, read anew at every call: no register holds it across a loop that has none to spare.
__device__ inline unsigned mov_nctaid_x() {
  unsigned num;
  asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(num));
  return num;
}

}  // namespace tilewright::ptx
