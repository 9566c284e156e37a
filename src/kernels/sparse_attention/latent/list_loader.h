// The warps that load keys which lists name, and the queries.
#pragma once

#include "kernels/sparse_attention/latent/pieces.h"
#include "kernels/sparse_attention/latent/shared.h"
#include "ptx/cp_async.h"
#include "ptx/prefetch.h"

#include <cstdint>

namespace tilewright::tile {

/// Where entries that name no row point.
static __device__ const uint4 kLatentNoRow[kKvMlaDims * 2 / 16] = {};

/// A warp of four: 16 rows of every block, two blocks at a time. Lane l finds row l % 16 of block
/// l / 16; eight lanes copy a row, a chunk of each of its boxes, 4 rows at a time. Entries are read
/// two blocks ahead. Memory is asked for by the copies: each of 16 bytes brings the 256 around it
/// into the second cache, so that what other lanes copy of the row is there or on its way.
template <class Form>
class LatentListLoader {
  static constexpr int kWarps = 4;
  static constexpr int kRows = kernels::kSparseBlockKeys / kWarps, kShares = kRows / 4;
  static_assert(Form::kHalfParts == 1);

 public:
  __device__ LatentListLoader(const kernels::LatentParams& params, LatentShared<Form>& shared,
                              std::uint32_t warp)
      : params_(params), shared_(shared), warp_(warp) {}

  __device__ void run(LatentPieces pieces) {
    for (LatentPiece piece; pieces.take(piece);) {
      load_queries(piece);
      read(piece, piece.begin);
      for (std::int32_t n = piece.begin; n < piece.end; n += 2) {
        find();
        read(piece, n + 2);
        load_blocks(n + 1 < piece.end);
      }
    }
  }

 private:
  static __device__ std::uint32_t lane() { return threadIdx.x % 32; }

  /// The entry of this lane's row of a block, or of the one behind it.
  __device__ void read(const LatentPiece& piece, std::int32_t block) {
    const std::int32_t own = block + static_cast<std::int32_t>(lane() / kRows);
    const std::int32_t entry =
        own * kernels::kSparseBlockKeys + static_cast<std::int32_t>(warp_ * kRows + lane() % kRows);
    const std::int32_t* const entries =
        params_.lists.indices + piece.batch * params_.lists.index_stride;
    entry_ = entry < piece.length ? entries[entry] : -1;
  }
  /// Where the row that was read is, and which lanes have one.
  __device__ void find() {
    const kernels::SparseKeys& lists = params_.lists;
    const auto row = static_cast<std::uint32_t>(entry_);
    const bool is_row = row < static_cast<std::uint32_t>(lists.num_rows);
    valid_ = __ballot_sync(0xffffffffu, is_row);
    const auto page = lists.page_divisor.divide(is_row ? row : 0);
    const auto slot = static_cast<std::int64_t>(row - page * lists.page_size);
    const std::uint8_t* const named =
        lists.pages + page * lists.page_stride + slot * kv_data_bytes(KvFormat::kBf16Mla);
    source_ = is_row ? named : reinterpret_cast<const std::uint8_t*>(kLatentNoRow);
  }

  /// A block, or two, their parts in the order in which room for them becomes free.
  __device__ void load_blocks(bool has_both) {
    load_keys(0);
    if (has_both) load_keys(1);
    load_values(0, 0);
    load_values(0, 1);
    at_[0].advance();
    if (!has_both) return;
    load_values(1, 1);
    load_values(1, 0);
    at_[1].advance();
  }
  __device__ void load_keys(int stage) {
    const Ring<1> ring(shared_.k_ring[stage]);
    ring.wait_empty(at_[stage]);
    copy<1>(stage, shared_.k[stage], Form::kValueDims);
    if (lane() == 0) {
      reinterpret_cast<std::uint16_t*>(shared_.valid[stage])[warp_] =
          static_cast<std::uint16_t>(valid_ >> kRows * stage);
      ptx::mbarrier_arrive(ring.full(at_[stage]));
    }
    ptx::cp_async_mbarrier_arrive_noinc(ring.full(at_[stage]));
  }
  __device__ void load_values(int stage, int half) {
    auto& ring = shared_.v_ring[stage][half];
    ptx::mbarrier_wait_parity(ptx::shared_address(&ring.empty), at_[stage].parity ^ 1);
    copy<Form::kHalfBoxes>(stage, shared_.v[stage][half], half * Form::kHalfDims);
    ptx::cp_async_mbarrier_arrive_noinc(ptx::shared_address(&ring.full[0]));
  }
  /// Starts to copy columns from `first` on to boxes. All places in them are constants but for two:
  /// in every second share of rows chunks are swapped by the line's bit of 4.
  template <int Boxes>
  __device__ void copy(int stage, std::uint8_t* boxes, std::uint32_t first) const {
    const std::uint32_t chunk = lane() % 8, row = lane() / 8;
    const std::uint32_t to = ptx::shared_address(boxes) + (warp_ * kRows + row) * kBoxRowBytes;
    const std::uint32_t places[2] = {to + chunk_in_line(row, chunk),
                                     to + chunk_in_line(row + 4, chunk) + 4 * kBoxRowBytes};
#pragma unroll
    for (int i = 0; i < kShares; ++i) {
      const auto source = __shfl_sync(0xffffffffu, reinterpret_cast<std::uint64_t>(source_),
                                      kRows * stage + static_cast<int>(row) + 4 * i);
      const auto* const from =
          reinterpret_cast<const std::uint8_t*>(source) + first * 2 + chunk * 16;
#pragma unroll
      for (int b = 0; b < Boxes; ++b)
        ptx::cp_async_cg_l2_256_shared_global_16(
            places[i % 2] + i / 2 * 8 * kBoxRowBytes + b * kSparseBoxBytes,
            from + b * kBoxRowBytes);
    }
  }

  /// This warp's rows of qv, when the tile before is done with: a row at a time.
  __device__ void load_queries(const LatentPiece& piece) {
    const Ring<1> ring(shared_.q_ring);
    ring.wait_empty(q_at_);
    const std::uint32_t to = ptx::shared_address(shared_.qv) + lane() / 8 * kSparseBoxBytes;
#pragma unroll 1
    for (std::uint32_t i = warp_; i < kernels::kLatentTileRows; i += kWarps) {
      const LatentRow row(params_, piece, i);
      const std::uint16_t* const from =
          row.is_there ? params_.qv + row.offset(params_.qv_strides) + lane() * 8 : params_.qv;
      const std::uint32_t chunk = to + i * kBoxRowBytes + chunk_in_line(i % 8, lane() % 8);
#pragma unroll
      for (int c = 0; c < Form::kValueDims / 8; c += 32)
        ptx::cp_async_cg_shared_global_16(chunk + c / 8 * kSparseBoxBytes,
                                          from + (row.is_there ? c * 8 : 0), row.is_there ? 16 : 0);
    }
    ptx::cp_async_mbarrier_arrive_noinc(ring.full(q_at_));
    q_at_.advance();
  }

  const kernels::LatentParams& params_;
  LatentShared<Form>& shared_;
  std::uint32_t warp_;
  std::int32_t entry_ = -1;
  const std::uint8_t* source_ = nullptr;  ///< of this lane's row of the blocks at hand
  std::uint32_t valid_ = 0;               ///< bit l: lane l has one
  RingPosition<1> at_[2], q_at_;
};

}  // namespace tilewright::tile
