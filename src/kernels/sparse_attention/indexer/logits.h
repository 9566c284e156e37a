// The logits of the lightning indexer: a CTA keeps the queries of a unit in shared memory, four
// warpgroups take 64 keys each and multiply them with all of them.
//
//   4 warps, one a warpgroup   pages of the keys | place free? | tensor copies, scales
//   4 warpgroups               tile there? | per step: products of 64 keys x 64 columns (a token
//                              of 64 heads; 128 where registers allow) | tile free | relu,
//                              weights, sums over heads in the lane, three shuffles a step |
//                              x key scale, store
//
// Keys are rows of the accumulator: a lane has all heads of its columns, so that sums over heads
// are FMAs. While one warpgroup adds up, others multiply.
//
// Limits, per key and token of 64 heads and SM: products 2 cycles of the tensor cores; relu and FMA
// of 64 scores 1 cycle of issue, 1.4 with all the rest; memory 132 bytes a key, 7.3 cycles at 4.2
// TB/s, whatever the number of tokens: up to three tokens memory decides, then the tensor cores.
#pragma once

#include "kernels/sparse_attention/indexer/exact.h"
#include "kernels/sparse_attention/indexer/indexer_logits.h"
#include "kernels/sparse_attention/indexer/keys.h"
#include "kernels/sparse_attention/indexer/units.h"
#include "ptx/address.h"
#include "ptx/fence.h"
#include "ptx/grid_dependency.h"
#include "ptx/math.h"
#include "ptx/warp_roles.h"
#include "ptx/wgmma_mma_async.h"
#include "ptx/wgmma_sync.h"
#include "tile/box.h"
#include "tile/entry.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr int kIndexerConsumers = kernels::kIndexerWarpgroups * 128;
/// A consumer has at most 64 sums, 32 weights and what it needs besides.
inline constexpr int kIndexerProducerRegisters = 32, kIndexerConsumerRegisters = 112;

/// Named barrier of a CTA; number 0 is that of all its threads.
inline constexpr std::uint32_t kIndexerBarrier = 1;
__device__ inline void sync_consumers() {
  ptx::bar_sync<kIndexerConsumers>(kIndexerBarrier);
}

/// Dynamic shared memory of a CTA, behind the tiles of keys.
struct IndexerShared {
  unsigned char* queries;  ///< steps * columns rows of 128 bytes, swizzled
  float* weights;          ///< of each step, for each lane of a quad
  std::int32_t* lengths;   ///< of the unit's tokens; with ranges UnitRanges
  std::int32_t* is_exact;  ///< of the queries, MXFP4

  __device__ IndexerShared(unsigned char* base, const kernels::IndexerSteps& steps)
      : queries(base),
        weights(reinterpret_cast<float*>(base + steps.query_bytes())),
        lengths(reinterpret_cast<std::int32_t*>(weights + steps.steps * 4 * steps.lane_weights())),
        is_exact(lengths + kernels::kIndexerUnitTokens) {}
};

/// The e4m3 queries of a unit, zeros for what is not there.
template <int Heads>
__device__ void load_queries_fp8(const IndexerShared& shared,
                                 const kernels::IndexerLogitsParams& params,
                                 const kernels::IndexerUnit& unit, int rows) {
  constexpr int kChunks = kIndexDims / 16;
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < rows * kChunks; i += kIndexerConsumers) {
    const int row = i / kChunks, chunk = i % kChunks, token = row / Heads, head = row % Heads;
    uint4 codes = make_uint4(0, 0, 0, 0);
    if (token < unit.count && head < params.heads) {
      const std::int64_t at = std::int64_t{unit.token + token} * params.heads + head;
      codes = __ldg(reinterpret_cast<const uint4*>(params.q + at * kIndexDims) + chunk);
    }
    reinterpret_cast<uint4*>(shared.queries + row * 128)[chunk ^ row % 8] = codes;
  }
}

