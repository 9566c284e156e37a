// The logits of the lightning indexer: a CTA keeps the queries of a unit in shared memory, its two
// warpgroups take 64 keys each from memory to registers and multiply them with all of them.
#pragma once

#include "kernels/sparse_attention/indexer_logits.h"
#include "ptx/address.h"
#include "ptx/fence.h"
#include "ptx/grid_dependency.h"
#include "tile/index_keys.h"
#include "tile/warpgroup_mma.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kWarpgroupKeys = 64;

/// Dynamic shared memory of a CTA.
struct IndexerShared {
  unsigned char* queries;  ///< steps of 64 rows of 128 bytes, swizzled
  float* weights;          ///< steps of 4 lanes of kIndexerLaneWeights
  std::int32_t* lengths;   ///< of the unit's tokens
  std::int32_t* is_exact;  ///< of the queries, MXFP4

  __device__ IndexerShared(unsigned char* base, int steps)
      : queries(base),
        weights(reinterpret_cast<float*>(base + steps * kernels::kIndexerStepQueryBytes)),
        lengths(reinterpret_cast<std::int32_t*>(
            base + steps * (kernels::kIndexerStepQueryBytes + kernels::kIndexerStepWeightBytes))),
        is_exact(lengths + kernels::kIndexerUnitTokens) {}
};

/// Where word `word` of a row's operand stands in the 128-byte swizzle.
__device__ inline std::uint32_t* query_word(const IndexerShared& shared, int row, int word) {
  const int chunk = (word / 4) ^ (row % 8);
  return reinterpret_cast<std::uint32_t*>(shared.queries + row * 128 + chunk * 16) + word % 4;
}

/// Where the weight of row (token slot * Heads + head) stands: accumulator 4 i + c of lane t is
/// column 8 i + 2 t + c % 2.
__device__ inline float* query_weight(const IndexerShared& shared, int row) {
  const int step = row / 64, column = row % 64;
  const int lane = column % 8 / 2, idx = column / 8 * 2 + column % 2;
  return shared.weights + (step * 4 + lane) * kernels::kIndexerLaneWeights + idx;
}

/// 16 bytes of codes of one query to the places of index_keys.h: part p of 8 (e4m3) or of 4.
template <IndexFormat Format>
__device__ void place_query(const IndexerShared& shared, int row, int part, const uint4& codes,
                            std::uint32_t scales) {
  const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
  if constexpr (Format == IndexFormat::kFp8) {
#pragma unroll
    for (int s = 0; s < 4; ++s) *query_word(shared, row, 8 * s + part) = words[s];
  } else {
    const std::uint32_t below = largest_byte(scales) - (scales >> 8 * part & 0xff);
    const std::uint32_t any = (words[0] | words[1] | words[2] | words[3]) & 0x77777777u;
    if (below > E2m1ToE4m3::kMaxBelow && any != 0) *shared.is_exact = 0;
    const E2m1ToE4m3 convert(min(below, E2m1ToE4m3::kMaxBelow));
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      std::uint32_t low, high;
      convert(low, high, words[s]);
      *query_word(shared, row, 8 * s + part) = low;
      *query_word(shared, row, 8 * s + 4 + part) = high;
    }
  }
}

