// The warps that bring keys of 8 and 4 bits: from the rows of a cache to half of their dimensions
// as bf16, as both products read them.
#pragma once

#include "kernels/sparse_attention/pair/decoder.h"
#include "kernels/sparse_attention/rows.h"
#include "ptx/load_store.h"

#include <cstdint>

namespace tilewright::tile {

/// 8- and 4-bit rows: to registers a block ahead, decoded from there. Of the first cache all but
/// some 160 KB of the SM's 256 are left, so that loads on their way have room.
template <KvFormat Format, int Half>
class SparsePairKeys : SparsePairKeysBase<Format> {
  using Base = SparsePairKeysBase<Format>;
  using Share = SparseShare<Format, Half>;
  using Part = typename Share::Part;

  struct Raw {
    Share share;
    typename Share::Scales scales;
    SparseChunks rope;
  };

 public:
  using Base::Base;

  __device__ void run() {
    this->template decode_blocks<Raw>([this](Raw& raw) { return fetch(raw); },
                                      [this](const Raw& raw) { convert(raw); });
  }

 private:
  /// Starts to load the lane's share of its row of the next block.
  __device__ bool fetch(Raw& raw) {
    if (!this->entries_.find()) return false;
    const SparseSource source = this->entries_.sources[0];
    this->entries_.read();
    const std::uint8_t* const data = source.data + Part::kFirst;
#pragma unroll
    for (int box = 0; box < Part::kPlain; ++box)
      load(raw.share.plain[box],
           data + box * Part::kBoxBytes + lane_.quarter * (Part::kBoxBytes / 4));
    if constexpr (Half == 1) {
      const std::uint8_t* const rope = data + Part::kRope + lane_.rope_chunk() * 16;
      const std::uint8_t* const other = data + Part::kRope + (lane_.rope_chunk() ^ 4) * 16;
      load(raw.rope[0], rope);
      load(raw.rope[1], other);
    }
    load(raw.scales, source.scales + Part::kFirstScale);
    return true;
  }
  static __device__ void load(uint4& to, const std::uint8_t* from) {
    to = ptx::ld_global_nc_no_allocate_v4_u32(from);
  }
  static __device__ void load(uint2& to, const std::uint8_t* from) {
    to = ptx::ld_global_nc_no_allocate_v2_u32(from);
  }
  static __device__ void load(std::uint32_t& to, const std::uint8_t* from) {
    to = ptx::ld_global_nc_no_allocate_u32(from);
  }

  __device__ void convert(const Raw& raw) {
    std::uint8_t* const to = this->lines_.of_box(this->at_);
    const bool is_large = __any_sync(0xffffffffu, Share::has_large(raw.scales));
#pragma unroll
    for (int box = 0; box < Part::kPlain; ++box) {
      SparseChunks chunks;
      raw.share.decode(chunks, raw.scales, lane_, box);
      if (is_large) enlarge(chunks, Share::rest(raw.scales, box));
      store_chunks(to + box * kPairBoxBytes, lane_.plain_offset(), 16, chunks);
    }
    if (Half == 1) store_chunks(to + 3 * kPairBoxBytes, lane_.rope_offset(), 64, raw.rope);
  }
  /// The part of a large scale that decode() leaves out: rare.
  static __device__ void enlarge(SparseChunks& chunks, std::uint32_t factor) {
#pragma unroll
    for (uint4& words : chunks) {
      words = make_uint4(mul_bf16x2(words.x, factor), mul_bf16x2(words.y, factor),
                         mul_bf16x2(words.z, factor), mul_bf16x2(words.w, factor));
    }
  }

  SparseLane lane_;
};

}  // namespace tilewright::tile
