// targets: sm_90a sm_100f
//
// Attention over values that are keys as well, naive: a CTA has a row, each of its warps every
// eighth key, each lane two neighbouring dimensions of every 64.
//
//   warp w   | score of key w | weight, values | key w + 8 | ... | all: merge of the warps' results
//
// The first rung: what the others are compared with, for every option. Bytes of keys that a row
// does not see are not read.
//
// Limit: the reads of a key wait for each other's sums of 32 lanes; nothing is shared between rows.
#include "kernels/sparse_attention/latent/latent_naive.h"
#include "kernels/sparse_attention/latent/pieces.h"
#include "ptx/grid_dependency.h"
#include "ptx/math.h"
#include "tile/element.h"
#include "tile/entry.h"
#include "tile/row_end.h"

#include <math.h>

namespace tilewright::kernels {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;

template <int Dims>
struct Shared {
  float out[kLatentNaiveWarps][Dims];
  float maxima[kLatentNaiveWarps], sums[kLatentNaiveWarps];
};

__device__ float sum_of_warp(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
  return x;
}

__device__ float dot(const float2& x, const float2& y, float sum) {
  return fmaf(x.y, y.y, fmaf(x.x, y.x, sum));
}

template <class Element, int Dims>
struct WarpRow {
  static constexpr int kPairs = Dims / 64;
  const LatentParams& params;
  tile::LatentRow row;
  std::int32_t lane = static_cast<std::int32_t>(threadIdx.x % 32);
  float2 q, qv[kPairs] = {}, out[kPairs] = {};
  float max = -INFINITY, sum = 0;

  __device__ WarpRow(const LatentParams& given, const tile::LatentRow& at)
      : params(given), row(at), q(load(given.q + at.offset(given.q_strides))) {
    if (params.qv == nullptr) return;
#pragma unroll
    for (int i = 0; i < kPairs; ++i)
      qv[i] = load(params.qv + row.offset(params.qv_strides) + 64 * i);
  }

  __device__ float2 load(const void* from) const {
    return Element::unpack(static_cast<const std::uint32_t*>(from)[lane]);
  }
  __device__ const std::uint8_t* address(const LatentRows& rows, std::int32_t page,
                                         std::int32_t slot) const {
    return rows.data + page * rows.page_stride + slot * rows.row_stride +
           row.head / params.group * rows.head_stride;
  }
  __device__ void add(std::int32_t key) {
    const LatentCache& cache = params.cache;
    std::int32_t page = row.batch, slot = key;
    if (cache.table != nullptr) {
      const std::int32_t in_table = key / cache.page_size;
      page = cache.table[row.batch * cache.table_stride + in_table];
      slot = key - in_table * cache.page_size;
    }
    const bool is_there =
        static_cast<std::uint32_t>(page) < static_cast<std::uint32_t>(cache.num_pages);
    float2 v[kPairs] = {}, k = {};
    if (is_there) {
      k = load(address(cache.k, page, slot));
#pragma unroll
      for (int i = 0; i < kPairs; ++i) v[i] = load(address(cache.v, page, slot) + 128 * i);
    }
    float score = dot(q, k, 0);
#pragma unroll
    for (int i = 0; i < kPairs; ++i) score = dot(qv[i], v[i], score);
    weigh(sum_of_warp(score) * params.scale_log2, v);
  }
  __device__ void weigh(float score, const float2 (&v)[kPairs]) {
    const float top = fmaxf(max, score);
    const float correction = ptx::ex2_approx_ftz_f32(max - top);
    const float weight = ptx::ex2_approx_ftz_f32(score - top);
    max = top;
    sum = fmaf(sum, correction, weight);
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      out[i].x = fmaf(out[i].x, correction, weight * v[i].x);
      out[i].y = fmaf(out[i].y, correction, weight * v[i].y);
    }
  }
  __device__ void store(Shared<Dims>& shared) const {
    const std::uint32_t warp = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < kPairs; ++i)
      *reinterpret_cast<float2*>(&shared.out[warp][64 * i + 2 * lane]) = out[i];
    if (lane == 0) shared.maxima[warp] = max, shared.sums[warp] = sum;
  }
};

template <class Element, int Dims>
__device__ void merge(const LatentParams& params, const tile::LatentRow& row,
                      const Shared<Dims>& shared) {
  float top = -INFINITY, sum = 0, weights[kLatentNaiveWarps];
#pragma unroll
  for (const float max : shared.maxima) top = fmaxf(top, max);
#pragma unroll
  for (int w = 0; w < kLatentNaiveWarps; ++w) {
    weights[w] = top == -INFINITY ? 0.0f : ptx::ex2_approx_ftz_f32(shared.maxima[w] - top);
    sum = fmaf(weights[w], shared.sums[w], sum);
  }
  const tile::RowEnd end(top, tile::NoScale{}, sum,
                         params.sink == nullptr ? nullptr : params.sink + row.head);
  for (std::uint32_t pair = threadIdx.x; pair < Dims / 2; pair += kLatentNaiveThreads) {
    float2 x = {};
#pragma unroll
    for (int w = 0; w < kLatentNaiveWarps; ++w) {
      x.x = fmaf(weights[w], shared.out[w][2 * pair], x.x);
      x.y = fmaf(weights[w], shared.out[w][2 * pair + 1], x.y);
    }
    reinterpret_cast<std::uint32_t*>(params.out + row.offset(params.out_strides))[pair] =
        Element::pack(x.x * end.factor, x.y * end.factor);
  }
  if (threadIdx.x == 0 && params.lse != nullptr)
    params.lse[row.offset(params.lse_strides)] = top == -INFINITY ? params.empty_lse : end.lse;
}

template <class Element, int Dims>
__device__ void attend(const LatentParams& params) {
  __shared__ __align__(16) Shared<Dims> shared;
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const auto head = static_cast<std::int32_t>(blockIdx.x) % params.heads;
  const auto query = static_cast<std::int32_t>(blockIdx.x) / params.heads;
  const tile::LatentRow row(params, static_cast<std::int32_t>(blockIdx.y), head / params.group,
                            query * params.group + head % params.group);
  const std::int32_t length = min(max(params.lengths[row.batch], 0), params.cache.capacity);
  const std::int32_t seen = params.is_causal != 0 ? length - (params.q_len - 1 - query) : length;
  WarpRow<Element, Dims> of_warp(params, row);
  for (auto key = static_cast<std::int32_t>(threadIdx.x / 32); key < seen; key += kLatentNaiveWarps)
    of_warp.add(key);
  of_warp.store(shared);
  __syncthreads();
  merge<Element>(params, row, shared);
}

}  // namespace

#define TILEWRIGHT_LATENT_NAIVE(NAME, ELEMENT, DIMS)                                           \
  TILEWRIGHT_KERNEL(latent_naive_##NAME, LatentParams, __launch_bounds__(kLatentNaiveThreads), \
                    attend<tile::ELEMENT, DIMS>)

TILEWRIGHT_LATENT_NAIVE(bf16_v512, Bf16, 512)
TILEWRIGHT_LATENT_NAIVE(bf16_v256, Bf16, 256)
TILEWRIGHT_LATENT_NAIVE(f16_v512, Fp16, 512)
TILEWRIGHT_LATENT_NAIVE(f16_v256, Fp16, 256)

}  // namespace tilewright::kernels
