// targets: sm_90a sm_100f
//
// Sparse attention, naive: a CTA takes 8 heads of a query through its lists, 64 rows at a time.
//
//   thread            gather             scores             softmax          values
//   warp w, lane l    16 numbers of      rows l, l + 32     head w: rows     two dimensions of
//                     rows w, w + 8, ..  of head w          l, l + 32        all 8 heads
//
//   time ->   | gather | sync | scores | softmax | sync | values | sync | gather ...
//
// The first rung: what the others are compared with, for every head count and cache format. Rows
// that the list does not name become zeros before anything is multiplied, so that their bytes,
// which may be NaN, never count. Rows of DeepSeek-V3 have 64 numbers more that scores alone read.
//
// Limit: 2 * 2 * 512 flops a row and head on the scalar units; of 64 heads each of 8 CTAs decodes
// the rows again. On an H200 (67 TFLOP/s) at best 33 G rows a second and head.
// Right on an H200; not timed alone.
// Sources: DeepSeek-V4's formulas; FlashMLA for lists and lse.
#include "kernels/sparse_attention/finish.h"
#include "kernels/sparse_attention/kv_row.h"
#include "kernels/sparse_attention/sparse_naive.h"
#include "kernels/sparse_attention/walk.h"
#include "ptx/grid_dependency.h"
#include "ptx/math.h"
#include "tile/element_chunk.h"
#include "tile/entry.h"

#include <math.h>

namespace tilewright::kernels {
namespace {

constexpr int kHeads = kSparseNaiveHeads;
constexpr unsigned kAllLanes = 0xffffffffu;

// Two neighbouring dimensions of all heads of the CTA.
using Accumulators = float2[kHeads];

struct Threads {
  std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  std::int32_t first_head = static_cast<std::int32_t>(blockIdx.y) * kHeads;
};

// The rotated numbers of a row of 576, behind its 512 others, or zeros: eight lanes.
__device__ void copy_tail(const void* from, bool has, const Threads& me, std::uint16_t* row) {
  if (me.lane >= (kKvMlaDims - kKvDims) / 8) return;
  const uint4 zeros = {};
  reinterpret_cast<uint4*>(row + kKvDims)[me.lane] =
      has ? static_cast<const uint4*>(from)[me.lane] : zeros;
}

template <int Dims>
__device__ void load_queries(const SparseDecodeParams& params, const tile::SparseQuery& query,
                             const Threads& me, SparseNaiveShared<Dims>& shared) {
  const auto head = me.first_head + static_cast<std::int32_t>(me.warp);
  uint4 chunks[2] = {};
  if (head < params.heads) {
    const std::uint16_t* const from = params.q + query.offset(params.q_strides, head);
    chunks[0] = reinterpret_cast<const uint4*>(from)[2 * me.lane];
    chunks[1] = reinterpret_cast<const uint4*>(from)[2 * me.lane + 1];
  }
  auto* const to = reinterpret_cast<uint4*>(shared.q[me.warp]);
  to[2 * me.lane] = chunks[0];
  to[2 * me.lane + 1] = chunks[1];
  if constexpr (Dims > kKvDims)
    copy_tail(params.q + query.offset(params.q_strides, head) + kKvDims, head < params.heads, me,
              shared.q[me.warp]);
}

template <KvFormat Format>
__device__ void gather(const SparseKeys& keys, std::int32_t query, const tile::SparseBlock& block,
                       const Threads& me, SparseNaiveShared<kv_dims(Format)>& shared) {
  for (std::uint32_t i = me.warp; i < kSparseBlockKeys; i += kHeads) {
    const auto entry = static_cast<std::int32_t>(i);
    const std::int32_t row =
        entry < block.count ? tile::sparse_row(keys, query, block.first + entry) : -1;
    uint4 chunks[2] = {};
    if (row >= 0) {
      const tile::SparseRow at(keys, row);
      tile::load_kv<Format>(chunks, at.data<Format>(), at.scales<Format>(keys), me.lane);
    }
    auto* const to = reinterpret_cast<uint4*>(shared.keys[i]);
    to[2 * me.lane] = chunks[0];
    to[2 * me.lane + 1] = chunks[1];
    if constexpr (kv_is_mla(Format)) {
      const tile::SparseRow at(keys, max(row, 0));
      copy_tail(at.data<Format>() + kv_plain_bytes(Format), row >= 0, me, shared.keys[i]);
    }
    if (me.lane == 0) shared.is_valid[i] = row >= 0;
  }
}

template <int Dims>
__device__ float dot(const std::uint16_t* a, const std::uint16_t* b) {
  float sum = 0;
#pragma unroll 8
  for (int d = 0; d < Dims; d += 8) {
    float x[8], y[8];
    tile::unpack_chunk<tile::Bf16>(x, *reinterpret_cast<const uint4*>(a + d));
    tile::unpack_chunk<tile::Bf16>(y, *reinterpret_cast<const uint4*>(b + d));
#pragma unroll
    for (int i = 0; i < 8; ++i) sum = fmaf(x[i], y[i], sum);
  }
  return sum;
}

// Running maximum and sum of the warp's head.
struct RowState {
  float max = -INFINITY, sum = 0;
};

// Scores of the warp's head, their weights into shared memory.
template <int Dims>
__device__ void weigh(const SparseDecodeParams& params, const Threads& me, RowState& row,
                      SparseNaiveShared<Dims>& shared) {
  float s[2];
  float top = row.max;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t key = me.lane + 32 * i;
    s[i] = shared.is_valid[key] ? dot<Dims>(shared.q[me.warp], shared.keys[key]) * params.scale_log2
                                : -INFINITY;
    top = fmaxf(top, s[i]);
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(kAllLanes, top, step));
  const float base = top == -INFINITY ? 0.0f : top;
  const float correction = ptx::ex2_approx_ftz_f32(row.max - base);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float p = ptx::ex2_approx_ftz_f32(s[i] - base);
    sum += p;
    shared.scores[me.warp][me.lane + 32 * i] = tile::Bf16::unpack(tile::Bf16::pack(p, 0)).x;
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kAllLanes, sum, step);
  row.sum = fmaf(row.sum, correction, sum);
  row.max = top;
  if (me.lane == 0) shared.corrections[me.warp] = correction;
}

