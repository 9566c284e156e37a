// The warps that load keys which lists name, and the queries.
#pragma once

#include "kernels/sparse_attention/latent/pieces.h"
#include "kernels/sparse_attention/latent/shared.h"
#include "ptx/cp_async.h"
#include "ptx/prefetch.h"

#include <cstdint>

namespace tilewright::tile {

/// A warp of four: 32 rows of every other block, all of a stage, which thus waits for nothing but
/// its own room. A lane finds a row; eight lanes copy one, a chunk of each of its boxes, 4 rows at
/// a time. Entries of a block are read two blocks ahead, and its rows asked for then.
template <class Form>
class LatentListLoader {
  static constexpr int kRows = 32, kShares = kRows / 4;
  static constexpr int kWarps = 4;

 public:
  __device__ LatentListLoader(const kernels::LatentParams& params, LatentShared<Form>& shared,
                              std::uint32_t warp)
      : params_(params),
        shared_(shared),
        warp_(warp),
        stage_(static_cast<int>(warp / 2)),
        first_row_(warp % 2 * kRows) {}

  __device__ void run(LatentPieces pieces) {
    for (LatentPiece piece; pieces.take(piece);) {
      load_queries(piece);
      read(piece, piece.begin + stage_);
      for (std::int32_t n = piece.begin + stage_; n < piece.end; n += 2) {
        source_ = next();
        read(piece, n + 2);
        load_keys();
        load_values(stage_);
        load_values(1 - stage_);
        if (n + 2 < piece.end) ask();
        at_.advance();
      }
    }
  }

 private:
  static __device__ std::uint32_t lane() { return threadIdx.x % 32; }

  /// The entry of this lane's row of a block.
  __device__ void read(const LatentPiece& piece, std::int32_t block) {
    const std::int32_t entry =
        block * kernels::kSparseBlockKeys + static_cast<std::int32_t>(first_row_ + lane());
    const std::int32_t* const entries =
        params_.lists.indices + piece.batch * params_.lists.index_stride;
    entry_ = entry < piece.length ? entries[entry] : -1;
  }
  /// Where the row that was read is; null if it is none.
  __device__ const std::uint8_t* next() const {
    const kernels::SparseKeys& lists = params_.lists;
    const auto row = static_cast<std::uint32_t>(entry_);
    if (row >= static_cast<std::uint32_t>(lists.num_rows)) return nullptr;
    const auto page = lists.page_divisor.divide(row);
    const auto slot = static_cast<std::int64_t>(row - page * lists.page_size);
    return lists.pages + page * lists.page_stride + slot * kv_data_bytes(KvFormat::kBf16Mla);
  }
  /// Starts to copy columns from `first` on to boxes, of rows that are none zeros.
  template <int Boxes>
  __device__ void copy(std::uint8_t* boxes, std::uint32_t first) const {
    const std::uint32_t chunk = lane() % 8;
    const std::uint32_t to = ptx::shared_address(boxes) + (first_row_ + lane() / 8) * kBoxRowBytes;
#pragma unroll 2
    for (int i = 0; i < kShares; ++i) {
      const auto source = __shfl_sync(0xffffffffu, reinterpret_cast<std::uint64_t>(source_),
                                      static_cast<int>(lane() / 8) + 4 * i);
      const bool has_row = source != 0;
      const auto* const from = has_row ? reinterpret_cast<const std::uint8_t*>(source) + first * 2
                                       : reinterpret_cast<const std::uint8_t*>(params_.q);
#pragma unroll
      for (int b = 0; b < Boxes; ++b)
        ptx::cp_async_cg_shared_global_16(to + b * kSparseBoxBytes + i * 4 * kBoxRowBytes +
                                              chunk_in_line((lane() / 8 + 4 * i) % 8, chunk),
                                          from + (has_row ? b * kBoxRowBytes + chunk * 16 : 0),
                                          has_row ? 16 : 0);
    }
  }

  __device__ void load_keys() {
    const Ring<1> ring(shared_.k_ring[stage_]);
    ring.wait_empty(at_);
    copy<1>(shared_.k[stage_], Form::kValueDims);
    const std::uint32_t valid = __ballot_sync(0xffffffffu, source_ != nullptr);
    if (lane() == 0) {
      shared_.valid[stage_][warp_ % 2] = valid;
      ptx::mbarrier_arrive(ring.full(at_));
    }
    ptx::cp_async_mbarrier_arrive_noinc(ring.full(at_));
  }
  __device__ void load_values(int half) {
    auto& ring = shared_.v_ring[stage_][half];
    ptx::mbarrier_wait_parity(ptx::shared_address(&ring.empty), at_.parity ^ 1);
#pragma unroll 1
    for (int part = 0; part < Form::kHalfParts; ++part) {
      const int box = part * Form::kPartBoxes;
      copy<Form::kPartBoxes>(shared_.v[stage_][half] + box * kSparseBoxBytes,
                             half * Form::kHalfDims + box * kBoxColumns);
      ptx::cp_async_mbarrier_arrive_noinc(ptx::shared_address(&ring.full[part]));
    }
  }
  /// The row of the next block into the second cache: of two CTAs with the same list, each does
  /// half of its lines.
  __device__ void ask() const {
    constexpr int kLines = (Form::kValueDims + kernels::kLatentKeyDims) * 2 / 128;
    const std::uint8_t* const row = next();
    if (row == nullptr) return;
    const auto part = static_cast<int>(blockIdx.x) % params_.ctas;
#pragma unroll 1
    for (int line = part; line < kLines; line += params_.ctas)
      ptx::prefetch_global_L2(row + line * 128);
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
  int stage_;
  std::uint32_t first_row_;
  std::int32_t entry_ = -1;
  const std::uint8_t* source_ = nullptr;
  RingPosition<1> at_, q_at_;
};

}  // namespace tilewright::tile
