// Attention on Blackwell: what its stages share. A CTA has 128 rows, the lanes of Tensor Memory;
// one thread loads, one multiplies, and four warps do what is done to rows, a row a thread.
//
// Operands come in boxes of 128 rows by 64 columns, 16 KiB, through one ring: of every tile of 128
// keys the boxes of K and then those of V, whatever head_dim is.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/mask.h"
#include "kernels/attention_sm100/row_softmax.h"
#include "kernels/attention_sm100/tensor_mma.h"
#include "ptx/bulk_tensor_copy.h"
#include "tile/element_chunk.h"
#include "tile/ring.h"
#include "tile/row_end.h"
#include "tile/tensor_memory.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kRowThreads = 128;  ///< warps 0-3: thread = row = lane
inline constexpr int kRowBarrier = 1;    ///< the named barrier of these; number 0: of the CTA
inline constexpr int kMmaWarp = 4, kLoadWarp = 5;
inline constexpr int kKeys = kBoxRows;  ///< of a step

/// Rows of a CTA: `queries` queries, each with all heads that share keys and values. Row r is query
/// first_query + r / group of head kv_head * group + r % group.
struct GroupRows {
  std::int32_t group, queries, first_query, kv_head, batch;
  std::int32_t value_begin;  ///< first value column of the CTA
  AttentionSequence sequence;

  /// Rows that exist.
  __device__ std::int32_t rows() const {
    return group * min(queries, sequence.q_len - first_query);
  }
  /// Rows that the boxes of q and out have.
  __device__ std::int32_t box_rows() const { return group * queries; }
  __device__ std::int32_t query(std::int32_t row) const { return first_query + row / group; }
  __device__ std::int32_t head(std::int32_t row) const { return kv_head * group + row % group; }
  /// Batch coordinate of q and out, and batch of their strides.
  __device__ std::int32_t stored_batch(const kernels::AttentionParams& params) const {
    return params.cu_q == nullptr ? batch : 0;
  }
};

/// The rows of a CTA and the keys that they see.
template <int HeadDim, int ValueColumns>
struct GroupWork : GroupRows {
  static constexpr std::int32_t kSplits = HeadDim / ValueColumns;

  KeyTiles<kKeys> tiles;

  // The last queries first: under a causal mask they see the most keys.
  __device__ explicit GroupWork(const kernels::AttentionParams& params)
      : GroupWork(params, params.heads / params.kv_heads,
                  params.q_tiles - 1 - static_cast<std::int32_t>(blockIdx.x) / kSplits) {}
  __device__ GroupWork(const kernels::AttentionParams& params, std::int32_t heads,
                       std::int32_t q_tile)
      : GroupRows{heads,
                  kTensorRows / heads,
                  q_tile * (kTensorRows / heads),
                  static_cast<std::int32_t>(blockIdx.y),
                  static_cast<std::int32_t>(blockIdx.z),
                  static_cast<std::int32_t>(blockIdx.x) % kSplits * ValueColumns,
                  find_sequence(params, static_cast<std::int32_t>(blockIdx.z))},
        tiles(params, sequence.kv_len, shift(), first_query,
              min(first_query + queries, sequence.q_len) - 1) {}

  __device__ std::int32_t shift() const { return sequence.kv_len - sequence.q_len; }
  __device__ std::int32_t num_tiles() const { return tiles.end - tiles.begin; }
};

/// Where box number `index` of all is in the ring.
template <int Stages>
__device__ RingPosition<Stages> box_position(std::int32_t index) {
  const auto i = static_cast<std::uint32_t>(index);
  return {i % Stages, i / Stages & 1};
}

/// For store_results(): the only ones who store in a CTA. They wait until what they wrote is there.
struct OneStore {
  static constexpr int kChunks = 1;
  static constexpr bool kHasLengths = false;  ///< sequences may be shorter than their room
  __device__ void sync() const { ptx::bar_sync<kRowBarrier, kRowThreads>(); }
  __device__ void wait() const { ptx::cp_async_bulk_wait_group<0>(); }
};

