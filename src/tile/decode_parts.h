// Parts of a tile that several CTAs have attended to, merged by the one that comes last:
//
//   out = sum_i 2^(m_i - m) o_i / (sum_i 2^(m_i - m) s_i + 2^(sink log2 e - m)),   m = max_i m_i
//
// with o_i = sum_j 2^(x_j - m_i) v_j and s_i = sum_j 2^(x_j - m_i) over the keys of part i. All
// parts are read in their order, the own one too: the bits do not depend on who was last.
#pragma once

#include "kernels/attention/decode.h"
#include "ptx/atomic.h"
#include "ptx/math.h"
#include "tile/decode_rows.h"
#include "tile/decode_schedule.h"
#include "tile/element.h"

#include <cstdint>

namespace tilewright::tile {

/// The counter of a tile's parts: see DecodeParams.
class DecodeCounter {
  static constexpr unsigned long long kCount = kernels::kDecodeMaxParts - 1;

 public:
  __device__ DecodeCounter(const kernels::DecodeParams& p, std::int32_t first_slot)
      : tag_(p.counter_tag),
        word_(reinterpret_cast<unsigned long long*>(p.counters) + first_slot) {}

  /// What is there now, for validate(): read long before, so that nobody waits for it.
  __device__ unsigned long long look() const {
    return *static_cast<volatile unsigned long long*>(word_);
  }
  /// If another has put it there, or nobody: no parts yet. Everyone does so before adding his part,
  /// and only the first one succeeds.
  __device__ void validate(unsigned long long seen) const {
    if ((seen & ~kCount) != tag_) atomicCAS(word_, seen, tag_);
  }
  /// Behind what this CTA has written. True for the last of `parts`, which may read all parts then.
  __device__ bool add(std::int32_t parts) const {
    const unsigned long long before = ptx::atom_add_acq_rel_gpu_u64(word_, 1) & kCount;
    if (before + 1 != static_cast<unsigned long long>(parts)) return false;
    *static_cast<volatile unsigned long long*>(word_) = tag_;
    return true;
  }

 private:
  unsigned long long tag_, *word_;
};

/// Neighbouring dimensions of a lane: all of a row in one or two accesses.
template <int Dim>
struct DecodeLane {
  static constexpr int kCount = Dim / 32;
  float x[kCount] = {};

  __device__ void load(const float* row) {
    const float* const from = row + threadIdx.x % 32 * kCount;
    if constexpr (kCount == 2) {
      const float2 a = *reinterpret_cast<const float2*>(from);
      x[0] = a.x, x[1] = a.y;
    } else {
#pragma unroll
      for (int i = 0; i < kCount; i += 4) {
        const float4 a = *reinterpret_cast<const float4*>(from + i);
        x[i] = a.x, x[i + 1] = a.y, x[i + 2] = a.z, x[i + 3] = a.w;
      }
    }
  }
  __device__ void add(const DecodeLane& other, float weight) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) x[i] = fmaf(other.x[i], weight, x[i]);
  }
  __device__ void scale(float factor) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) x[i] *= factor;
  }
  __device__ void store(std::uint16_t* row, float factor, bool is_f16) const {
    auto* const to = reinterpret_cast<std::uint32_t*>(row + threadIdx.x % 32 * kCount);
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const float a = x[i] * factor, b = x[i + 1] * factor;
      to[i / 2] = is_f16 ? Fp16::pack(a, b) : Bf16::pack(a, b);
    }
  }
};

/// A row of a tile, by a warp. As many parts as registers allow are on their way at a time, and
/// those of the first ones do not wait for what they are to be multiplied with.
template <int Dim>
__device__ void merge_parts(const kernels::DecodeParams& p, const DecodeSegment& segment,
                            std::int32_t row_in_tile) {
  constexpr unsigned kAllLanes = 0xffffffffu;
  constexpr std::int32_t kAtOnce = Dim <= 128 ? 16 : 8;
  const DecodeRow row(p, segment.kv_head, segment.m_tile * p.rows + row_in_tile);
  if (!row.exists) return;
  const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
  const DecodeMerge merge = segment.merge;
  const auto at = [&](std::int32_t part) {
    return std::int64_t{merge.slot(part)} * p.rows + row_in_tile;
  };
  float top = -INFINITY, base = 0.0f, total = 0.0f;
  DecodeLane<Dim> all;
#pragma unroll 1
  for (std::int32_t first = 0; first < merge.parts; first += kAtOnce) {
    DecodeLane<Dim> parts[kAtOnce];
#pragma unroll
    for (std::int32_t i = 0; i < kAtOnce; ++i)
      if (first + i < merge.parts) parts[i].load(p.partial_out + at(first + i) * Dim);
    const bool is_one = lane < kAtOnce && first + lane < merge.parts;
    const float2 mine = is_one ? reinterpret_cast<const float2*>(p.partial_sums)[at(first + lane)]
                               : make_float2(-INFINITY, 0.0f);
    float highest = fmaxf(top, mine.x);
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
      highest = fmaxf(highest, __shfl_xor_sync(kAllLanes, highest, step));
    base = highest == -INFINITY ? 0.0f : highest;
    const float correction = ptx::ex2_approx_ftz_f32(top - base);
    const float weight = ptx::ex2_approx_ftz_f32(mine.x - base);
    top = highest, total = fmaf(total, correction, mine.y * weight), all.scale(correction);
#pragma unroll
    for (std::int32_t i = 0; i < kAtOnce; ++i)
      all.add(parts[i], __shfl_sync(kAllLanes, weight, i));
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(kAllLanes, total, step);
  const DecodeResult result(top, total, p.sink == nullptr ? nullptr : p.sink + row.head);
  const float factor = result.factor * decode_value_descale(p, segment.batch_idx, segment.kv_head);
  all.store(static_cast<std::uint16_t*>(p.out) + row.offset(p.out_strides, segment.batch_idx),
            factor, p.q_is_f16 != 0);
  if (lane == 0 && p.lse != nullptr) p.lse[row.lse_offset(p, segment.batch_idx)] = result.lse;
}

}  // namespace tilewright::tile
