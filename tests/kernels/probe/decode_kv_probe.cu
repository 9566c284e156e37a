// targets: sm_90a
//
// Decodes numbers of caches as the sparse attention kernels do, for a test of every code under
// every scale. Entries decode_kv_FORMAT.
#include "kernels/probe/decode_kv_probe.h"
#include "kernels/sparse_attention/unpack_e2m1.h"
#include "kernels/sparse_attention/unpack_e4m3.h"

namespace tilewright::kernels {
namespace {

__device__ void decode_fp8(const DecodeKvProbeParams& params) {
  const std::uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= static_cast<std::uint32_t>(params.count)) return;
  const std::uint32_t scales = tile::spread_byte(params.scales[at], 0);
  const std::uint32_t placed = tile::placed_part(scales);
  std::uint32_t words[8];
  tile::decode_e4m3(words, reinterpret_cast<const uint4*>(params.codes)[at],
                    tile::placed_e4m3_factors(placed));
  const bool has_large = tile::has_large_scale(params.scales[at]);
  const std::uint32_t rest = tile::power_factors(scales - placed);
  for (int i = 0; i < 8; ++i)
    params.bf16[at * 8 + i] = has_large ? tile::mul_bf16x2(words[i], rest) : words[i];
}

__device__ void decode_nvfp4(const DecodeKvProbeParams& params) {
  const std::uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= static_cast<std::uint32_t>(params.count)) return;
  const std::uint32_t factor = tile::e4m3_factors(tile::spread_byte(params.scales[at], 0));
  for (int i = 0; i < 2; ++i) {
    reinterpret_cast<uint4*>(params.bf16)[at * 2 + i] =
        tile::decode_e2m1(params.codes[at * 2 + i], factor);
  }
}

}  // namespace
}  // namespace tilewright::kernels

extern "C" __global__ void decode_kv_fp8(
    const __grid_constant__ tilewright::kernels::DecodeKvProbeParams params) {
  tilewright::kernels::decode_fp8(params);
}
extern "C" __global__ void decode_kv_nvfp4(
    const __grid_constant__ tilewright::kernels::DecodeKvProbeParams params) {
  tilewright::kernels::decode_nvfp4(params);
}
