// The warps that bring keys of DeepSeek-V3's FP8 records.
#pragma once

#include "kernels/sparse_attention/pair/decoder.h"
#include "kernels/sparse_attention/placed_scale.h"
#include "ptx/load_store.h"

#include <cstdint>

namespace tilewright::tile {

/// Records of 656 bytes, of which a half has two blocks of 128 codes: to registers a block ahead,
/// decoded from there, as other rows of 8 bits (keys.h).
template <int Half>
class SparsePairRecordKeys : SparsePairKeysBase<KvFormat::kFp8Mla> {
  using Base = SparsePairKeysBase<KvFormat::kFp8Mla>;

  struct Raw {
    uint4 plain[kPairBoxes];
    uint2 scales;
    uint4 tail;
  };

 public:
  using Base::Base;

  __device__ void run() {
    this->template decode_blocks<Raw>([this](Raw& raw) { return fetch(raw); },
                                      [this](const Raw& raw) { convert(raw); });
  }

 private:
  __device__ bool fetch(Raw& raw) {
    if (!this->entries_.find()) return false;
    const std::uint8_t* const row = this->entries_.sources[0].data;
    this->entries_.read();
    const std::uint8_t* const codes = row + Half * kPairHalfDims + quarter_ * 16;
#pragma unroll
    for (int box = 0; box < kPairBoxes; ++box)
      raw.plain[box] = ptx::ld_global_nc_no_allocate_v4_u32(codes + box * kBoxColumns);
    raw.scales = ptx::ld_global_nc_no_allocate_v2_u32(row + kKvFp8MlaScales + Half * 8);
    raw.tail = ptx::ld_global_nc_no_allocate_v4_u32(row + kv_plain_bytes(KvFormat::kFp8Mla) +
                                                    Half * kPairTailRowBytes + quarter_ * 16);
    return true;
  }
  __device__ void convert(const Raw& raw) {
    decode(raw, 0, __uint_as_float(raw.scales.x));
    decode(raw, 1, __uint_as_float(raw.scales.y));
    *reinterpret_cast<uint4*>(this->lines_.tail(this->at_, row_, quarter_)) = raw.tail;
  }
  /// The two boxes of a block of 128 numbers, which share a scale.
  __device__ void decode(const Raw& raw, int block, float scale) const {
    const PlacedScale factors(scale);
    const bool is_large = __any_sync(0xffffffffu, factors.has_rest());
    const std::uint32_t offset = row_ * kBoxRowBytes + chunk_in_line(row_, 2 * quarter_);
#pragma unroll
    for (int box = 2 * block; box < 2 * block + 2; ++box) {
      std::uint8_t* const to = this->lines_.of_box(this->at_) + box * kPairBoxBytes;
      const uint4& codes = raw.plain[box];
      store(to + offset, factors, {codes.x, codes.y}, is_large);
      store(to + (offset ^ 16), factors, {codes.z, codes.w}, is_large);
    }
  }
  static __device__ void store(std::uint8_t* to, const PlacedScale& factors, const uint2& codes,
                               bool is_large) {
    std::uint32_t words[4];
    factors.decode(words, codes);
    if (is_large) factors.enlarge(words);
    *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
  }

  // Lanes 4 i to 4 i + 3 have row i: of each box 16 numbers that follow each other.
  std::uint32_t row_ = threadIdx.x % 32 / 4, quarter_ = threadIdx.x % 4;
};

}  // namespace tilewright::tile
