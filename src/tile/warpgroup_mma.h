// Products of whole tiles by warpgroup MMAs: operands as the layouts say, one instruction per 16 of
// the reduction index.
//
// A tile of 16-bit elements with `Contiguous` columns lies in shared memory as Contiguous / 64
// boxes of `Rows` rows of 128 bytes, swizzled: what one tensor copy per box writes.
#pragma once

#include "arch/register_index.h"
#include "ptx/wgmma_mma_async.h"
#include "ptx/wgmma_sync.h"
#include "tile/box.h"
#include "tile/element.h"

#include <cstdint>
#include <type_traits>

namespace tilewright::tile {

/// d += a b of one instruction; a is a K-major descriptor or a fragment in registers, b a
/// descriptor of major B.
template <class Element, int N, arch::Major B, class A>
__device__ void multiply_k16(float (&d)[N / 2], const A& a, std::uint64_t b, bool accumulate) {
  using Mma = ptx::wgmma_mma_async<N>;
  constexpr int kTransB = B == arch::Major::kMN;
  constexpr bool kFromShared = sizeof(A) == 8, kIsBf16 = std::is_same_v<Element, Bf16>;
  if constexpr (kFromShared && kIsBf16) {
    Mma::template k16_f32_bf16_bf16<0, kTransB>(d, a, b, accumulate);
  } else if constexpr (kFromShared) {
    Mma::template k16_f32_f16_f16<0, kTransB>(d, a, b, accumulate);
  } else if constexpr (kIsBf16) {
    Mma::template k16_f32_bf16_bf16<kTransB>(d, a, b, accumulate);
  } else {
    Mma::template k16_f32_f16_f16<kTransB>(d, a, b, accumulate);
  }
}

/// d[64, N] = a[64, K] b[N, K]^T, both K-major in shared memory, b the first of `Rows` rows.
/// Issued, not waited for.
template <class Element, int N, int K, int Rows = N>
__device__ void multiply_qk(float (&d)[N / 2], std::uint64_t a, std::uint64_t b) {
#pragma unroll
  for (int k = 0; k < K; k += 16) {
    const int box = k / kBoxColumns, inside = k % kBoxColumns * 2;
    multiply_k16<Element, N, arch::Major::kK>(
        d, advance_descriptor(a, (box * 64 * kBoxRowBytes + inside) >> 4),
        advance_descriptor(b, (box * Rows * kBoxRowBytes + inside) >> 4), k > 0);
  }
}

/// d[64, N] += a[64, K] b[K, N], a in registers as the fragments of K / 16 instructions, b
/// MN-major. Of K only the first `Used`.
template <class Element, int N, int K, int Used = K>
__device__ void multiply_pv(float (&d)[N / 2], const std::uint32_t (&a)[K / 16][4],
                            std::uint64_t b) {
#pragma unroll
  for (int k = 0; k < Used; k += 16)
    multiply_k16<Element, N, arch::Major::kMN>(d, a[k / 16],
                                               advance_descriptor(b, k * kBoxRowBytes >> 4), true);
}

/// Accumulators re-read as the A operand of the next product: registers 8i..8i+7 of the C fragment
/// are, in order, the four registers of the A fragment of reduction step i.
template <class Element, int N>
__device__ void pack_operand(std::uint32_t (&a)[N / 16][4], const float (&c)[N / 2]) {
#pragma unroll
  for (int i = 0; i < N / 16; ++i) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int source = arch::operand_source_16bit(i, r);
      a[i][r] = Element::pack(c[source], c[source + 1]);
    }
  }
}

}  // namespace tilewright::tile
