// targets: sm_90a
//
// As sm90_latent_v512_qv.cu, with values of 256 that make no scores.
#include "kernels/sparse_attention/latent/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_LATENT(bf16_v256, Bf16, 256, false)
TILEWRIGHT_LATENT(f16_v256, Fp16, 256, false)

}  // namespace tilewright::kernels
