// Brings keys and values of 128 keys a step into the ring of a tensor-core decode kernel: as boxes
// of 16 keys by TMA where a page holds them, by one warp; else gathered by two, 16 bytes a lane,
// so that pages of one key cost what a contiguous cache costs. Keys that no row of the segment sees
// are zeros, but for those that share a box with seen ones.
#pragma once

#include "kernels/attention/decode/place.h"
#include "kernels/attention_sm100/decode/state.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/cp_async.h"
#include "ptx/fence.h"

#include <cstdint>

namespace tilewright::tile {

/// A lane's key of every step of an agenda's segments, and its page: on its way a step ahead.
template <class Decode>
class DecodeKeyWalk {
 public:
  /// Lane's key of a step: `offset` behind the first one.
  __device__ DecodeKeyWalk(const Decode& d, std::int32_t offset) : d_(d), offset_(offset) {}

  __device__ void restart() { index_ = -1, step_ = steps_ = 0; }
  /// To the next step; false if there is none.
  __device__ bool next() {
    ++step_;
    while (step_ >= steps_) {
      if (++index_ >= d_.state.agenda.count()) return false;
      step_ = 0, steps_ = Decode::steps(segment());
    }
    const std::int32_t key = Decode::first_key(segment(), step_) + offset_;
    page_ = -1, slot_ = 0;
    if (key / kernels::kDecodePieceKeys >= segment().end || key >= segment().key_end) return true;
    const DecodePlace place(d_.p.cache, key);
    slot_ = place.slot;
    page_ = place.page(d_.p.cache, segment().batch_idx, read_entry);
    is_before_ = key < segment().key_begin;
    return true;
  }
  __device__ const DecodeSegment& segment() const { return d_.state.agenda[index_]; }
  __device__ std::int32_t page() const { return page_; }
  __device__ std::int32_t slot() const { return slot_; }
  /// Does any row see the key, and is it in a page that there is?
  __device__ bool is_seen() const { return !is_before_ && DecodePlace::is_page(d_.p.cache, page_); }
  __device__ std::int64_t offset() const {
    return page_ * d_.p.cache.page_stride + slot_ * d_.p.cache.row_stride +
           segment().kv_head * d_.p.cache.head_stride;
  }

 private:
  const Decode& d_;
  std::int32_t offset_, index_ = -1, step_ = 0, steps_ = 0, page_ = -1, slot_ = 0;
  bool is_before_ = false;
};

/// By one warp: lanes 0 to 7 have a piece of a step each.
template <class Decode>
class TensorDecodeBoxes {
  static constexpr std::uint32_t kPieceKeys = kernels::kDecodePieceKeys;
  static constexpr std::uint32_t kPieces = kernels::kTensorDecodeKeys / kPieceKeys;

 public:
  __device__ explicit TensorDecodeBoxes(const Decode& d)
      : d_(d), walk_(d, static_cast<std::int32_t>(lane() % kPieces * kPieceKeys)) {}

  __device__ void run() {
    walk_.restart();
    bool is_any = walk_.next();
    while (is_any) {
      const std::int32_t head = walk_.segment().kv_head, page = walk_.page(), slot = walk_.slot();
      is_any = walk_.next();
      copy(d_.p.k_map, slot, head, page);
      copy(d_.p.v_map, slot, head, page);
    }
  }

 private:
  __device__ static std::uint32_t lane() { return threadIdx.x % 32; }
  __device__ void copy(const void* map, std::int32_t slot, std::int32_t head, std::int32_t page) {
    const std::uint32_t span = d_.span(), box_bytes = kernels::kTensorDecodeKeys * span;
    d_.wait_empty(at_);
    if (lane() == 0) ptx::mbarrier_arrive_expect_tx(d_.full(at_), d_.item_bytes());
    __syncwarp();
    if (lane() < kPieces) {
      const std::uint32_t to = d_.item(at_) + lane() * (kPieceKeys * span);
#pragma unroll 1
      for (std::uint32_t column = 0; column < d_.row_bytes(); column += span)
        ptx::cp_async_bulk_tensor_4d_shared_global(to + column / span * box_bytes, map,
                                                   static_cast<std::int32_t>(column), slot, head,
                                                   page, d_.full(at_));
    }
    at_.advance(d_.stages);
  }

