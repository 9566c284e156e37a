// targets: sm_90a
//
// One wgmma at a time, on operands that the host chose: what does the hardware make of our
// fragments, swizzles and descriptors? The results are recorded on a GPU
// (tools/hardware/record.cpp) and compared with the layout library: the witness that the layouts
// are right. Not a kernel to learn speed from.
#include "kernels/probe/wgmma_probe.h"
#include "ptx/address.h"
#include "ptx/fence.h"
#include "ptx/wgmma_mma_async.h"
#include "ptx/wgmma_sync.h"

namespace tilewright::kernels {
namespace {

using ptx::wgmma_mma_async;

// Copies the image to the first multiple of the alignment and makes it visible to the tensor core.
// Returns its address.
__device__ std::uint32_t load_image(const WgmmaProbeParams& params) {
  extern __shared__ std::uint32_t dynamic[];
  const std::uint32_t start = ptx::shared_address(dynamic);
  const std::uint32_t base =
      (start + kWgmmaProbeAlignment - 1) / kWgmmaProbeAlignment * kWgmmaProbeAlignment;
  std::uint32_t* image = dynamic + (base - start) / 4;
  for (std::uint32_t i = threadIdx.x; i < params.shared_bytes / 4; i += kWgmmaProbeThreads) {
    image[i] = params.shared_image[i];
  }
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  return base;
}

// Adds an address to the start-address field, which counts 16 B and must not carry into its
// neighbours.
__device__ std::uint64_t at_address(std::uint64_t descriptor, std::uint32_t address) {
  const std::uint64_t start = ((descriptor & 0x3FFF) + (address >> 4)) & 0x3FFF;
  return (descriptor & ~std::uint64_t{0x3FFF}) | start;
}

template <int N>
__device__ void store(const WgmmaProbeParams& params, const float (&d)[N / 2]) {
#pragma unroll
  for (int i = 0; i < N / 2; ++i) params.accumulators[threadIdx.x * (N / 2) + i] = d[i];
}

template <int N, class Issue>
__device__ void run_ss(const WgmmaProbeParams& params, Issue issue) {
  const std::uint32_t base = load_image(params);
  float d[N / 2] = {};
  ptx::wgmma_fence_sync_aligned();
  issue(d, at_address(params.a_descriptor, base), at_address(params.b_descriptor, base));
  ptx::wgmma_commit_group_sync_aligned();
  ptx::wgmma_wait_group_sync_aligned<0>();
  store<N>(params, d);
}

template <int N, class Issue>
__device__ void run_rs(const WgmmaProbeParams& params, Issue issue) {
  const std::uint32_t base = load_image(params);
  float d[N / 2] = {};
  std::uint32_t a[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) a[i] = params.a_registers[threadIdx.x * 4 + i];
  ptx::wgmma_fence_sync_aligned();
  issue(d, a, at_address(params.b_descriptor, base));
  ptx::wgmma_commit_group_sync_aligned();
  ptx::wgmma_wait_group_sync_aligned<0>();
  store<N>(params, d);
}

}  // namespace
}  // namespace tilewright::kernels

// Entry wgmma_probe_NAME: A and B from shared memory (ss), or A from registers (rs). The digits of
// a bf16 name are imm-trans-a and imm-trans-b: 0 = K-major, 1 = MN-major.
#define TILEWRIGHT_WGMMA_PROBE(NAME, RUN, N, ...)                                                \
  extern "C" __global__ void __launch_bounds__(tilewright::kernels::kWgmmaProbeThreads)          \
      wgmma_probe_##NAME(const __grid_constant__ tilewright::kernels::WgmmaProbeParams params) { \
    tilewright::kernels::RUN<N>(params, [](auto& d, const auto& a, std::uint64_t b) {            \
      tilewright::ptx::wgmma_mma_async<N>::__VA_ARGS__(d, a, b, false);                          \
    });                                                                                          \
  }

TILEWRIGHT_WGMMA_PROBE(n8_bf16_ss00, run_ss, 8, k16_f32_bf16_bf16<0, 0>)
TILEWRIGHT_WGMMA_PROBE(n24_bf16_ss00, run_ss, 24, k16_f32_bf16_bf16<0, 0>)
TILEWRIGHT_WGMMA_PROBE(n64_bf16_ss00, run_ss, 64, k16_f32_bf16_bf16<0, 0>)
TILEWRIGHT_WGMMA_PROBE(n64_bf16_ss01, run_ss, 64, k16_f32_bf16_bf16<0, 1>)
TILEWRIGHT_WGMMA_PROBE(n64_bf16_ss10, run_ss, 64, k16_f32_bf16_bf16<1, 0>)
TILEWRIGHT_WGMMA_PROBE(n64_bf16_ss11, run_ss, 64, k16_f32_bf16_bf16<1, 1>)
TILEWRIGHT_WGMMA_PROBE(n256_bf16_ss00, run_ss, 256, k16_f32_bf16_bf16<0, 0>)
TILEWRIGHT_WGMMA_PROBE(n64_bf16_rs0, run_rs, 64, k16_f32_bf16_bf16<0>)
TILEWRIGHT_WGMMA_PROBE(n64_bf16_rs1, run_rs, 64, k16_f32_bf16_bf16<1>)
TILEWRIGHT_WGMMA_PROBE(n64_e4m3_ss, run_ss, 64, k32_f32_e4m3_e4m3)
TILEWRIGHT_WGMMA_PROBE(n64_e4m3_rs, run_rs, 64, k32_f32_e4m3_e4m3)
TILEWRIGHT_WGMMA_PROBE(n64_tf32_ss, run_ss, 64, k8_f32_tf32_tf32)
TILEWRIGHT_WGMMA_PROBE(n64_tf32_rs, run_rs, 64, k8_f32_tf32_tf32)