/// MXFP4 queries as e4m3, in the order of keys.h: a thread takes word s of all four blocks.
template <int Heads>
__device__ void load_queries_mxfp4(const IndexerShared& shared,
                                   const kernels::IndexerLogitsParams& params,
                                   const kernels::IndexerUnit& unit, int rows) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * 4; i += kIndexerConsumers) {
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
       row += kIndexerConsumers) {
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

/// A NaN stays one: e4m3 has a code for it, e2m1 has none.
template <IndexFormat Format>
__device__ float relu(float x) {
  return Format == IndexFormat::kFp8 ? ptx::max_nan_f32(x, 0.0f) : fmaxf(x, 0.0f);
}

/// Weighted sums of relu(d) over the heads of each token of a step, of rows g and g + 8, for the
/// columns of this lane. Two sums a row: their chains are half as long.
template <IndexFormat Format, int Heads, int Columns, class Weights>
__device__ void weigh_step(float (*sums)[2], const float (&d)[Columns / 2],
                           const Weights& weights) {
  constexpr int kGroups = Heads / 8;  // of eight columns, of a token
  float4 pair = {};                   // weights of two groups
#pragma unroll
  for (int token = 0; token < Columns / Heads; ++token) {
    float part[4];  // of accumulator i in part[i % 4]
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const int first = token * kGroups + group;
      if (first % 2 == 0) pair = weights(first / 2);
      const float2 w = first % 2 == 0 ? make_float2(pair.x, pair.y) : make_float2(pair.z, pair.w);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float x = relu<Format>(d[4 * first + j]), weight = j % 2 == 0 ? w.x : w.y;
        part[j] = group == 0 ? __fmul_rn(x, weight) : __fmaf_rn(x, weight, part[j]);
      }
    }
    sums[token][0] = part[0] + part[1];
    sums[token][1] = part[2] + part[3];
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

/// The keys of one unit for one warpgroup.
template <IndexFormat Format, class Params>
struct IndexerProducer {
  const Params& params;
  const KeyTiles<Format>& tiles;
  RingPosition<kernels::kIndexerStages>& at;

  __device__ void run(const kernels::IndexerUnit& unit, std::int32_t begin, std::int32_t end,
                      int warpgroup) const {
    const std::int32_t* const table = block_table_of(params, unit);
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    const auto first_key = [&](std::int32_t chunk) {
      return chunk * kernels::kIndexerChunk + warpgroup * kernels::kIndexerTileKeys;
    };
    const auto page = [&](std::int32_t chunk, int i) {
      const std::int32_t key = first_key(chunk) + lane + 32 * i;
      return key_page(params, table, key, chunk < end ? unit.num_keys : 0);
    };
    std::int32_t next[2] = {page(begin, 0), page(begin, 1)};
    for (std::int32_t chunk = begin; chunk < end; ++chunk) {
      const std::int32_t pages[2] = {next[0], next[1]};
      next[0] = page(chunk + 1, 0);
      next[1] = page(chunk + 1, 1);
      tiles.fetch(at, params, pages, first_key(chunk));
      at.advance();
    }
  }
};

/// A warpgroup's work on one unit, in groups of `Steps` steps of `Columns`: one group of one step,
/// or any number of groups of two. Sums over quads and stores are those of a group: what is neither
/// product nor sum costs as much as they do.
template <IndexFormat Format, int Heads, int Columns, int Steps, class Params>
struct IndexerConsumer {
  static constexpr int kStepTokens = Columns / Heads, kTokens = kStepTokens * Steps;
  static constexpr int kOut = (kTokens + 1) / 2;
  static constexpr std::uint32_t kStepUnits = Columns * kIndexDims / 16;  // of descriptors
  static constexpr int kLaneWeights = Columns / 4 + 4;

  const Params& params;
  const IndexerShared& shared;
  const kernels::IndexerUnit& unit;
  const KeyTiles<Format>& tiles;
  RingPosition<kernels::kIndexerStages>& at;
  int groups;

  /// What is left of a group: scale, and the lengths of its tokens.
  __device__ void store(const float (&sums)[kTokens][2], std::int32_t* lengths, std::int32_t key,
                        float scale, float* logits, int t) const {
    float out[kOut];
    add_quad<kTokens>(out, sums, t);
    const UnitRanges<Params> ranges = {lengths};
#pragma unroll
    for (int i = 0; i < kOut; ++i) {
      const bool is_stored =
          key < lengths[2 * i] && !ranges.is_before(2 * i, key) && (kTokens > 1 || t < 2);
      if constexpr (UnitRanges<Params>::kRanges) {
        float* const to = ranges.row(2 * i) + key;  // outside of the branch: fewer registers
        if (is_stored) *to = scale < 0 ? -INFINITY : __fmul_rn(out[i], scale);
      } else {
        if (is_stored)
          logits[2 * i * params.logits_stride] = scale < 0 ? -INFINITY : __fmul_rn(out[i], scale);
      }
    }
  }

  template <class A>
  __device__ static void multiply(float (&d)[Columns / 2], const A& a, std::uint64_t b) {
    ptx::wgmma_fence_operand(d);
    ptx::wgmma_fence_sync_aligned();
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      ptx::wgmma_mma_async<Columns>::k32_f32_e4m3_e4m3(d, a(s), advance_descriptor(b, 2 * s),
                                                       s > 0);
    }
    ptx::wgmma_commit_group_sync_aligned();
    ptx::wgmma_wait_group_sync_aligned<0>();
    ptx::wgmma_fence_operand(d);
  }

  /// A tile against all steps; `release` after the last product.
  template <class A, class Weights>
  __device__ void run_tile(const A& a, const Weights& weights, std::int32_t key,
                           float scale) const {
    const auto t = static_cast<int>(threadIdx.x % 4);
    float* logits = params.logits + (unit.token + t / 2) * params.logits_stride + key;
    std::int32_t* lengths = shared.lengths + t / 2;
    std::uint64_t queries = Box<64, 128>::k_major(ptx::shared_address(shared.queries));
#pragma unroll 1
    for (int group = 0; group < (Steps == 1 ? 1 : groups); ++group) {
      float sums[kTokens][2];
#pragma unroll
      for (int step = 0; step < Steps; ++step) {
        float d[Columns / 2];
        multiply(d, a, advance_descriptor(queries, static_cast<std::uint32_t>(step) * kStepUnits));
        const bool is_last = Steps == 1 || (step + 1 == Steps && group + 1 == groups);
        if (Format == IndexFormat::kFp8 && is_last) tiles.ring.release(at);
        weigh_step<Format, Heads, Columns>(&sums[step * kStepTokens], d, [&](int pair) {
          return weights(group * Steps, step, pair);
        });
      }
      store(sums, lengths, key, scale, logits, t);
      logits += kTokens * params.logits_stride;
      lengths += kTokens;
      queries = advance_descriptor(queries, Steps * kStepUnits);
    }
  }

  template <class Weights>
  __device__ void run_tiles(const Weights& weights, std::int32_t begin, std::int32_t end) const {
    const auto warp = static_cast<int>(threadIdx.x / 32);
    const int row = warp % 4 * 16 + static_cast<int>(threadIdx.x % 32 / 4);
    const int lane_row = row + 8 * static_cast<int>(threadIdx.x % 2);
    for (std::int32_t chunk = begin; chunk < end; ++chunk) {
      const std::int32_t first_key =
          chunk * kernels::kIndexerChunk + warp / 4 * kernels::kIndexerTileKeys;
      tiles.ring.wait_full(at);
      const float scale = tiles.row_scale(at.stage, lane_row);
      if constexpr (Format == IndexFormat::kFp8) {
        const std::uint64_t keys = Box<64, 128>::k_major(tiles.tile(at.stage));
        run_tile([&](int s) { return advance_descriptor(keys, 2 * static_cast<std::uint32_t>(s)); },
                 weights, first_key + lane_row, scale);
      } else {
        std::uint32_t a[4][4];
        const bool is_exact = tiles.operand(a, at.stage, row);
        tiles.ring.release(at);
#pragma unroll
        for (auto& fragment : a) ptx::wgmma_fence_operand(fragment);
        run_tile([&](int s) -> const std::uint32_t(&)[4] { return a[s]; }, weights,
                 first_key + lane_row, scale);
        if (__any_sync(~0u, !is_exact || *shared.is_exact == 0))
          write_exact_logits(params, unit, UnitRanges<Params>{shared.lengths},
                             first_key + warp % 4 * 16);
      }
      at.advance();
    }
  }

  /// Chunks [begin, end) of the unit.
  __device__ void run(std::int32_t begin, std::int32_t end) const {
    const float* const lane_weights = shared.weights + threadIdx.x % 4 * kLaneWeights;
    if constexpr (Steps == 1 && Columns == 64) {
      float4 held[Columns / 16];
#pragma unroll
      for (int i = 0; i < Columns / 16; ++i)
        held[i] = reinterpret_cast<const float4*>(lane_weights)[i];
      run_tiles([&](int, int, int pair) { return held[pair]; }, begin, end);
    } else {
      run_tiles(
          [&](int first, int step, int pair) {
            const float* const of_group = lane_weights + first * 4 * kLaneWeights;
            return reinterpret_cast<const float4*>(of_group + step * 4 * kLaneWeights)[pair];
          },
          begin, end);
    }
  }
};

