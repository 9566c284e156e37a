// Pooling of the compressor: what a row of threads does, and eight tokens of four channels each.
#pragma once

#include "kernels/sparse_attention/cache/compress.h"
#include "kernels/sparse_attention/sequence_tokens.h"
#include "ptx/math.h"

#include <cmath>
#include <cstdint>
#include <numbers>

namespace tilewright::tile {

inline constexpr int kPoolSlots = 8;  ///< tokens of a thread

__device__ inline float4 load_float4(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}
__device__ inline float4 add(const float4& a, const float4& b) {
  return make_float4(__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z),
                     __fadd_rn(a.w, b.w));
}

/// The new tokens of a sequence, and its slot of the state; -1: it takes no part.
struct StateTokens {
  std::int32_t sequence, state_slot;
  SequenceRange range;

  __device__ StateTokens(const kernels::CompressParams& params, std::int32_t idx)
      : sequence(idx), range(params.sequences, idx) {
    state_slot = params.state_slots != nullptr ? params.state_slots[idx] : idx;
    if (range.start < 0 || state_slot >= params.num_state_slots) state_slot = -1;
  }

  __device__ bool takes_part() const { return state_slot >= 0; }
  __device__ float* state_row(const kernels::CompressParams& params, std::int32_t position,
                              int width) const {
    const std::int64_t row = std::int64_t{state_slot} * params.ring + position % params.ring;
    return params.state + row * 2 * width;
  }
};

/// Number `index` of batch * groups: an entry that the call may complete.
struct PoolTask : StateTokens {
  std::int32_t entry;
  bool has_entry;

  __device__ PoolTask(const kernels::CompressParams& params, std::int32_t index, int ratio)
      : StateTokens(params, sequence_of(params, index)) {
    const bool is_one = index < params.sequences.batch * params.groups;
    entry = range.start / ratio + index - sequence * params.groups;
    has_entry = is_one && takes_part() && entry < (range.start + range.count) / ratio;
  }

 private:
  static __device__ std::int32_t sequence_of(const kernels::CompressParams& params,
                                             std::int32_t index) {
    return min(index / params.groups, params.sequences.batch - 1);
  }
};

/// Four channels of a token: its values and scores.
struct PoolSlot {
  float4 kv, score;
};

/// `if_true` or `if_false`, without a branch.
__device__ inline float4 choose(bool condition, const float4& if_true, const float4& if_false) {
  return make_float4(condition ? if_true.x : if_false.x, condition ? if_true.y : if_false.y,
                     condition ? if_true.z : if_false.z, condition ? if_true.w : if_false.w);
}

template <kernels::CompressShape S>
__device__ const float* ape_of(const kernels::CompressParams& params, std::int32_t position,
                               int channel) {
  return params.ape + (position & S.ratio - 1) * S.width() + channel;
}

/// Eight tokens of an entry, from part * 8 on: new ones from the call's input, older ones from the
/// state, none before position 0. All loads are made, from somewhere, so that none waits for
/// another.
template <kernels::CompressShape S>
__device__ void load_slots(PoolSlot (&slots)[kPoolSlots], const kernels::CompressParams& params,
                           const PoolTask& task, int channel, int part) {
  const std::int32_t begin = (task.entry - (S.has_overlap ? 1 : 0)) * S.ratio + part * kPoolSlots;
  const float* const state = task.state_row(params, 0, S.width());
  const std::int32_t in_ring = max(begin, 0) % params.ring + min(begin, 0);
  const std::int64_t token = std::int64_t{task.range.first} + begin - task.range.start;
#pragma unroll
  for (int k = 0; k < kPoolSlots; ++k) {
    const bool is_new = begin + k >= task.range.start, is_none = begin + k < 0;
    const int at = channel + (S.has_overlap && k >= S.ratio ? S.dim : 0);
    const float* const of_ape = ape_of<S>(params, begin + k, at);
    const std::int32_t row = in_ring + k - (in_ring + k >= params.ring ? params.ring : 0);
    const float* const old = state + std::int64_t{is_new ? 0 : row} * 2 * S.width() + at;
    const float* const kv = is_new ? params.kv + (token + k) * params.kv_stride + at : old;
    const float* const score =
        is_new ? params.gate + (token + k) * params.gate_stride + at : old + S.width();
    slots[k] = {load_float4(is_none ? of_ape : kv), load_float4(is_none ? of_ape : score)};
  }
  constexpr float kNone = -INFINITY;
#pragma unroll
  for (int k = 0; k < kPoolSlots; ++k) {
    const bool is_new = begin + k >= task.range.start, is_none = begin + k < 0;
    PoolSlot& slot = slots[k];
    slot.kv = choose(is_none, make_float4(0, 0, 0, 0), slot.kv);
    const int at = channel + (S.has_overlap && k >= S.ratio ? S.dim : 0);
    const float4 ape = load_float4(ape_of<S>(params, begin + k, at));
    slot.score = choose(is_new, add(slot.score, ape), slot.score);
    slot.score = choose(is_none, make_float4(kNone, kNone, kNone, kNone), slot.score);
  }
}

