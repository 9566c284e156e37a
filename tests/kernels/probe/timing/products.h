// Products of wgmma for probes: the operands, the forms of an instruction, a group of it.
#pragma once

#include "kernels/probe/timing/measure.h"
#include "ptx/address.h"
#include "ptx/fence.h"
#include "ptx/wgmma_mma_async.h"
#include "ptx/wgmma_sync.h"

#include <cstdint>

namespace tilewright::kernels {

/// Ones, in 128-byte swizzled rows that follow each other: all values are equal, so that any
/// arrangement is that of some matrix.
__device__ inline std::uint64_t matrix_of_ones() {
  extern __shared__ std::uint32_t dynamic[];
  const std::uint32_t start = ptx::shared_address(dynamic), base = (start + 1023) / 1024 * 1024;
  for (std::uint32_t i = threadIdx.x; i < 16384; i += blockDim.x) {
    dynamic[(base - start) / 4 + i] = 0x3f803f80;
  }
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62, kRows = std::uint64_t{64} << 32;
  return kSwizzle128 | kRows | std::uint64_t{1} << 16 | base >> 4;
}

// The forms: A from shared memory or registers, bf16 or fp8.
template <int N>
struct Shared16 {
  static constexpr bool kTakesRegisters = false;
  static __device__ void issue(float (&d)[N / 2], std::uint64_t matrix) {
    ptx::wgmma_mma_async<N>::template k16_f32_bf16_bf16<0, 0>(d, matrix, matrix + 2048, true);
  }
};
template <int N>
struct Registers16 {
  static constexpr bool kTakesRegisters = true;
  static __device__ void issue(float (&d)[N / 2], std::uint64_t matrix) {
    const std::uint32_t a[4] = {0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80};
    ptx::wgmma_mma_async<N>::template k16_f32_bf16_bf16<0>(d, a, matrix + 2048, true);
  }
};
template <int N>
struct Shared8 {
  static constexpr bool kTakesRegisters = false;
  static __device__ void issue(float (&d)[N / 2], std::uint64_t matrix) {
    ptx::wgmma_mma_async<N>::k32_f32_e4m3_e4m3(d, matrix, matrix + 2048, true);
  }
};

template <class Form, int Count, int Half>
__device__ inline void issue_group(float (&d)[Half], std::uint64_t matrix) {
  ptx::wgmma_fence_sync_aligned();
#pragma unroll
  for (int i = 0; i < Count; ++i) Form::issue(d, matrix);
  ptx::wgmma_commit_group_sync_aligned();
}

template <int Half>
__device__ inline void consume_sums(const TimingProbeParams& params, const float (&d)[Half]) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < Half; ++i) sum += d[i];
  consume(params, __float_as_uint(sum));
}

}  // namespace tilewright::kernels
