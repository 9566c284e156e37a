// targets: sm_100f
//
// Parts of attention kernels, alone: powers by multiply-adds, half sums in three bytes.
#include "kernels/attention_sm100/polynomial.h"
#include "kernels/probe/row_math.h"
#include "kernels/sparse_attention/pair/half_sums.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

__device__ void find_powers(const RowMathPowersParams& params) {
  const auto i = static_cast<std::int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= params.pairs) return;
  const float2 y = tile::ex2_polynomial(make_float2(params.x[2 * i], params.x[2 * i + 1]));
  params.y[2 * i] = y.x, params.y[2 * i + 1] = y.y;
}

__device__ void exchange_sums(const RowMathHalfSumsParams& params) {
  __shared__ tile::PairHalfSums sums[2];
  float x[32], away[32];
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    x[i] = params.x[threadIdx.x * 32 + i];
    away[i] = params.away[threadIdx.x * 32 + i];
  }
  const std::uint32_t warp = threadIdx.x / 32;
  sums[warp].send(away, params.scale_log2);
  __syncthreads();
  sums[warp ^ 1].add_to(x);
#pragma unroll
  for (int i = 0; i < 32; ++i) params.y[threadIdx.x * 32 + i] = x[i];
}

}  // namespace

TILEWRIGHT_KERNEL(row_math_powers, RowMathPowersParams, __launch_bounds__(256), find_powers)
TILEWRIGHT_KERNEL(row_math_half_sums, RowMathHalfSumsParams, __launch_bounds__(64), exchange_sums)

}  // namespace tilewright::kernels
