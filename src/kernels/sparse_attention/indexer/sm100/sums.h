// Sums over heads, out of Tensor Memory: two warpgroups, a thread a key.
//
// A run is 64 columns: one token of 64 heads, or several of fewer. An accumulator has one or two
// runs, and every other accumulator is a warpgroup's: all runs of every other tile, or, where a
// tile has two accumulators, the same two runs of every tile. So the weights of two runs, 128,
// stay in registers for all keys of a part, and what a tile costs besides is paid by four warps.
#pragma once

#include "kernels/sparse_attention/indexer/sm100/shared.h"
#include "ptx/load_store.h"
#include "ptx/math.h"
#include "ptx/mbarrier_count.h"
#include "ptx/packed_math.h"
#include "tile/tensor_memory.h"

#include <climits>
#include <cmath>
#include <cstdint>

namespace tilewright::tile {

inline constexpr int kRunColumns = 64;

/// The next accumulator of a warpgroup: every other one.
template <class Traits>
struct OwnAccumulator {
  std::uint32_t place;    ///< its number in Tensor Memory
  std::uint32_t barrier;  ///< of those that say that one is full
  std::uint32_t parity = 0;

  __device__ void advance() {
    constexpr std::uint32_t kPlaces = Traits::kAccumulators;
    place = place + 2 >= kPlaces ? place + 2 - kPlaces : place + 2;
    barrier += 2;
    if (barrier >= Traits::kFullBarriers) {
      barrier -= Traits::kFullBarriers;
      parity ^= 1;
    }
  }
};

template <IndexFormat Format, int Heads, class Params>
struct TensorIndexerSums {
  using Traits = TensorIndexerTraits<Format>;
  static constexpr bool kRanges = kernels::kHasRanges<decltype(Params::logits)>;
  static constexpr int kTokens = kRunColumns / Heads;  ///< of a run

  /// A key of this thread: what the sums are multiplied by, and whether there is one.
  struct Key {
    float scale;
    bool is_there;
  };
  /// What a warpgroup does of a part.
  struct Share {
    std::int32_t first_run, runs;  ///< runs: 1 or 2
    std::int32_t step;             ///< from tile to tile
    std::int32_t first_whole;      ///< first and last first key of a tile that all of its tokens
    std::int32_t last_whole;       ///< see whole

    __device__ std::int32_t tokens() const { return runs * kTokens; }
  };

  const Params& params;
  const TensorIndexerRings<Format>& rings;
  std::uint32_t own_tmem;
  std::int32_t group, row;
  OwnAccumulator<Traits> accumulator;
  DeepPosition at;  ///< of a part's first tile
  RingPosition<2> query;

  __device__ TensorIndexerSums(const Params& of_kernel, const TensorIndexerRings<Format>& of_cta,
                               std::uint32_t tmem)
      : params(of_kernel),
        rings(of_cta),
        own_tmem(ptx::uniform(own_lanes(tmem))),
        group(ptx::uniform(static_cast<std::int32_t>(threadIdx.x / 128))),
        row(static_cast<std::int32_t>(threadIdx.x % 128)),
        accumulator{static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(group)} {}

  __device__ void load_weights(float2 (&weights)[kRunColumns / 2], std::int32_t run) const {
    const std::uint32_t from =
        ptx::shared_address(&rings.shared.weights[query.stage][run * kRunColumns]);
#pragma unroll
    for (int i = 0; i < kRunColumns / 4; ++i) {
      const float4 four = ptx::ld_shared_v4_f32(from + i * 16);
      weights[2 * i] = make_float2(four.x, four.y);
      weights[2 * i + 1] = make_float2(four.z, four.w);
    }
  }
  __device__ std::int32_t length(std::int32_t token) const {
    return rings.shared.lengths[query.stage][token];
  }
  __device__ std::int32_t begin(std::int32_t token) const {
    return kRanges ? rings.shared.begins[query.stage][token] : 0;
  }
  __device__ bool sees(std::int32_t token, std::int32_t key) const {
    return key < length(token) && (!kRanges || key >= begin(token));
  }
  /// Where the logit of a key stands, which would be at `to` if column 0 were that of key 0.
  __device__ float* column(float* to, std::int32_t token) const {
    if constexpr (kRanges) {
      if (params.logits.ranges.is_compressed != 0) to -= begin(token);
    }
    return to;
  }
  __device__ Share share_of(const TensorIndexerPart& part) const {
    Share share = {part.is_in_turn() ? 0 : 2 * group, 0, part.is_in_turn() ? 2 : 1, 0, INT_MAX};
    share.runs = min(part.runs() - share.first_run, 2);
    for (std::int32_t i = 0; i < share.tokens(); ++i) {
      const std::int32_t token = share.first_run * kTokens + i;
      share.last_whole = min(share.last_whole, length(token));
      if constexpr (kRanges) share.first_whole = max(share.first_whole, begin(token));
    }
    share.last_whole -= kernels::kTensorIndexerKeys;
    return share;
  }

