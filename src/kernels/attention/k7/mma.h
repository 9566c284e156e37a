// Products of an e4m3 attention kernel. Both operands of an 8-bit product are K-major: keys run
// along the columns of the values that weights are multiplied with.
//
// A tile of bytes lies in shared memory as boxes of Rows rows of one span of the swizzle, 32 to 128
// bytes: what one tensor copy per box writes.
#pragma once

#include "arch/byte_operand.h"
#include "ptx/convert_fp8.h"
#include "ptx/wgmma_mma_async.h"
#include "ptx/wgmma_sync.h"
#include "tile/box.h"

#include <cstdint>

namespace tilewright::tile {

using arch::swizzle_of_span;

/// Rows of a span: one box of a tile.
template <int Rows, int Span>
using ByteBox = Box<Rows, Span, swizzle_of_span(Span)>;

/// Where column k (a multiple of 32) of such a tile begins, in units of a descriptor.
template <int Rows, int Span>
constexpr std::uint32_t byte_box_units(int k) {
  return static_cast<std::uint32_t>((k / Span * Rows * Span + k % Span) >> 4);
}

/// d[64, N] = a[64, K] b[N, K]^T, both in boxes of `Span` bytes; issued, not waited for.
template <int N, int K, int Span>
__device__ void multiply_qk_e4m3(float (&d)[N / 2], std::uint64_t a, std::uint64_t b) {
#pragma unroll
  for (int k = 0; k < K; k += 32) {
    ptx::wgmma_mma_async<N>::k32_f32_e4m3_e4m3(
        d, advance_descriptor(a, byte_box_units<64, Span>(k)),
        advance_descriptor(b, byte_box_units<N, Span>(k)), k > 0);
  }
}

/// d[64, N] += a[64, K] b[N, K]^T, a in registers; without `accumulates` the sum begins at 0. b has
/// boxes of `Rows` rows, N of which are used.
template <int N, int K, int Span, int Rows = N>
__device__ void multiply_pv_e4m3(float (&d)[N / 2], const std::uint32_t (&a)[K / 32][4],
                                 std::uint64_t b, bool accumulates) {
#pragma unroll
  for (int k = 0; k < K; k += 32) {
    ptx::wgmma_mma_async<N>::k32_f32_e4m3_e4m3(
        d, a[k / 32], advance_descriptor(b, byte_box_units<Rows, Span>(k)), k > 0 || accumulates);
  }
}

/// Accumulators as the A operand of the next product, whose k they are in another order: of every
/// group of 16 columns a thread holds 2q, 2q + 1, 8 + 2q and 9 + 2q, and these become its columns
/// 4q to 4q + 3. The rows of B must be in that order as well.
template <int N>
__device__ void pack_operand_e4m3(std::uint32_t (&a)[N / 32][4], const float (&c)[N / 2]) {
#pragma unroll
  for (int i = 0; i < N / 32; ++i) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {  // row r % 2, columns of group r / 2
      const float* d = &c[arch::operand_source_8bit(i, r)];
      a[i][r] = ptx::cvt_rn_satfinite_e4m3x4_f32(d[0], d[1], d[4], d[5]);
    }
  }
}

}  // namespace tilewright::tile
