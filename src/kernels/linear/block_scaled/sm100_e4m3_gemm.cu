// targets: sm_100f
//
// e4m3 by e4m3 with fp32 scales (kind::f8f6f4). Copies and products are those of
// sm100_bf16_gemm.cu, with steps of 128 elements; but a step is a product of its own, in the
// accumulator that the step before has not got, and the warps of the epilogue add it to fp32 sums
// while the next one is multiplied.
//
//   cycles of a step of 128 x 256, a CTA of the pair: products 512; reading them out of Tensor
//   Memory 256, FMA 256
//
// Eight warps have 128 columns each of 256, as sums live in registers.
#include "kernels/linear/block_scaled/promoted.h"
#include "tile/entry.h"

namespace tilewright::kernels {

#define TILEWRIGHT_E4M3_ENTRY(NAME, INDEX, CTAS, THREADS)                                 \
  static_assert(kE4m3Tiles[INDEX].cluster() == CTAS);                                     \
  static_assert(BlockScaledConfig{BlockScaledKind::kE4m3, kE4m3Tiles[INDEX]}.threads() == \
                THREADS);                                                                 \
  TILEWRIGHT_KERNEL(                                                                      \
      NAME, E4m3GemmParams, __cluster_dims__(CTAS, 1, 1) __launch_bounds__(THREADS, 1),   \
      tile::promoted_gemm<BlockScaledConfig{BlockScaledKind::kE4m3, kE4m3Tiles[INDEX]}>)

TILEWRIGHT_E4M3_ENTRY(sm100_e4m3_gemm_1cta_n128, 0, 1, 192)
TILEWRIGHT_E4M3_ENTRY(sm100_e4m3_gemm_2cta_n256, 1, 2, 320)

TILEWRIGHT_KERNEL(sm100_e4m3_gemm_few, E4m3GemmParams, __launch_bounds__(kBlockScaledThreads, 1),
                  tile::promoted_few_tokens_gemm<kE4m3FewConfig>)

}  // namespace tilewright::kernels
