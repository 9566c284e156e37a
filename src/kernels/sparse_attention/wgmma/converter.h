// A warpgroup's role: loads the rows that a query's lists name, and writes them as tiles of bf16.
#pragma once

#include "kernels/sparse_attention/rows.h"
#include "kernels/sparse_attention/wgmma/converter_base.h"
#include "ptx/special_registers.h"

#include <cstdint>
#include <type_traits>

namespace tilewright::tile {

/// 8- and 4-bit rows, 8 of them (a share of the warp's) at a time: copied to the warp's own memory
/// for raw rows, read from there to registers and decoded to where the products read them. While a
/// share is decoded the next is on its way, that of the next block included: what the products
/// still read delays decoding, not copies. A half has three boxes of plain numbers, and a fourth or
/// the rotated ones.
///
/// Not by loads to registers ahead of time: 227 KB of shared memory leave 28 KB of the first cache
/// for them, and ptxas has one scoreboard for all loads that are on their way from one round of a
/// loop to the next: a warp that needs the oldest waits for the youngest.
template <KvFormat Format, int Ctas>
class SparseConverter : SparseConverterBase<SparseRows512, Format, Ctas, 4> {
  using Base = SparseConverterBase<SparseRows512, Format, Ctas, 4>;
  using Share = SparseShare<Format, 0>;
  using First = SparsePart<Format, 0>;
  using Second = SparsePart<Format, 1>;
  using Scales = typename Share::Scales;
  using Codes = std::remove_extent_t<decltype(Share::plain)>;
  static constexpr int kShares = Base::kShares, kBoxes = Second::kPlain;

 public:
  using Base::Base;

  __device__ void run() {
    // The first two turns look for rows alone: before the loop that would be as much code again.
    for (int turn = 0; turn < 2 || has_block_; ++turn) convert(turn >= 2);
    ptx::cp_async_wait_group<0>();
    this->drain();
  }

 private:
  __device__ SparseRaw& raw() const {
    return this->shared_.raw[threadIdx.x / 32 % kSparseConverters];
  }
  __device__ bool has_rope() const { return this->half_ == 1; }
  /// Read anew: ptxas would compute addresses before the loop, and has no registers for them.
  static __device__ SparseLane this_lane() {
    const auto lane = static_cast<std::uint32_t>(ptx::mov_tid_x()) % 32;
    return {lane / 4, lane % 4};
  }

  /// Starts to copy the parts of the rows of a share: a lane every fourth chunk of its row. (Bulk
  /// copies, a row each, take 60 cycles of the warp to issue: twice as long as the block may.)
  __device__ void copy(int share) {
    const SparseLane lane = this_lane();
    const std::uint32_t row = static_cast<std::uint32_t>(share * Base::kRowsAtOnce) + lane.row;
    const std::uint8_t* const from = this->entries_.data(row) + this->half_ * Second::kFirst;
    const std::uint32_t to = ptx::shared_address(raw().rows[lane.row]);
    const std::uint32_t bytes = has_rope() ? Second::kBytes : First::kBytes;
#pragma unroll
    for (int chunk = 0; chunk < (Second::kBytes + 63) / 64; ++chunk) {
      const std::uint32_t at = chunk * 64 + lane.quarter * 16;
      if (chunk * 64 + 64 <= First::kBytes || at < bytes)
        ptx::cp_async_cg_shared_global_16(to + at, from + at, 16);
    }
    const std::uint8_t* const scales =
        this->entries_.scales(row) + this->half_ * Second::kFirstScale;
    if (lane.quarter == 0) {
      const std::uint32_t to_scales = ptx::shared_address(raw().scales[lane.row]);
      if constexpr (Second::kScaleBytes == 4) {
        ptx::cp_async_ca_shared_global_4(to_scales, scales, 4);
      } else {
        ptx::cp_async_cg_shared_global_16(to_scales, scales, 16);
      }
    }
    ptx::cp_async_commit_group();
  }

