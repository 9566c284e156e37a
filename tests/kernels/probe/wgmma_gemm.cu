// targets: sm_90a
//
// The Hopper way: a producer warpgroup that gives its registers away and keeps the ring full, two
// consumer warpgroups with 64 x 128 results each, and tiles drawn from a counter until none is
// left. Results leave through shared memory (stmatrix) by tensor copies.
#include "arch/fragments/smem_tiles.h"
#include "kernels/probe/wgmma_gemm.h"
#include "ptx/address.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/fence.h"
#include "ptx/matrix_copy.h"
#include "ptx/mbarrier.h"
#include "ptx/warp_roles.h"
#include "ptx/wgmma_mma_async.h"
#include "ptx/wgmma_sync.h"

#include <cuda_bf16.h>

namespace tilewright::kernels {
namespace {

constexpr int kTile = kWgmmaGemmTile, kStages = kWgmmaGemmStages;
constexpr int kRowBytes = kWgmmaGemmTileK;  // of a swizzled tile
constexpr int kOperandBytes = kTile * kRowBytes;
constexpr int kConsumerWarps = 8;
constexpr int kDrawnTiles = 2;  // the producer draws ahead of the consumers
constexpr int kAccumulators = kTile / 2;
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
constexpr int kStepBytes = 32;  // of k, per instruction

struct Bf16 {
  static constexpr int kBits = 16;
  template <class A>
  static __device__ void multiply(float (&d)[kAccumulators], const A& a, std::uint64_t b,
                                  bool accumulate) {
    if constexpr (sizeof(A) == 8) {
      ptx::wgmma_mma_async<kTile>::k16_f32_bf16_bf16<0, 0>(d, a, b, accumulate);
    } else {
      ptx::wgmma_mma_async<kTile>::k16_f32_bf16_bf16<0>(d, a, b, accumulate);
    }
  }
};

struct E4m3 {
  static constexpr int kBits = 8;
  template <class A>
  static __device__ void multiply(float (&d)[kAccumulators], const A& a, std::uint64_t b,
                                  bool accumulate) {
    ptx::wgmma_mma_async<kTile>::k32_f32_e4m3_e4m3(d, a, b, accumulate);
  }
};

struct Barriers {
  std::uint64_t full[kStages], empty[kStages];
  std::uint64_t drawn[kDrawnTiles], taken[kDrawnTiles];
  std::uint32_t tile[kDrawnTiles];
};

// Where the parts of shared memory lie.
struct Memory {
  std::uint32_t stages;
  std::uint32_t results;  // [2 warpgroups][boxes][64 rows][128 bytes]
  Barriers& barriers;

