// targets: sm_100f
//
// bf16 by bf16 (kind::f16). As sm100_nvfp4_gemm.cu, but there are no scales: a step is 64 elements
// of K, and Tensor Memory is two accumulators. A bias and the type of results are the launch's.
//
// Few tokens: few_tokens.h. A user's own step: TILEWRIGHT_BLOCK_SCALED_STEP_ENTRY with kBf16 and
// DenseOutput.
#include "kernels/linear/block_scaled/dense_output.h"
#include "kernels/linear/block_scaled/few_tokens.h"
#include "kernels/linear/block_scaled/kernel.h"
#include "kernels/linear/block_scaled/sm100_bf16_gemm.h"

namespace tilewright::kernels {

TILEWRIGHT_BLOCK_SCALED(sm100_bf16_gemm_1cta_n128, kBf16, DenseOutput, 1, 1)
TILEWRIGHT_BLOCK_SCALED(sm100_bf16_gemm_2cta_n256, kBf16, DenseOutput, 3, 2)
TILEWRIGHT_BLOCK_SCALED(sm100_bf16_gemm_4cta_n256, kBf16, DenseOutput, 4, 4)

TILEWRIGHT_KERNEL(sm100_bf16_gemm_few, BlockScaledGemmParams,
                  __launch_bounds__(kBlockScaledThreads, 1),
                  tile::few_tokens_gemm<kFewTokensConfig>)

}  // namespace tilewright::kernels