  const Decode& d_;
  DecodeKeyWalk<Decode> walk_;
  DeepPosition at_;
};

/// By two warps, twice 32 keys of a step each. What a thread has asked for is handed over `ahead_`
/// items later: the tensor core reads it, so the thread itself has to know that it is there.
template <class Decode>
class TensorDecodeGather {
  static constexpr unsigned kAllLanes = 0xffffffffu;

 public:
  __device__ explicit TensorDecodeGather(const Decode& d)
      : d_(d),
        first_key_((threadIdx.x / 32 - kDecodeGatherWarp) % kDecodeGatherWarps * 64),
        walks_{{d, lane_key()}, {d, lane_key() + 32}},
        ahead_(min(d.stages - 1, 4u)) {}

  __device__ void run() {
    walks_[0].restart(), walks_[1].restart();
    bool is_any = next();
    while (is_any) {
      const bool is_seen[2] = {walks_[0].is_seen(), walks_[1].is_seen()};
      const std::int64_t rows[2] = {is_seen[0] ? walks_[0].offset() : 0,
                                    is_seen[1] ? walks_[1].offset() : 0};
      is_any = next();
      copy(d_.p.cache.k, rows, is_seen);
      copy(d_.p.cache.v, rows, is_seen);
    }
    ptx::cp_async_wait_group<0>();
    while (pending_ > 0) hand_over();
  }

 private:
  __device__ std::int32_t lane_key() const {
    return static_cast<std::int32_t>(first_key_ + threadIdx.x % 32);
  }
  __device__ bool next() {
    walks_[1].next();
    return walks_[0].next();
  }
  __device__ void copy(const std::uint8_t* from, const std::int64_t (&rows)[2],
                       const bool (&is_seen)[2]) {
    d_.wait_empty(asked_);
    copy_half(from, first_key_, rows[0], is_seen[0]);
    copy_half(from, first_key_ + 32, rows[1], is_seen[1]);
    ptx::cp_async_commit_group();
    asked_.advance(d_.stages);
    if (++pending_ <= ahead_) return;
    wait_for_oldest();
    hand_over();
  }
  /// 32 keys from `first_key` of the step on, lane l's row at `mine`.
  __device__ void copy_half(const std::uint8_t* from, std::uint32_t first_key, std::int64_t mine,
                            bool is_seen) const {
    const std::uint32_t span = d_.span(), box_bytes = kernels::kTensorDecodeKeys * span;
    const std::uint32_t chunks = d_.row_bytes() / 16;  // of a row: a power of 2 up to 32
    const std::uint32_t shift = 31 - __clz(static_cast<int>(chunks)), lane = threadIdx.x % 32;
    const std::uint32_t to = d_.item(asked_), seen = __ballot_sync(kAllLanes, is_seen);
    const std::uint32_t byte = lane % chunks * 16;
    const std::uint32_t column = byte / span * box_bytes + byte % span;
    const auto row_bytes = static_cast<std::uint32_t>(d_.p.row_bytes);
    const std::uint32_t existing = byte < row_bytes ? min(row_bytes - byte, 16u) : 0;
    const std::uint8_t* const chunk = from + (existing > 0 ? byte : 0);
#pragma unroll 4
    for (std::uint32_t i = 0; i < chunks; ++i) {
      const std::uint32_t key = (i * 32 + lane) >> shift;
      const std::int64_t row = __shfl_sync(kAllLanes, mine, static_cast<int>(key));
      ptx::cp_async_cg_shared_global_16(to + swizzled_at(column + (first_key + key) * span, span),
                                        chunk + row, (seen >> key & 1) * existing);
    }
  }
  __device__ void wait_for_oldest() const {
    if (ahead_ == 4) return ptx::cp_async_wait_group<4>();
    if (ahead_ >= 2) return ptx::cp_async_wait_group<2>();
    ptx::cp_async_wait_group<1>();
  }
  __device__ void hand_over() {
    ptx::fence_proxy_async_shared_cta();
    ptx::mbarrier_arrive(d_.full(given_));
    given_.advance(d_.stages), --pending_;
  }

  const Decode& d_;
  std::uint32_t first_key_;
  DecodeKeyWalk<Decode> walks_[2];
  std::uint32_t ahead_, pending_ = 0;
  DeepPosition asked_, given_;
};

}  // namespace tilewright::tile
