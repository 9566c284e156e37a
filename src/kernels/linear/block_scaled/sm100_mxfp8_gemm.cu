// targets: sm_100f
//
// MXFP8 activations by 8-bit weights (kind::mxf8f6f4): e4m3 by e4m3, a ue8m0 scale per 32 elements
// of K on both sides. As sm100_mxfp8_mxfp4_gemm.cu, but weights come as they are. A scale for 128 x
// 128 weights that is a power of two stands for four scales of each of 128 rows: the same numbers.
#include "kernels/linear/block_scaled/kernel.h"
#include "kernels/linear/block_scaled/sm100_mxfp8_gemm.h"

namespace tilewright::kernels {

TILEWRIGHT_BLOCK_SCALED_ENTRIES(sm100_mxfp8_gemm, kMxfp8, bf16, Bf16Output)

}  // namespace tilewright::kernels
