// targets: sm_90a
//
// As sm90_latent_v512_qv.cu, with values of 256.
#include "kernels/sparse_attention/latent/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_LATENT(bf16_v256_qv, Bf16, 256, true)
TILEWRIGHT_LATENT(f16_v256_qv, Fp16, 256, true)

}  // namespace tilewright::kernels
