// A lane's share of a row of a cache on its way to a tile of bf16.
//
// Four lanes share a row: of each box of 64 numbers a lane has 16 that follow each other (plain
// numbers), or two chunks of 8 (rotated ones, which are bf16 already).
#pragma once

#include "kernels/sparse_attention/entries.h"
#include "kernels/sparse_attention/unpack_e2m1.h"
#include "kernels/sparse_attention/unpack_e4m3.h"
#include "tile/box.h"

#include <cstdint>

namespace tilewright::tile {

/// Two chunks of 8 bf16 of a box.
using SparseChunks = uint4[2];

/// Lanes 4i to 4i + 3 have row i of 8. Neighbouring rows' chunks are taken in such an order that a
/// quarter of a warp writes to all banks at once.
struct SparseLane {
  std::uint32_t row = threadIdx.x % 32 / 4, quarter = threadIdx.x % 4;

  /// Chunk that a lane takes first of a box of bf16; the other is this one ^ 4.
  __device__ std::uint32_t rope_chunk() const { return quarter + row % 2 * 4; }
  /// Offsets in a box, from the first of the 8 rows, of the first chunk of each kind. The second is
  /// 16 (plain) or 64 (rotated) bytes away by exclusive or.
  __device__ std::uint32_t plain_offset() const {
    return row * 128 + chunk_in_line(row, 2 * quarter);
  }
  __device__ std::uint32_t rope_offset() const {
    return row * 128 + chunk_in_line(row, rope_chunk());
  }
};

/// Bytes of a row that belong to one half of the columns: four boxes of plain numbers, or three and
/// the rotated ones.
template <KvFormat Format, int Half>
struct SparsePart {
  static constexpr int kBoxBytes = kv_plain_bytes(Format) / 7, kPlain = 4 - Half;
  static constexpr int kFirst = Half * 4 * kBoxBytes;
  static constexpr int kRope = kPlain * kBoxBytes;  ///< where the rotated numbers begin
  static constexpr int kBytes = kRope + Half * kKvRopeBytes;
  static constexpr int kScaleBytes = kv_scale_bytes(Format) / 2, kFirstScale = Half * kScaleBytes;
  static_assert(kBytes % 16 == 0 && kFirst % 16 == 0);
};

/// The plain numbers of a part, and their scales.
template <KvFormat Format, int Half>
struct SparseShare;

template <int Half>
struct SparseShare<KvFormat::kFp8, Half> {
  using Part = SparsePart<KvFormat::kFp8, Half>;
  using Scales = std::uint32_t;
  uint4 plain[Part::kPlain];

  __device__ void load(const std::uint8_t* part, const SparseLane& lane) {
#pragma unroll
    for (int box = 0; box < Part::kPlain; ++box)
      plain[box] = *reinterpret_cast<const uint4*>(part + box * 64 + lane.quarter * 16);
  }
  __device__ void decode(SparseChunks& chunks, const Scales& scales, const SparseLane& /*lane*/,
                         int box) const {
    std::uint32_t words[8];
    decode_e4m3(words, plain[box], placed_e4m3_factors(placed_part(spread_byte(scales, box))));
    chunks[0] = make_uint4(words[0], words[1], words[2], words[3]);
    chunks[1] = make_uint4(words[4], words[5], words[6], words[7]);
  }
  /// Is decode() not enough?
  static __device__ bool has_large(const Scales& scales) {
    return has_large_scale(Half == 0 ? scales : scales & 0x00ffffffu);
  }
  /// What decode() leaves out.
  static __device__ std::uint32_t rest(const Scales& scales, int box) {
    const std::uint32_t bytes = spread_byte(scales, box);
    return power_factors(bytes - placed_part(bytes));
  }
};

template <int Half>
struct SparseShare<KvFormat::kNvfp4, Half> {
  using Part = SparsePart<KvFormat::kNvfp4, Half>;
  using Scales = uint4;  ///< a word for the four lanes' numbers of a box
  uint2 plain[Part::kPlain];

  __device__ void load(const std::uint8_t* part, const SparseLane& lane) {
#pragma unroll
    for (int box = 0; box < Part::kPlain; ++box)
      plain[box] = *reinterpret_cast<const uint2*>(part + box * 32 + lane.quarter * 8);
  }
  __device__ void decode(SparseChunks& chunks, const Scales& scales, const SparseLane& lane,
                         int box) const {
    const std::uint32_t word = box == 0   ? scales.x
                               : box == 1 ? scales.y
                               : box == 2 ? scales.z
                                          : scales.w;
    const std::uint32_t factor = e4m3_factors(spread_byte(word, static_cast<int>(lane.quarter)));
    chunks[0] = decode_e2m1(plain[box].x, factor);
    chunks[1] = decode_e2m1(plain[box].y, factor);
  }
  static __device__ bool has_large(const Scales& /*scales*/) {
    return false;
  }
  static __device__ std::uint32_t rest(const Scales& /*scales*/, int /*box*/) {
    return 0x3f803f80u;
  }
};

}  // namespace tilewright::tile
