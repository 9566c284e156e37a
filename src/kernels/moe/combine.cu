// targets: sm_90a sm_100f
//
// Rows of experts to tokens: 16 bytes per thread and row, four rows in flight.
//
// Limit: HBM. T tokens read topk * hidden and write hidden elements: 8192 tokens of 8 experts and
// 7168 elements are 1.06 GB, 246 us at 4.3 TB/s; up to about 200 tokens the rows are still in L2.
#include "kernels/moe/combine.h"
#include "ptx/grid_dependency.h"
#include "tile/element.h"
#include "tile/element_chunk.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

constexpr int kInFlight = 4;

// sum += weight * row
__device__ void add_row(float (&sum)[8], const uint4& chunk, float weight) {
  float x[8];
  tile::unpack_chunk<tile::Bf16>(x, chunk);
#pragma unroll
  for (int i = 0; i < 8; ++i) sum[i] = fmaf(weight, x[i], sum[i]);
}

__device__ uint4 load_row(const std::uint16_t* rows, std::int64_t stride, std::int32_t row,
                          std::int32_t column) {
  return *reinterpret_cast<const uint4*>(rows + row * stride + column);
}

__device__ void store(std::uint16_t* out, const float (&sum)[8]) {
  *reinterpret_cast<uint4*>(out) = tile::pack_chunk<tile::Bf16>(sum, 1.0f);
}

__device__ void store(float* out, const float (&sum)[8]) {
  reinterpret_cast<float4*>(out)[0] = make_float4(sum[0], sum[1], sum[2], sum[3]);
  reinterpret_cast<float4*>(out)[1] = make_float4(sum[4], sum[5], sum[6], sum[7]);
}

template <class Out>
__device__ void combine(const MoeCombineParams& params) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const auto token = static_cast<std::int32_t>(blockIdx.y);
  const auto column = static_cast<std::int32_t>(blockIdx.x * kMoeCombineColumns + threadIdx.x * 8);
  if (column >= params.hidden) return;
  const std::int64_t first = static_cast<std::int64_t>(token) * params.topk;
  float sum[8] = {};
  for (int i0 = 0; i0 < params.topk; i0 += kInFlight) {
    uint4 chunks[kInFlight];
    float weights[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const std::int32_t row = i0 + i < params.topk ? params.slot_row[first + i0 + i] : -1;
      chunks[i] = make_uint4(0, 0, 0, 0);
      weights[i] = 0;
      if (row < 0) continue;
      weights[i] = params.weights != nullptr ? params.weights[first + i0 + i] : 1.0f;
      chunks[i] = load_row(params.rows, params.rows_stride, row, column);
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) add_row(sum, chunks[i], weights[i]);
  }
  if (params.shared_rows != nullptr) {
    const std::int32_t row = token + (params.shared_first != nullptr ? *params.shared_first : 0);
    add_row(sum, load_row(params.shared_rows, params.rows_stride, row, column), 1.0f);
  }
  store(static_cast<Out*>(params.out) + token * params.out_stride + column, sum);
}

}  // namespace
TILEWRIGHT_KERNEL(moe_combine_bf16, MoeCombineParams, __launch_bounds__(kMoeCombineThreads),
                  combine<std::uint16_t>)

TILEWRIGHT_KERNEL(moe_combine_f32, MoeCombineParams, __launch_bounds__(kMoeCombineThreads),
                  combine<float>)

}  // namespace tilewright::kernels
