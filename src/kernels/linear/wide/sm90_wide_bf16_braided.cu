// targets: sm_90a
//
// Linear layers for many tokens in bf16, of FP4 weights that lie in the order for FP8 tokens: the
// experts of Mixture-of-Experts layers. All about it: sm90_wide_bf16.cu.
#include "kernels/linear/wide/bf16_kernel.h"

namespace tilewright::kernels {
TILEWRIGHT_WIDE_BF16(nvfp4_braided, kNvfp4, kE4m3, false)
TILEWRIGHT_WIDE_BF16(mxfp4_braided, kMxfp4, kE4m3, false)
TILEWRIGHT_WIDE_BF16(tall_nvfp4_braided, kNvfp4, kE4m3, true)
TILEWRIGHT_WIDE_BF16(tall_mxfp4_braided, kMxfp4, kE4m3, true)
}  // namespace tilewright::kernels
