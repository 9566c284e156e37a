// A lane's share of a row of a cache on its way from memory to a tile of bf16: loaded to registers
// as it lies there, decoded when the tile's turn comes.
//
// Four lanes share a row: of each box of 64 numbers a lane has 16 that follow each other (plain
// numbers), or two chunks of 8 (rotated ones, which are bf16 already).
#pragma once

#include "ptx/load_store.h"
#include "tile/decode_e4m3.h"
#include "tile/sparse_work.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kPlainBoxes = kKvPlainDims / 64;

/// What stands where no row is named: zeros of any format.
static __device__ const uint4 kSparseNoRow[kKvDims * 2 / 16] = {};

/// Where this lane's share of a row begins, and the row's scales.
struct SparseSource {
  const std::uint8_t* data;
  const std::uint8_t* scales;
};

/// Two chunks of 8 bf16 of a box; where they go is SparseTarget's to say.
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

template <KvFormat Format>
struct SparseRowShare;

template <>
struct SparseRowShare<KvFormat::kFp8> {
  static constexpr int kShareBytes = 16;  ///< of a plain box

  uint4 plain[kPlainBoxes], rope[2];
  uint2 scales, next_scales;
  bool has_large;

  __device__ void load_scales(const SparseSource& from) {
    next_scales = ptx::ld_global_nc_no_allocate_v2_u32(from.scales);
  }
  __device__ void load_plain(const SparseSource& from, int box) {
    plain[box] = ptx::ld_global_nc_no_allocate_v4_u32(from.data + box * 64);
  }
  /// Takes the scales of the row to be decoded; the whole warp.
  __device__ void begin() {
    scales = next_scales;
    has_large = __any_sync(0xffffffffu,
                           has_large_scale(scales.x) || has_large_scale(scales.y & 0x00ffffffu));
  }
  __device__ void decode(SparseChunks& chunks, int box) const {
    std::uint32_t words[8];
    const std::uint32_t bytes = spread_byte(box < 4 ? scales.x : scales.y, box % 4);
    if (has_large) {
      const std::uint32_t placed = __vminu2(bytes, kMaxPlacedScale * 0x00010001u);
      decode_e4m3(words, plain[box], placed_e4m3_factors(placed));
#pragma unroll
      for (std::uint32_t& word : words) word = mul_bf16x2(word, power_factors(bytes - placed));
    } else {
      decode_e4m3(words, plain[box], placed_e4m3_factors(bytes));
    }
    chunks[0] = make_uint4(words[0], words[1], words[2], words[3]);
    chunks[1] = make_uint4(words[4], words[5], words[6], words[7]);
  }
};

}  // namespace tilewright::tile
