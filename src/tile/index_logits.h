// The logits of the lightning indexer: a CTA keeps the queries of a unit in shared memory, its two
// warpgroups take 64 keys each through registers and multiply them with all of them.
//
//   warp          fetch 16 keys, up to three tiles ahead (bulk copies) | to registers | next fetch
//   warpgroup     per step: products of 64 keys x 128 columns (two tokens of 64 heads) | relu,
//                 weights, sums over heads in the lane, three shuffles a step | x key scale, store
//
// Keys are rows of the accumulator: a lane has all heads of its columns, so that sums over heads
// are FMAs. Two CTAs per SM, four warpgroups: while one adds up, others multiply.
//
// Limits, per key and token of 64 heads and SM: products 2 cycles of the tensor cores; relu and FMA
// of 64 scores 1 cycle of issue, 1.5 with all the rest; memory 132 bytes a key, 7.3 cycles at
// 4.2 TB/s, whatever the number of tokens: up to three tokens memory decides, then the tensor
// cores.
#pragma once

#include "kernels/sparse_attention/indexer_logits.h"
#include "ptx/address.h"
#include "ptx/fence.h"
#include "ptx/grid_dependency.h"
#include "tile/index_exact.h"
#include "tile/index_keys.h"
#include "tile/warpgroup_mma.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kWarpgroupKeys = 64;

/// Dynamic shared memory of a CTA while it works on a unit.
struct IndexerShared {
  unsigned char* queries;  ///< steps * columns rows of 128 bytes, swizzled
  float* weights;          ///< of each step, for each lane of a quad
  std::int32_t* lengths;   ///< of the unit's tokens
  std::int32_t* is_exact;  ///< of the queries, MXFP4
  unsigned char* ring;     ///< of each warp

  __device__ IndexerShared(unsigned char* base, const kernels::IndexerSteps& steps)
      : queries(base),
        weights(reinterpret_cast<float*>(base + steps.query_bytes())),
        lengths(reinterpret_cast<std::int32_t*>(base + steps.query_bytes() + steps.weight_bytes())),
        is_exact(lengths + kernels::kIndexerUnitTokens),
        ring(base + steps.unit_bytes()) {}
};

/// The e4m3 queries of a unit, zeros for what is not there, in the order of index_keys.h: a thread
/// takes half a row and transposes it.
template <int Heads>
__device__ void load_queries_fp8(const IndexerShared& shared,
                                 const kernels::IndexerLogitsParams& params,
                                 const kernels::IndexerUnit& unit, int rows) {
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < rows * 2; i += kernels::kIndexerLogitsThreads) {
    const int row = i / 2, half = i % 2, token = row / Heads, head = row % Heads;
    uint4 c[4] = {};
    if (token < unit.count && head < params.heads) {
      const std::int64_t at = std::int64_t{unit.token + token} * params.heads + head;
      const auto* const from =
          reinterpret_cast<const uint4*>(params.q + at * kIndexDims) + 4 * half;
#pragma unroll
      for (int t = 0; t < 4; ++t) c[t] = __ldg(from + t);
    }
    auto* const to = reinterpret_cast<uint4*>(shared.queries + row * 128);
    to[half ^ row % 8] = make_uint4(c[0].x, c[1].x, c[2].x, c[3].x);
    to[(2 + half) ^ row % 8] = make_uint4(c[0].y, c[1].y, c[2].y, c[3].y);
    to[(4 + half) ^ row % 8] = make_uint4(c[0].z, c[1].z, c[2].z, c[3].z);
    to[(6 + half) ^ row % 8] = make_uint4(c[0].w, c[1].w, c[2].w, c[3].w);
  }
}

