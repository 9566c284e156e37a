// targets: sm_90a
//
// Loads and stores of shared memory and of L1, and the fence that shows stores to the asynchronous
// proxy.
#include "kernels/probe/timing/measure.h"
#include "ptx/address.h"
#include "ptx/fence.h"
#include "ptx/load_store.h"
#include "ptx/matrix_copy.h"
#include "ptx/store_shared.h"

namespace tilewright::kernels {
namespace {

constexpr int kAccesses = 16;

__device__ std::uint32_t zeroed_words() {
  __shared__ alignas(128) std::uint32_t words[8192];
  for (int i = threadIdx.x; i < 8192; i += blockDim.x) words[i] = 0;
  __syncthreads();
  return ptx::shared_address(words);
}

__device__ std::uint32_t load_word(std::uint32_t address) {
  std::uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  return word;
}

__device__ void time_load_chain(const TimingProbeParams& params) {
  std::uint32_t address = zeroed_words() + threadIdx.x % 32 * 4;
  measure(params, [&](std::uint32_t) {
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) address += load_word(address);
    consume(params, address);
  });
}

// Lanes lie `stride` bytes apart: 4 bytes have no conflict, 8 two ways, ... 128 all.
__device__ void time_loads(const TimingProbeParams& params) {
  const std::uint32_t address = zeroed_words() + threadIdx.x % 32 * params.stride;
  measure(params, [&](std::uint32_t) {
    std::uint32_t words[kAccesses], all = 0;
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) words[i] = load_word(address + i * 128);
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) all |= words[i];
    consume(params, all);
  });
}

__device__ void time_wide_loads(const TimingProbeParams& params) {
  const std::uint32_t address = zeroed_words() + threadIdx.x % 32 * 16;
  measure(params, [&](std::uint32_t) {
    uint4 words[kAccesses];
    std::uint32_t all = 0;
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) words[i] = ptx::ld_shared_v4_u32(address + i * 512);
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) all |= words[i].x | words[i].y | words[i].z | words[i].w;
    consume(params, all);
  });
}

template <bool IsChain>
__device__ void time_ldmatrix(const TimingProbeParams& params) {
  std::uint32_t address = zeroed_words() + threadIdx.x % 32 * 16;
  measure(params, [&](std::uint32_t) {
    std::uint32_t words[kAccesses][4], all = 0;
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) {
      ptx::ldmatrix<4, false>(words[i], address + (IsChain ? 0 : i * 512));
      if (IsChain) address += words[i][0];
    }
#pragma unroll
    for (int i = 0; i < kAccesses; ++i)
      all |= words[i][0] | words[i][1] | words[i][2] | words[i][3];
    consume(params, all);
  });
}

template <bool IsFenced>
__device__ void time_stmatrix(const TimingProbeParams& params) {
  const std::uint32_t address = zeroed_words() + threadIdx.x % 32 * 16;
  const std::uint32_t words[4] = {params.word, params.word, threadIdx.x, 0};
  measure(params, [&](std::uint32_t) {
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) ptx::stmatrix<4, false>(address + i * 512, words);
    if (IsFenced) ptx::fence_proxy_async_shared_cta();
  });
}

__device__ void time_stores(const TimingProbeParams& params) {
  const std::uint32_t address = zeroed_words() + threadIdx.x % 32 * params.stride;
  measure(params, [&](std::uint32_t) {
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) ptx::st_shared_u32(address + i * 128, threadIdx.x);
  });
}

__device__ void time_proxy_fence(const TimingProbeParams& params) {
  measure(params, [](std::uint32_t) { ptx::fence_proxy_async_shared_cta(); });
}

__device__ std::uint32_t load_cached(const std::uint32_t* from) {
  std::uint32_t word;
  asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory");
  return word;
}

__device__ void time_l1_chain(const TimingProbeParams& params) {
  const std::uint32_t* from = params.memory + threadIdx.x % 32;
  measure(params, [&](std::uint32_t) {
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) from += load_cached(from);
    consume(params, static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(from)));
  });
}

__device__ void time_l1_loads(const TimingProbeParams& params) {
  const std::uint32_t* const from = params.memory + threadIdx.x % 32;
  measure(params, [&](std::uint32_t) {
    std::uint32_t words[kAccesses], all = 0;
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) words[i] = load_cached(from + i * 32);
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) all |= words[i];
    consume(params, all);
  });
}

}  // namespace
}  // namespace tilewright::kernels

TILEWRIGHT_TIMING_PROBE(shared_load_chain, 1024, time_load_chain(params))
TILEWRIGHT_TIMING_PROBE(shared_loads, 1024, time_loads(params))
TILEWRIGHT_TIMING_PROBE(shared_wide_loads, 512, time_wide_loads(params))
TILEWRIGHT_TIMING_PROBE(shared_stores, 1024, time_stores(params))
TILEWRIGHT_TIMING_PROBE(ldmatrix_chain, 512, time_ldmatrix<true>(params))
TILEWRIGHT_TIMING_PROBE(ldmatrix_loads, 512, time_ldmatrix<false>(params))
TILEWRIGHT_TIMING_PROBE(stmatrix, 1024, time_stmatrix<false>(params))
TILEWRIGHT_TIMING_PROBE(stmatrix_fenced, 1024, time_stmatrix<true>(params))
TILEWRIGHT_TIMING_PROBE(proxy_fence, 1024, time_proxy_fence(params))
TILEWRIGHT_TIMING_PROBE(l1_chain, 1024, time_l1_chain(params))
TILEWRIGHT_TIMING_PROBE(l1_loads, 1024, time_l1_loads(params))