/// Lengths, or ranges, of a unit's tokens, a thread each.
template <class Params>
__device__ void load_lengths(std::int32_t* to, const Params& params,
                             const kernels::IndexerUnit& unit) {
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread >= kernels::kIndexerUnitTokens) return;
  if constexpr (kernels::kHasRanges<Params>) {
    kernels::IndexerRange range = {};
    if (thread < unit.count) range = params.ranges.of(unit.token + thread);
    float* const row = params.logits + (unit.token + thread) * params.logits_stride;
    UnitRanges<Params>{to}.set(thread, range, row - params.ranges.shift(range));
  } else {
    to[thread] = thread < unit.count ? params.lengths.of(unit.token + thread) : 0;
  }
}

/// Queries, weights and lengths of a unit, by all consumers.
template <IndexFormat Format, int Heads, class Params>
__device__ void load_unit(const IndexerShared& shared, const Params& params,
                          const kernels::IndexerUnit& unit, const kernels::IndexerSteps& steps) {
  sync_consumers();  // no warp works on the last unit any more
  load_lengths(shared.lengths, params, unit);
  load_weights<Format, Heads>(shared, params, unit, steps);
  if constexpr (Format == IndexFormat::kFp8) {
    load_queries_fp8<Heads>(shared, params, unit, steps.steps * steps.columns);
  } else {
    if (threadIdx.x == 0) *shared.is_exact = 1;
    sync_consumers();
    load_queries_mxfp4<Heads>(shared, params, unit, steps.steps * steps.columns);
  }
  ptx::fence_proxy_async_shared_cta();
  sync_consumers();
}