/// MXFP4 queries as e4m3, in the order of index_keys.h: a thread takes word s of all four blocks.
template <int Heads>
__device__ void load_queries_mxfp4(const IndexerShared& shared,
                                   const kernels::IndexerLogitsParams& params,
                                   const kernels::IndexerUnit& unit, int rows) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * 4; i += kernels::kIndexerLogitsThreads) {
    const int row = i / 4, s = i % 4, token = row / Heads, head = row % Heads;
    std::uint32_t low[4] = {}, high[4] = {};
    if (token < unit.count && head < params.heads) {
      const std::int64_t at = std::int64_t{unit.token + token} * params.heads + head;
      const auto* const codes =
          reinterpret_cast<const std::uint32_t*>(params.q + at * (kIndexDims / 2));
      const std::uint32_t scales =
          __ldg(reinterpret_cast<const std::uint32_t*>(params.q_scales) + at);
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        const std::uint32_t word = __ldg(codes + 4 * t + s);
        bool is_exact = true;
        const E2m1ToE4m3 convert(scales, t, make_uint4(word, 0, 0, 0), is_exact);
        convert(low[t], high[t], word);
        if (!is_exact) *shared.is_exact = 0;
      }
    }
    auto* const to = reinterpret_cast<uint4*>(shared.queries + row * 128);
    to[(2 * s) ^ row % 8] = make_uint4(low[0], low[1], low[2], low[3]);
    to[(2 * s + 1) ^ row % 8] = make_uint4(high[0], high[1], high[2], high[3]);
  }
}

/// Weights: accumulator 4 i + c of lane t of a quad is column 8 i + 2 t + c % 2.
template <IndexFormat Format, int Heads>
__device__ void load_weights(const IndexerShared& shared,
                             const kernels::IndexerLogitsParams& params,
                             const kernels::IndexerUnit& unit, const kernels::IndexerSteps& steps) {
  for (int row = static_cast<int>(threadIdx.x); row < steps.steps * steps.columns;
       row += kernels::kIndexerLogitsThreads) {
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
    const int step = row / steps.columns, column = row % steps.columns;
    const int lane = column % 8 / 2, idx = column / 8 * 2 + column % 2;
    shared.weights[(step * 4 + lane) * steps.lane_weights() + idx] = weight;
  }
}

