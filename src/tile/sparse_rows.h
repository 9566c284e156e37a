// A lane's share of a row of a cache on its way from memory to a tile of bf16: loaded to registers
// as it lies there, decoded when the tile's turn comes.
//
// Four lanes share a row: of each box of 64 numbers a lane has 16 that follow each other (plain
// numbers), or two chunks of 8 (rotated ones, which are bf16 already).
#pragma once

#include "ptx/load_store.h"
#include "tile/decode_e2m1.h"
#include "tile/decode_e4m3.h"
#include "tile/sparse_entries.h"

#include <cstdint>

namespace tilewright::tile {

/// Two chunks of 8 bf16 of a box.
using SparseChunks = uint4[2];

/// Lanes 4i to 4i + 3 have row i of 8. Neighbouring rows' chunks are taken in such an order that a
/// quarter of a warp writes to all banks at once.
struct SparseLane {
  std::uint32_t row = threadIdx.x % 32 / 4, quarter = threadIdx.x % 4;

  /// Chunk that a lane loads first of a box of bf16; the other is this one ^ 4.
  __device__ std::uint32_t rope_chunk() const { return quarter + row % 2 * 4; }
  /// Offsets in a box, from the first of the 8 rows, of the first chunk of each kind. The second is
  /// 16 (plain) or 64 (rotated) bytes away by exclusive or.
  __device__ std::uint32_t plain_offset() const { return row * 128 + ((2 * quarter ^ row) << 4); }
  __device__ std::uint32_t rope_offset() const { return row * 128 + ((rope_chunk() ^ row) << 4); }
};

/// The rotated numbers.
struct SparseRope {
  SparseChunks chunks;

  template <KvFormat Format>
  __device__ void load(const SparseSource& from, const SparseLane& lane) {
    const std::uint8_t* const rope = from.data + kv_plain_bytes(Format);
    const std::uint32_t first = lane.rope_chunk() * 16;
    chunks[0] = ptx::ld_global_nc_no_allocate_v4_u32(rope + first);
    chunks[1] = ptx::ld_global_nc_no_allocate_v4_u32(rope + (first ^ 64));
  }
};

/// Plain numbers of one half of the columns: four boxes, three in the second half.
template <KvFormat Format, int Half>
struct SparseShare;

template <int Half>
struct SparseShare<KvFormat::kFp8, Half> {
  uint4 plain[4 - Half];
  std::uint32_t scales;

  __device__ void load(const SparseSource& from, const SparseLane& lane) {
    scales = ptx::ld_global_nc_no_allocate_u32(from.scales + Half * 4);
#pragma unroll
    for (int box = 0; box < 4 - Half; ++box) {
      plain[box] = ptx::ld_global_nc_no_allocate_v4_u32(from.data + lane.quarter * 16 +
                                                        (box + Half * 4) * 64);
    }
  }
  /// Must decode() look out for large scales?
  __device__ bool has_large() const {
    return has_large_scale(Half == 0 ? scales : scales & 0x00ffffffu);
  }
  template <bool MayBeLarge>
  __device__ void decode(SparseChunks& chunks, const SparseLane& /*lane*/, int box) const {
    std::uint32_t words[8];
    const std::uint32_t bytes = spread_byte(scales, box);
    const std::uint32_t placed =
        MayBeLarge ? __vminu2(bytes, kMaxPlacedScale * 0x00010001u) : bytes;
    decode_e4m3(words, plain[box], placed_e4m3_factors(placed));
    if constexpr (MayBeLarge) {
#pragma unroll
      for (std::uint32_t& word : words) word = mul_bf16x2(word, power_factors(bytes - placed));
    }
    chunks[0] = make_uint4(words[0], words[1], words[2], words[3]);
    chunks[1] = make_uint4(words[4], words[5], words[6], words[7]);
  }
};

template <int Half>
struct SparseShare<KvFormat::kNvfp4, Half> {
  uint2 plain[4 - Half];
  uint4 scales;  ///< a word for the four lanes' numbers of a box

  __device__ void load(const SparseSource& from, const SparseLane& lane) {
    scales = ptx::ld_global_nc_no_allocate_v4_u32(from.scales + Half * 16);
#pragma unroll
    for (int box = 0; box < 4 - Half; ++box) {
      plain[box] = ptx::ld_global_nc_no_allocate_v2_u32(from.data + lane.quarter * 8 +
                                                        (box + Half * 4) * 32);
    }
  }
  __device__ bool has_large() const {
    return false;
  }
  template <bool MayBeLarge>
  __device__ void decode(SparseChunks& chunks, const SparseLane& lane, int box) const {
    const std::uint32_t word = box == 0   ? scales.x
                               : box == 1 ? scales.y
                               : box == 2 ? scales.z
                                          : scales.w;
    const std::uint32_t byte = spread_byte(word, static_cast<int>(lane.quarter));
    const std::uint32_t factor = mul_bf16x2((byte & 0x007f007fu) << 4, kPlacedE4m3);
    chunks[0] = decode_e2m1(plain[box].x, factor);
    chunks[1] = decode_e2m1(plain[box].y, factor);
  }
};

}  // namespace tilewright::tile
