#ifdef __x86_64__

#define TILEWRIGHT_VECTOR_BYTES 32
#define TILEWRIGHT_BLOCK_ROWS 2
#include "sim/tensor/tile_kernel_body.h"

namespace tilewright::sim {

void multiply_tile_avx2(const TileKernelCall& call) {
  run_tile_kernel(call);
}

}  // namespace tilewright::sim

#endif
