// targets: sm_90a sm_100f
//
// The compressor: eight or 128 tokens become one row of a compressed cache, when the last of them
// arrives.
//
//   compress_csa     CTA of 128 threads = an entry of 512, 8 tokens
//   compress_index   CTA of 4 warps     = 4 entries of 128, 8 tokens each
//   compress_pair    both of these in one launch
//   compress_hca     cluster of 8 CTAs  = an entry of 512, 128 tokens; a CTA has 64 channels
//
//   thread = 8 tokens x 4 channels                     warp 0 besides (of rank 0)
//     is there an entry? .. (hca: 32 read at once)  copies ahead: norm weight, angles, page
//     16 loads of 16 B                                   |
//     max, exp2, sums                                    |
//     hca: 16 parts merged through shared memory         |
//     bf16 to the shared row (hca: of rank 0) --barrier-- norm | rotate | Hadamard | codes, store
//
// The CTAs behind them copy new tokens to the state, each a row of 2 to 8 KB at a time.
//
// A token comes from the call's input, or if it is older from the state; both give the same numbers
// in the same order, so that an entry does not depend on how the tokens were cut into calls.
//
// Limit: memory, and with few tokens the chain start -> loads -> row -> store of about 2 us. A CSA
// token brings 8 KB (kv and score, 1024 floats each), an HCA token 4 KB, an indexer token 2 KB,
// read once by whom it completes and once, in decode, to be written to the state. 4096 tokens of a
// prompt: 33.6 MB, 7.8 us at 4.3 TB/s (CSA). HCA reads 512 KB for an entry that 128 tokens share:
// eight CTAs, so that it is one round of loads, not eight.
// Measured: see docs/06-deepseek-v4.md, "Caches and compressor".
// Sources: the official DeepSeek-V4 inference code; a state of one row per token as in vLLM.
#include "kernels/sparse_attention/cache/compress.h"
#include "kernels/sparse_attention/cache/compress_entry.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

template <CompressShape S>
__device__ void compress(const CompressParams& params) {
  run<S>(params, static_cast<std::int32_t>(blockIdx.x), static_cast<std::int32_t>(gridDim.x));
}

}  // namespace

#define TILEWRIGHT_COMPRESS(NAME, SHAPE)             \
  TILEWRIGHT_KERNEL(compress_##NAME, CompressParams, \
                    __launch_bounds__(SHAPE.threads(), SHAPE.ctas_per_sm), compress<SHAPE>)

TILEWRIGHT_COMPRESS(csa, kCompressCsa)
TILEWRIGHT_COMPRESS(index, kCompressIndex)
TILEWRIGHT_COMPRESS(hca, kCompressHca)

/// Rows and index keys in one launch. Written out: through a function of its own, nvcc gives it
/// other code.
extern "C" __global__ void __launch_bounds__(kCompressCsa.threads(), kCompressIndex.ctas_per_sm)
    compress_pair(const __grid_constant__ CompressPairParams params) {
  const auto cta = static_cast<std::int32_t>(blockIdx.x),
             ctas = static_cast<std::int32_t>(gridDim.x);
  if (cta < params.row_ctas) return run<kCompressCsa>(params.rows, cta, params.row_ctas);
  run<kCompressIndex>(params.keys, cta - params.row_ctas, ctas - params.row_ctas);
}

}  // namespace tilewright::kernels