/// Chunks [begin, end) of a unit, by the consumers.
template <IndexFormat Format, int Heads, class Params>
__device__ void consume_unit(const Params& params, const kernels::IndexerUnit& unit,
                             unsigned char* base, const KeyTiles<Format>& tiles,
                             RingPosition<kernels::kIndexerStages>& at, std::int32_t begin,
                             std::int32_t end) {
  const kernels::IndexerSteps steps(Format, unit.count, Heads);
  const IndexerShared shared(base, steps);
  load_unit<Format, Heads>(shared, params, unit, steps);
  const auto run = [&]<int Columns, int Steps>() {
    IndexerConsumer<Format, Heads, Columns, Steps, Params>{params, shared, unit,
                                                           tiles,  at,     steps.steps / Steps}
        .run(begin, end);
  };
  constexpr bool kIsWide = kernels::has_wide_steps(Format, Heads);
  if (Heads == 8 || (steps.columns == 64 && steps.steps == 1))
    return run.template operator()<64, 1>();
  if constexpr (!kIsWide && Heads > 8) {
    run.template operator()<64, 2>();
  } else if constexpr (kIsWide) {
    if (steps.steps == 1) return run.template operator()<128, 1>();
    run.template operator()<128, 2>();
  }
}

template <IndexFormat Format, int Heads, class Params>
__device__ void indexer_logits(const Params& params) {
  extern __shared__ __align__(1024) unsigned char indexer_shared[];
  constexpr int kGroups = kernels::kIndexerWarpgroups, kStages = kernels::kIndexerStages;
  __shared__ RingBarriers<kStages> barriers[kGroups];
  using Tiles = KeyTiles<Format>;
  const int warp = ptx::uniform(static_cast<int>(threadIdx.x / 32));
  const bool is_producer = warp >= 4 * kGroups;
  const int warpgroup = is_producer ? warp - 4 * kGroups : warp / 4;
  if (threadIdx.x < kGroups) {
    for (int i = 0; i < kStages; ++i) {
      ptx::mbarrier_init(ptx::shared_address(&barriers[threadIdx.x].full[i]), Tiles::kArrivals);
      ptx::mbarrier_init(ptx::shared_address(&barriers[threadIdx.x].empty[i]), 4);
    }
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  const Tiles tiles = {ptx::shared_address(indexer_shared) +
                           static_cast<std::uint32_t>(warpgroup * kStages * Tiles::kBytes),
                       Ring<kStages>(barriers[warpgroup])};
  RingPosition<kStages> at;
  // Only queries come from the preceding launch, if the caller says so.
  if (!is_producer || params.is_behind_queries == 0) ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  if (is_producer) {
    ptx::setmaxnreg_dec_sync_aligned<kIndexerProducerRegisters>();
    const IndexerProducer<Format, Params> producer = {params, tiles, at};
    for_each_unit(params, [&](const kernels::IndexerUnit& unit, std::int32_t begin,
                              std::int32_t end) { producer.run(unit, begin, end, warpgroup); });
  } else {
    ptx::setmaxnreg_inc_sync_aligned<kIndexerConsumerRegisters>();
    unsigned char* const base = indexer_shared + kGroups * kStages * Tiles::kBytes;
    // Meanwhile the first keys come; behind the units there would be no register for it.
    if constexpr (kernels::kHasRanges<Params>) {
      if (params.is_filled != 0) fill_outside(params, kIndexerConsumers / 32);
    }
    for_each_unit(params,
                  [&](const kernels::IndexerUnit& unit, std::int32_t begin, std::int32_t end) {
                    consume_unit<Format, Heads>(params, unit, base, tiles, at, begin, end);
                  });
  }
  if constexpr (!kernels::kHasRanges<Params>) {
    if (params.is_filled != 0) fill_behind(params);
  }
}

}  // namespace tilewright::tile

/// Entry indexer_logits_NAME.
#define TILEWRIGHT_INDEXER_LOGITS(NAME, FORMAT, HEADS)           \
  TILEWRIGHT_KERNEL(indexer_logits_##NAME, IndexerLogitsParams,  \
                    __launch_bounds__(kIndexerLogitsThreads, 1), \
                    tile::indexer_logits<IndexFormat::FORMAT, HEADS>)
/// Entry indexer_range_logits_NAME.
#define TILEWRIGHT_INDEXER_RANGE_LOGITS(NAME, FORMAT, HEADS)               \
  TILEWRIGHT_KERNEL(indexer_range_logits_##NAME, IndexerRangeLogitsParams, \
                    __launch_bounds__(kIndexerLogitsThreads, 1),           \
                    tile::indexer_logits<IndexFormat::FORMAT, HEADS>)
