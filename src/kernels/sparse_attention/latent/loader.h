// The warps that load: one the keys, by tensor copies, the others the queries.
#pragma once

#include "kernels/sparse_attention/latent/pieces.h"
#include "kernels/sparse_attention/latent/shared.h"
#include "ptx/bulk_tensor_multicast.h"
#include "ptx/cp_async.h"
#include "ptx/tensor_prefetch.h"

#include <cstdint>

namespace tilewright::tile {

/// A warp: keys of all blocks of a group. A block's boxes of rows come each on its own, of a
/// cluster half of them to each CTA, which sends them to both. Lane 4 i + j has rows i of the CTA's
/// rows, and box j of each half of their values.
template <class Form>
class LatentKeyLoader {
  static constexpr std::int32_t kRows = kernels::kSparseBlockKeys / Form::kCtas;  ///< of this CTA
  /// Pairs of CTAs, or two pairs, wait for memory here and there; one CTA alone has it busy.
  static constexpr bool kAsksAhead = Form::kCtas > 1;

 public:
  __device__ LatentKeyLoader(const kernels::LatentParams& params, LatentShared<Form>& shared)
      : params_(params),
        shared_(shared),
        box_(static_cast<std::int32_t>(threadIdx.x % 4)),
        row_(static_cast<std::int32_t>(threadIdx.x % 32 / 4) * params.box_rows),
        has_rows_(row_ < kRows) {
    if constexpr (Form::kCtas > 1)
      row_ += static_cast<std::int32_t>(ptx::cluster_ctarank()) * kRows;
  }

  __device__ void run(LatentPieces pieces) {
    LatentPiece piece;
    while (pieces.take(piece)) {
      if (!piece.is_empty()) load_piece(piece);
    }
  }

 private:
  struct Place {
    std::int32_t page, slot;
  };

  /// Two blocks at a time, their parts in the order in which room for them becomes free: scores of
  /// both come before the values of either.
  __device__ void load_piece(const LatentPiece& piece) {
    const std::int32_t last = piece.end - 1;
    Place next[2] = {place(piece, piece.begin), place(piece, min(piece.begin + 1, last))};
    for (std::int32_t n = piece.begin; n < piece.end; n += 2) {
      const Place at[2] = {next[0], next[1]};
      // On their way while these blocks wait.
      for (int i = 0; i < 2; ++i) next[i] = place(piece, min(n + 2 + i, last));
      const bool has_both = n < last;
      load_keys<0>(piece, at[0]);
      if (has_both) load_keys<1>(piece, at[1]);
      load_values<0>(piece, at[0]);
      if (kAsksAhead && n + 2 < piece.end) prefetch(piece, next[0]);
      if (has_both) load_values<1>(piece, at[1]);
      if (kAsksAhead && n + 3 < piece.end) prefetch(piece, next[1]);
    }
  }

  __device__ Place place(const LatentPiece& piece, std::int32_t block) const {
    const kernels::LatentCache& cache = params_.cache;
    const std::int32_t key = block * kernels::kSparseBlockKeys + row_;
    if (cache.table == nullptr) return {piece.batch, key};
    // Behind the room of a sequence there are no pages: a page that is none reads as zeros.
    if (key >= cache.capacity || !has_rows_) return {cache.num_pages, 0};
    const auto in_table =
        static_cast<std::int32_t>(cache.page_divisor.divide(static_cast<std::uint32_t>(key)));
    return {cache.table[piece.batch * cache.table_stride + in_table],
            key - in_table * cache.page_size};
  }