  __device__ std::uint32_t a(std::uint32_t n) const {
    return stages + n % kStages * kWgmmaGemmStageBytes;
  }
  __device__ std::uint32_t b(std::uint32_t n) const { return a(n) + kOperandBytes; }
  __device__ std::uint32_t full(std::uint32_t n) const {
    return ptx::shared_address(&barriers.full[n % kStages]);
  }
  __device__ std::uint32_t empty(std::uint32_t n) const {
    return ptx::shared_address(&barriers.empty[n % kStages]);
  }
};

__device__ std::uint32_t parity(std::uint32_t n, std::uint32_t slots) {
  return n / slots & 1;
}

__device__ void initialise(Barriers& barriers) {
  for (int i = 0; i < kStages; ++i) {
    ptx::mbarrier_init(ptx::shared_address(&barriers.full[i]), 1);
    ptx::mbarrier_init(ptx::shared_address(&barriers.empty[i]), kConsumerWarps);
  }
  for (int i = 0; i < kDrawnTiles; ++i) {
    ptx::mbarrier_init(ptx::shared_address(&barriers.drawn[i]), 1);
    ptx::mbarrier_init(ptx::shared_address(&barriers.taken[i]), kConsumerWarps);
  }
  ptx::fence_mbarrier_init_release_cluster();
}

// One thread: draws tiles, tells the consumers, and loads what each tile needs.
template <class Element>
__device__ void produce(const WgmmaGemmParams& params, const Memory& memory) {
  const auto num_tiles = static_cast<std::uint32_t>(params.tiles_m * params.tiles_n);
  constexpr int kStepElements = kRowBytes * 8 / Element::kBits;
  std::uint32_t n = 0;  // stages filled
  for (std::uint32_t drawn = 0;; ++drawn) {
    const std::uint32_t slot = drawn % kDrawnTiles;
    ptx::mbarrier_wait_parity(ptx::shared_address(&memory.barriers.taken[slot]),
                              parity(drawn, kDrawnTiles) ^ 1);
    const std::uint32_t tile = atomicAdd(params.next_tile, 1u);
    memory.barriers.tile[slot] = tile;
    ptx::mbarrier_arrive(ptx::shared_address(&memory.barriers.drawn[slot]));
    if (tile >= num_tiles) return;
    const auto row = static_cast<std::int32_t>(tile / params.tiles_n) * kTile;
    const auto col = static_cast<std::int32_t>(tile % params.tiles_n) * kTile;
    for (std::int32_t step = 0; step < params.steps_k; ++step, ++n) {
      ptx::mbarrier_wait_parity(memory.empty(n), parity(n, kStages) ^ 1);
      ptx::mbarrier_arrive_expect_tx(memory.full(n), kWgmmaGemmStageBytes);
      const std::int32_t k = step * kStepElements;
      ptx::cp_async_bulk_tensor_2d_shared_global(memory.a(n), params.a_map, k, row, memory.full(n));
      ptx::cp_async_bulk_tensor_2d_shared_global(memory.b(n), params.b_map, k, col, memory.full(n));
    }
  }
}

// The tile to work on, or one past the last.
__device__ std::uint32_t take_tile(const Memory& memory, std::uint32_t drawn) {
  const std::uint32_t slot = drawn % kDrawnTiles;
  ptx::mbarrier_wait_parity(ptx::shared_address(&memory.barriers.drawn[slot]),
                            parity(drawn, kDrawnTiles));
  const std::uint32_t tile = memory.barriers.tile[slot];
  __syncwarp();
  if (threadIdx.x % 32 == 0)
    ptx::mbarrier_arrive(ptx::shared_address(&memory.barriers.taken[slot]));
  return tile;
}

// Descriptor of a K-major operand with 128-byte rows at an address.
template <class Element>
__device__ std::uint64_t describe(std::uint32_t address) {
  constexpr arch::SmemSwizzle kSwizzle = arch::SmemSwizzle::k128B;
  constexpr ComposedLayout kOperand = arch::make_smem_tile(
      arch::Major::kK, kSwizzle, Element::kBits, kTile, kRowBytes * 8 / Element::kBits);
  constexpr std::uint64_t kAtZero = arch::encode_wgmma_descriptor(
      arch::describe_smem_tile(kOperand, arch::Major::kK, kSwizzle, Element::kBits));
  return kAtZero | address >> 4;
}

// A fragments of one instruction: ldmatrix moves 16 bytes of a row whatever they mean.
__device__ void load_fragment(std::uint32_t (&a)[4], std::uint32_t rows, int k_bytes) {
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const std::uint32_t row = warp * 16 + lane % 16;
  ptx::ldmatrix<4>(a, arch::swizzle_address(arch::SmemSwizzle::k128B,
                                            rows + row * kRowBytes + k_bytes + lane / 16 * 16));
}

__device__ void release(const Memory& memory, std::uint32_t n) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(memory.empty(n));
}

// d = the tile's product, A from shared memory. One group stays in flight, so a stage is released
// one step late.
template <class Element>
__device__ void multiply_ss(float (&d)[kAccumulators], const Memory& memory, std::uint32_t rows,
                            std::int32_t steps, std::uint32_t& n) {
  for (std::int32_t step = 0; step < steps; ++step, ++n) {
    ptx::mbarrier_wait_parity(memory.full(n), parity(n, kStages));
    ptx::wgmma_fence_operand(d);
    ptx::wgmma_fence_sync_aligned();
#pragma unroll
    for (int k = 0; k < kRowBytes; k += kStepBytes) {
      Element::multiply(d, describe<Element>(memory.a(n) + rows * kRowBytes + k),
                        describe<Element>(memory.b(n) + k), step > 0 || k > 0);
    }
    ptx::wgmma_commit_group_sync_aligned();
    ptx::wgmma_wait_group_sync_aligned<1>();
    if (step > 0) release(memory, n - 1);
  }
  ptx::wgmma_wait_group_sync_aligned<0>();
  ptx::wgmma_fence_operand(d);
  if (steps > 0) release(memory, n - 1);
}

// The same with A from registers, which must not change while an instruction reads them.
template <class Element>
__device__ void multiply_rs(float (&d)[kAccumulators], const Memory& memory, std::uint32_t rows,
                            std::int32_t steps, std::uint32_t& n) {
  for (std::int32_t step = 0; step < steps; ++step, ++n) {
    ptx::mbarrier_wait_parity(memory.full(n), parity(n, kStages));
    std::uint32_t a[kRowBytes / kStepBytes][4];
#pragma unroll
    for (int k = 0; k < kRowBytes; k += kStepBytes)
      load_fragment(a[k / kStepBytes], memory.a(n) + rows * kRowBytes, k);
    ptx::wgmma_fence_operand(d);
    ptx::wgmma_fence_sync_aligned();
#pragma unroll
    for (int k = 0; k < kRowBytes; k += kStepBytes) {
      Element::multiply(d, a[k / kStepBytes], describe<Element>(memory.b(n) + k),
                        step > 0 || k > 0);
    }
    ptx::wgmma_commit_group_sync_aligned();
    ptx::wgmma_wait_group_sync_aligned<0>();
    ptx::wgmma_fence_operand(d);
    release(memory, n);
  }
}

__device__ std::uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

// Results of a warpgroup to 64-row boxes of 128 bytes in shared memory, swizzled.
__device__ void stage_results(const float (&d)[kAccumulators], std::uint32_t boxes,
                              __nv_bfloat16 /*element of d*/) {
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const std::uint32_t row = warp * 16 + lane % 16;
#pragma unroll
  for (int i = 0; i < kAccumulators; i += 8) {  // 16 columns: two 8x8 blocks beside two
    const std::uint32_t words[4] = {pack(d[i], d[i + 1]), pack(d[i + 2], d[i + 3]),
                                    pack(d[i + 4], d[i + 5]), pack(d[i + 6], d[i + 7])};
    const std::uint32_t column_bytes = i / 8 * 32 + lane / 16 * 16;
    const std::uint32_t box = boxes + column_bytes / kRowBytes * kWgmmaGemmBoxRowsD * kRowBytes;
    ptx::stmatrix<4>(arch::swizzle_address(arch::SmemSwizzle::k128B,
                                           box + row * kRowBytes + column_bytes % kRowBytes),
                     words);
  }
}

__device__ void stage_results(const float (&d)[kAccumulators], std::uint32_t boxes,
                              float /*element of d*/) {
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
  for (int i = 0; i < kAccumulators; i += 2) {
    const std::uint32_t row = warp * 16 + lane / 4 + i / 2 % 2 * 8;
    const std::uint32_t column_bytes = i / 4 * 32 + lane % 4 * 8;
    const std::uint32_t box = boxes + column_bytes / kRowBytes * kWgmmaGemmBoxRowsD * kRowBytes;
    const std::uint32_t address = arch::swizzle_address(
        arch::SmemSwizzle::k128B, box + row * kRowBytes + column_bytes % kRowBytes);
    *static_cast<float2*>(__cvta_shared_to_generic(address)) = make_float2(d[i], d[i + 1]);
  }
}

// Hands the warpgroup's results to the tensor copy, once that has read the previous ones.
template <class Result>
__device__ void store_results(const WgmmaGemmParams& params, const float (&d)[kAccumulators],
                              std::uint32_t boxes, std::int32_t row, std::int32_t col) {
  constexpr int kBoxColumns = kRowBytes / sizeof(Result);
  const std::uint32_t barrier = threadIdx.x / 128;  // 1 or 2
  const bool is_storing = threadIdx.x % 128 == 0;
  if (is_storing) ptx::cp_async_bulk_wait_group_read<0>();
  ptx::bar_sync<128>(barrier);
  stage_results(d, boxes, Result{});
  ptx::fence_proxy_async_shared_cta();
  ptx::bar_sync<128>(barrier);
  if (!is_storing) return;
#pragma unroll
  for (int i = 0; i < kTile / kBoxColumns; ++i) {
    ptx::cp_async_bulk_tensor_2d_global_shared(params.d_map, col + i * kBoxColumns, row,
                                               boxes + i * kWgmmaGemmBoxRowsD * kRowBytes);
  }
  ptx::cp_async_bulk_commit_group();
}

template <class Element, class Result, bool IsFromRegisters>
__device__ void consume(const WgmmaGemmParams& params, const Memory& memory) {
  const auto num_tiles = static_cast<std::uint32_t>(params.tiles_m * params.tiles_n);
  const std::uint32_t rows = (threadIdx.x / 128 - 1) * kWgmmaGemmBoxRowsD;  // of the tile
  const std::uint32_t boxes = memory.results + rows * kTile * sizeof(Result);
  std::uint32_t n = 0;  // stages emptied
  for (std::uint32_t drawn = 0;; ++drawn) {
    const std::uint32_t tile = take_tile(memory, drawn);
    if (tile >= num_tiles) break;
    float d[kAccumulators] = {};
    if constexpr (IsFromRegisters) {
      multiply_rs<Element>(d, memory, rows, params.steps_k, n);
    } else {
      multiply_ss<Element>(d, memory, rows, params.steps_k, n);
    }
    store_results<Result>(params, d, boxes,
                          static_cast<std::int32_t>(tile / params.tiles_n * kTile + rows),
                          static_cast<std::int32_t>(tile % params.tiles_n * kTile));
  }
  if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group<0>();
}

template <class Element, class Result, bool IsFromRegisters>
__device__ void wgmma_gemm(const WgmmaGemmParams& params) {
  extern __shared__ std::uint8_t dynamic[];
  __shared__ Barriers barriers;
  const std::uint32_t start = ptx::shared_address(dynamic);
  const std::uint32_t stages =
      (start + kWgmmaGemmAlignment - 1) / kWgmmaGemmAlignment * kWgmmaGemmAlignment;
  const Memory memory = {stages, stages + kStages * kWgmmaGemmStageBytes, barriers};
  if (threadIdx.x == 0) initialise(barriers);
  __syncthreads();
  if (threadIdx.x < 128) {
    ptx::setmaxnreg_dec_sync_aligned<kProducerRegisters>();
    if (threadIdx.x < 32 && ptx::elect_sync()) produce<Element>(params, memory);
  } else {
    ptx::setmaxnreg_inc_sync_aligned<kConsumerRegisters>();
    consume<Element, Result, IsFromRegisters>(params, memory);
  }
}

}  // namespace
}  // namespace tilewright::kernels

