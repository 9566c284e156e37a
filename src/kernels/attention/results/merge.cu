// targets: sm_90a sm_100f
//
// Merges partial results of attention: a thread has 8 columns of a row, so a row's lse are read by
// head_dim / 8 neighbours, out of L1. The first loop finds the largest lse, the second adds up;
// parts without keys are not read.
//
// Limit: memory, or L2 if the parts are still there: every part once, 16 or 32 bytes a thread and
// part. Two parts of 4096 rows of 32 heads of 128 in bf16: 67 MB and 34 MB of out, 21 us at
// 4.8 TB/s.
#include "kernels/attention/results/merge.h"
#include "kernels/attention/rows.h"
#include "ptx/math.h"
#include "tile/element.h"
#include "tile/element_chunk.h"
#include "tile/entry.h"
#include "tile/row_end.h"

namespace tilewright::kernels {
namespace {

constexpr int kColumns = tile::kChunkElems;

struct Place {
  std::int32_t batch, row, head, column;

  __device__ Place(const AttentionMergeParams& params, std::int64_t chunk) {
    const std::int32_t chunks = params.head_dim / kColumns;
    const std::int64_t line = chunk / chunks;
    column = static_cast<std::int32_t>(chunk % chunks) * kColumns;
    head = static_cast<std::int32_t>(line % params.heads);
    row = static_cast<std::int32_t>(line / params.heads % params.rows);
    batch = static_cast<std::int32_t>(line / params.heads / params.rows);
  }
  __device__ std::int64_t offset(const AttentionStrides& strides) const {
    return tile::row_offset(strides, batch, row, head);
  }
};

__device__ void load(float (&x)[kColumns], const void* base, std::int64_t offset, MergeType type) {
  if (type == MergeType::kF32) {
    const auto* const from =
        reinterpret_cast<const float4*>(static_cast<const float*>(base) + offset);
    const float4 low = from[0], high = from[1];
    x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
    x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
    return;
  }
  const auto* const from = static_cast<const std::uint16_t*>(base) + offset;
  if (type == MergeType::kBf16) return tile::unpack_chunk<tile::Bf16>(x, tile::load_chunk(from, 0));
  tile::unpack_chunk<tile::Fp16>(x, tile::load_chunk(from, 0));
}

template <class Element>
__device__ void store_packed(std::uint16_t* to, const float (&x)[kColumns]) {
  tile::store_chunk(to, 0,
                    make_uint4(Element::pack(x[0], x[1]), Element::pack(x[2], x[3]),
                               Element::pack(x[4], x[5]), Element::pack(x[6], x[7])));
}

__device__ void store(const float (&x)[kColumns], void* base, std::int64_t offset, MergeType type) {
  if (type == MergeType::kF32) {
    auto* const to = reinterpret_cast<float4*>(static_cast<float*>(base) + offset);
    to[0] = make_float4(x[0], x[1], x[2], x[3]);
    to[1] = make_float4(x[4], x[5], x[6], x[7]);
    return;
  }
  auto* const to = static_cast<std::uint16_t*>(base) + offset;
  if (type == MergeType::kBf16) return store_packed<tile::Bf16>(to, x);
  store_packed<tile::Fp16>(to, x);
}

struct Parts {
  const AttentionMergeParams& params;
  const Place& place;

  __device__ bool is_other(std::int32_t part) const {
    return params.other_out != nullptr && part == 1;
  }
  // -inf of a part without keys.
  __device__ float lse(std::int32_t part) const {
    const float* const from = is_other(part)
                                  ? params.other_lse + place.offset(params.lse_other_strides)
                                  : params.part_lse + part * params.lse_part_stride +
                                        place.offset(params.lse_part_strides);
    return isinf(*from) ? -INFINITY : *from;
  }
  __device__ void load_out(float (&x)[kColumns], std::int32_t part) const {
    if (is_other(part)) {
      load(x, params.other_out, place.offset(params.other_strides) + place.column,
           params.part_type);
    } else {
      load(x, params.part_out,
           part * params.part_stride + place.offset(params.part_strides) + place.column,
           params.part_type);
    }
  }
};

__device__ void merge(const AttentionMergeParams& params) {
  const std::int64_t chunk = std::int64_t{blockIdx.x} * kMergeThreads + threadIdx.x;
  if (chunk >= params.num_chunks) return;
  const Place place(params, chunk);
  const Parts parts = {params, place};
  float top = -INFINITY;
  bool is_number = true;
  for (std::int32_t i = 0; i < params.parts; ++i) {
    const float lse = parts.lse(i);
    top = fmaxf(top, lse);
    is_number = is_number && lse == lse;
  }
  if (!is_number) top = NAN;
  float sum = 0.0f, out[kColumns] = {};
  for (std::int32_t i = 0; i < params.parts; ++i) {
    const float lse = parts.lse(i);
    if (lse == -INFINITY) continue;
    float x[kColumns];
    parts.load_out(x, i);
    const float weight = ptx::ex2_approx_ftz_f32((lse - top) * tile::kLog2E);
    sum += weight;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) out[c] = fmaf(weight, x[c], out[c]);
  }
  const tile::RowEnd end(top, tile::kLog2E, sum,
                         params.sink == nullptr ? nullptr : params.sink + place.head);
#pragma unroll
  for (int c = 0; c < kColumns; ++c) out[c] *= end.factor;
  store(out, params.out, place.offset(params.out_strides) + place.column, params.out_type);
  if (params.lse != nullptr && place.column == 0)
    params.lse[place.offset(params.lse_strides)] = end.lse;
}

}  // namespace

TILEWRIGHT_KERNEL(attention_merge, AttentionMergeParams, __launch_bounds__(kMergeThreads), merge)

}  // namespace tilewright::kernels
