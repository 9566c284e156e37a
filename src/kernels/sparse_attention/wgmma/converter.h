// A warpgroup's role: loads the rows that a query's lists name, and writes them as tiles of bf16.
#pragma once

#include "kernels/sparse_attention/rows.h"
#include "kernels/sparse_attention/wgmma/converter_base.h"

#include <cstdint>

namespace tilewright::tile {

/// 8- and 4-bit rows, 8 of them (a share of the warp's) at a time: copied to the warp's own memory
/// for raw rows, read from there to registers and decoded to where the products read them. While a
/// share is decoded the next is on its way, that of the next block included: what the products
/// still read delays decoding, not copies.
///
/// Not by loads to registers ahead of time: they need room in the first cache, of which 227 KB of
/// shared memory leave 28, and ptxas has one scoreboard for all loads that are on their way from
/// one round of a loop to the next, so that a warp that needs the oldest waits for the youngest.
template <KvFormat Format, int Half, int Ctas>
class SparseConverter : SparseConverterBase<SparseRows512, Format, Half, Ctas, 4> {
  using Base = SparseConverterBase<SparseRows512, Format, Half, Ctas, 4>;
  using Share = SparseShare<Format, Half>;
  using Part = typename Share::Part;
  using Scales = typename Share::Scales;
  static constexpr int kShares = Base::Entries::kShares;

 public:
  using Base::Base;

  __device__ void run() {
    this->entries_.read();
    copy(0);
    while (has_block_) convert();
    ptx::cp_async_wait_group<0>();
    this->drain();
  }

 private:
  __device__ SparseRaw& raw() const {
    return this->shared_.raw[threadIdx.x / 32 % kSparseConverters];
  }

  /// Starts to copy the parts of the rows of share `number`, counted through all blocks: a lane
  /// every fourth chunk of its row. (Bulk copies, a row each, take 60 cycles of the warp to issue:
  /// twice as long as the whole block may.)
  __device__ void copy(int number) {
    if (number % kShares == 0) {
      has_block_ = this->entries_.find();
      this->entries_.read();
    }
    const SparseSource& source = this->entries_.sources[number % kShares];
    const std::uint8_t* const from = source.data + Part::kFirst;
    const std::uint32_t to = ptx::shared_address(raw().rows[lane_.row]);
#pragma unroll
    for (int chunk = 0; chunk < Part::kBytes / 16; chunk += 4) {
      const std::uint32_t at = chunk * 16 + lane_.quarter * 16;
      if (Part::kBytes % 64 != 0 && at >= Part::kBytes) break;
      ptx::cp_async_cg_shared_global_16(to + at, from + at, 16);
    }
    if (lane_.quarter == 0) {
      const std::uint32_t to_scales = ptx::shared_address(raw().scales[lane_.row]);
      if constexpr (Part::kScaleBytes == 4) {
        ptx::cp_async_ca_shared_global_4(to_scales, source.scales + Part::kFirstScale, 4);
      } else {
        ptx::cp_async_cg_shared_global_16(to_scales, source.scales + Part::kFirstScale, 16);
      }
    }
    ptx::cp_async_commit_group();
  }
  /// The share that was copied to registers. Then its bytes are not read any more.
  __device__ void take(Share& share, Scales& scales, SparseChunks& rope) const {
    ptx::cp_async_wait_group<0>();
    __syncwarp();
    const std::uint8_t* const row = raw().rows[lane_.row];
#pragma unroll
    for (int box = 0; box < Part::kPlain; ++box)
      load(share.plain[box], row + box * Part::kBoxBytes);
    scales = *reinterpret_cast<const Scales*>(raw().scales[lane_.row]);
    if (Half == 1) {
      const std::uint32_t first = lane_.rope_chunk() * 16;
      rope[0] = *reinterpret_cast<const uint4*>(row + Part::kRope + first);
      rope[1] = *reinterpret_cast<const uint4*>(row + Part::kRope + (first ^ 64));
    }
    __syncwarp();
  }
  template <class Codes>
  __device__ void load(Codes& codes, const std::uint8_t* box) const {
    codes = *reinterpret_cast<const Codes*>(box + lane_.quarter * (Part::kBoxBytes / 4));
  }

  /// The block at hand, of which the first share is on its way.
  __device__ void convert() {
    const std::uint32_t valid = this->entries_.valid;
    Scales scales[kShares];
#pragma unroll
    for (int i = 0; i < kShares; ++i) {
      Share share;
      SparseChunks rope;
      take(share, scales[i], rope);
      copy(i + 1);
      if (i == 0) {
        this->ring().wait_empty(this->at_);
        this->store_valid(valid);
      }
      std::uint8_t* const to = this->rows() + i * 8 * kBoxRowBytes;
      if (Half == 1) store_chunks(to + 3 * kSparseBoxBytes, lane_.rope_offset(), 64, rope);
#pragma unroll
      for (int box = 0; box < Part::kPlain; ++box) {
        SparseChunks chunks;
        share.decode(chunks, scales[i], lane_, box);
        store_chunks(to + box * kSparseBoxBytes, lane_.plain_offset(), 16, chunks);
      }
    }
    bool has_large = false;
#pragma unroll
    for (int i = 0; i < kShares; ++i) has_large |= Share::has_large(scales[i]);
    if (__any_sync(0xffffffffu, has_large)) enlarge(scales);
    this->publish();
  }

  /// The part of large scales that decode() leaves out: rare.
  __device__ void enlarge(const Scales (&scales)[kShares]) const {
#pragma unroll
    for (int box = 0; box < Part::kPlain; ++box) {
#pragma unroll
      for (int i = 0; i < kShares; ++i) {
        const std::uint32_t factor = Share::rest(scales[i], box);
        std::uint8_t* const to = this->rows() + box * kSparseBoxBytes + i * 8 * kBoxRowBytes;
#pragma unroll
        for (int chunk = 0; chunk < 2; ++chunk) {
          uint4& words = *reinterpret_cast<uint4*>(to + (lane_.plain_offset() ^ chunk * 16));
          words = make_uint4(mul_bf16x2(words.x, factor), mul_bf16x2(words.y, factor),
                             mul_bf16x2(words.z, factor), mul_bf16x2(words.w, factor));
        }
      }
    }
  }

  SparseLane lane_;
  bool has_block_ = false;
};

}  // namespace tilewright::tile