/// The queries, weights and lengths of a unit; what is not there is zero. A barrier of the CTA
/// before and after.
template <IndexFormat Format, int Heads>
__device__ void load_unit(const IndexerShared& shared, const kernels::IndexerLogitsParams& params,
                          const kernels::IndexerUnit& unit) {
  constexpr int kParts = Format == IndexFormat::kFp8 ? 8 : 4;
  const int rows = kernels::indexer_steps(unit.count, Heads) * kernels::kIndexerStepColumns;
  const auto thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < rows * kParts; i += kernels::kIndexerLogitsThreads) {
    const int row = i / kParts, part = i % kParts, token = row / Heads, head = row % Heads;
    uint4 codes = make_uint4(0, 0, 0, 0);
    std::uint32_t scales = 0;
    if (token < unit.count && head < params.heads) {
      const std::int64_t at = std::int64_t{unit.token + token} * params.heads + head;
      codes = __ldg(reinterpret_cast<const uint4*>(params.q + at * (16 * kParts)) + part);
      if constexpr (Format == IndexFormat::kMxfp4)
        scales = __ldg(reinterpret_cast<const std::uint32_t*>(params.q_scales) + at);
    }
    place_query<Format>(shared, row, part, codes, scales);
  }
  for (int row = thread; row < rows; row += kernels::kIndexerLogitsThreads) {
    const int token = row / Heads, head = row % Heads;
    float weight = 0;
    if (token < unit.count && head < params.heads) {
      const std::int64_t at = std::int64_t{unit.token + token} * params.heads + head;
      weight = __ldg(params.weights + at);
      if constexpr (Format == IndexFormat::kMxfp4) {
        const auto* const scales = reinterpret_cast<const std::uint32_t*>(params.q_scales);
        weight = __fmul_rn(weight, mxfp4_row_scale(largest_byte(__ldg(scales + at))));
      }
    }
    *query_weight(shared, row) = weight;
  }
  if (thread < kernels::kIndexerUnitTokens) {
    shared.lengths[thread] =
        thread < unit.count
            ? params.lengths.clamp(__ldg(params.lengths.numbers + unit.token + thread))
            : 0;
  }
}

/// sums of a step: d[64 keys, 64 columns] = keys . queries^T; issued, not waited for.
__device__ inline void multiply_step(float (&d)[32], const std::uint32_t (&a)[4][4],
                                     std::uint64_t queries) {
  ptx::wgmma_fence_operand(d);
  ptx::wgmma_fence_sync_aligned();
#pragma unroll
  for (int s = 0; s < 4; ++s) {
    ptx::wgmma_mma_async<64>::k32_f32_e4m3_e4m3(d, a[s], advance_descriptor(queries, 2 * s), s > 0);
  }
  ptx::wgmma_commit_group_sync_aligned();
}

/// Weighted sums of relu(d) over the heads of each token of a step, of rows g and g + 8, for the
/// columns of this lane.
template <int Heads>
__device__ void weigh_step(float (&sums)[64 / Heads][2], const float (&d)[32],
                           const float* lane_weights) {
  constexpr int kGroups = Heads / 8;  // of eight columns, of a token
#pragma unroll
  for (int i = 0; i < 8; i += 2) {
    const float4 w = *reinterpret_cast<const float4*>(lane_weights + 2 * i);
    const float weights[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int group = i + j / 4, row = j % 4 / 2;
      float& sum = sums[group / kGroups][row];
      const float x = fmaxf(d[4 * i + j], 0.0f), weight = weights[j / 4 * 2 + j % 2];
      const bool is_first = group % kGroups == 0 && j % 2 == 0;
      sum = is_first ? __fmul_rn(x, weight) : __fmaf_rn(x, weight, sum);
    }
  }
}

/// Adds up over the quad. Lane t is left with row g + 8 (t % 2) of the tokens 2 k + t / 2, or of
/// the only one.
template <int Tokens>
__device__ void add_quad(float (&out)[(Tokens + 1) / 2], const float (&sums)[Tokens][2], int t) {
  const bool is_row1 = t % 2 != 0, is_odd = t / 2 != 0;
  float rows[Tokens];
#pragma unroll
  for (int i = 0; i < Tokens; ++i) {
    const float kept = is_row1 ? sums[i][1] : sums[i][0];
    rows[i] = kept + __shfl_xor_sync(~0u, is_row1 ? sums[i][0] : sums[i][1], 1);
  }
  if constexpr (Tokens == 1) {
    out[0] = rows[0] + __shfl_xor_sync(~0u, rows[0], 2);
  } else {
#pragma unroll
    for (int i = 0; i < Tokens / 2; ++i) {
      const float kept = is_odd ? rows[2 * i + 1] : rows[2 * i];
      out[i] = kept + __shfl_xor_sync(~0u, is_odd ? rows[2 * i] : rows[2 * i + 1], 2);
    }
  }
}

