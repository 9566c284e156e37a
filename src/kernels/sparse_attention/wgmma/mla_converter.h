// FP8 records of 576 numbers on their way to tiles of bf16.
#pragma once

#include "kernels/sparse_attention/placed_scale.h"
#include "kernels/sparse_attention/wgmma/mla_tail.h"

#include <cstdint>

namespace tilewright::tile {

/// Records of 656 bytes, 4 of them (a share of the warp's) at a time, eight lanes each: as
/// SparseConverter of 8-bit rows, but with half of its room. What is on its way is therefore less,
/// and comes from the second cache: a block's rows are asked for a block ahead, or, in a pair,
/// which has half of them, by copies that bring the 256 bytes around them.
template <int Ctas>
class SparseConverter<KvFormat::kFp8Mla, Ctas> : SparseTailConverter<KvFormat::kFp8Mla, Ctas> {
  using Base = SparseTailConverter<KvFormat::kFp8Mla, Ctas>;
  static constexpr int kShares = Base::kShares, kRows = Base::kRowsAtOnce;

 public:
  using Base::Base;

  __device__ void run() {
    // The first two turns look for rows alone. In the loop: before it that would be as much code
    // again, which comes from memory while everybody waits.
    for (int turn = 0; turn < 2 || has_block_; ++turn) convert(turn >= 2);
    ptx::cp_async_wait_group<0>();
    this->drain();
  }

 private:
  __device__ SparseRows576::Raw& raw() const {
    return this->shared_.raw[threadIdx.x / 32 % kSparseConverters];
  }

  /// The first byte of a record that is this half's.
  __device__ int part() const { return this->half_ * 256; }

  /// The rows of the next block.
  __device__ void advance() {
    has_block_ = this->entries_.find();
    if constexpr (Ctas == 1)
      this->entries_.prefetch(part(),
                              this->half_ == 0 ? 256 : kv_row_bytes(KvFormat::kFp8Mla) - 256);
    this->entries_.read();
  }
  /// Starts to copy the parts of the rows of a share.
  __device__ void copy(int share) {
    const std::uint8_t* const row = this->entries_.data(share * kRows + row_);
    const std::uint32_t to = ptx::shared_address(raw().rows[row_]) + lane_ * 16;
    const std::uint8_t* const from = row + part() + lane_ * 16;
#pragma unroll
    for (int i = 0; i < 256; i += 128) {
      if constexpr (Ctas == 1) {
        ptx::cp_async_cg_shared_global_16(to + i, from + i, 16);
      } else {
        ptx::cp_async_cg_l2_256_shared_global_16(to + i, from + i);
      }
    }
    if (lane_ < 2)
      ptx::cp_async_ca_shared_global_4(ptx::shared_address(raw().scales[row_]) + lane_ * 4,
                                       row + kKvFp8MlaScales + this->half_ * 8 + lane_ * 4, 4);
    ptx::cp_async_commit_group();
  }
  /// The share that is there, to registers. Then its bytes are not read any more.
  __device__ void take(uint4 (&codes)[2], float2& scales) const {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2; ++i)
      codes[i] = *reinterpret_cast<const uint4*>(raw().rows[row_] + i * 128 + lane_ * 16);
    scales = *reinterpret_cast<const float2*>(raw().scales[row_]);
    __syncwarp();
  }

  /// The block at hand, if there is one, of which the first share is on its way.
  __device__ void convert(bool is_block) {
    if (is_block) {
#pragma unroll 1
      for (int i = 0; i < kShares - 1; ++i) {
        ptx::cp_async_wait_group<0>();
        convert_share(i);
      }
    }
    // Rows are looked up while no codes are in registers: ptxas has no room for both.
    if (is_block && this->half_ == 1) this->copy_tail();
    ptx::cp_async_commit_group();
    advance();
    if (!is_block) {
      if (has_block_) copy(0);
      return;
    }
    ptx::cp_async_wait_group<1>();
    convert_share(kShares - 1);
    this->publish();
    if (this->half_ == 1) {
      ptx::cp_async_wait_group<1>();  // the tail is there, not the share behind it
      this->publish_tail();
    }
  }

  /// A share that is there, while the next one comes.
  __device__ void convert_share(int i) {
    uint4 codes[2];
    float2 scales;
    take(codes, scales);
    copy((i + 1) % kShares);
    if (i == 0) {
      this->ring().wait_empty(this->at_);
      this->store_valid(this->entries_.valid);
    }
    decode(i, 0, codes[0], scales.x);
    decode(i, 1, codes[1], scales.y);
  }
  /// A lane's 16 numbers of block `block` of 128: a quarter of one of its two boxes. The lanes of
  /// the second box write their second chunk first, so that eight lanes write to all banks at once.
  __device__ void decode(int share, int block, const uint4& codes, float scale) const {
    const PlacedScale factors(scale);
    const bool is_large = __any_sync(0xffffffffu, factors.has_rest());
    const std::uint32_t line = row_ + static_cast<std::uint32_t>(share * kRows);
    const std::uint32_t is_second = lane_ / 4, chunk = lane_ % 4 * 2 + is_second;
    std::uint8_t* const to = this->rows() + line * kBoxRowBytes +
                             (2 * static_cast<std::uint32_t>(block) + is_second) * kSparseBoxBytes;
#pragma unroll
    for (std::uint32_t i = 0; i < 2; ++i) {
      std::uint32_t words[4];
      const bool is_low = is_second == i;
      factors.decode(words, {is_low ? codes.x : codes.z, is_low ? codes.y : codes.w});
      if (is_large) factors.enlarge(words);
      *reinterpret_cast<uint4*>(to + chunk_in_line(line % 8, chunk ^ i)) =
          make_uint4(words[0], words[1], words[2], words[3]);
    }
  }

  std::uint32_t row_ = threadIdx.x % 32 / 8, lane_ = threadIdx.x % 8;
  bool has_block_ = false;
};

}  // namespace tilewright::tile
