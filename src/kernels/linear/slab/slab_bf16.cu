// targets: sm_90a
//
// The slab kernel, bf16 weights. All about it: slab_fp8.cu.
#include "kernels/linear/slab/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_LINEAR_SLAB(bf16, kBf16, 1, kSlabRegisters)
TILEWRIGHT_LINEAR_SLAB(bf16, kBf16, 2, kSlabMostRegisters)
TILEWRIGHT_LINEAR_SLAB(bf16, kBf16, 4, kSlabMostRegisters)

}  // namespace tilewright::kernels
