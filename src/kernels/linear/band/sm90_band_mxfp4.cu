// targets: sm_90a
//
// The bandwidth kernel, MXFP4 weights. All about it: sm90_band.cu.
#include "kernels/linear/band/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_LINEAR_BAND(mxfp4, kMxfp4, kBf16, 32)
TILEWRIGHT_LINEAR_BAND(mxfp4, kMxfp4, kBf16, 64)

}  // namespace tilewright::kernels