template <int Dims>
__device__ void add_values(const SparseNaiveShared<Dims>& shared, Accumulators& out) {
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    out[h].x *= shared.corrections[h];
    out[h].y *= shared.corrections[h];
  }
  for (int key = 0; key < kSparseBlockKeys; ++key) {
    const float2 x =
        tile::Bf16::unpack(reinterpret_cast<const std::uint32_t*>(shared.keys[key])[threadIdx.x]);
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      out[h].x = fmaf(shared.scores[h][key], x.x, out[h].x);
      out[h].y = fmaf(shared.scores[h][key], x.y, out[h].y);
    }
  }
}

template <int Dims>
__device__ void store(const SparseDecodeParams& params, const tile::SparseQuery& query,
                      std::int32_t partial, const Threads& me,
                      const SparseNaiveShared<Dims>& shared, const Accumulators& out) {
  for (int h = 0; h < kHeads; ++h) {
    const std::int32_t head = me.first_head + h;
    if (head >= params.heads) break;
    const tile::SparseRowSum row = {shared.maxima[h], shared.sums[h]};
    const float factor = row.factor(partial < 0 ? params.sink : nullptr, head);
    const float2 x = make_float2(out[h].x * factor, out[h].y * factor);
    if (partial >= 0) {
      const std::int64_t at = (std::int64_t{partial} * params.heads + head) * kKvDims;
      reinterpret_cast<float2*>(params.partial_out + at)[threadIdx.x] = x;
    } else {
      std::uint16_t* const to = params.out + query.offset(params.out_strides, head);
      reinterpret_cast<std::uint32_t*>(to)[threadIdx.x] = tile::Bf16::pack(x.x, x.y);
    }
    if (threadIdx.x == 0) tile::store_sparse_row_sum(params, query, partial, head, row);
  }
}

template <KvFormat Format>
__device__ void attend(const SparseDecodeParams& params) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<SparseNaiveShared<kv_dims(Format)>*>(shared_bytes);
  const Threads me;
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  SparseWork piece;
  for (tile::SparseWalk walk(params, static_cast<std::int32_t>(blockIdx.x)); walk.next(piece);) {
    const tile::SparseQuery query(params, piece.query);
    const std::int32_t end = min(piece.end_block, query.num_blocks());
    load_queries(params, query, me, shared);
    Accumulators out = {};
    RowState row;
    for (std::int32_t i = piece.begin_block; i < end; ++i) {
      const tile::SparseBlock block = query.block(i);
      gather<Format>(params.keys[block.list], query.index, block, me, shared);
      __syncthreads();
      weigh(params, me, row, shared);
      __syncthreads();
      add_values(shared, out);
      __syncthreads();
    }
    if (me.lane == 0) {
      shared.maxima[me.warp] = row.max;
      shared.sums[me.warp] = row.sum;
    }
    __syncthreads();
    store(params, query, piece.partial, me, shared, out);
    __syncthreads();
  }
}

}  // namespace
#define TILEWRIGHT_ENTRY(NAME, FORMAT)                                                \
  TILEWRIGHT_KERNEL(NAME, SparseDecodeParams, __launch_bounds__(kSparseNaiveThreads), \
                    attend<KvFormat::FORMAT>)

TILEWRIGHT_ENTRY(sparse_naive_bf16, kBf16)
TILEWRIGHT_ENTRY(sparse_naive_fp8, kFp8)
TILEWRIGHT_ENTRY(sparse_naive_nvfp4, kNvfp4)
TILEWRIGHT_ENTRY(sparse_naive_bf16_mla, kBf16Mla)
TILEWRIGHT_ENTRY(sparse_naive_fp8_mla, kFp8Mla)

}  // namespace tilewright::kernels
