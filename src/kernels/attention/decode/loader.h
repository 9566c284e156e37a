// Brings pieces of keys and values into the ring of a team of warps, which alone reads them: no
// barrier beyond the team. Every row of a head is looked up and gathered on its own, 16 bytes a
// lane: pages of one key cost what a contiguous cache costs. boxes.h does the same with
// TMA where pages hold whole pieces.
#pragma once

#include "kernels/attention/decode/place.h"
#include "kernels/attention/decode/ring.h"
#include "kernels/attention/decode/steps.h"
#include "ptx/cp_async.h"

#include <cstdint>

namespace tilewright::tile {

template <kernels::DecodeShape Shape>
class DecodeGather {
  using Params = kernels::DecodeParamsOf<Shape>;
  static constexpr int kKeys = Shape.step_keys, kRowBytes = Shape.row_bytes;
  static constexpr int kPieces = kKeys / kernels::kDecodePieceKeys;
  static constexpr int kChunks = kRowBytes / 16;
  static constexpr int kRowsAtOnce = 32 * Shape.row_warps / kChunks;
  static constexpr int kCopies = kKeys / kRowsAtOnce;  ///< of keys, as many of values, a lane
  /// Large tiles leave no registers for more addresses.
  static constexpr int kAtOnce = Shape.keeps_query() ? kCopies : 2;
  static_assert(kCopies >= 1);
  static_assert(kRowBytes <= 128 || kPieces == 1);  // decode_chunk()

 public:
  __device__ DecodeGather(const Params& p, const DecodeAgenda<Params>& agenda, std::uint32_t ring,
                          std::uint32_t /*barriers*/, std::uint32_t team, std::uint32_t row_warp)
      : p_(p), steps_(agenda, team), ring_(ring), row_warp_(row_warp) {}

  /// With all segments of the agenda as it is.
  __device__ void start() {
    steps_.restart();
    advance();
  }

  /// Until this thread's copies into the oldest stage have landed.
  __device__ void wait(std::uint32_t /*stage*/) { ptx::cp_async_wait_group<Shape.stages - 2>(); }

  /// The next step of this team, if there is one, to a stage; one group of copies in any case.
  __device__ void load(std::uint32_t stage) {
    if (steps_.is_more()) {
      const std::uint32_t to = ring_ + stage * Shape.stage_bytes();
      const std::uint32_t seen = __ballot_sync(kAllLanes, is_seen());
      if (seen == kAllLanes) {
        copy<true>(to, seen);
      } else {
        copy<false>(to, seen);
      }
      advance();
    }
    ptx::cp_async_commit_group();
  }

  /// Until all copies have landed.
  __device__ void drain() { ptx::cp_async_wait_group<0>(); }

  /// Hidden keys are zeros.
  __device__ bool hide(const DecodeSegment&, std::int32_t /*first_key*/, std::uint32_t /*at*/) {
    return false;
  }

 private:
  static constexpr unsigned kAllLanes = 0xffffffffu;

  /// Rows that are not in `seen` become zeros.
  template <bool IsAll>
  __device__ void copy(std::uint32_t to, std::uint32_t seen) const {
    const std::int64_t mine = IsAll || is_seen() ? offset() : 0;
    const std::uint32_t thread = row_warp_ * 32 + threadIdx.x % 32;
    const std::uint32_t row = thread / kChunks, chunk = thread % kChunks;
    const std::uint32_t existing = chunk_bytes(chunk);
    const std::uint32_t first = existing > 0 ? chunk * 16 : 0;
    const std::uint8_t* const k = p_.cache.k + first;
    const std::uint8_t* const v = p_.cache.v + first;
#pragma unroll(kAtOnce)
    for (int i = 0; i < kCopies; ++i) {
      const std::uint32_t key = row + static_cast<std::uint32_t>(i) * kRowsAtOnce;
      const std::int64_t from = __shfl_sync(kAllLanes, mine, static_cast<int>(key));
      const std::uint32_t place = to + decode_chunk<kRowBytes>(key, chunk);
      if constexpr (IsAll && !Shape.is_any) {
        ptx::cp_async_cg_shared_global_16(place, k + from);
        ptx::cp_async_cg_shared_global_16(place + kKeys * kRowBytes, v + from);
      } else {
        const std::uint32_t bytes = (seen >> key & 1) * existing;
        ptx::cp_async_cg_shared_global_16(place, k + from, bytes);
        ptx::cp_async_cg_shared_global_16(place + kKeys * kRowBytes, v + from, bytes);
      }
    }
  }

  /// What rows have of a chunk; the rest of it becomes zeros.
  __device__ std::uint32_t chunk_bytes(std::uint32_t chunk) const {
    if constexpr (Shape.is_any) {
      return static_cast<std::uint32_t>(
          min(max(p_.row_bytes - static_cast<std::int32_t>(chunk) * 16, 0), 16));
    } else {
      return 16;
    }
  }

  /// To the next step. Lane l has key l % kKeys of it, and its page, which is on its way until the
  /// step is loaded.
  __device__ void advance() {
    if (!steps_.next()) return;
    const DecodeSegment& segment = steps_.segment();
    key_ =
        steps_.piece() * kernels::kDecodePieceKeys + static_cast<std::int32_t>(threadIdx.x % kKeys);
    page_ = -1;
    if (key_ < segment.key_begin || key_ >= segment.key_end) return;
    page_ = DecodePlace(p_.cache, key_).page(p_.cache, segment.batch_idx, read_entry);
  }
  /// Does any row see the lane's key, and is it in a page that there is?
  __device__ bool is_seen() const {
    return DecodePlace::is_page(p_.cache, page_);
  }
  /// Of the lane's key in the caches.
  __device__ std::int64_t offset() const {
    return DecodePlace(p_.cache, key_).offset(p_.cache, page_, steps_.segment().kv_head);
  }

  const Params& p_;
  DecodeSteps<Shape> steps_;  ///< the next one
  std::uint32_t ring_, row_warp_;
  std::int32_t key_ = 0, page_ = -1;
};

}  // namespace tilewright::tile
