// targets: sm_90a sm_100f
//
// One warp-level matrix instruction at a time, on raw registers: the hardware's word on the
// fragments of mma.sync and on what ldmatrix and stmatrix move. Recorded by
// tools/hardware/record.cpp.
#include "kernels/probe/warp_probe.h"
#include "ptx/address.h"
#include "ptx/matrix_copy.h"
#include "ptx/mma_sync.h"

namespace tilewright::kernels {
namespace {

template <int Count>
__device__ void load_registers(const WarpProbeParams& params, int first,
                               std::uint32_t (&r)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i)
    r[i] = params.registers_in[threadIdx.x * kWarpProbeRegisters + first + i];
}

template <int Count>
__device__ void store_registers(const WarpProbeParams& params, const std::uint32_t (&r)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i)
    params.registers_out[threadIdx.x * kWarpProbeRegisters + i] = r[i];
}

// A, B and C fragments of NumA, NumB and 4 registers; Issue is the instruction.
template <int NumA, int NumB, class Issue>
__device__ void run_mma(const WarpProbeParams& params, Issue issue) {
  std::uint32_t a[NumA], b[NumB], c_bits[4], d_bits[4];
  load_registers(params, 0, a);
  load_registers(params, NumA, b);
  load_registers(params, NumA + NumB, c_bits);
  float c[4], d[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) c[i] = __uint_as_float(c_bits[i]);
  issue(d, a, b, c);
#pragma unroll
  for (int i = 0; i < 4; ++i) d_bits[i] = __float_as_uint(d[i]);
  store_registers(params, d_bits);
}

__device__ std::uint32_t* load_image(const WarpProbeParams& params) {
  __shared__ alignas(128) std::uint32_t image[kWarpProbeSharedBytes / 4];
  for (int i = threadIdx.x; i < kWarpProbeSharedBytes / 4; i += 32) image[i] = params.shared_in[i];
  __syncwarp();
  return image;
}

template <int Count, bool Transposed>
__device__ void run_ldmatrix(const WarpProbeParams& params) {
  const std::uint32_t row =
      ptx::shared_address(load_image(params)) + threadIdx.x * kWarpProbeRowBytes;
  std::uint32_t loaded[Count];
  ptx::ldmatrix<Count, Transposed>(loaded, row);
  store_registers(params, loaded);
}

template <int Count, bool Transposed>
__device__ void run_stmatrix(const WarpProbeParams& params) {
  std::uint32_t* image = load_image(params);
  std::uint32_t stored[Count];
  load_registers(params, 0, stored);
  ptx::stmatrix<Count, Transposed>(ptx::shared_address(image) + threadIdx.x * kWarpProbeRowBytes,
                                   stored);
  __syncwarp();
  for (int i = threadIdx.x; i < kWarpProbeSharedBytes / 4; i += 32) params.shared_out[i] = image[i];
}

}  // namespace
}  // namespace tilewright::kernels

#define TILEWRIGHT_WARP_PROBE(NAME, ...)                                                       \
  extern "C" __global__ void __launch_bounds__(32)                                             \
      warp_probe_##NAME(const __grid_constant__ tilewright::kernels::WarpProbeParams params) { \
    tilewright::kernels::__VA_ARGS__;                                                          \
  }
#define TILEWRIGHT_MMA_PROBE(NAME, NUM_A, NUM_B, INSTRUCTION)                                  \
  TILEWRIGHT_WARP_PROBE(NAME, run_mma<NUM_A, NUM_B>(params, [](auto& d, const auto& a,         \
                                                               const auto& b, const auto& c) { \
                          tilewright::ptx::INSTRUCTION(d, a, b, c);                            \
                        }))

TILEWRIGHT_MMA_PROBE(m16n8k16_bf16, 4, 2, mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32)
TILEWRIGHT_MMA_PROBE(m16n8k8_bf16, 2, 1, mma_sync_aligned_m16n8k8_f32_bf16_bf16_f32)
TILEWRIGHT_MMA_PROBE(m16n8k8_tf32, 4, 2, mma_sync_aligned_m16n8k8_f32_tf32_tf32_f32)
TILEWRIGHT_MMA_PROBE(m16n8k32_e4m3, 4, 2, mma_sync_aligned_m16n8k32_f32_e4m3_e4m3_f32)
TILEWRIGHT_WARP_PROBE(ldmatrix_x1, run_ldmatrix<1, false>(params))
TILEWRIGHT_WARP_PROBE(ldmatrix_x2, run_ldmatrix<2, false>(params))
TILEWRIGHT_WARP_PROBE(ldmatrix_x4, run_ldmatrix<4, false>(params))
TILEWRIGHT_WARP_PROBE(ldmatrix_x1_trans, run_ldmatrix<1, true>(params))
TILEWRIGHT_WARP_PROBE(ldmatrix_x2_trans, run_ldmatrix<2, true>(params))
TILEWRIGHT_WARP_PROBE(ldmatrix_x4_trans, run_ldmatrix<4, true>(params))
TILEWRIGHT_WARP_PROBE(stmatrix_x1, run_stmatrix<1, false>(params))
TILEWRIGHT_WARP_PROBE(stmatrix_x2, run_stmatrix<2, false>(params))
TILEWRIGHT_WARP_PROBE(stmatrix_x4, run_stmatrix<4, false>(params))
TILEWRIGHT_WARP_PROBE(stmatrix_x1_trans, run_stmatrix<1, true>(params))
TILEWRIGHT_WARP_PROBE(stmatrix_x2_trans, run_stmatrix<2, true>(params))
TILEWRIGHT_WARP_PROBE(stmatrix_x4_trans, run_stmatrix<4, true>(params))