/// 128 threads, one a row: results times `factor` to `boxes` of shared memory and out by tensor
/// copies, or, where a box would run over the end of a packed sequence, row by row up to value_dim.
/// Without keys (`has_results` false) zeros. With 64 rows, threads from 64 on have the second half
/// of every 256 columns of theirs.
template <class Element, int ValueBoxes, int Rows = kTensorRows, class Store = OneStore>
__device__ void store_results(const kernels::AttentionParams& params,
                              std::uint8_t (*boxes)[Rows * kBoxRowBytes], const GroupRows& rows,
                              std::uint32_t results, float factor, bool has_results,
                              Store store = {}) {
  constexpr int kLanesOfRow = kTensorRows / Rows, kColumns = ValueBoxes * kBoxElems / kLanesOfRow;
  const auto row = static_cast<std::int32_t>(threadIdx.x % Rows);
  const int part = static_cast<int>(threadIdx.x % kRowThreads / Rows);
  const bool is_cut = Store::kHasLengths || params.cu_q != nullptr;
  const bool is_whole = !is_cut || rows.rows() == rows.box_rows();
  const bool is_inside = row < rows.rows();
  const std::int32_t batch = rows.stored_batch(params);
  if (ptx::uniform(row) < rows.rows()) {
    auto* const out = static_cast<std::uint16_t*>(params.out) + batch * params.out_strides.batch +
                      (rows.sequence.q_begin + rows.query(row)) * params.out_strides.row +
                      rows.head(row) * params.out_strides.head + rows.value_begin;
#pragma unroll 1
    for (int first = 0; first < kColumns; first += 32 * Store::kChunks) {
      float o[Store::kChunks][32] = {};
      if (has_results) load_row(o, own_lanes(results) + first);
#pragma unroll
      for (int part_of = 0; part_of < Store::kChunks; ++part_of) {  // 4 chunks of a line each
        const int column = first + 32 * part_of;
        const int to = kLanesOfRow == 1 ? column : column / 128 * 256 + part * 128 + column % 128;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const uint4 chunk = pack_chunk<Element>(&o[part_of][i * 8], factor);
          if (is_whole) {
            *line_chunk<uint4>(boxes[to / kBoxElems], row, to % kBoxElems / 8 + i) = chunk;
          } else if (is_inside && rows.value_begin + to + 8 * i < params.value_dim) {
            reinterpret_cast<uint4*>(out + to)[i] = chunk;
          }
        }
      }
    }
  }
  if (!is_whole) return;
  ptx::fence_proxy_async_shared_cta();
  store.sync();
  if (row != 0 || part != 0) return;
  for (int box = 0; box < ValueBoxes; ++box) {
    ptx::cp_async_bulk_tensor_4d_global_shared(
        params.out_map, rows.value_begin + box * kBoxElems, rows.kv_head * rows.group,
        rows.sequence.q_begin + rows.first_query, batch, ptx::shared_address(boxes[box]));
  }
  ptx::cp_async_bulk_commit_group();
  store.wait();
}

/// The scale that finishes a row whose scores times scale_log2 are in units of log2. The thread
/// with the first value column writes its lse if the caller asked for it.
template <int Rows = kTensorRows>
__device__ float finish_group_row(const kernels::AttentionParams& params, const GroupRows& rows,
                                  const RowSoftmax& softmax, float scale_log2) {
  const auto row = static_cast<std::int32_t>(threadIdx.x % Rows);
  if (row >= rows.rows()) return 0.0f;
  const std::int32_t head = rows.head(row);
  const float* const sink = params.sink == nullptr ? nullptr : params.sink + head;
  const RowEnd finished(softmax.reference, scale_log2, softmax.sum, sink);
  if (params.lse != nullptr && rows.value_begin == 0 && threadIdx.x % kRowThreads < Rows) {
    params.lse[rows.stored_batch(params) * params.lse_batch_stride + head * params.lse_head_stride +
               rows.sequence.q_begin + rows.query(row)] = finished.lse;
  }
  return finished.factor;
}
template <int Rows = kTensorRows>
__device__ float finish_group_row(const kernels::AttentionParams& params, const GroupRows& rows,
                                  const RowSoftmax& softmax) {
  return finish_group_row<Rows>(params, rows, softmax, params.scale_log2);
}

}  // namespace tilewright::tile