  template <int Stage>
  __device__ void load_keys(const LatentPiece& piece, const Place& at) {
    const Ring<1> ring(shared_.k_ring[Stage]);
    start(ring, at_[Stage], kSparseBoxBytes);
    if (has_rows_ && box_ == 0)
      copy(params_.k_map, shared_.k[Stage], 0, piece, at, ring.full(at_[Stage]));
  }
  /// Behind load_keys() of the same block.
  template <int Stage>
  __device__ void load_values(const LatentPiece& piece, const Place& at) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int half = Stage ^ i;  // that of the consumer whose scores these are is free first
      auto& ring = shared_.v_ring[Stage][half];
      ptx::mbarrier_wait_parity(ptx::shared_address(&ring.empty), at_[Stage].parity ^ 1);
      const bool has_box = box_ < Form::kHalfBoxes;
      const int part = has_box ? box_ / Form::kPartBoxes : 0;
      const std::uint32_t full = ptx::shared_address(&ring.full[part]);
      if (has_box && threadIdx.x % 32 < 4 && box_ % Form::kPartBoxes == 0)
        ptx::mbarrier_arrive_expect_tx(full, Form::kPartBoxes * kSparseBoxBytes);
      __syncwarp();
      if (has_rows_ && has_box)
        copy(params_.v_map, shared_.v[Stage][half] + box_ * kSparseBoxBytes,
             half * Form::kHalfDims + box_ * kBoxColumns, piece, at, full);
    }
    at_[Stage].advance();
  }
  /// Of two pairs with the same keys each asks for its half.
  __device__ void prefetch(const LatentPiece& piece, const Place& at) const {
    if (!has_rows_) return;
    const bool is_shared = params_.ctas > Form::kCtas;
    const int own = static_cast<int>(blockIdx.x) % params_.ctas / Form::kCtas;
    const auto ask = [&](const std::uint8_t* map, std::int32_t column) {
      ptx::cp_async_bulk_prefetch_tensor_4d_L2(map, column, at.slot, piece.kv_head, at.page);
    };
    if (box_ == 0 && own == 0) ask(params_.k_map, 0);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (box_ < Form::kHalfBoxes && (!is_shared || half == own))
        ask(params_.v_map, half * Form::kHalfDims + box_ * kBoxColumns);
  }
  __device__ static void start(const Ring<1>& ring, const RingPosition<1>& at,
                               std::uint32_t bytes) {
    ring.wait_empty(at);
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive_expect_tx(ring.full(at), bytes);
    __syncwarp();
  }
  __device__ void copy(const std::uint8_t* map, std::uint8_t* box, std::int32_t column,
                       const LatentPiece& piece, const Place& at, std::uint32_t barrier) const {
    const std::uint32_t to = ptx::shared_address(box) + row_ * kBoxRowBytes;
    if constexpr (Form::kCtas == 1) {
      ptx::cp_async_bulk_tensor_4d_shared_global(to, map, column, at.slot, piece.kv_head, at.page,
                                                 barrier);
    } else {
      ptx::cp_async_bulk_tensor_4d_shared_global_multicast(
          to, map, column, at.slot, piece.kv_head, at.page, barrier, (1 << Form::kCtas) - 1);
    }
  }

  const kernels::LatentParams& params_;
  LatentShared<Form>& shared_;
  std::int32_t box_, row_;
  bool has_rows_;
  RingPosition<1> at_[2];
};

/// Warp `warp` of three: rows of qv that it has of each tile; those that there are not become
/// zeros.
template <class Form>
__device__ void load_latent_queries(const kernels::LatentParams& params, LatentShared<Form>& shared,
                                    LatentPieces pieces, std::uint32_t warp) {
  constexpr int kChunks = Form::kValueDims / 8;
  const Ring<1> ring(shared.q_ring);
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t to = ptx::shared_address(shared.qv) + lane / 8 * kSparseBoxBytes;
  RingPosition<1> at;
  for (LatentPiece piece; pieces.take(piece); at.advance()) {
    ring.wait_empty(at);
#pragma unroll 1
    for (std::uint32_t i = warp; i < kernels::kLatentTileRows;
         i += LatentShared<Form>::kQueryWarps) {
      const LatentRow row(params, piece, i);
      const std::uint16_t* const from =
          row.is_there ? params.qv + row.offset(params.qv_strides) + lane * 8 : params.qv;
      const std::uint32_t chunk = to + i * kBoxRowBytes + chunk_in_line(i % 8, lane % 8);
#pragma unroll
      for (int c = 0; c < kChunks; c += 32)
        ptx::cp_async_cg_shared_global_16(chunk + c / 8 * kSparseBoxBytes,
                                          from + (row.is_there ? c * 8 : 0), row.is_there ? 16 : 0);
    }
    ptx::cp_async_commit_group();
    ptx::cp_async_wait_group<0>();
    publish_to_products(ring.full(at));
  }
}

}  // namespace tilewright::tile
