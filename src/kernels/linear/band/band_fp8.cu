// targets: sm_90a sm_100f
//
// The bandwidth kernel, FP8 weights with scales of 128 x 128 blocks. All about it: band.cu.
#include "kernels/linear/band/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_LINEAR_BAND(fp8, kFp8, kBf16, 32)
TILEWRIGHT_LINEAR_BAND(fp8, kFp8, kBf16, 64)

}  // namespace tilewright::kernels
