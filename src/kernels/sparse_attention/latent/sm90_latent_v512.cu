// targets: sm_90a
//
// As sm90_latent_v512_qv.cu, with values of 512 that make no scores.
#include "kernels/sparse_attention/latent/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_LATENT(bf16_v512, Bf16, 512, false)
TILEWRIGHT_LATENT(f16_v512, Fp16, 512, false)

}  // namespace tilewright::kernels
