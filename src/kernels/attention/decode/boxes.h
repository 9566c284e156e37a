// Loads keys and values into the ring of a team of warps by TMA: a box is 16 keys of a head, up to
// 128 bytes of each, in one page. One lane issues what otherwise takes a copy of 16 bytes per lane
// and an address per row (loader.h).
#pragma once

#include "kernels/attention/decode/place.h"
#include "kernels/attention/decode/ring.h"
#include "kernels/attention/decode/steps.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/fence.h"
#include "ptx/load_store.h"
#include "ptx/mbarrier.h"

#include <cstdint>

namespace tilewright::tile {

template <kernels::DecodeShape Shape>
class DecodeBoxes {
  using Params = kernels::DecodeParamsOf<Shape>;
  static constexpr int kKeys = Shape.step_keys, kRowBytes = Shape.row_bytes;
  static constexpr int kPieces = kKeys / kernels::kDecodePieceKeys;
  static constexpr int kBoxBytes = kernels::decode_box_bytes(kRowBytes);
  static constexpr int kBoxes = kRowBytes / kBoxBytes;  ///< of a piece's keys, as many of values
  static constexpr int kPieceBytes = kernels::kDecodePieceKeys * kRowBytes;

 public:
  /// `barriers`: of the team's stages. They can be used behind a barrier of the CTA.
  __device__ DecodeBoxes(const Params& p, const DecodeAgenda<Params>& agenda, std::uint32_t ring,
                         std::uint32_t barriers, std::uint32_t team, std::uint32_t row_warp)
      : p_(p), steps_(agenda, team), ring_(ring), barriers_(barriers), row_warp_(row_warp) {
    if (!asks()) return;
    if (lane() == 0) {
      ptx::prefetch_tensormap(p.k_map);
      ptx::prefetch_tensormap(p.v_map);
#pragma unroll
      for (std::uint32_t stage = 0; stage < Shape.stages; ++stage)
        ptx::mbarrier_init(barriers + 8 * stage, 1);
      ptx::fence_mbarrier_init_release_cluster();
    }
  }

  /// With all segments of the agenda as it is.
  __device__ void start() {
    steps_.restart();
    advance();
  }

  /// The next step of this team, if there is one, to a stage that is no longer read.
  __device__ void load(std::uint32_t stage) {
    if (!steps_.is_more()) return;
    asked_ ^= 1u << stage;
    if (asks()) {
      const std::uint32_t barrier = barriers_ + 8 * stage;
      const std::int32_t pieces = min(steps_.left(), kPieces);
      if (lane() == 0)
        ptx::mbarrier_arrive_expect_tx(barrier,
                                       static_cast<std::uint32_t>(pieces) * (2 * kPieceBytes));
      __syncwarp();
      if (static_cast<std::int32_t>(lane()) < pieces)
        copy(ring_ + stage * Shape.stage_bytes() + lane() * kPieceBytes, barrier);
    }
    advance();
  }

  /// Until a stage is there.
  __device__ void wait(std::uint32_t stage) {
    ptx::mbarrier_wait_parity(barriers_ + 8 * stage, phases_ >> stage & 1);
    phases_ ^= 1u << stage;
  }

  /// Until all copies have landed.
  __device__ void drain() {
#pragma unroll 1
    for (std::uint32_t stage = 0; stage < Shape.stages; ++stage)
      if (((asked_ ^ phases_) >> stage & 1) != 0) wait(stage);
  }

  /// Values that no row sees become zeros, for what has weight 0 must be finite. `at`: the stage.
  /// True if there were any: the team must meet before it reads them.
  __device__ bool hide(const DecodeSegment& segment, std::int32_t first_key, std::uint32_t at) {
    if (first_key >= segment.key_begin && first_key + kKeys <= segment.key_end) return false;
    constexpr std::uint32_t kWords = kRowBytes / 4;
    const std::uint32_t values = at + kKeys * kRowBytes;
#pragma unroll 1
    for (std::uint32_t i = row_warp_ * 32 + lane(); i < kKeys * kWords; i += 32 * Shape.row_warps) {
      const std::uint32_t row = i / kWords, word = i % kWords;
      const std::int32_t key = first_key + static_cast<std::int32_t>(row);
      if (key < segment.key_begin || key >= segment.key_end)
        ptx::st_shared_u32(values + decode_chunk<kRowBytes>(row, word / 4) + word % 4 * 4, 0);
    }
    ptx::fence_proxy_async_shared_cta();  // boxes will come here again
    return true;
  }

 private:
  __device__ static std::uint32_t lane() {
    return threadIdx.x % 32;
  }
  __device__ bool asks() const {
    return Shape.row_warps == 1 || row_warp_ == 0;
  }

  /// The lane's piece. Boxes of pages that there are not are zeros.
  __device__ void copy(std::uint32_t to, std::uint32_t barrier) const {
    const std::int32_t head = steps_.segment().kv_head;
#pragma unroll
    for (int i = 0; i < kBoxes; ++i) {
      const std::uint32_t place = to + i * (kernels::kDecodePieceKeys * kBoxBytes);
      ptx::cp_async_bulk_tensor_4d_shared_global(place, p_.k_map, i * kBoxBytes, slot_, head, page_,
                                                 barrier);
      ptx::cp_async_bulk_tensor_4d_shared_global(place + kKeys * kRowBytes, p_.v_map, i * kBoxBytes,
                                                 slot_, head, page_, barrier);
    }
  }

  /// To the next step. Lane l has its piece l, and the page of it, which is on its way until the
  /// step is loaded.
  __device__ void advance() {
    if (!steps_.next() || !asks()) return;
    const DecodeSegment& segment = steps_.segment();
    const std::int32_t key =
        (steps_.piece() + static_cast<std::int32_t>(lane() % kPieces)) * kernels::kDecodePieceKeys;
    page_ = -1;
    if (key >= segment.key_end) return;
    const DecodePlace place(p_.cache, key);
    slot_ = place.slot;
    page_ = place.page(p_.cache, segment.batch_idx, read_entry);
  }

  const Params& p_;
  DecodeSteps<Shape> steps_;  ///< the next one
  std::uint32_t ring_, barriers_, row_warp_;
  std::uint32_t asked_ = 0, phases_ = 0;  ///< of the stages, a bit each: asked for, and seen
  std::int32_t slot_ = 0, page_ = -1;
};

}  // namespace tilewright::tile

/// Entries ..._tma, with kernel.h.
#define TILEWRIGHT_DECODE_TMA(NAME, KV, DIM, ROWS)                                               \
  TILEWRIGHT_DECODE_OF(NAME##_d##DIM##_r##ROWS##_tma, KV, decode_shape(DecodeKv::KV, DIM, ROWS), \
                       DecodeBoxes)
