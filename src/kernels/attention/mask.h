// Which keys a query sees: a half-open range of columns, from causality, windows and lengths.
#pragma once

#include "arch/register_index.h"
#include "kernels/attention/attention.h"

#include <cstdint>

namespace tilewright::tile {

/// One sequence's part in a call: where its rows start, and how many there are.
struct AttentionSequence {
  std::int32_t q_begin, q_len, kv_begin, kv_len;
};

/// That of sequence `batch` of a call.
__device__ inline AttentionSequence find_sequence(const kernels::AttentionParams& params,
                                                  std::int32_t batch) {
  AttentionSequence s = {0, params.q_len, 0, params.kv_len};
  if (params.cu_q != nullptr) {
    s.q_begin = params.cu_q[batch];
    s.q_len = params.cu_q[batch + 1] - s.q_begin;
  }
  if (params.cu_kv != nullptr) {
    s.kv_begin = params.cu_kv[batch];
    s.kv_len = params.cu_kv[batch + 1] - s.kv_begin;
  }
  return s;
}

/// Keys [begin, end) seen from a position among them. Query i of a sequence stands at position
/// i + kv_len - q_len.
struct VisibleKeys {
  std::int32_t begin, end;

  __device__ VisibleKeys(const kernels::AttentionParams& params, std::int32_t position,
                         std::int32_t kv_len)
      : begin(max(position - params.window_left, 0)),
        end(min(position + params.window_right + 1, kv_len)) {}
};

/// Tiles of `Keys` keys that rows [first, last] of a sequence need, row i standing at position
/// i + shift: [begin, end), none if empty. Those in [plain_begin, plain_end) every row sees whole.
template <int Keys>
struct KeyTiles {
  std::int32_t begin, end, plain_begin, plain_end;

  __device__ KeyTiles(const kernels::AttentionParams& params, std::int32_t kv_len,
                      std::int32_t shift, std::int32_t first, std::int32_t last) {
    const VisibleKeys of_first(params, first + shift, kv_len),
        of_last(params, last + shift, kv_len);
    begin = of_first.begin / Keys;
    end = max((of_last.end + Keys - 1) / Keys, begin);
    plain_begin = (of_last.begin + Keys - 1) / Keys;
    plain_end = max(of_first.end, 0) / Keys;
  }
};

/// Scores of keys that a thread's two rows do not see become -inf. `start` is the key of column 0.
template <int Count>
__device__ void hide_keys(float (&s)[Count], const VisibleKeys (&rows)[2], std::int32_t start) {
  const std::int32_t column =
      start + static_cast<std::int32_t>(arch::accumulator_first_column(threadIdx.x));
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    const std::int32_t key = column + arch::accumulator_column(i);
    const VisibleKeys& row = rows[arch::accumulator_row(i)];
    if (key < row.begin || key >= row.end) s[i] = -INFINITY;
  }
}

}  // namespace tilewright::tile
