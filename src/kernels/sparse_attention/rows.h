// A lane's share of a row of a cache on its way to a tile of bf16.
//
// Four lanes share a row: of each box of 64 numbers a lane has 16 that follow each other (plain
// numbers), or two chunks of 8 (rotated ones, which are bf16 already).
#pragma once

#include "formats/kv_page.h"
#include "tile/box.h"

#include <cstdint>

namespace tilewright::tile {

/// Two chunks of 8 bf16 of a box.
using SparseChunks = uint4[2];

/// Writes them, the second `other` bytes from the first by exclusive or.
__device__ inline void store_chunks(std::uint8_t* to, std::uint32_t offset, std::uint32_t other,
                                    const SparseChunks& chunks) {
  *reinterpret_cast<uint4*>(to + offset) = chunks[0];
  *reinterpret_cast<uint4*>(to + (offset ^ other)) = chunks[1];
}

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

/// The plain numbers of a part, and their scales: fp8_share.h, nvfp4_share.h.
template <KvFormat Format, int Half>
struct SparseShare;

}  // namespace tilewright::tile
