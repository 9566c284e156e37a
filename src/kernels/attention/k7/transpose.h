// Values as they come, a key a row, to a key a column, as an 8-bit product wants them.
//
// ldmatrix.trans moves pairs of bytes: a thread gets dimensions 2g and 2g + 1 (g = lane / 4) of two
// neighbouring keys. Of keys 2q, 2q + 1 and 8 + 2q, 9 + 2q two permutations make four keys of one
// dimension, in the order in which accumulators are operands (mma.h; proved in tests/kernels/probe/
// index_proofs.cu), and stmatrix writes them back, four threads 16 bytes of a row.
#pragma once

#include "arch/smem_descriptor.h"
#include "kernels/attention/barriers.h"
#include "kernels/attention/k7/config.h"
#include "kernels/attention/k7/mma.h"
#include "ptx/byte_permute.h"
#include "ptx/fence.h"
#include "ptx/matrix_copy.h"
#include "ptx/warp_roles.h"

#include <cstdint>

namespace tilewright::tile {

/// Rows of a tile in boxes from `num_rows` on become zeros; by all of `Warps` warps, which wait for
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

/// The dimension, of 16, that stmatrix writes into row `row` of its matrix `matrix`. Those of even
/// and odd number take turns between a matrix's halves: then its eight rows lie in different banks.
constexpr std::uint32_t transposed_dim(std::uint32_t row, std::uint32_t matrix) {
  return 2 * row + ((row / 4) ^ (matrix % 2));
}
/// The selector that makes a lane's word for a matrix of the two words it has of 16 keys: the bytes
/// of even numbers, or of odd ones.
constexpr std::uint32_t transposing_selector(std::uint32_t lane, std::uint32_t matrix) {
  return ((lane >= 16) != (matrix % 2 != 0)) ? 0x7531u : 0x6420u;
}

/// One of `Warps` warps. `from`: [Keys, HeadDim] in boxes of FromSpan bytes; `to`: [HeadDim, Keys]
/// in boxes of ToSpan bytes; both begin at multiples of 1024.
template <int Keys, int HeadDim, int FromSpan, int ToSpan, int Warps, int AtOnce>
__device__ void transpose_values(std::uint32_t from, std::uint32_t to, std::uint32_t warp) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t first = transposing_selector(lane, 0), second = first ^ 0x1111u;
  static_assert(transposing_selector(0, 1) == (transposing_selector(0, 0) ^ 0x1111u));
  const std::uint32_t row = lane % 8, matrix = lane / 8;
  const std::uint32_t dim = transposed_dim(row, matrix);
  // A lane's places in the first rows. Rows further on are the same modulo 8: same swizzle.
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

/// Rows of values that come from other warps.
struct LoadedValues {
  __device__ void ask_ahead() {}
  __device__ LoadedValues of_tile(const DealtTile&, std::int32_t, std::int32_t) { return {}; }
};

/// A warp of the producers: turns rows of values into columns, as many tiles as consumers need.
template <class C, class Source = LoadedValues>
__device__ void transpose_all_values(const kernels::AttentionParams& params,
                                     Fp8AttentionShared<C>& shared, std::uint32_t warp,
                                     Source source = {}) {
  TileTaker taker{shared.table};
  RingPosition<C::kStages> at;
  const Ring<C::kStages> rows(shared.rows_ring), columns(shared.v_ring);
  while (true) {
    const DealtTile tile = taker.take();
    if (tile.is_last) return;
    taker.release();
    const typename C::Tiles tiles = C::key_tiles(params, tile);
    auto values = source.of_tile(tile, tiles.begin, tiles.end);
    for (std::int32_t n = tiles.end - 1; n >= tiles.begin; --n) {
      values.ask_ahead();
      rows.wait_full(at);
      columns.wait_empty(at);
      const std::uint32_t from = ptx::shared_address(shared.rows[at.stage]);
      // Behind a sequence's last key are the next one's values: weight 0, but 0 times NaN is NaN.
      const std::int32_t num_keys = tile.kv_len - n * C::kKeys;
      if ((C::kHasPages || params.cu_kv != nullptr) && num_keys < C::kKeys)
        clear_rows_behind<C::kKeys, C::kHeadDim, C::kBox, C::kTransposers, kTransposersBarrier>(
            from, num_keys, warp);
      transpose_values<C::kKeys, C::kHeadDim, C::kBox, C::kValueBox, C::kTransposers,
                       C::kTransposedAtOnce>(from, ptx::shared_address(shared.v[at.stage]), warp);
      ptx::fence_proxy_async_shared_cta();
      rows.release(at);
      __syncwarp();
      if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(columns.full(at));
      at.advance();
    }
  }
}

}  // namespace tilewright::tile
