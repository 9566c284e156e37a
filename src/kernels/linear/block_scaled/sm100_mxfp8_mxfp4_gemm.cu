// targets: sm_100f
//
// MXFP8 activations by 4-bit weights (kind::mxf8f6f4): e4m3 by e2m1, a ue8m0 scale per 32 elements
// of K on both sides. As sm100_nvfp4_gemm.cu, but a step is 128 elements; the tensor copy unpacks
// 16 weights of 8 bytes to 16 bytes, as the tensor core wants them beside 8-bit operands; and a
// tile of four scales per row serves four products, each of which names its byte.
#include "kernels/linear/block_scaled/kernel.h"
#include "kernels/linear/block_scaled/nvfp4_output.h"
#include "kernels/linear/block_scaled/sm100_mxfp8_mxfp4_gemm.h"

namespace tilewright::kernels {

TILEWRIGHT_BLOCK_SCALED_ENTRIES(sm100_mxfp8_mxfp4_gemm, kMxfp8Mxfp4, bf16, Bf16Output)
TILEWRIGHT_BLOCK_SCALED_ENTRIES(sm100_mxfp8_mxfp4_gemm, kMxfp8Mxfp4, nvfp4, Nvfp4Output)

}  // namespace tilewright::kernels
