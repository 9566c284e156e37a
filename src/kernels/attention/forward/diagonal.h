// The last keys of a tile under a causal mask: the first warpgroup of two sees the first half of
// them and nothing of the second.
//
//                 keys 0-63 | 64-127
//   rows 0-63     to itself | nothing: not computed, a quarter of the products of these keys
//   rows 64-127   all       | to itself
#pragma once

#include "arch/register_index.h"
#include "tile/box.h"
#include "tile/warpgroup_mma.h"

#include <cstdint>

namespace tilewright::tile {

/// As multiply_qk with the first N of the Rows keys that b has.
template <class Element, int N, int Rows, int K>
__device__ void multiply_qk_first(float (&d)[N / 2], std::uint64_t a, std::uint64_t b) {
#pragma unroll
  for (int k = 0; k < K; k += 16) {
    const int box = k / kBoxColumns, inside = k % kBoxColumns * 2;
    multiply_k16<Element, N, arch::Major::kK>(
        d, advance_descriptor(a, (box * 64 * kBoxRowBytes + inside) >> 4),
        advance_descriptor(b, (box * Rows * kBoxRowBytes + inside) >> 4), k > 0);
  }
}

/// As multiply_pv with the first half of the K values.
template <class Element, int N, int K>
__device__ void multiply_pv_first(float (&d)[N / 2], const std::uint32_t (&a)[K / 16][4],
                                  std::uint64_t b) {
  static_assert(K % 32 == 0);
#pragma unroll
  for (int k = 0; k < K / 2; k += 16)
    multiply_k16<Element, N, arch::Major::kMN>(d, a[k / 16],
                                               advance_descriptor(b, k * kBoxRowBytes >> 4), true);
}

/// As hide_keys where no row begins among the keys: `ends` of a thread's two rows. Half of the
/// instructions.
template <int Count>
__device__ void hide_keys_behind(float (&s)[Count], const std::int32_t (&ends)[2],
                                 std::int32_t start) {
  const std::int32_t column =
      start + static_cast<std::int32_t>(arch::accumulator_first_column(threadIdx.x));
  const std::int32_t limits[2] = {ends[0] - column, ends[1] - column};
#pragma unroll
  for (int i = 0; i < Count; ++i)
    if (arch::accumulator_column(i) >= limits[arch::accumulator_row(i)]) s[i] = -INFINITY;
}

}  // namespace tilewright::tile