/// e^(x - most), to fp32 as good as exact.
__device__ inline float pool_weight(float x, float most) {
  return ptx::ex2_approx_ftz_f32(__fmul_rn(__fadd_rn(x, -most), std::numbers::log2e_v<float>));
}

/// Softmax of a channel over some tokens: the largest score, weights relative to it, and with
/// values.
struct Pool {
  float most, sum, value;
};

template <float float4::*Member>
__device__ Pool pool_channel(const PoolSlot (&slots)[kPoolSlots]) {
  Pool pool = {slots[0].score.*Member, 0, 0};
#pragma unroll
  for (int k = 1; k < kPoolSlots; ++k) pool.most = fmaxf(pool.most, slots[k].score.*Member);
#pragma unroll
  for (int k = 0; k < kPoolSlots; ++k) {
    const float weight = pool_weight(slots[k].score.*Member, pool.most);
    pool.sum = __fadd_rn(pool.sum, weight);
    pool.value = __fmaf_rn(weight, slots[k].kv.*Member, pool.value);
  }
  return pool;
}
__device__ inline void pool_channels(Pool (&pools)[4], const PoolSlot (&slots)[kPoolSlots]) {
  pools[0] = pool_channel<&float4::x>(slots);
  pools[1] = pool_channel<&float4::y>(slots);
  pools[2] = pool_channel<&float4::z>(slots);
  pools[3] = pool_channel<&float4::w>(slots);
}

/// Pools of the same channels over parts of the tokens.
template <kernels::CompressShape S>
struct PartialPools {
  Pool pools[S.parts()][S.channels()];

  /// Of all parts, in their order.
  __device__ Pool merged(int channel) const {
    Pool all = {pools[0][channel].most, 0, 0};
#pragma unroll
    for (int part = 1; part < S.parts(); ++part)
      all.most = fmaxf(all.most, pools[part][channel].most);
#pragma unroll
    for (int part = 0; part < S.parts(); ++part) {
      const Pool pool = pools[part][channel];
      const float weight = pool_weight(pool.most, all.most);
      all.sum = __fmaf_rn(weight, pool.sum, all.sum);
      all.value = __fmaf_rn(weight, pool.value, all.value);
    }
    return all;
  }
};

/// A share of the new tokens to the state, of CTA `share` of so many: their rows are numbered over
/// the batch, `keep` a sequence, and a row is copied all at once.
template <kernels::CompressShape S>
__device__ void store_state(const kernels::CompressParams& params, std::int32_t share,
                            std::int32_t shares) {
  constexpr int kThreads = S.threads(), kHalf = S.row_vectors() / 2;
  constexpr int kRounds = (S.row_vectors() + kThreads - 1) / kThreads;
  const auto thread = static_cast<int>(threadIdx.x);
  const std::int32_t rows = params.sequences.batch * params.keep;
  for (std::int32_t row = share; row < rows; row += shares) {
    const std::int32_t sequence = row / params.keep;
    const StateTokens tokens(params, sequence);
    const std::int32_t i = max(tokens.range.count - params.keep, 0) + row - sequence * params.keep;
    if (!tokens.takes_part() || i >= tokens.range.count) continue;
    const std::int32_t position = tokens.range.start + i;
    const std::int64_t token = tokens.range.first + i;
    const float* const kv = params.kv + token * params.kv_stride;
    const float* const gate = params.gate + token * params.gate_stride;
    const float* const ape = ape_of<S>(params, position, 0);
    float4 x[kRounds];
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      const int j = thread + round * kThreads;
      if (j >= S.row_vectors()) continue;
      const bool is_score = j >= kHalf;
      const int channel = (is_score ? j - kHalf : j) * 4;
      const float4 value = load_float4((is_score ? gate : kv) + channel);
      x[round] = choose(is_score, add(value, load_float4(ape + channel)), value);
    }
    auto* const to = reinterpret_cast<float4*>(tokens.state_row(params, position, S.width()));
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      const int j = thread + round * kThreads;
      if (j < S.row_vectors()) to[j] = x[round];
    }
  }
}

}  // namespace tilewright::tile
