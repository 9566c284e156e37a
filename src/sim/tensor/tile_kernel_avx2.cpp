#ifdef __x86_64__

#define TILEWRIGHT_VECTOR_BYTES 32
#define TILEWRIGHT_BLOCK_ROWS 2
#include "sim/tensor/fp4_kernel_body.h"
#include "sim/tensor/scale_kernel_body.h"
#include "sim/tensor/tile_kernel_body.h"

namespace tilewright::sim {

void multiply_tile_avx2(const TileKernelCall& call) {
  run_tile_kernel(call);
}

void multiply_fp4_avx2(const Fp4KernelCall& call) {
  run_fp4_kernel(call);
}

void divide_by_scales_avx2(const ScaleKernelCall& call) {
  run_divide(call);
}

void multiply_by_scales_avx2(const ScaleKernelCall& call) {
  run_multiply(call);
}

}  // namespace tilewright::sim

#endif