  /// A tile of keys is there; its stage is free as far as this warp is concerned, or, where only
  /// one of the warpgroups has the tile, this warp and one of the other.
  __device__ Key take_key(DeepPosition& tile, const Share& share) const {
    const std::uint32_t full = rings.full(tile.stage);
    ptx::mbarrier_wait_parity(full, tile.parity);
    Key key = {1, true};
    if constexpr (Traits::kIsFp8) {
      key.scale = __uint_as_float(rings.shared.key_scales[tile.stage][row]);
      key.is_there = key.scale != kNoKey;
    } else {
      key.is_there = rings.shared.is_key[tile.stage][row] != 0;
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      ptx::mbarrier_arrive(rings.empty(tile.stage), static_cast<std::uint32_t>(share.step));
    advance(tile, static_cast<std::uint32_t>(share.step), rings.stages);
    return key;
  }

  /// Weighted sum of relu(x) over the heads of a token of a run: two chains, as two numbers each. A
  /// NaN stays one.
  __device__ static float add_heads(const float (&x)[kRunColumns],
                                    const float2 (&weights)[kRunColumns / 2], int token) {
    float2 part[2] = {};
#pragma unroll
    for (int i = 0; i < Heads / 2; ++i) {
      const int pair = token * (Heads / 2) + i;
      const float2 positive =
          make_float2(ptx::max_nan_f32(x[2 * pair], 0.0f), ptx::max_nan_f32(x[2 * pair + 1], 0.0f));
      part[i % 2] = ptx::fma_rn_f32x2(positive, weights[pair], part[i % 2]);
    }
    const float2 both = ptx::fma_rn_f32x2(part[0], make_float2(1, 1), part[1]);
    return both.x + both.y;
  }

  /// Logits of a run's tokens, of which the first has that of this key at `to`.
  __device__ void store(float* to, const float (&x)[kRunColumns],
                        const float2 (&weights)[kRunColumns / 2], const Key& key,
                        std::int32_t first_token, std::int32_t first_key,
                        const Share& share) const {
    const std::int64_t stride = params.logits.logits_stride;
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      const float sum = add_heads(x, weights, token);
      const float logit = Traits::kIsFp8 ? __fmul_rn(sum, key.scale) : sum;
      const bool is_whole =
          first_key <= share.last_whole && (!kRanges || first_key >= share.first_whole);
      if (is_whole || sees(first_token + token, first_key + row))
        column(to + token * stride, first_token + token)[0] = key.is_there ? logit : -INFINITY;
    }
  }

  /// The next accumulator: runs of a tile, whose first key is given, as is where the first token
  /// has this thread's logit.
  __device__ void add_tile(const float2 (&weights)[2][kRunColumns / 2], const Share& share,
                           DeepPosition& tile, float* to, std::int32_t first_key) {
    const Key key = take_key(tile, share);
    const Ring<6> ring(rings.shared.accumulators);
    const std::uint32_t columns = own_tmem + accumulator.place * Traits::kColumns;
    wait_for_tensor_memory(ring.full_barriers + accumulator.barrier * 8, accumulator.parity);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float x[kRunColumns];
      ptx::tcgen05_ld_32x32b(x, columns + i * kRunColumns);
      ptx::tcgen05_wait_ld_sync_aligned();
      ptx::tcgen05_fence_operand(x);
      if (i + 1 == share.runs) {
        ptx::tcgen05_fence_before_thread_sync();
        ring.release({accumulator.place, 0});
      }
      store(to + i * kTokens * params.logits.logits_stride, x, weights[i], key,
            (share.first_run + i) * kTokens, first_key, share);
      if (i + 1 == share.runs) break;
    }
    accumulator.advance();
  }

  __device__ void run(const TensorIndexerPart& part, std::int32_t begin, std::int32_t end) {
    const Ring<2> queries(rings.shared.queries);
    queries.wait_full(query);
    const Share share = share_of(part);
    float2 weights[2][kRunColumns / 2] = {};
    load_weights(weights[0], share.first_run);
    if (share.runs == 2) load_weights(weights[1], share.first_run + 1);
    const bool skips_first = part.is_in_turn() && group == 1;
    DeepPosition tile = at;
    if (skips_first) tile.advance(rings.stages);
    const std::int32_t end_key = end * kernels::kIndexerChunk;
    std::int32_t first_key =
        begin * kernels::kIndexerChunk + (skips_first ? kernels::kTensorIndexerKeys : 0);
    const std::int32_t step = share.step * kernels::kTensorIndexerKeys;
    float* to = params.logits.logits + first_key + row +
                (part.unit.token + share.first_run * kTokens) * params.logits.logits_stride;
    for (; first_key < end_key; first_key += step, to += step)
      add_tile(weights, share, tile, to, first_key);
    constexpr int kTiles = kernels::kIndexerChunk / kernels::kTensorIndexerKeys;
    const std::uint32_t stage = at.stage + static_cast<std::uint32_t>((end - begin) * kTiles);
    at.stage = stage % rings.stages;
    at.parity ^= stage / rings.stages & 1;
    queries.release(query);
    query.advance();
  }
};

}  // namespace tilewright::tile