#define TILEWRIGHT_WGMMA_GEMM(NAME, ...)                                                       \
  extern "C" __global__ void __launch_bounds__(tilewright::kernels::kWgmmaGemmThreads, 1)      \
      wgmma_gemm_##NAME(const __grid_constant__ tilewright::kernels::WgmmaGemmParams params) { \
    tilewright::kernels::wgmma_gemm<__VA_ARGS__>(params);                                      \
  }

TILEWRIGHT_WGMMA_GEMM(bf16_f32_ss, tilewright::kernels::Bf16, float, false)
TILEWRIGHT_WGMMA_GEMM(bf16_bf16_ss, tilewright::kernels::Bf16, __nv_bfloat16, false)
TILEWRIGHT_WGMMA_GEMM(bf16_f32_rs, tilewright::kernels::Bf16, float, true)
TILEWRIGHT_WGMMA_GEMM(bf16_bf16_rs, tilewright::kernels::Bf16, __nv_bfloat16, true)
TILEWRIGHT_WGMMA_GEMM(e4m3_f32_ss, tilewright::kernels::E4m3, float, false)
TILEWRIGHT_WGMMA_GEMM(e4m3_bf16_ss, tilewright::kernels::E4m3, __nv_bfloat16, false)
TILEWRIGHT_WGMMA_GEMM(e4m3_f32_rs, tilewright::kernels::E4m3, float, true)
