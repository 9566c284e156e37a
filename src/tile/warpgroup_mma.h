// Products of whole tiles by warpgroup MMAs: operands as the layouts say, one instruction per 16 of
// the reduction index.
//
// A tile of 16-bit elements with `Contiguous` columns lies in shared memory as Contiguous / 64
// boxes of `Rows` rows of 128 bytes, swizzled: what one tensor copy per box writes.
#pragma once

#include "arch/fragments/smem_tiles.h"
#include "ptx/wgmma_mma_async.h"
#include "ptx/wgmma_sync.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kBoxColumns = 64;  ///< of 16 bits: one span of the 128-byte swizzle
inline constexpr int kBoxRowBytes = 128;

/// The 16-bit formats: how they are packed, and which instruction multiplies them.
struct Bf16 {
  using Pair = __nv_bfloat162;
  static __device__ std::uint32_t pack(float low, float high) {
    const Pair pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  }
  template <int N, int TransB, class A>
  static __device__ void multiply(float (&d)[N / 2], const A& a, std::uint64_t b,
                                  bool accumulate) {
    if constexpr (sizeof(A) == 8) {
      ptx::wgmma_mma_async<N>::template k16_f32_bf16_bf16<0, TransB>(d, a, b, accumulate);
    } else {
      ptx::wgmma_mma_async<N>::template k16_f32_bf16_bf16<TransB>(d, a, b, accumulate);
    }
  }
};
struct Fp16 {
  using Pair = __half2;
  static __device__ std::uint32_t pack(float low, float high) {
    const Pair pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  }
  template <int N, int TransB, class A>
  static __device__ void multiply(float (&d)[N / 2], const A& a, std::uint64_t b,
                                  bool accumulate) {
    if constexpr (sizeof(A) == 8) {
      ptx::wgmma_mma_async<N>::template k16_f32_f16_f16<0, TransB>(d, a, b, accumulate);
    } else {
      ptx::wgmma_mma_async<N>::template k16_f32_f16_f16<TransB>(d, a, b, accumulate);
    }
  }
};

/// A matrix descriptor as its two words. Only the lower one holds the address (in units of 16 bytes),
/// so that stepping through a tile is one 32-bit addition.
struct Descriptor {
  std::uint32_t low, high;

  __device__ Descriptor(std::uint64_t at_zero, std::uint32_t address)
      : low(static_cast<std::uint32_t>(at_zero) | address >> 4),
        high(static_cast<std::uint32_t>(at_zero >> 32)) {}
  __device__ std::uint64_t after(int bytes) const {
    return static_cast<std::uint64_t>(high) << 32 | (low + (bytes >> 4));
  }
};

/// Descriptor of a tile whose rows are mn and whose columns are the reduction index, at an address.
template <int Rows, int Columns>
__device__ Descriptor describe_k_major(std::uint32_t address) {
  constexpr arch::SmemSwizzle kSwizzle = arch::SmemSwizzle::k128B;
  constexpr ComposedLayout kTile =
      arch::make_smem_tile(arch::Major::kK, kSwizzle, 16, Rows, Columns);
  constexpr std::uint64_t kAtZero = arch::encode_wgmma_descriptor(
      arch::describe_smem_tile(kTile, arch::Major::kK, kSwizzle, 16));
  return {kAtZero, address};
}

/// Descriptor of a tile whose rows are the reduction index and whose columns are mn.
template <int Rows, int Columns>
__device__ Descriptor describe_mn_major(std::uint32_t address) {
  constexpr arch::SmemSwizzle kSwizzle = arch::SmemSwizzle::k128B;
  constexpr ComposedLayout kTile =
      arch::make_smem_tile(arch::Major::kMN, kSwizzle, 16, Columns, Rows, true);
  constexpr std::uint64_t kAtZero = arch::encode_wgmma_descriptor(
      arch::describe_smem_tile(kTile, arch::Major::kMN, kSwizzle, 16));
  return {kAtZero, address};
}

/// d[64, N] = a[64, K] b[N, K]^T, both K-major in shared memory; issued, not waited for. The
/// steps' descriptors are one addition each.
template <class Element, int N, int K>
__device__ void multiply_qk(float (&d)[N / 2], const Descriptor& a, const Descriptor& b) {
  std::uint64_t a_steps[K / 16], b_steps[K / 16];
#pragma unroll
  for (int i = 0; i < K / 16; ++i) {
    const int box = i / 4, inside = i % 4 * 32;
    a_steps[i] = a.after(box * 64 * kBoxRowBytes + inside);
    b_steps[i] = b.after(box * N * kBoxRowBytes + inside);
  }
  ptx::wgmma_fence_sync_aligned();
#pragma unroll
  for (int i = 0; i < K / 16; ++i)
    Element::template multiply<N, 0>(d, a_steps[i], b_steps[i], i > 0);
}

/// d[64, N] += a[64, K] b[K, N], a in registers as the fragments of K / 16 instructions, b MN-major.
template <class Element, int N, int K>
__device__ void multiply_pv(float (&d)[N / 2], const std::uint32_t (&a)[K / 16][4],
                            const Descriptor& b) {
  std::uint64_t b_steps[K / 16];
#pragma unroll
  for (int i = 0; i < K / 16; ++i) {
    b_steps[i] = b.after(i * 16 * kBoxRowBytes);
  }
  ptx::wgmma_fence_sync_aligned();
#pragma unroll
  for (int i = 0; i < K / 16; ++i) Element::template multiply<N, 1>(d, a[i], b_steps[i], true);
}

/// Accumulators re-read as the A operand of the next product: registers 8i..8i+7 of the C fragment
/// are, in order, the four registers of the A fragment of reduction step i.
template <class Element, int N>
__device__ void pack_operand(std::uint32_t (&a)[N / 16][4], const float (&c)[N / 2]) {
#pragma unroll
  for (int i = 0; i < N / 16; ++i) {
#pragma unroll
    for (int r = 0; r < 4; ++r)
      a[i][r] = Element::pack(c[8 * i + 2 * r], c[8 * i + 2 * r + 1]);
  }
}

}  // namespace tilewright::tile
