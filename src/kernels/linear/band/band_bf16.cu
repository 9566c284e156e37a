// targets: sm_90a sm_100f
//
// The bandwidth kernel, bf16 weights. All about it: band.cu.
#include "kernels/linear/band/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_LINEAR_BAND(bf16, kBf16, kBf16, 32)
TILEWRIGHT_LINEAR_BAND(bf16, kBf16, kBf16, 64)

}  // namespace tilewright::kernels
