// targets: sm_90a sm_100f
//
// The direct kernels of Mixture-of-Experts layers for weights of 8 and 16 bits. All about them:
// direct_mxfp4.cu.
#include "kernels/moe/direct/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_MOE_DIRECT(fp8, kFp8, kBf16)
TILEWRIGHT_MOE_DIRECT(bf16, kBf16, kBf16)

}  // namespace tilewright::kernels
