// targets: sm_90a sm_100f
//
// The bandwidth kernel, MXFP4 weights that were prepared for FP8 tokens, by bf16 tokens. All about
// it: band.cu.
#include "kernels/linear/band/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_LINEAR_BAND(mxfp4_braided, kMxfp4, kE4m3, 8)
TILEWRIGHT_LINEAR_BAND(mxfp4_braided, kMxfp4, kE4m3, 32)
TILEWRIGHT_LINEAR_BAND(mxfp4_braided, kMxfp4, kE4m3, 64)

}  // namespace tilewright::kernels