/// One warpgroup's work on one unit.
template <IndexFormat Format, int Heads>
struct IndexerConsumer {
  static constexpr int kStepTokens = 64 / Heads;

  const kernels::IndexerLogitsParams& params;
  const IndexerShared& shared;
  const kernels::IndexerUnit& unit;
  int row, t;  // first of this lane's two keys in a tile; place in the quad
  std::int32_t num_keys;
  const std::int32_t* table;
  int steps;
  std::uint64_t queries;

  __device__ IndexerConsumer(const kernels::IndexerLogitsParams& p, const IndexerShared& s,
                             const kernels::IndexerUnit& u)
      : params(p), shared(s), unit(u) {
    const auto lane = static_cast<int>(threadIdx.x % 32);
    row = static_cast<int>(threadIdx.x % 128 / 32) * 16 + lane / 4;
    t = lane % 4;
    num_keys = 0;
    for (int i = 0; i < unit.count; ++i) num_keys = max(num_keys, shared.lengths[i]);
    table = params.block_table + unit.sequence * params.block_table_stride;
    steps = kernels::indexer_steps(unit.count, Heads);
    queries = describe_k_major<64, 64>(ptx::shared_address(shared.queries));
  }

  __device__ KeyPages pages(std::int32_t first_key) const {
    return KeyPages(params.keys, table, first_key + row, num_keys, params.num_blocks);
  }

  /// What is left of a step: sums, scale and the lengths of its tokens.
  __device__ void finish(const float (&d)[32], int step, std::int32_t first_key,
                         float scale) const {
    float sums[kStepTokens][2], out[(kStepTokens + 1) / 2];
    weigh_step<Heads>(sums, d, shared.weights + (step * 4 + t) * kernels::kIndexerLaneWeights);
    add_quad<kStepTokens>(out, sums, t);
    const std::int32_t key = first_key + row + 8 * (t % 2);
    if (kStepTokens == 1 && t >= 2) return;
#pragma unroll
    for (int i = 0; i < (kStepTokens + 1) / 2; ++i) {
      const int token = step * kStepTokens + 2 * i + t / 2;
      if (token >= unit.count || key >= shared.lengths[token]) continue;
      const float logit = scale < 0 ? -INFINITY : __fmul_rn(out[i], scale);
      params.logits[(unit.token + token) * params.logits_stride + key] = logit;
    }
  }

  __device__ std::uint64_t step_queries(int step) const {
    return advance_descriptor(
        queries, static_cast<std::uint32_t>(step) * (kernels::kIndexerStepQueryBytes / 16));
  }

  /// 64 keys against all steps, two at a time: sums of the first are made while the second product
  /// runs, and other warpgroups keep the tensor cores busy besides.
  template <bool IsOneStep>
  __device__ void multiply(const std::uint32_t (&a)[4][4], std::int32_t first_key,
                           float scale) const {
    float d0[32], d1[32];
    if constexpr (IsOneStep) {
      multiply_step(d0, a, queries);
      ptx::wgmma_wait_group_sync_aligned<0>();
      ptx::wgmma_fence_operand(d0);
      finish(d0, 0, first_key, scale);
    } else {
      for (int step = 0; step < steps; step += 2) {
        multiply_step(d0, a, step_queries(step));
        multiply_step(d1, a, step_queries(step + 1));
        ptx::wgmma_wait_group_sync_aligned<1>();
        ptx::wgmma_fence_operand(d0);
        finish(d0, step, first_key, scale);
        ptx::wgmma_wait_group_sync_aligned<0>();
        ptx::wgmma_fence_operand(d1);
        finish(d1, step + 1, first_key, scale);
      }
    }
  }

