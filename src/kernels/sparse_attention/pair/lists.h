// Rows that attend over lists: the heads of a query, or of a tile of neighbouring queries.
#pragma once

#include "kernels/sparse_attention/pair/shared.h"
#include "kernels/sparse_attention/pieces.h"
#include "kernels/sparse_attention/walk.h"

#include <cstdint>

namespace tilewright::tile {

/// Of a thread with a row: which one that is of a piece, where its numbers are, and what it sees.
class SparsePairLists {
 public:
  using Params = kernels::SparsePairParams;
  using Numbers = kernels::SparseDecodeParams;
  using Piece = kernels::SparseWork;
  static constexpr bool kHasMaxima = true;

  /// The pieces of a group.
  class Walk : public SparseWalk {
   public:
    __device__ Walk(const Params& params, std::int32_t group) : SparseWalk(params.decode, group) {}
  };
  static __device__ std::int32_t blocks(const Params& params, const Piece& work) {
    const std::int32_t all = SparseQuery(params.decode, work.query).num_blocks();
    return max(min(work.end_block, all) - work.begin_block, 0);
  }

  /// Of CTA `rank`, and of the thread of a row that has half `part` of each block's keys.
  __device__ SparsePairLists(const Params& params, std::uint32_t part, std::uint32_t rank)
      : pair_(params),
        params_(params.decode),
        lane_(threadIdx.x % 32),
        part_(part),
        rank_(static_cast<std::int32_t>(rank)) {}

  static __device__ const Numbers& numbers(const Params& params) { return params.decode; }
  /// The head of this thread's row; < 0: none.
  __device__ std::int32_t row(const Piece& piece) const {
    const std::int32_t row = static_cast<std::int32_t>(threadIdx.x % 64) % rows_of_query();
    if (has_tiles()) {
      const std::int32_t query =
          piece.query % params_.q_len * (2 * pair_.queries_of_cta) + own_query();
      return row < params_.heads && query < pair_.queries ? row : -1;
    }
    const std::int32_t first = (params_.heads + 1) / 2;  // heads of the first CTA
    return row < (rank_ == 0 ? first : params_.heads - first) ? row + rank_ * first : -1;
  }
  /// Before the blocks of a piece.
  __device__ void begin(const Piece& /*piece*/, std::int32_t /*row*/) {}

  /// The first 512 numbers of a query, and those behind them; of one that there is if row < 0.
  __device__ const std::uint16_t* query(const Piece& piece, std::int32_t row) const {
    return params_.q + offset(params_.q_strides, pair_.q_step, piece, max(row, 0));
  }
  __device__ const std::uint16_t* query_tail(const Piece& piece, std::int32_t row) const {
    return query(piece, row) + kKvDims;
  }
  __device__ std::uint16_t* out(const Piece& piece, std::int32_t row) const {
    return params_.out + offset(params_.out_strides, pair_.out_step, piece, row);
  }
  __device__ std::int64_t lse_offset(const Piece& piece, std::int32_t row) const {
    return offset(params_.lse_strides, pair_.lse_step, piece, row);
  }
  /// Of the thread's row among partial results.
  __device__ std::int64_t partial_row(const Piece& piece, std::int32_t row) const {
    const std::int32_t queries = has_tiles() ? 2 * pair_.queries_of_cta : 1;
    return (std::int64_t{piece.partial} * queries + own_query()) * params_.heads + row;
  }
  /// Not null if there are sinks at all.
  __device__ const float* sink(const Piece& /*piece*/, std::int32_t row) const {
    return params_.sink + row;
  }

  /// Of this lane's key of the thread's half of a block: which queries of the tile see it.
  __device__ std::uint32_t seen_by(const Piece& piece, std::int32_t n, std::int32_t blocks) const {
    if (n >= blocks) return 0;
    const SparseBlock block = SparseQuery(params_, piece.query).block(piece.begin_block + n);
    const auto at = static_cast<std::int32_t>(part_ * 32 + lane_);
    if (at >= block.count) return 0;
    const kernels::SparseKeys& keys = params_.keys[block.list];
    if (sparse_row(keys, piece.query, block.first + at) < 0) return 0;
    if (!has_tiles()) return 1;
    return pair_.masks[block.list][piece.query * keys.index_stride + block.first + at];
  }
  /// Which keys of the thread's half its row sees, out of what all lanes know of one each.
  __device__ std::uint32_t own_keys(std::uint32_t seen) const {
    const std::int32_t own = own_query(), first = ptx::uniform(own);
    std::uint32_t keys = 0;
    for (std::int32_t query = first; query < first + max(32 / rows_of_query(), 1); ++query) {
      const std::uint32_t all = __ballot_sync(0xffffffffu, (seen >> query & 1) != 0);
      if (query == own) keys = all;
    }
    return keys;
  }

 private:
  __device__ bool has_tiles() const { return pair_.masks[0] != nullptr; }
  /// Rows of a query in this CTA; 64 without tiles.
  __device__ std::int32_t rows_of_query() const {
    return has_tiles() ? kernels::SparsePairTile::kRows / pair_.queries_of_cta
                       : kernels::SparsePairTile::kRows;
  }
  /// The query of the tile that this thread's row belongs to.
  __device__ std::int32_t own_query() const {
    if (!has_tiles()) return 0;
    const auto row = static_cast<std::int32_t>(threadIdx.x % 64);
    return rank_ * pair_.queries_of_cta + row / rows_of_query();
  }
  __device__ std::int64_t offset(const kernels::SparseStrides& strides, std::int64_t step,
                                 const Piece& piece, std::int32_t head) const {
    return sparse_offset(params_, strides, piece.query, head) + own_query() * step;
  }

  const Params& pair_;
  const kernels::SparseDecodeParams& params_;
  std::uint32_t lane_, part_;
  std::int32_t rank_;
};

/// For kernel.h: keys are rows of lists in a format, which come by KeysOf<Half>.
template <KvFormat Format, template <int> class KeysOf>
struct OverLists {
  using Form = PairForm<kv_dims(Format)>;
  using Task = SparsePairLists;
  template <int Half>
  using Keys = KeysOf<Half>;
};

}  // namespace tilewright::tile
