// targets: sm_90a sm_100f
//
// The Ampere way: cp.async fills one of two buffers while ldmatrix and mma.sync work on the other.
// Rows and columns beyond the matrices are zeros that cp.async writes (its source size).
#include "kernels/probe/mma_sync_gemm.h"
#include "ptx/address.h"
#include "ptx/cp_async.h"
#include "ptx/matrix_copy.h"
#include "ptx/mma_sync.h"

namespace tilewright::kernels {
namespace {

constexpr int kTile = kMmaSyncGemmTile, kTileK = kMmaSyncGemmTileK;
// 80-byte rows: the eight rows of an 8x8 matrix lie in different banks.
constexpr int kPitch = kTileK + 8;
constexpr int kStageBytes = kTile * kPitch * 2;
constexpr int kChunk = 8;  // elements of one cp.async

// One tile of a [rows, k] matrix to shared memory.
__device__ void load_tile(std::uint32_t tile, const std::uint16_t* matrix, int row0, int rows,
                          int k0, int k, int pitch) {
#pragma unroll
  for (int i = threadIdx.x; i < kTile * kTileK / kChunk; i += kMmaSyncGemmThreads) {
    const int row = i / (kTileK / kChunk), col = i % (kTileK / kChunk) * kChunk;
    const int left = row0 + row < rows ? k - (k0 + col) : 0;  // elements from here on
    const int valid = left < 0 ? 0 : left > kChunk ? kChunk : left;
    const std::uint16_t* source =
        valid > 0 ? matrix + static_cast<std::int64_t>(row0 + row) * pitch + k0 + col : matrix;
    ptx::cp_async_cg_shared_global_16(tile + (row * kPitch + col) * 2, source, valid * 2);
  }
}

// d += a * b for the 32 x 32 results of a warp and the whole depth of a stage.
__device__ void multiply_stage(float (&d)[2][4][4], std::uint32_t a_tile, std::uint32_t b_tile) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // Lane 8j + r addresses row r of matrix j: of A rows 0-7, 8-15, then the same 8 columns on; of B
  // 8 columns on first.
  const std::uint32_t a_lane = (warp / 2 * 32 + lane % 16) * kPitch + lane / 16 * 8;
  const std::uint32_t b_lane =
      (warp % 2 * 32 + lane % 8 + lane / 16 * 8) * kPitch + lane / 8 % 2 * 8;
#pragma unroll
  for (int k = 0; k < kTileK; k += 16) {
    std::uint32_t a[2][4], b[2][4];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      ptx::ldmatrix<4>(a[i], a_tile + (a_lane + i * 16 * kPitch + k) * 2);
      ptx::ldmatrix<4>(b[i], b_tile + (b_lane + i * 16 * kPitch + k) * 2);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const std::uint32_t b_pair[2] = {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]};
        ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(d[i][j], a[i], b_pair, d[i][j]);
      }
    }
  }
}

__device__ void store_results(const MmaSyncGemmParams& params, const float (&d)[2][4][4], int row0,
                              int col0) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        const int row = row0 + warp / 2 * 32 + i * 16 + lane / 4 + v / 2 * 8;
        const int col = col0 + warp % 2 * 32 + j * 8 + lane % 4 * 2 + v % 2;
        if (row < params.m && col < params.n)
          params.c[static_cast<std::int64_t>(row) * params.n + col] = d[i][j][v];
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::kernels

extern "C" __global__ void __launch_bounds__(tilewright::kernels::kMmaSyncGemmThreads)
    mma_sync_gemm(const __grid_constant__ tilewright::kernels::MmaSyncGemmParams params) {
  namespace ptx = tilewright::ptx;
  using namespace tilewright::kernels;
  __shared__ alignas(128) std::uint8_t storage[4 * kStageBytes];
  const std::uint32_t shared = ptx::shared_address(storage);
  const int row0 = static_cast<int>(blockIdx.y) * kTile,
            col0 = static_cast<int>(blockIdx.x) * kTile;
  const int steps = (params.k + kTileK - 1) / kTileK;

  const auto a_tile = [&](int step) { return shared + step % 2 * 2 * kStageBytes; };
  const auto load = [&](int step) {
    if (step < steps) {
      load_tile(a_tile(step), params.a, row0, params.m, step * kTileK, params.k, params.lda);
      load_tile(a_tile(step) + kStageBytes, params.b, col0, params.n, step * kTileK, params.k,
                params.ldb);
    }
    ptx::cp_async_commit_group();  // perhaps empty: every step has one group
  };

  float d[2][4][4] = {};
  load(0);
  for (int step = 0; step < steps; ++step) {
    load(step + 1);
    ptx::cp_async_wait_group<1>();
    __syncthreads();
    multiply_stage(d, a_tile(step), a_tile(step) + kStageBytes);
    __syncthreads();
  }
  store_results(params, d, row0, col0);
}