  /// Chunks [begin, end) of the unit: this warpgroup's half of each.
  template <bool IsOneStep>
  __device__ void run(std::int32_t begin, std::int32_t end) const {
    const auto half = static_cast<std::int32_t>(threadIdx.x / 128) * kWarpgroupKeys;
    std::int32_t key = begin * kernels::kIndexerChunk + half;
    const std::int32_t end_key = end * kernels::kIndexerChunk;
    KeyTile<Format> next;
    next.load(params.keys, pages(key), key + row, t);
    KeyPages after = pages(key + kernels::kIndexerChunk);
    for (; key < end_key; key += kernels::kIndexerChunk) {
      std::uint32_t a[4][4];
      next.operand(a, t);
      const float scale = next.row_scale(t);
      next.load(params.keys, after, key + kernels::kIndexerChunk + row, t);
      after = pages(key + 2 * kernels::kIndexerChunk);
#pragma unroll
      for (auto& fragment : a) ptx::wgmma_fence_operand(fragment);
      multiply<IsOneStep>(a, key, scale);
    }
  }
};

/// -inf behind the length of every token.
__device__ inline void fill_behind(const kernels::IndexerLogitsParams& params) {
  for (auto token = static_cast<std::int32_t>(blockIdx.x); token < params.tokens;
       token += static_cast<std::int32_t>(gridDim.x)) {
    float* const row = params.logits + token * params.logits_stride;
    const std::int32_t begin = params.lengths.clamp(params.lengths.numbers[token]);
    for (auto key = begin + static_cast<std::int32_t>(threadIdx.x); key < params.lengths.max_len;
         key += kernels::kIndexerLogitsThreads)
      row[key] = -INFINITY;
  }
}

template <IndexFormat Format, int Heads>
__device__ void indexer_logits(const kernels::IndexerLogitsParams& params) {
  extern __shared__ __align__(1024) unsigned char indexer_shared[];
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const std::int64_t num_chunks = params.totals->num_chunks;
  std::int64_t at = num_chunks * blockIdx.x / gridDim.x;
  const std::int64_t end = num_chunks * (blockIdx.x + 1) / gridDim.x;
  for (std::int32_t u = params.first_unit[blockIdx.x]; at < end; ++u) {
    const kernels::IndexerUnit unit = params.units[u];
    const std::int32_t unit_end = params.units[u + 1].first_chunk;
    const auto stop = static_cast<std::int32_t>(end < unit_end ? end : unit_end);
    const auto begin = static_cast<std::int32_t>(at);
    if (stop <= begin) continue;
    const IndexerShared shared(indexer_shared, kernels::indexer_steps(unit.count, Heads));
    __syncthreads();
    if (Format == IndexFormat::kMxfp4 && threadIdx.x == 0) *shared.is_exact = 1;
    if (Format == IndexFormat::kMxfp4) __syncthreads();
    load_unit<Format, Heads>(shared, params, unit);
    ptx::fence_proxy_async_shared_cta();
    __syncthreads();
    const IndexerConsumer<Format, Heads> consumer(params, shared, unit);
    if (consumer.steps == 1) {
      consumer.template run<true>(begin - unit.first_chunk, stop - unit.first_chunk);
    } else {
      consumer.template run<false>(begin - unit.first_chunk, stop - unit.first_chunk);
    }
    at = stop;
  }
  if (params.is_filled != 0) fill_behind(params);
}

}  // namespace tilewright::tile

#define TILEWRIGHT_INDEXER_LOGITS(NAME, FORMAT, HEADS)                                       \
  extern "C" __global__ void __launch_bounds__(tilewright::kernels::kIndexerLogitsThreads,   \
                                               tilewright::kernels::kIndexerLogitsCtasPerSm) \
      indexer_logits_##NAME(                                                                 \
          const __grid_constant__ tilewright::kernels::IndexerLogitsParams params) {         \
    tilewright::tile::indexer_logits<tilewright::IndexFormat::FORMAT, HEADS>(params);        \
  }
