// Rows that attend over all keys of a sequence, and how these keys are found: DeepSeek-V3's
// decoding over pages of 576. A row is a head of a query; a tile has 128 of them, half of them in
// each CTA.
#pragma once

#include "kernels/sparse_attention/entries.h"
#include "kernels/sparse_attention/latent/pieces.h"
#include "kernels/sparse_attention/pair/shared.h"

#include <cstdint>

namespace tilewright::tile {

/// As SparsePairLists.
class PairAllKeys {
 public:
  using Params = kernels::LatentParams;
  using Numbers = kernels::LatentParams;
  using Piece = LatentPiece;
  static constexpr bool kHasMaxima = false;

  class Walk {
   public:
    __device__ Walk(const Params& params, std::int32_t group) : pieces_(params, group, 0) {}
    __device__ bool next(Piece& piece) { return pieces_.take(piece); }

   private:
    LatentPieces pieces_;
  };
  static __device__ std::int32_t blocks(const Params& /*params*/, const Piece& piece) {
    return max(piece.end - piece.begin, 0);
  }

  __device__ PairAllKeys(const Params& params, std::uint32_t part, std::uint32_t rank)
      : params_(params),
        pieces_(params, 0, 0),
        part_(part),
        rank_(static_cast<std::int32_t>(rank)) {}

  static __device__ const Numbers& numbers(const Params& params) { return params; }
  /// The number of this thread's row in its tile; < 0: none.
  __device__ std::int32_t row(const Piece& piece) const {
    const auto row = static_cast<std::int32_t>(threadIdx.x % 64);
    const std::int32_t left = params_.group * params_.q_len - piece.first_row;
    const std::int32_t rows = min(left, 2 * kernels::kLatentTileRows), first = (rows + 1) / 2;
    return row < (rank_ == 0 ? first : rows - first) ? row + rank_ * first : -1;
  }
  __device__ void begin(const Piece& piece, std::int32_t row) {
    limit_ = pieces_.visible(piece, piece.first_row + max(row, 0)) -
             piece.begin * kernels::kSparseBlockKeys -
             static_cast<std::int32_t>(part_) * (kernels::kSparseBlockKeys / 2);
  }

  __device__ const std::uint16_t* query(const Piece& piece, std::int32_t row) const {
    return params_.qv + place(piece, max(row, 0)).offset(params_.qv_strides);
  }
  __device__ const std::uint16_t* query_tail(const Piece& piece, std::int32_t row) const {
    return params_.q + place(piece, max(row, 0)).offset(params_.q_strides);
  }
  __device__ std::uint16_t* out(const Piece& piece, std::int32_t row) const {
    return params_.out + place(piece, row).offset(params_.out_strides);
  }
  __device__ std::int64_t lse_offset(const Piece& piece, std::int32_t row) const {
    return place(piece, row).offset(params_.lse_strides);
  }
  __device__ std::int64_t partial_row(const Piece& piece, std::int32_t row) const {
    return std::int64_t{piece.partial} * (2 * kernels::kLatentTileRows) + row;
  }
  __device__ const float* sink(const Piece& piece, std::int32_t row) const {
    return params_.sink + place(piece, row).head;
  }

  /// Which keys of the thread's half of a block its row sees.
  __device__ std::uint32_t seen_by(const Piece& /*piece*/, std::int32_t n,
                                   std::int32_t /*blocks*/) const {
    const std::int32_t keys = limit_ - n * kernels::kSparseBlockKeys;
    return keys >= 32 ? 0xffffffffu : keys <= 0 ? 0 : (1u << keys) - 1;
  }
  __device__ std::uint32_t own_keys(std::uint32_t seen) const { return seen; }

 private:
  __device__ LatentRow place(const Piece& piece, std::int32_t row) const {
    return {params_, piece, static_cast<std::uint32_t>(row)};
  }

  const Params& params_;
  LatentPieces pieces_;
  std::uint32_t part_;
  std::int32_t rank_;
  std::int32_t limit_ = 0;  ///< keys that the row sees from the first of its half of a block on
};

/// As SparseEntries: a warp has 8 keys of each block, lane l those of lines l / 8 and l / 8 + 4.
class PairAllEntries {
 public:
  static constexpr int kShares = 2, kRowsAtOnce = 4;

  __device__ PairAllEntries(const kernels::LatentParams& params, std::int32_t group,
                            std::uint32_t first_row)
      : params_(params),
        pieces_(params, group, 0),
        row_(static_cast<std::int32_t>(first_row + threadIdx.x % 32 / 8)) {}

  /// Starts to read where the keys of the next block are.
  __device__ void read() {
    has_block_ = next();
    if (!has_block_) return;
#pragma unroll
    for (int i = 0; i < kShares; ++i) {
      const std::int32_t key = block_ * kernels::kSparseBlockKeys + row_ + kRowsAtOnce * i;
      pages_[i] = -1;
      if (key >= piece_.length) continue;
      slots_[i] = key;
      pages_[i] = piece_.batch;
      if (params_.cache.table == nullptr) continue;
      const auto in_table = static_cast<std::int32_t>(
          params_.cache.page_divisor.divide(static_cast<std::uint32_t>(key)));
      slots_[i] = key - in_table * params_.cache.page_size;
      pages_[i] = params_.cache.table[piece_.batch * params_.cache.table_stride + in_table];
    }
    kv_head_ = piece_.kv_head;
    ++block_;
  }
  /// The rows of the keys that were read; zeros where there is none, or no page.
  __device__ bool find() {
    const auto* const none = reinterpret_cast<const std::uint8_t*>(kSparseNoRow<kKvMlaDims>);
#pragma unroll
    for (int i = 0; i < kShares; ++i) {
      const bool is_there = has_block_ && static_cast<std::uint32_t>(pages_[i]) <
                                              static_cast<std::uint32_t>(params_.cache.num_pages);
      values_[i] = is_there ? address(params_.cache.v, i) : none;
      tails_[i] = is_there ? address(params_.cache.k, i) : none;
    }
    return has_block_;
  }
  /// Of share `i`: the 512 numbers that are the value, and the other 64.
  __device__ const std::uint8_t* values(int i) const {
    return values_[i];
  }
  __device__ const std::uint8_t* tail(int i) const {
    return tails_[i];
  }

 private:
  /// Is there another block?
  __device__ bool next() {
    while (block_ >= piece_.end) {
      if (!pieces_.take(piece_)) return false;
      block_ = piece_.begin;
    }
    return true;
  }
  __device__ const std::uint8_t* address(const kernels::LatentRows& rows, int i) const {
    return rows.data + pages_[i] * rows.page_stride + slots_[i] * rows.row_stride +
           kv_head_ * rows.head_stride;
  }

  const kernels::LatentParams& params_;
  LatentPieces pieces_;
  std::int32_t row_;
  LatentPiece piece_ = {};
  std::int32_t block_ = 0, kv_head_ = 0;
  std::int32_t pages_[kShares] = {-1, -1}, slots_[kShares] = {};
  bool has_block_ = false;
  const std::uint8_t *values_[kShares], *tails_[kShares];
};

}  // namespace tilewright::tile
