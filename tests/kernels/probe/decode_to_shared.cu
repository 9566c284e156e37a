// targets: sm_90a
//
// The most expensive bug of published FP4 kernels, made small: weights are decoded to shared memory
// by ordinary stores, and wgmma reads them. It reads through the async proxy, which sees ordinary
// stores only after each writing thread's proxy fence; a barrier alone is not enough. Without the
// fence 1 to 7 % of calls were wrong (reported for a public kernel, see docs/notes), so that tests
// of values pass and fail by luck. The simulator's check `proxy` names it every time.
#include "arch/fragments/smem_tiles.h"
#include "kernels/probe/decode_to_shared.h"
#include "ptx/address.h"
#include "ptx/fence.h"
#include "ptx/wgmma_mma_async.h"
#include "ptx/wgmma_sync.h"

namespace tilewright::kernels {
namespace {

constexpr int kTile = kDecodeToSharedTile;
constexpr arch::SmemSwizzle kSwizzle = arch::SmemSwizzle::k64B;

// One operand: 64 rows of 64 bytes, swizzled.
struct alignas(512) Operand {
  std::uint32_t words[kTile * kTile / 4];
};

__device__ std::uint64_t describe(std::uint32_t address) {
  constexpr ComposedLayout kOperand =
      arch::make_smem_tile(arch::Major::kK, kSwizzle, 8, kTile, kTile);
  constexpr std::uint64_t kAtZero = arch::encode_wgmma_descriptor(
      arch::describe_smem_tile(kOperand, arch::Major::kK, kSwizzle, 8));
  return kAtZero | address >> 4;
}

// Word i of an operand stands here.
__device__ std::uint32_t& at(Operand& operand, std::uint32_t i) {
  return operand.words[arch::swizzle_address(kSwizzle, i * 4) / 4];
}

// Four codes, in the low halves of bytes, as e4m3: sign, and a magnitude out of eight.
__device__ std::uint32_t decode(std::uint32_t codes) {
  const std::uint32_t selector = codes & 0x7777u;
  const std::uint32_t magnitudes = __byte_perm(0x3c383000u, 0x4c484440u, selector);
  std::uint32_t signs = 0;
  for (int i = 0; i < 4; ++i) signs |= (codes >> (4 * i + 3) & 1) << (8 * i + 7);
  return magnitudes | signs;
}

template <bool HasFence>
__device__ void decode_to_shared(const DecodeToSharedParams& params) {
  __shared__ Operand w, x;
  for (std::uint32_t i = threadIdx.x; i < kTile * kTile / 4; i += kDecodeToSharedThreads) {
    at(w, i) = decode(params.w[i / 2] >> i % 2 * 16 & 0xffffu);
    at(x, i) = params.x[i];
  }
  if constexpr (HasFence) ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  float d[kTile / 2] = {};
  ptx::wgmma_fence_operand(d);
  ptx::wgmma_fence_sync_aligned();
#pragma unroll
  for (std::uint32_t k = 0; k < kTile; k += 32) {
    ptx::wgmma_mma_async<kTile>::k32_f32_e4m3_e4m3(d, describe(ptx::shared_address(&w) + k),
                                                   describe(ptx::shared_address(&x) + k), k > 0);
  }
  ptx::wgmma_commit_group_sync_aligned();
  ptx::wgmma_wait_group_sync_aligned<0>();
  ptx::wgmma_fence_operand(d);
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (std::uint32_t i = 0; i < kTile / 2; ++i) {
    const std::uint32_t row = warp * 16 + lane / 4 + i / 2 % 2 * 8;
    params.y[row * kTile + i / 4 * 8 + lane % 4 * 2 + i % 2] = d[i];
  }
}

}  // namespace
}  // namespace tilewright::kernels

extern "C" __global__ void __launch_bounds__(128)
    decode_to_shared_fenced(const __grid_constant__ tilewright::kernels::DecodeToSharedParams p) {
  tilewright::kernels::decode_to_shared<true>(p);
}
extern "C" __global__ void __launch_bounds__(128)
    decode_to_shared_unfenced(const __grid_constant__ tilewright::kernels::DecodeToSharedParams p) {
  tilewright::kernels::decode_to_shared<false>(p);
}
