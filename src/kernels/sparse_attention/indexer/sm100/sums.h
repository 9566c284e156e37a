// Sums over heads, out of Tensor Memory: two warpgroups, a thread a key.
//
// A run is 64 columns: one token of 64 heads, or several of fewer. A warpgroup has the runs `group`
// and group + 2 of every tile, so that their 128 weights stay in registers for all keys of a part;
// where there is only one run, the warpgroups take tiles in turn.
#pragma once

#include "kernels/sparse_attention/indexer/sm100/shared.h"
#include "ptx/load_store.h"
#include "ptx/math.h"
#include "ptx/packed_math.h"
#include "tile/tensor_memory.h"

#include <cmath>
#include <cstdint>

namespace tilewright::tile {

inline constexpr int kRunColumns = 64;

template <IndexFormat Format, int Heads>
struct TensorIndexerSums {
  using Traits = TensorIndexerTraits<Format>;
  static constexpr int kTokens = kRunColumns / Heads;  ///< of a run

  /// A key of this thread: what the sums are multiplied by, and whether there is one.
  struct Key {
    float scale;
    bool is_there;
  };

  const kernels::TensorIndexerParams& params;
  const TensorIndexerRings<Format>& rings;
  std::uint32_t own_tmem;
  std::int32_t group;
  DeepPosition& at;
  RingPosition<2>& query;
  RingPosition<Traits::kAccumulators>& accumulator;

  __device__ static std::int32_t row() { return static_cast<std::int32_t>(threadIdx.x % 128); }

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

  /// A tile of keys is there; its stage is free as far as this warp is concerned.
  __device__ Key take_key() {
    ptx::mbarrier_wait_parity(rings.full(at.stage), at.parity);
    Key key = {1, (rings.shared.is_key[at.stage][row() / 32] >> row() % 32 & 1) != 0};
    if constexpr (Traits::kIsFp8)
      key.scale = __uint_as_float(rings.shared.key_scales[at.stage][row()]);
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(rings.empty(at.stage));
    at.advance(rings.stages);
    return key;
  }

  __device__ void release_accumulator() {
    ptx::tcgen05_fence_before_thread_sync();
    Ring<3>(rings.shared.accumulators).release({accumulator.stage, 0});
    accumulator.advance();
  }

  /// Weighted sums of relu(x) over the heads of each token: two chains, as two numbers each. A NaN
  /// stays one.
  __device__ static void add_heads(float (&sums)[kTokens], const float (&x)[2][32],
                                   const float2 (&weights)[kRunColumns / 2]) {
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      float2 part[2] = {};
#pragma unroll
      for (int i = 0; i < Heads / 2; ++i) {
        const int pair = token * (Heads / 2) + i;
        const float* const two = &x[pair / 16][pair % 16 * 2];
        const float2 positive =
            make_float2(ptx::max_nan_f32(two[0], 0.0f), ptx::max_nan_f32(two[1], 0.0f));
        part[i % 2] = ptx::fma_rn_f32x2(positive, weights[pair], part[i % 2]);
      }
      sums[token] = (part[0].x + part[1].x) + (part[0].y + part[1].y);
    }
  }

  __device__ void store(const TensorIndexerPart& part, const float (&sums)[kTokens],
                        std::int32_t run, const Key& key, std::int32_t key_idx) const {
    const std::int32_t* const lengths = &rings.shared.lengths[query.stage][run * kTokens];
    const kernels::IndexerLogitsParams& logits = params.logits;
    float* to = logits.logits + (part.unit.token + run * kTokens) * logits.logits_stride + key_idx;
#pragma unroll
    for (int token = 0; token < kTokens; ++token, to += logits.logits_stride) {
      const float logit = Traits::kIsFp8 ? __fmul_rn(sums[token], key.scale) : sums[token];
      if (key_idx < lengths[token]) *to = key.is_there ? logit : -INFINITY;
    }
  }

  /// Run number `run` of the tile, at a column of Tensor Memory. `is_last`: nothing else of this
  /// accumulator is this warp's.
  __device__ void add_run(const TensorIndexerPart& part, std::int32_t run, std::uint32_t column,
                          const float2 (&weights)[kRunColumns / 2], const Key& key,
                          std::int32_t key_idx, bool is_last) {
    float x[2][32], sums[kTokens];
    load_row(x, own_tmem + accumulator.stage * Traits::kColumns + column);
    if (is_last) release_accumulator();
    add_heads(sums, x, weights);
    store(part, sums, run, key, key_idx);
  }

  /// A tile, whose first key of all the sequence is given.
  __device__ void add_tile(const TensorIndexerPart& part,
                           const float2 (&weights)[2][kRunColumns / 2], std::int32_t first_key) {
    const Key key = take_key();
    const bool is_single = part.runs() == 1;
    const bool is_own_tile = first_key / kernels::kTensorIndexerKeys % 2 == group;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (2 * i >= part.runs()) break;
      if (i == 0 || !Traits::kIsFp8) {
        wait_for_tensor_memory(
            Ring<3>(rings.shared.accumulators).full_barriers + accumulator.stage * 8,
            accumulator.parity);
      }
      const bool is_last = !Traits::kIsFp8 || 2 * i + 2 >= part.runs();
      const std::int32_t run = is_single ? 0 : 2 * i + group;
      if (is_single ? is_own_tile : run < part.runs()) {
        add_run(part, run, static_cast<std::uint32_t>(run * kRunColumns % Traits::kColumns),
                weights[i], key, first_key + row(), is_last);
      } else if (is_last) {
        release_accumulator();
      }
    }
  }

  __device__ void run(const TensorIndexerPart& part, std::int32_t begin, std::int32_t end) {
    const Ring<2> queries(rings.shared.queries);
    queries.wait_full(query);
    float2 weights[2][kRunColumns / 2] = {};
    load_weights(weights[0], part.runs() == 1 ? 0 : group);
    if (group + 2 < part.runs()) load_weights(weights[1], group + 2);
    const std::int32_t end_key = end * kernels::kIndexerChunk;
    for (std::int32_t first = begin * kernels::kIndexerChunk; first < end_key;
         first += kernels::kTensorIndexerKeys)
      add_tile(part, weights, first);
    queries.release(query);
    query.advance();
  }
};

}  // namespace tilewright::tile