  /// The block at hand, if there is one, of which the first share is on its way.
  __device__ void convert(bool is_block) {
    const std::uint32_t valid = this->entries_.valid;
    if (is_block) {
#pragma unroll
      for (int i = 0; i < kShares - 1; ++i) convert_share(i, valid);
    }
    has_block_ = this->entries_.find();
    this->entries_.read();
    if (!is_block) {
      if (has_block_) copy(0);
      return;
    }
    convert_share(kShares - 1, valid);
    this->publish();
  }
  /// A share when it is there, while the next one comes.
  __device__ void convert_share(int i, std::uint32_t valid) {
    Share share;
    Scales scales;
    SparseChunks last;  // codes of the fourth box, or rotated numbers
    const SparseLane lane = this_lane();
    ptx::cp_async_wait_group<0>();
    take(share, scales, last, lane);
    copy((i + 1) % kShares);
    if (i == 0) {
      this->ring().wait_empty(this->at_);
      this->store_valid(valid);
    }
    std::uint8_t* const to = this->rows() + i * 8 * kBoxRowBytes;
#pragma unroll
    for (int box = 0; box < kBoxes; ++box) decode(to, share, scales, lane, box);
    if (has_rope()) {
      store_chunks(to + kBoxes * kSparseBoxBytes, lane.rope_offset(), 64, last);
    } else {
      share.plain[kBoxes] = reinterpret_cast<const Codes&>(last[0]);
      decode(to, share, scales, lane, kBoxes);
    }
    if (__any_sync(0xffffffffu, has_large(scales))) enlarge(to, scales, lane);
  }
  /// To registers. Then its bytes are not read any more.
  __device__ void take(Share& share, Scales& scales, SparseChunks& last, SparseLane lane) const {
    __syncwarp();
    const std::uint8_t* const row = raw().rows[lane.row];
#pragma unroll
    for (int box = 0; box < kBoxes; ++box) share.plain[box] = codes(row, lane, box);
    scales = *reinterpret_cast<const Scales*>(raw().scales[lane.row]);
    if (has_rope()) {
      const std::uint32_t first = lane.rope_chunk() * 16;
      last[0] = *reinterpret_cast<const uint4*>(row + Second::kRope + first);
      last[1] = *reinterpret_cast<const uint4*>(row + Second::kRope + (first ^ 64));
    } else {
      reinterpret_cast<Codes&>(last[0]) = codes(row, lane, kBoxes);
    }
    __syncwarp();
  }
  /// A lane's codes of a box.
  static __device__ const Codes& codes(const std::uint8_t* row, SparseLane lane, int box) {
    const std::uint8_t* const from = row + box * First::kBoxBytes;
    return reinterpret_cast<const Codes*>(from)[lane.quarter];
  }

  __device__ void decode(std::uint8_t* to, const Share& share, const Scales& scales,
                         SparseLane lane, int box) const {
    SparseChunks chunks;
    share.decode(chunks, scales, lane, box);
    store_chunks(to + box * kSparseBoxBytes, lane.plain_offset(), 16, chunks);
  }
  /// Is decode() not enough?
  __device__ bool has_large(const Scales& scales) const {
    return has_rope() ? SparseShare<Format, 1>::has_large(scales) : Share::has_large(scales);
  }
  /// The part of large scales that decode() leaves out: rare.
  __device__ void enlarge(std::uint8_t* to, const Scales& scales, SparseLane lane) const {
    const int boxes = has_rope() ? kBoxes : First::kPlain;
#pragma unroll 1
    for (int box = 0; box < boxes; ++box, to += kSparseBoxBytes) {
      const std::uint32_t factor = Share::rest(scales, box);
#pragma unroll
      for (int chunk = 0; chunk < 2; ++chunk) {
        uint4& words = *reinterpret_cast<uint4*>(to + (lane.plain_offset() ^ chunk * 16));
        words = make_uint4(mul_bf16x2(words.x, factor), mul_bf16x2(words.y, factor),
                           mul_bf16x2(words.z, factor), mul_bf16x2(words.w, factor));
      }
    }
  }

  bool has_block_ = false;
};

}  // namespace tilewright::tile
