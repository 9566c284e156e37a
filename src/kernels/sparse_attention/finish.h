// The end of a row of sparse attention: its divisor with the sink, its lse, or its partial lse.
#pragma once

#include "kernels/sparse_attention/decode.h"
#include "kernels/sparse_attention/work.h"
#include "ptx/math.h"
#include "tile/row_end.h"

#include <cstdint>

#include <math.h>

namespace tilewright::tile {

/// What a head has summed: `max` of the scores in units of log2 (scale_log2 included), -inf if no
/// row was valid, and the sum of 2^(score - max).
struct SparseRowSum {
  float max, sum;

  /// What sum_j 2^(score - max) x_j is multiplied with. `sink` is null for none.
  __device__ float factor(const float* sink, std::int32_t head) const {
    if (max == -INFINITY) return 0.0f;
    const float of_sink =
        sink == nullptr ? 0.0f : ptx::ex2_approx_ftz_f32(fmaf(sink[head], kLog2E, -max));
    return 1.0f / (sum + of_sink);
  }
  __device__ float lse_log2() const { return max == -INFINITY ? -INFINITY : max + log2f(sum); }
};

/// lse and max_logits of a finished row, or partial_lse of a piece (partial >= 0). One thread.
__device__ inline void store_sparse_row_sum(const kernels::SparseDecodeParams& params,
                                            const SparseQuery& query, std::int32_t partial,
                                            std::int32_t head, const SparseRowSum& row) {
  if (partial >= 0) {
    params.partial_lse[std::int64_t{partial} * params.heads + head] = row.lse_log2();
    return;
  }
  const std::int64_t at = query.offset(params.lse_strides, head);
  const float lse = natural_lse(row.max, row.sum);
  if (params.lse != nullptr) params.lse[at] = row.max == -INFINITY ? params.empty_lse : lse;
  if (params.max_logits != nullptr) params.max_logits[at] = row.max * kLn2;
}

}  // namespace tilewright::tile
