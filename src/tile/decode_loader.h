// Brings pieces of keys and values into the ring of a team of warps, which alone reads them: no
// barrier beyond the team. Every row of a head is looked up and gathered on its own, 16 bytes a
// lane: pages of one key cost what a contiguous cache costs.
#pragma once

#include "kernels/attention/decode.h"
#include "ptx/cp_async.h"
#include "tile/decode_schedule.h"

#include <cstdint>

namespace tilewright::tile {

/// Where chunk `chunk` (16 bytes) of a key's row is in a piece: eight neighbouring keys' chunks of
/// the same number lie in different banks.
template <int RowBytes>
__device__ constexpr std::uint32_t decode_chunk(std::uint32_t key, std::uint32_t chunk) {
  if constexpr (RowBytes >= 128) {
    return key * RowBytes + (chunk ^ (key & 7)) * 16;
  } else {
    static_assert(RowBytes == 64);
    return (key >> 1) * 128 + (((key & 1) * 4 + chunk) ^ (key >> 1 & 3)) * 16;
  }
}

template <int RowBytes, int RowWarps, int Teams, int Stages>
class DecodeLoader {
  static constexpr int kKeys = kernels::kDecodePieceKeys;
  static constexpr int kChunks = RowBytes / 16;
  static constexpr int kThreads = 32 * RowWarps;
  static constexpr int kRowsAtOnce = kThreads / kChunks;
  static constexpr int kCopies = kKeys / kRowsAtOnce;  ///< of keys, as many of values, a lane
  static_assert(kCopies >= 1);

 public:
  __device__ DecodeLoader(const kernels::DecodeParams& p, const DecodeWalk& walk,
                          std::uint32_t ring, std::uint32_t team, std::uint32_t row_warp)
      : p_(p), walk_(walk), ring_(ring), team_(team), row_warp_(row_warp) {
    segment_.begin = segment_.end = 0, piece_ = 0;
    look_up();
  }

  /// The next piece of this team, if there is one, to a stage; one group of copies in any case.
  __device__ void load(std::uint32_t stage) {
    if (is_more_) {
      const std::uint32_t thread = row_warp_ * 32 + threadIdx.x % 32;
      const std::uint32_t row = thread / kChunks, chunk = thread % kChunks;
      const std::uint32_t to = ring_ + stage * (2 * kKeys * RowBytes);
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        const std::uint32_t key = row + static_cast<std::uint32_t>(i) * kRowsAtOnce;
        const std::int64_t from = __shfl_sync(0xffffffffu, offset_, static_cast<int>(key));
        const std::uint32_t bytes = from >= 0 ? 16 : 0;
        const std::int64_t at = (from >= 0 ? from : 0) + chunk * 16;
        const std::uint32_t place = to + decode_chunk<RowBytes>(key, chunk);
        ptx::cp_async_cg_shared_global_16(place, p_.cache.k + at, bytes);
        ptx::cp_async_cg_shared_global_16(place + kKeys * RowBytes, p_.cache.v + at, bytes);
      }
      look_up();
    }
    ptx::cp_async_commit_group();
  }

 private:
  /// Where the keys of the next piece are: lane l has that of key l % 16, -1 if no row sees it.
  __device__ void look_up() {
    piece_ += Teams;
    while (piece_ >= segment_.end) {
      is_more_ = walk_.next(segment_);
      if (!is_more_) return;
      piece_ = segment_.begin + static_cast<std::int32_t>(team_);
    }
    const std::int32_t key = piece_ * kKeys + static_cast<std::int32_t>(threadIdx.x % kKeys);
    offset_ = -1;
    if (key < segment_.key_begin || key >= segment_.length) return;
    const kernels::DecodeCache& cache = p_.cache;
    const auto page_of =
        static_cast<std::int32_t>(cache.page_divisor.divide(static_cast<std::uint32_t>(key)));
    std::int32_t page = segment_.batch_idx;
    if (cache.block_table != nullptr)
      page = cache.block_table[segment_.batch_idx * cache.table_stride + page_of];
    if (static_cast<std::uint32_t>(page) >= static_cast<std::uint32_t>(cache.num_pages)) return;
    const std::int32_t slot = key - page_of * cache.page_size;
    offset_ = page * cache.page_stride + slot * cache.row_stride +
              segment_.kv_head * cache.head_stride;
  }

  const kernels::DecodeParams& p_;
  DecodeWalk walk_;
  DecodeSegment segment_;
  std::uint32_t ring_, team_, row_warp_;
  std::int32_t piece_;
  std::int64_t offset_ = -1;
  bool is_more_ = true;
};

}  // namespace tilewright::tile
