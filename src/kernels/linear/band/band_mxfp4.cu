// targets: sm_90a sm_100f
//
// The bandwidth kernel, MXFP4 weights. All about it: band.cu.
#include "kernels/linear/band/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_LINEAR_BAND(mxfp4, kMxfp4, kBf16, 32)
TILEWRIGHT_LINEAR_BAND(mxfp4, kMxfp4, kBf16, 64)

}  // namespace tilewright::kernels
