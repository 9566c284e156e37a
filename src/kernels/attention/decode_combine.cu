// targets: sm_90a
//
// Merges the partial results of tiles that several CTAs shared, and applies the sink, once. A warp
// takes a row; CTAs in whose number no tile begins end at once.
#include "kernels/attention/decode.h"
#include "ptx/grid_dependency.h"
#include "ptx/math.h"
#include "tile/decode_rows.h"
#include "tile/decode_schedule.h"
#include "tile/element.h"

#include <cstdint>

namespace tilewright::kernels {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;

/// Neighbouring dimensions of a lane: all of a row in one access.
template <int Dim>
struct Lane {
  static constexpr int kCount = Dim / 32;
  float x[kCount] = {};

  __device__ void load(const float* row) {
    const float* const from = row + threadIdx.x % 32 * kCount;
    if constexpr (kCount == 2) {
      const float2 a = *reinterpret_cast<const float2*>(from);
      x[0] = a.x, x[1] = a.y;
    } else {
#pragma unroll
      for (int i = 0; i < kCount; i += 4) {
        const float4 a = *reinterpret_cast<const float4*>(from + i);
        x[i] = a.x, x[i + 1] = a.y, x[i + 2] = a.z, x[i + 3] = a.w;
      }
    }
  }
  __device__ void add(const Lane& other, float weight) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) x[i] = fmaf(other.x[i], weight, x[i]);
  }
  __device__ void store(std::uint16_t* row, float factor, bool is_f16) const {
    auto* const to = reinterpret_cast<std::uint32_t*>(row + threadIdx.x % 32 * kCount);
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const float a = x[i] * factor, b = x[i + 1] * factor;
      to[i / 2] = is_f16 ? tile::Fp16::pack(a, b) : tile::Bf16::pack(a, b);
    }
  }
};

template <int Dim>
__device__ void merge_row(const DecodeParams& p, const tile::DecodeMerge& merge,
                          std::int32_t row_in_tile) {
  const tile::DecodeRow row(p, merge.kv_head, merge.m_tile * p.rows + row_in_tile);
  if (!row.exists) return;
  const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
  const auto* const sums = reinterpret_cast<const float2*>(p.partial_sums);
  const auto at = [&](std::int32_t part) {
    return std::int64_t{merge.slot(part)} * p.rows + row_in_tile;
  };
  float top = -INFINITY;
  for (std::int32_t i = lane; i < merge.parts; i += 32) top = fmaxf(top, sums[at(i)].x);
#pragma unroll
  for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(kAllLanes, top, step));
  const float base = top == -INFINITY ? 0.0f : top;
  float total = 0.0f;
  Lane<Dim> all;
  for (std::int32_t first = 0; first < merge.parts; first += 32) {
    const bool is_one = first + lane < merge.parts;
    const float2 mine = is_one ? sums[at(first + lane)] : make_float2(-INFINITY, 0.0f);
    const float weight = ptx::ex2_approx_ftz_f32(mine.x - base);
    total = fmaf(mine.y, weight, total);
    const std::int32_t count = min(merge.parts - first, 32);
#pragma unroll 8
    for (std::int32_t i = 0; i < count; ++i) {
      Lane<Dim> part;
      part.load(p.partial_out + at(first + i) * Dim);
      all.add(part, __shfl_sync(kAllLanes, weight, i));
    }
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(kAllLanes, total, step);
  const tile::DecodeResult result(top, total, p.sink == nullptr ? nullptr : p.sink + row.head);
  float factor = result.factor;
  if (p.descale.v != nullptr)
    factor *= p.descale.v[merge.batch_idx * p.descale.batch + merge.kv_head * p.descale.head];
  all.store(static_cast<std::uint16_t*>(p.out) + row.offset(p.out_strides, merge.batch_idx), factor,
            p.q_is_f16 != 0);
  if (lane == 0 && p.lse != nullptr) p.lse[row.lse_offset(p, merge.batch_idx)] = result.lse;
}

template <int Dim>
__device__ void combine(const DecodeParams& p) {
  // Lengths are older than the kernel before: it has waited for them.
  const tile::DecodeMerge merge = tile::DecodePlan(p).merge(static_cast<std::int32_t>(blockIdx.x));
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const auto row = static_cast<std::int32_t>(blockIdx.y * kDecodeCombineRows + threadIdx.x / 32);
  if (merge.parts > 1 && row < p.rows) merge_row<Dim>(p, merge, row);
}

}  // namespace
}  // namespace tilewright::kernels

#define TILEWRIGHT_ENTRY(DIM)                                                           \
  extern "C" __global__ void __launch_bounds__(tilewright::kernels::kDecodeCombineThreads) \
      decode_combine_d##DIM(                                                            \
          const __grid_constant__ tilewright::kernels::DecodeParams params) {           \
    tilewright::kernels::combine<DIM>(params);                                          \
  }

TILEWRIGHT_ENTRY(64)
TILEWRIGHT_ENTRY(128)
TILEWRIGHT_ENTRY(256)
