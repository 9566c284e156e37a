// What becomes of the accumulators of a tile of queries: divided by the row sums and written out.
#pragma once

#include "arch/register_index.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/mask.h"
#include "ptx/address.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/fence.h"
#include "ptx/matrix_copy.h"
#include "ptx/warp_roles.h"
#include "tile/box.h"
#include "tile/quad_transpose.h"
#include "tile/row_end.h"
#include "tile/warp.h"

#include <cstdint>

namespace tilewright::tile {

/// Factors that the two rows of the result are multiplied with, and their lse.
struct RowResult {
  float factor[2], lse[2];
};

/// `max`: running maxima of the two rows; times `scale` they are in units of log2. `sum`: of this
/// thread's columns of each.
__device__ inline RowResult finish_rows(const float (&max)[2], const float (&sum)[2], float scale,
                                        const float* sink) {
  RowResult result;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const RowEnd end(max[h], scale, quad_sum(sum[h]), sink);
    result.factor[h] = end.factor;
    result.lse[h] = end.lse;
  }
  return result;
}

/// lse of the rows of a warp, the first of which is `first_query`.
__device__ inline void store_lse(const kernels::AttentionParams& params,
                                 const AttentionSequence& sequence, const RowResult& rows,
                                 std::int32_t batch, std::int32_t head, std::int32_t first_query) {
  const std::int32_t lane = threadIdx.x % 32;
  if (params.lse == nullptr || lane % 4 != 0) return;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const std::int32_t query = first_query + lane / 4 + 8 * h;
    if (query < sequence.q_len) {
      params.lse[(params.cu_q == nullptr ? batch : 0) * params.lse_batch_stride +
                 head * params.lse_head_stride + sequence.q_begin + query] = rows.lse[h];
    }
  }
}

/// Rows of a warp straight to global memory, 16 bytes a thread: the four threads of a row hold two
/// columns of every eight; transposed, each eight beside each other. Clips: those below value_dim.
template <class Element, int Columns, bool Clips = false>
__device__ void store_rows(const kernels::AttentionParams& params,
                           const AttentionSequence& sequence, const float (&o)[Columns / 2],
                           const RowResult& rows, std::int32_t batch, std::int32_t head,
                           std::int32_t first_query) {
  const std::int32_t lane = threadIdx.x % 32;
  auto* out = static_cast<std::uint16_t*>(params.out) +
              (params.cu_q == nullptr ? batch : 0) * params.out_strides.batch +
              head * params.out_strides.head;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const std::int32_t query = first_query + lane / 4 + 8 * h;
    const bool is_inside = query < sequence.q_len;
    std::uint16_t* row = out + (sequence.q_begin + query) * params.out_strides.row + lane % 4 * 8;
#pragma unroll
    for (int j = 0; j < Columns / 8; j += 4) {
      std::uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* pair = &o[arch::accumulator_of(h, 2 * (j + i))];
        words[i] = Element::pack(pair[0] * rows.factor[h], pair[1] * rows.factor[h]);
      }
      transpose_quad(words);
      if (is_inside && (!Clips || lane % 4 * 8 + j * 8 < params.value_dim))
        *reinterpret_cast<uint4*>(row + j * 8) = make_uint4(words[0], words[1], words[2], words[3]);
    }
  }
  store_lse(params, sequence, rows, batch, head, first_query);
}

/// Rows of a warpgroup to shared memory, as boxes of 64 columns, and out by tensor copies, which
/// its first thread starts as one group and does not wait for. `staging` is memory and `barrier` a
/// named barrier of this warpgroup alone.
template <class Element, int Columns>
__device__ void store_boxes(const kernels::AttentionParams& params, std::uint8_t* staging,
                            const float (&o)[Columns / 2], const RowResult& rows,
                            std::uint32_t barrier, std::int32_t row, std::int32_t head,
                            std::int32_t batch) {
  constexpr int kBoxBytes = kernels::kWarpgroupRows * kBoxRowBytes;
  const std::uint32_t lane = threadIdx.x % 32, start = ptx::shared_address(staging);
  const std::uint32_t line = (threadIdx.x / 32 % 4 * 16 + lane % 16) * kBoxRowBytes;
#pragma unroll
  for (int j = 0; j < Columns / 16; ++j) {  // 16 columns: two 8x8 blocks beside two
    std::uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* pair = &o[arch::operand_source_16bit(j, i)];
      words[i] = Element::pack(pair[0] * rows.factor[i % 2], pair[1] * rows.factor[i % 2]);
    }
    ptx::stmatrix<4>(
        arch::swizzle_address(arch::SmemSwizzle::k128B,
                              start + j / 4 * kBoxBytes + line + j % 4 * 32 + lane / 16 * 16),
        words);
  }
  ptx::fence_proxy_async_shared_cta();
  ptx::bar_sync<128>(barrier);
  if (threadIdx.x % 128 != 0) return;
#pragma unroll
  for (int box = 0; box < (Columns + kBoxColumns - 1) / kBoxColumns; ++box) {
    ptx::cp_async_bulk_tensor_4d_global_shared(params.out_map, box * kBoxColumns, row, head, batch,
                                               start + box * kBoxBytes);
  }
  ptx::cp_async_bulk_commit_group();
}

}  // namespace tilewright::tile