/// Weighted sums of relu(d) over the heads of each token of a step, of rows g and g + 8, for the
/// columns of this lane.
template <int Heads, int Columns>
__device__ void weigh_step(float (&sums)[Columns / Heads][2], const float (&d)[Columns / 2],
                           const float* lane_weights) {
  constexpr int kGroups = Heads / 8;  // of eight columns, of a token
#pragma unroll
  for (int i = 0; i < Columns / 8; i += 2) {
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

/// Adds up over the quad. Lane t is left with row g + 8 (t % 2) of the tokens 2 i + t / 2, or of
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

/// A warpgroup's work on one unit, in steps of `Columns` with `Stages` tiles of keys under way.
template <IndexFormat Format, int Heads, int Columns, int Stages>
struct IndexerConsumer {
  static constexpr int kStepTokens = Columns / Heads, kOut = (kStepTokens + 1) / 2;
  static constexpr std::uint32_t kStepUnits = Columns * kIndexDims / 16;  // of descriptors

  const kernels::IndexerLogitsParams& params;
  const IndexerShared& shared;
  const kernels::IndexerUnit& unit;
  KeyTiles<Format> tiles;
  const std::int32_t* table;
  int steps;

  __device__ IndexerConsumer(const kernels::IndexerLogitsParams& p, const IndexerShared& s,
                             const kernels::IndexerUnit& u, int num_steps, std::uint32_t barriers)
      : params(p), shared(s), unit(u), steps(num_steps) {
    const auto warp = static_cast<int>(threadIdx.x / 32);
    tiles.base = ptx::shared_address(shared.ring) +
                 static_cast<std::uint32_t>(warp * Stages * KeyTiles<Format>::kBytes);
    tiles.barriers = barriers;
    table = params.block_table + unit.sequence * params.block_table_stride;
  }

  /// First key of this warp in chunk `chunk`.
  __device__ std::int32_t warp_key(std::int32_t chunk) const {
    return chunk * kernels::kIndexerChunk + static_cast<std::int32_t>(threadIdx.x / 32) * 16;
  }
  __device__ std::int32_t page(std::int32_t chunk, std::int32_t end) const {
    const std::int32_t key = warp_key(chunk) + static_cast<std::int32_t>(threadIdx.x % 32 / 2);
    return key_page(params, table, key, chunk < end ? unit.num_keys : 0);
  }
  __device__ void fetch(int stage, std::int32_t chunk, std::int32_t page) const {
    const std::int32_t key = warp_key(chunk) + static_cast<std::int32_t>(threadIdx.x % 32 / 2);
    tiles.fetch(stage, params.keys, page, key);
  }

  /// What is left of a step: sums, scale and the lengths of its tokens.
  __device__ void finish(const float (&d)[Columns / 2], int step, std::int32_t key, float scale,
                         bool is_whole, float* logits, int t) const {
    float sums[kStepTokens][2], out[kOut];
    weigh_step<Heads, Columns>(sums, d, shared.weights + (step * 4 + t) * (Columns / 4 + 4));
    add_quad<kStepTokens>(out, sums, t);
#pragma unroll
    for (int i = 0; i < kOut; ++i) {
      const int token = step * kStepTokens + 2 * i + t / 2;
      const bool is_stored = is_whole || key < shared.lengths[token];
      if ((kStepTokens > 1 || t < 2) && is_stored)
        logits[2 * i * params.logits_stride] = scale < 0 ? -INFINITY : __fmul_rn(out[i], scale);
    }
  }

  /// 16 keys a warp against all steps. `key` is this lane's of the two of a quad's rows.
  __device__ void multiply(const std::uint32_t (&a)[4][4], std::int32_t key, float scale,
                           bool is_whole) const {
    const auto t = static_cast<int>(threadIdx.x % 4);
    float* logits = params.logits + (unit.token + t / 2) * params.logits_stride + key;
    const std::uint64_t queries = describe_k_major<64, 64>(ptx::shared_address(shared.queries));
    for (int step = 0; step < steps; ++step) {
      float d[Columns / 2];
      const std::uint64_t b =
          advance_descriptor(queries, static_cast<std::uint32_t>(step) * kStepUnits);
      ptx::wgmma_fence_operand(d);
      ptx::wgmma_fence_sync_aligned();
#pragma unroll
      for (int s = 0; s < 4; ++s) {
        ptx::wgmma_mma_async<Columns>::k32_f32_e4m3_e4m3(d, a[s], advance_descriptor(b, 2 * s),
                                                         s > 0);
      }
      ptx::wgmma_commit_group_sync_aligned();
      ptx::wgmma_wait_group_sync_aligned<0>();
      ptx::wgmma_fence_operand(d);
      finish(d, step, key, scale, is_whole, logits, t);
      logits += kStepTokens * params.logits_stride;
    }
  }

  /// Chunks [begin, end) of the unit: this warp's keys of each. Bit i of `parities` is that of the
  /// next phase of barrier i. `load_unit` fetches the queries, while keys are under way.
  template <class LoadUnit>
  __device__ void run(std::int32_t begin, std::int32_t end, std::uint32_t& parities,
                      LoadUnit&& load_unit) const {
    std::int32_t first_pages[Stages - 1];
#pragma unroll
    for (int i = 0; i < Stages - 1; ++i) first_pages[i] = page(begin + i, end);
    __syncthreads();  // nobody works on the last unit any more
#pragma unroll
    for (int i = 0; i < Stages - 1; ++i) fetch(i, begin + i, first_pages[i]);
    std::int32_t next_page = page(begin + Stages - 1, end);
    load_unit();
    ptx::fence_proxy_async_shared_cta();
    __syncthreads();
    std::int32_t whole_below = shared.lengths[0];
    for (int i = 1; i < steps * kStepTokens; ++i) whole_below = min(whole_below, shared.lengths[i]);
    const auto lane = static_cast<int>(threadIdx.x % 32);
    const int row = lane / 4 + 8 * (lane % 2);
    int stage = 0;
    for (std::int32_t chunk = begin; chunk < end; ++chunk) {
      ptx::cp_async_wait_group<Stages - 2>();
      ptx::mbarrier_wait_parity(tiles.barrier(stage), parities >> stage & 1);
      parities ^= 1u << stage;
      __syncwarp();
      std::uint32_t a[4][4];
      const bool is_exact = tiles.operand(a, stage);
      const float scale = tiles.row_scale(stage, row);
      const int free_stage = stage == 0 ? Stages - 1 : stage - 1;
      __syncwarp();
      fetch(free_stage, chunk + Stages - 1, next_page);
      next_page = page(chunk + Stages, end);
      stage = stage == Stages - 1 ? 0 : stage + 1;
#pragma unroll
      for (auto& fragment : a) ptx::wgmma_fence_operand(fragment);
      const std::int32_t first_key = warp_key(chunk);
      multiply(a, first_key + row, scale, first_key + 16 <= whole_below);
      if constexpr (Format == IndexFormat::kMxfp4) {
        if (__any_sync(~0u, !is_exact || *shared.is_exact == 0))
          write_exact_logits(params, unit, shared.lengths, first_key);
      }
    }
    // What was begun for chunks behind the end: empty tiles, but phases to be counted.
    ptx::cp_async_wait_group<0>();
#pragma unroll
    for (int i = 0; i < Stages - 1; ++i) {
      ptx::mbarrier_wait_parity(tiles.barrier(stage), parities >> stage & 1);
      parities ^= 1u << stage;
      stage = stage == Stages - 1 ? 0 : stage + 1;
    }
  }
};

/// Chunks [begin, end) of a unit.
template <IndexFormat Format, int Heads>
__device__ void run_unit(const kernels::IndexerLogitsParams& params,
                         const kernels::IndexerUnit& unit, unsigned char* base, std::int32_t begin,
                         std::int32_t end, std::uint32_t barriers, std::uint32_t& parities) {
  const kernels::IndexerSteps steps(Format, unit.count, Heads);
  const IndexerShared shared(base, steps);
  const auto load_unit = [&] {
    const auto thread = static_cast<int>(threadIdx.x);
    if (thread < kernels::kIndexerUnitTokens) {
      shared.lengths[thread] =
          thread < unit.count
              ? params.lengths.clamp(__ldg(params.lengths.numbers + unit.token + thread))
              : 0;
    }
    if constexpr (Format == IndexFormat::kFp8) {
      load_queries_fp8<Heads>(shared, params, unit, steps.steps * steps.columns);
    } else {
      if (thread == 0) *shared.is_exact = 1;
      __syncthreads();
      load_queries_mxfp4<Heads>(shared, params, unit, steps.steps * steps.columns);
    }
    load_weights<Format, Heads>(shared, params, unit, steps);
  };
  const auto run = [&]<int Columns, int Stages>() {
    IndexerConsumer<Format, Heads, Columns, Stages>(params, shared, unit, steps.steps, barriers)
        .run(begin, end, parities, load_unit);
  };
  if (Heads == 8 || steps.columns == 64) return run.template operator()<64, 4>();
  if constexpr (Heads > 8) {
    if (Format == IndexFormat::kMxfp4) return run.template operator()<128, 4>();
    if (Heads < 64 || steps.stages == 3) return run.template operator()<128, 3>();
    if constexpr (Heads == 64) return run.template operator()<128, 2>();
  }
}

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
  constexpr int kMaxStages = 4;
  __shared__ std::uint64_t key_barriers[kernels::kIndexerLogitsThreads / 32][kMaxStages];
  const std::uint32_t barriers = ptx::shared_address(key_barriers[threadIdx.x / 32]);
  if (threadIdx.x % 32 < kMaxStages) ptx::mbarrier_init(barriers + threadIdx.x % 32 * 8, 1);
  ptx::fence_mbarrier_init_release_cluster();
  __syncwarp();
  std::uint32_t parities = 0;
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const kernels::IndexerShare share = params.shares[blockIdx.x];
  kernels::IndexerUnit unit = share.unit;
  std::int32_t cost = share.begin_cost;
  for (std::int32_t u = share.unit_idx; cost < share.end_cost; ++u) {
    if (u != share.unit_idx) unit = params.units[u];
    const std::int32_t chunks =
        (unit.num_keys + kernels::kIndexerChunk - 1) / kernels::kIndexerChunk;
    if (chunks == 0) continue;
    const std::int32_t first = unit.first_cost + kernels::kIndexerUnitCost;
    const std::int32_t begin = max(cost - first, 0), end = min(share.end_cost - first, chunks);
    if (end > begin) {
      run_unit<Format, Heads>(params, unit, indexer_shared, begin, end, barriers, parities);
    }
    cost = first + chunks;
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
