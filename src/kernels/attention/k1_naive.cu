// targets: sm_90a
//
// K1, naive: attention as the formula has it, one kernel per line of it, all scores in memory.
//
//   launch      thread          reads             writes
//   scores      (key, query)    q row, k row      s[key, query] = scale q . k, or -inf if hidden
//   softmax     query           s three times     exp2(s - max), then the same times 1 / sum
//   output      (dim, query)    p, column of v    out = sum over keys of p v
//
//   time ->     | scores ............ | softmax .............. | output ............ |
//   memory        S written             S read 3x, written 2x    S read
//
// The first rung: what the others are compared with, and the one that is plainly right. S is
// stored with the query contiguous, so that neighbouring rows of the softmax are neighbours in
// memory; in the other two kernels neighbouring threads differ in the key or dimension, which costs
// them a sector each or shares one value.
//
// Limit: 4 q_len kv_len bytes of scores a head cross the memory bus seven times: 28 bytes for
// 4 head_dim flops, 18 flops a byte at head_dim 128. An H200 with 4.8 TB/s would reach 88 TFLOP/s
// so, more than the 67 of its scalar units; but each operand is fetched from L1 for two flops: most
// of the instructions are loads, addresses and conversions, which leaves a few TFLOP/s. Causal:
// hidden scores are not computed, but written, and read like all others.
// Measured: see the table in README.md of this folder.
// Sources: the worklog's K1; softmax with the maximum subtracted.
#include "kernels/attention/k1_naive.h"
#include "kernels/attention/mask.h"
#include "kernels/attention/rows.h"
#include "tile/entry.h"
#include "tile/online_softmax.h"

namespace tilewright::kernels {
namespace {

// Of a thread: a query of a head of a sequence.
struct Place {
  std::int32_t query, head, batch;

  __device__ Place(const AttentionParams& params, std::uint32_t query_index, std::uint32_t pair)
      : query(static_cast<std::int32_t>(query_index)),
        head(static_cast<std::int32_t>(pair) % params.heads),
        batch(static_cast<std::int32_t>(pair) / params.heads) {}

  __device__ std::int32_t kv_head(const AttentionParams& params) const {
    return head / (params.heads / params.kv_heads);
  }
  // Scores of this query: q_len apart.
  __device__ float* scores(const AttentionParams& params) const {
    const std::int64_t pair = std::int64_t{batch} * params.heads + head;
    return params.scores + pair * params.kv_len * params.q_len + query;
  }
};

template <class Element, int HeadDim>
__device__ void scores(const AttentionParams& params) {
  const auto key = static_cast<std::int32_t>(blockIdx.x * kK1Tile + threadIdx.x);
  const Place at(params, blockIdx.y * kK1Tile + threadIdx.y, blockIdx.z);
  if (key >= params.kv_len || at.query >= params.q_len) return;
  const tile::VisibleKeys visible(params, at.query + params.kv_len - params.q_len, params.kv_len);
  float score = -INFINITY;
  if (key >= visible.begin && key < visible.end) {
    const std::uint16_t* const q =
        tile::find_row(params.q, params.q_strides, at.batch, at.query, at.head);
    const std::uint16_t* const k =
        tile::find_row(params.k, params.k_strides, at.batch, key, at.kv_head(params));
    float sum = 0.0f;
#pragma unroll 4
    for (int i = 0; i < HeadDim / tile::kChunkElems; ++i) {
      float q_chunk[tile::kChunkElems];
      tile::unpack_chunk<Element>(q_chunk, tile::load_chunk(q, i));
      sum = tile::multiply_chunk<Element>(q_chunk, tile::load_chunk(k, i), sum);
    }
    score = sum * params.scale_log2;
  }
  at.scores(params)[std::int64_t{key} * params.q_len] = score;
}

// A row: its largest score, then powers and their sum, then the division.
__device__ void softmax(const AttentionParams& params) {
  const Place at(params, blockIdx.x * kK1SoftmaxRows + threadIdx.x, blockIdx.y);
  if (at.query >= params.q_len) return;
  float* const s = at.scores(params);
  const std::int64_t step = params.q_len, end = step * params.kv_len;
  float max = -INFINITY;
  for (std::int64_t i = 0; i < end; i += step) max = fmaxf(max, s[i]);
  const float base = max == -INFINITY ? 0.0f : max;
  float sum = 0.0f;
  for (std::int64_t i = 0; i < end; i += step) {
    s[i] = ptx::ex2_approx_ftz_f32(s[i] - base);
    sum += s[i];
  }
  const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
  for (std::int64_t i = 0; i < end; i += step) s[i] *= inverse;
  tile::store_row_lse(params, max, sum, at.batch, at.head, at.query);
}

template <class Element, int HeadDim>
__device__ void output(const AttentionParams& params) {
  const std::uint32_t dim = blockIdx.x * kK1Tile + threadIdx.x;
  const Place at(params, blockIdx.y * kK1Tile + threadIdx.y, blockIdx.z);
  if (at.query >= params.q_len) return;
  const float* p = at.scores(params);
  const std::uint16_t* v =
      tile::find_row(params.v, params.v_strides, at.batch, 0, at.kv_head(params)) + dim;
  float sum = 0.0f;
#pragma unroll 4
  for (std::int32_t key = 0; key < params.kv_len; ++key) {
    sum = fmaf(*p, Element::unpack(*v).x, sum);
    p += params.q_len;
    v += params.v_strides.row;
  }
  std::uint16_t* const out =
      tile::find_row(params.out, params.out_strides, at.batch, at.query, at.head);
  out[dim] = static_cast<std::uint16_t>(Element::pack(sum, 0.0f));
}

}  // namespace

#define TILEWRIGHT_K1(NAME, THREADS, ...) \
  TILEWRIGHT_KERNEL(attention_k1_##NAME, AttentionParams, __launch_bounds__(THREADS), __VA_ARGS__)

TILEWRIGHT_K1(softmax, kK1SoftmaxRows, softmax)
TILEWRIGHT_K1(scores_bf16_d64, kK1Threads, scores<tile::Bf16, 64>)
TILEWRIGHT_K1(scores_bf16_d128, kK1Threads, scores<tile::Bf16, 128>)
TILEWRIGHT_K1(scores_f16_d64, kK1Threads, scores<tile::Fp16, 64>)
TILEWRIGHT_K1(scores_f16_d128, kK1Threads, scores<tile::Fp16, 128>)
TILEWRIGHT_K1(output_bf16_d64, kK1Threads, output<tile::Bf16, 64>)
TILEWRIGHT_K1(output_bf16_d128, kK1Threads, output<tile::Bf16, 128>)
TILEWRIGHT_K1(output_f16_d64, kK1Threads, output<tile::Fp16, 64>)
TILEWRIGHT_K1(output_f16_d128, kK1Threads, output<tile::Fp16, 128>)

}  // namespace tilewright::kernels
