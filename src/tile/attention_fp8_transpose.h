// Values as they come, a key a row, to values as an 8-bit product wants them, a key a column: by
// warps that do nothing else.
//
// ldmatrix.trans moves pairs of bytes: a thread gets dimensions 2g and 2g + 1 (g = lane / 4) of two
// neighbouring keys. Of keys 2q, 2q + 1 and 8 + 2q, 9 + 2q two byte permutations make four keys of
// one dimension, in just the order in which accumulators are operands (attention_fp8_mma.h), and
// stmatrix writes them back, four threads 16 bytes of a row.
#pragma once

#include "arch/fragments/smem_tiles.h"
#include "ptx/byte_permute.h"
#include "ptx/matrix_copy.h"
#include "tile/attention_fp8_mma.h"

#include <cstdint>

namespace tilewright::tile {

/// One of `Warps` warps. `from`: [Keys, HeadDim] in boxes of FromSpan bytes; `to`: [HeadDim, Keys]
/// in boxes of ToSpan bytes. Keys from `num_keys` on become zeros.
template <int Keys, int HeadDim, int FromSpan, int ToSpan, int Warps>
__device__ void transpose_values(std::uint32_t from, std::uint32_t to, std::int32_t num_keys,
                                 std::uint32_t warp) {
  const std::uint32_t lane = threadIdx.x % 32;
  // Dimensions of even and odd number take turns between a matrix's halves: then its eight rows lie
  // in different banks.
  const bool is_upper = lane >= 16;
  const std::uint32_t first = is_upper ? 0x7531u : 0x6420u, second = is_upper ? 0x6420u : 0x7531u;
  const std::uint32_t row = lane % 8, matrix = lane / 8;
  const std::uint32_t dim = 2 * row + ((row / 4) ^ (matrix % 2));
  constexpr int kUnits = Keys / 32 * (HeadDim / 16);  // of 32 keys and 16 dimensions
#pragma unroll 1
  for (std::uint32_t unit = warp; unit < kUnits; unit += Warps) {
    const std::uint32_t key = unit / (HeadDim / 16) * 32, dims = unit % (HeadDim / 16) * 16;
    std::uint32_t words[4];  // of eight keys each
    ptx::ldmatrix<4, true>(words,
                           arch::swizzle_address(swizzle_of_span(FromSpan),
                                                 from + dims / FromSpan * (Keys * FromSpan) +
                                                     (key + lane) * FromSpan + dims % FromSpan));
    if (num_keys < Keys) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::int32_t at = static_cast<std::int32_t>(key + i * 8 + lane % 4 * 2);
        if (at >= num_keys) words[i] = 0;
        if (at + 1 >= num_keys) words[i] &= 0xffffu;
      }
    }
    const std::uint32_t out[4] = {
        ptx::prmt_b32(words[0], words[1], first), ptx::prmt_b32(words[0], words[1], second),
        ptx::prmt_b32(words[2], words[3], first), ptx::prmt_b32(words[2], words[3], second)};
    const std::uint32_t column = key + matrix / 2 * 16;
    ptx::stmatrix<4>(
        arch::swizzle_address(swizzle_of_span(ToSpan), to + column / ToSpan * (HeadDim * ToSpan) +
                                                           (dims + dim) * ToSpan + column % ToSpan),
        out);
  }
}

}  // namespace tilewright::tile
