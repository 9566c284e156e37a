// The result of a tile of queries, accumulated by a warpgroup, to global memory.
#pragma once

#include "kernels/attention/accumulator.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/epilogue.h"
#include "kernels/attention/rows.h"

#include <cstdint>

namespace tilewright::tile {

/// Rows to global memory from `first_query` on, 16 bytes a thread. Threads that share a row hold
/// two of every eight columns; of four such pairs, transposed among them, each holds eight columns
/// side by side.
template <class Element, int HeadDim>
__device__ void store_accumulator(const kernels::AttentionParams& params,
                                  const float (&o)[HeadDim / 2], const RowResult& result,
                                  std::int32_t batch, std::int32_t head, std::int32_t first_query) {
  using Result = Accumulator<HeadDim>;
#pragma unroll
  for (int row = 0; row < Result::kRows; ++row) {
    const auto first = Result::place(Result::index(row, 0));
    const auto query = static_cast<std::int32_t>(first_query + first[0]);
    const bool is_inside = query < params.q_len;
    std::uint16_t* const out =
        find_row(params.out, params.out_strides, batch, query, head) + first[1] * 4;
#pragma unroll
    for (int pair = 0; pair < Result::kColumns / 2; pair += 4) {
      std::uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        words[i] = Element::pack(o[Result::index(row, 2 * (pair + i))] * result.factor[row],
                                 o[Result::index(row, 2 * (pair + i) + 1)] * result.factor[row]);
      }
      transpose_quad(words);
      if (is_inside) store_chunk(out, pair, make_uint4(words[0], words[1], words[2], words[3]));
    }
    if (params.lse != nullptr && is_inside && first[1] == 0) {
      params.lse[batch * params.lse_batch_stride + head * params.lse_head_stride + query] =
          result.lse[row];
    }
  }
}

}  // namespace tilewright::tile
