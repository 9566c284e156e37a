// Values as they come, a key a row, to values as an 8-bit product wants them, a key a column: by
// warps that do nothing else.
//
// ldmatrix.trans moves pairs of bytes: a thread gets dimensions 2g and 2g + 1 (g = lane / 4) of two
// neighbouring keys. Of keys 2q, 2q + 1 and 8 + 2q, 9 + 2q two byte permutations make four keys of
// one dimension, in just the order in which accumulators are operands (attention_fp8_mma.h), and
// stmatrix writes them back, four threads 16 bytes of a row.
#pragma once

#include "arch/smem_descriptor.h"
#include "kernels/attention/k7/mma.h"
#include "ptx/byte_permute.h"
#include "ptx/matrix_copy.h"
#include "ptx/warp_roles.h"

#include <cstdint>

namespace tilewright::tile {

/// Rows of a tile in boxes from `num_rows` on become zeros; by all of `Warps` warps, who wait for
/// each other at a barrier.
template <int Rows, int Columns, int Span, int Warps, int Barrier>
__device__ void clear_rows_behind(std::uint32_t tile, std::int32_t num_rows, std::uint32_t warp) {
  for (std::int32_t row = num_rows + static_cast<std::int32_t>(warp); row < Rows; row += Warps) {
    const std::uint32_t column = threadIdx.x % 32 * 16;
    if (column < Columns) {
      auto* at = static_cast<uint4*>(__cvta_shared_to_generic(tile + column / Span * (Rows * Span) +
                                                              row * Span + column % Span));
      *at = make_uint4(0, 0, 0, 0);
    }
  }
  ptx::bar_sync<Barrier, Warps * 32>();
}

/// One of `Warps` warps. `from`: [Keys, HeadDim] in boxes of FromSpan bytes; `to`: [HeadDim, Keys]
/// in boxes of ToSpan bytes; both begin at multiples of 1024.
template <int Keys, int HeadDim, int FromSpan, int ToSpan, int Warps, int AtOnce>
__device__ void transpose_values(std::uint32_t from, std::uint32_t to, std::uint32_t warp) {
  const std::uint32_t lane = threadIdx.x % 32;
  // Dimensions of even and odd number take turns between a matrix's halves: then its eight rows lie
  // in different banks.
  const bool is_upper = lane >= 16;
  const std::uint32_t first = is_upper ? 0x7531u : 0x6420u, second = first ^ 0x1111u;
  const std::uint32_t row = lane % 8, matrix = lane / 8;
  const std::uint32_t dim = 2 * row + ((row / 4) ^ (matrix % 2));
  // A lane's places in the first rows. The swizzle of an address depends on its row alone, which
  // further on is the same modulo 8: columns are added by exclusive or.
  const std::uint32_t read =
      arch::swizzle_address(swizzle_of_span(FromSpan), from + lane * FromSpan);
  const std::uint32_t write =
      arch::swizzle_address(swizzle_of_span(ToSpan), to + dim * ToSpan) ^ (matrix / 2 * 16);
  // Units of AtOnce times 32 keys and 16 dimensions.
  constexpr int kPerDims = Keys / 32 / AtOnce;
#pragma unroll 1
  for (std::uint32_t unit = warp; unit < HeadDim / 16 * kPerDims; unit += Warps) {
    const std::uint32_t dims = unit / kPerDims * 16, key = unit % kPerDims * (AtOnce * 32);
    const std::uint32_t read_here =
        (read + dims / FromSpan * (Keys * FromSpan) + key * FromSpan) ^ (dims % FromSpan);
    std::uint32_t words[AtOnce][4];  // of eight keys each
#pragma unroll
    for (int i = 0; i < AtOnce; ++i)
      ptx::ldmatrix<4, true>(words[i], read_here + i * 32 * FromSpan);
#pragma unroll
    for (int i = 0; i < AtOnce; ++i) {
      const std::uint32_t column = key + i * 32;
      const std::uint32_t out[4] = {ptx::prmt_b32(words[i][0], words[i][1], first),
                                    ptx::prmt_b32(words[i][0], words[i][1], second),
                                    ptx::prmt_b32(words[i][2], words[i][3], first),
                                    ptx::prmt_b32(words[i][2], words[i][3], second)};
      ptx::stmatrix<4>(
          (write + column / ToSpan * (HeadDim * ToSpan) + dims * ToSpan) ^ (column % ToSpan), out);
    }
  }
}

}  // namespace tilewright::tile
