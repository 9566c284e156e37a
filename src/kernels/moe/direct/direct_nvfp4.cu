// targets: sm_90a sm_100f
//
// The direct kernels of Mixture-of-Experts layers for NVFP4 weights. All about them:
// direct_mxfp4.cu.
#include "kernels/moe/direct/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_MOE_DIRECT(nvfp4_braided, kNvfp4, kE4m3)

}  // namespace tilewright::kernels
