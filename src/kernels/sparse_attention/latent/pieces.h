// The pieces of work of a group of CTAs, and the rows of a CTA.
#pragma once

#include "kernels/sparse_attention/latent/latent.h"

#include <cstdint>

namespace tilewright::tile {

/// Blocks [begin, end) of 64 keys for the rows of a tile.
struct LatentPiece {
  std::int32_t begin, end, partial;
  std::int32_t batch, kv_head, first_row;  ///< of this CTA
  std::int32_t length;                     ///< keys of the sequence

  __device__ bool is_empty() const { return begin >= end; }
};

class LatentPieces {
 public:
  /// Of CTA `part` of its group.
  __device__ LatentPieces(const kernels::LatentParams& params, std::int32_t group,
                          std::int32_t part)
      : params_(params),
        part_(part),
        at_(group),
        end_(params.batch * params.kv_heads * params.tiles) {
    if (params.work == nullptr) return;
    at_ = params.work_begin[group];
    end_ = params.work_begin[group + 1];
  }

  /// False at the end.
  __device__ bool take(LatentPiece& piece) {
    if (at_ >= end_) return false;
    const kernels::SparseWork work =
        params_.work != nullptr ? params_.work[at_] : kernels::SparseWork{at_, 0, 1 << 30, -1};
    at_ += params_.work != nullptr ? 1 : params_.groups;
    const std::int32_t of_sequence = params_.kv_heads * params_.tiles;
    piece.batch = work.query / of_sequence;
    const std::int32_t in_sequence = work.query - piece.batch * of_sequence;
    piece.kv_head = in_sequence / params_.tiles;
    const std::int32_t rows = params_.ctas * kernels::kLatentTileRows;
    const std::int32_t tile_row = (in_sequence - piece.kv_head * params_.tiles) * rows;
    piece.first_row = tile_row + part_ * kernels::kLatentTileRows;
    piece.length = params_.cache.capacity;
    if (params_.lengths != nullptr)
      piece.length = min(max(params_.lengths[piece.batch], 0), piece.length);
    const std::int32_t last_row = min(tile_row + rows, params_.group * params_.q_len) - 1;
    const std::int32_t keys = visible(piece, last_row);
    piece.begin = work.begin_block;
    piece.end =
        min(work.end_block, (keys + kernels::kSparseBlockKeys - 1) / kernels::kSparseBlockKeys);
    piece.partial = work.partial;
    return true;
  }

  /// How many keys a row sees; all of them for rows that there are not.
  __device__ std::int32_t visible(const LatentPiece& piece, std::int32_t row) const {
    if (params_.is_causal == 0 || row >= params_.group * params_.q_len) return piece.length;
    return max(piece.length - (params_.q_len - 1 - query_of(row)), 0);
  }
  __device__ std::int32_t query_of(std::int32_t row) const {
    return static_cast<std::int32_t>(params_.group_divisor.divide(static_cast<std::uint32_t>(row)));
  }

 private:
  const kernels::LatentParams& params_;
  std::int32_t part_, at_, end_;
};

/// The query and head of a row of a piece.
struct LatentRow {
  std::int32_t batch, query, head;
  bool is_there;

  __device__ LatentRow(const kernels::LatentParams& params, std::int32_t batch_index,
                       std::int32_t kv_head, std::int32_t row)
      : batch(batch_index),
        query(static_cast<std::int32_t>(
            params.group_divisor.divide(static_cast<std::uint32_t>(row)))),
        head(kv_head * params.group + row - query * params.group),
        is_there(query < params.q_len) {}
  __device__ LatentRow(const kernels::LatentParams& params, const LatentPiece& piece,
                       std::uint32_t row)
      : LatentRow(params, piece.batch, piece.kv_head,
                  piece.first_row + static_cast<std::int32_t>(row)) {}

  __device__ std::int64_t offset(const kernels::SparseStrides& strides) const {
    return batch * strides.batch + query * strides.query + head * strides.head;
  }
};

}  // namespace tilewright::tile
