// targets: sm_90a sm_100f
//
// The bandwidth kernel for weights of groups that take columns of x of their own: DeepSeek-V4's
// output projection. All about it: band.cu.
#include "kernels/linear/band/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_LINEAR_BAND_GROUPS(fp8, kFp8, kBf16, 32)
TILEWRIGHT_LINEAR_BAND_GROUPS(fp8, kFp8, kBf16, 64)
TILEWRIGHT_LINEAR_BAND_GROUPS(bf16, kBf16, kBf16, 32)
TILEWRIGHT_LINEAR_BAND_GROUPS(bf16, kBf16, kBf16, 64)

}  // namespace tilewright::kernels
