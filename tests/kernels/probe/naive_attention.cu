// targets: sm_90a sm_100f
//
// Attention as one would write it on the first day: a thread per score, a warp per row of the
// softmax, a thread per output. Scalar arithmetic, shuffles, special functions, 64-bit addresses.
#include "kernels/probe/naive_attention.h"

#include <cuda_bf16.h>

namespace tilewright::kernels {
namespace {

__device__ float to_float(float x) {
  return x;
}
__device__ float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

// Where a packed query stands.
struct Row {
  int kv_begin;  // first key of its sequence
  int num_keys;  // of the sequence
  int num_seen;  // keys 0..num_seen-1 are visible
};

__device__ Row find_row(const NaiveAttentionParams& params, int query) {
  int low = 0;  // the last sequence that begins at or before the query and is not empty
  int high = params.batch - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (params.cu_seqlens_q[middle] <= query) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const int q_end = params.cu_seqlens_q[low + 1];
  const int kv_begin = params.cu_seqlens_kv[low];
  const int num_keys = params.cu_seqlens_kv[low + 1] - kv_begin;
  // The last query stands at the last key.
  const int seen = params.is_causal != 0 ? num_keys - (q_end - 1 - query) : num_keys;
  return {kv_begin, num_keys, seen < 0 ? 0 : seen};
}

__device__ float* score_row(const NaiveAttentionParams& params, int head, int query) {
  const std::int64_t total_q = params.cu_seqlens_q[params.batch];
  return params.scores + (head * total_q + query) * params.max_kv_len;
}

template <class Element>
__device__ void scores(const NaiveAttentionParams& params) {
  const int key = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int query = static_cast<int>(blockIdx.y);
  const int head = static_cast<int>(blockIdx.z);
  const Row row = find_row(params, query);
  if (key >= row.num_seen) return;
  const int kv_head = head / (params.heads / params.kv_heads);
  const Element* q = static_cast<const Element*>(params.q) +
                     (static_cast<std::int64_t>(query) * params.heads + head) * params.head_dim;
  const Element* k =
      static_cast<const Element*>(params.k) +
      (static_cast<std::int64_t>(row.kv_begin + key) * params.kv_heads + kv_head) * params.head_dim;
  float sum = 0;
  for (int c = 0; c < params.head_dim; ++c) sum = fmaf(to_float(q[c]), to_float(k[c]), sum);
  score_row(params, head, query)[key] = sum * params.scale;
}

__device__ float warp_max(float x) {
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
  return x;
}

__device__ float warp_sum(float x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

// One dimension of the weighted sum.
template <class Element>
__device__ void output(const NaiveAttentionParams& params) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int query = static_cast<int>(blockIdx.y);
  const int head = static_cast<int>(blockIdx.z);
  if (c >= params.head_dim) return;
  const Row row = find_row(params, query);
  const int kv_head = head / (params.heads / params.kv_heads);
  const float* p = score_row(params, head, query);
  const Element* v =
      static_cast<const Element*>(params.v) +
      (static_cast<std::int64_t>(row.kv_begin) * params.kv_heads + kv_head) * params.head_dim + c;
  float sum = 0;
  for (int key = 0; key < row.num_seen; ++key) {
    sum = fmaf(p[key], to_float(*v), sum);
    v += params.kv_heads * params.head_dim;
  }
  params.out[(static_cast<std::int64_t>(query) * params.heads + head) * params.head_dim + c] = sum;
}

}  // namespace
}  // namespace tilewright::kernels

#define TILEWRIGHT_NAIVE_ATTENTION(STEP, TYPE, ELEMENT, THREADS)                      \
  extern "C" __global__ void __launch_bounds__(tilewright::kernels::THREADS)          \
      naive_attention_##STEP##_##TYPE(                                                \
          const __grid_constant__ tilewright::kernels::NaiveAttentionParams params) { \
    tilewright::kernels::STEP<ELEMENT>(params);                                       \
  }

TILEWRIGHT_NAIVE_ATTENTION(scores, f32, float, kNaiveAttentionScoresThreads)
TILEWRIGHT_NAIVE_ATTENTION(scores, bf16, __nv_bfloat16, kNaiveAttentionScoresThreads)
TILEWRIGHT_NAIVE_ATTENTION(output, f32, float, kNaiveAttentionOutputThreads)
TILEWRIGHT_NAIVE_ATTENTION(output, bf16, __nv_bfloat16, kNaiveAttentionOutputThreads)

// Scores to probabilities, in place.
extern "C" __global__ void __launch_bounds__(tilewright::kernels::kNaiveAttentionSoftmaxWarps * 32)
    naive_attention_softmax(
        const __grid_constant__ tilewright::kernels::NaiveAttentionParams params) {
  using namespace tilewright::kernels;
  const int query = static_cast<int>(blockIdx.x * kNaiveAttentionSoftmaxWarps + threadIdx.x / 32);
  const int head = static_cast<int>(blockIdx.y);
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (query >= params.cu_seqlens_q[params.batch]) return;
  const Row row = find_row(params, query);
  float* s = score_row(params, head, query);
  float largest = -INFINITY;
  for (int key = lane; key < row.num_seen; key += 32) largest = fmaxf(largest, s[key]);
  largest = warp_max(largest);
  constexpr float kLog2E = 1.44269504f;
  float sum = 0;
  for (int key = lane; key < row.num_seen; key += 32) {
    const float p = exp2f((s[key] - largest) * kLog2E);
    s[key] = p;
    sum += p;
  }
  sum = warp_sum(sum);
  for (int key = lane; key < row.num_seen; key += 32) s[key] = s[key] / sum;
}
