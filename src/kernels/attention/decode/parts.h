// Parts of a tile that several CTAs have attended to, merged by the one that comes last:
//
//   out = sum_i 2^(m_i - m) o_i / (sum_i 2^(m_i - m) s_i + 2^(sink log2 e - m)),   m = max_i m_i
//
// with o_i = sum_j 2^(x_j - m_i) v_j and s_i = sum_j 2^(x_j - m_i) over the keys of part i. All
// parts are read in their order, the own one too: the bits do not depend on which CTA was last.
#pragma once

#include "kernels/attention/decode/decode.h"
#include "kernels/attention/decode/rows.h"
#include "kernels/attention/decode/schedule.h"
#include "ptx/atomic.h"
#include "ptx/math.h"
#include "tile/element.h"
#include "tile/row_end.h"

#include <cstdint>

namespace tilewright::tile {

/// The counter of a tile's parts: see DecodeParams.
class DecodeCounter {
  static constexpr unsigned long long kCount = kernels::kDecodeMaxParts - 1;

 public:
  __device__ DecodeCounter(const kernels::DecodeParams& p, std::int32_t first_slot)
      : tag_(p.counter_tag),
        word_(reinterpret_cast<unsigned long long*>(p.counters) + first_slot) {}

  /// The counter as it is now, for validate(): loaded early, to hide the latency.
  __device__ unsigned long long look() const {
    return *static_cast<volatile unsigned long long*>(word_);
  }
  /// Resets a counter with another tag. Every CTA tries before it adds; the first one succeeds.
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

/// Four neighbouring dimensions of a row, of any number of parts.
struct DecodeSum {
  float reference = -INFINITY, total = 0.0f;
  float x[4] = {};

  /// Takes in parts [0, count), kAtOnce of them on their way at a time. `load` gives a part's
  /// reference and sum, and its four values.
  template <std::int32_t kAtOnce, class Load>
  __device__ void add(std::int32_t count, const Load& load) {
#pragma unroll 1
    for (std::int32_t first = 0; first < count; first += kAtOnce) {
      float2 sums[kAtOnce];
      float4 values[kAtOnce];
#pragma unroll
      for (std::int32_t i = 0; i < kAtOnce; ++i) {
        sums[i] = make_float2(-INFINITY, 0.0f), values[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (first + i < count) load(first + i, sums[i], values[i]);
      }
      float top = reference;
#pragma unroll
      for (std::int32_t i = 0; i < kAtOnce; ++i) top = fmaxf(top, sums[i].x);
      const float base = top == -INFINITY ? 0.0f : top;
      const float correction = ptx::ex2_approx_ftz_f32(reference - base);
      reference = top, total *= correction;
#pragma unroll
      for (int k = 0; k < 4; ++k) x[k] *= correction;
#pragma unroll
      for (std::int32_t i = 0; i < kAtOnce; ++i) {
        const float weight = ptx::ex2_approx_ftz_f32(sums[i].x - base);
        total = fmaf(sums[i].y, weight, total);
        x[0] = fmaf(values[i].x, weight, x[0]), x[1] = fmaf(values[i].y, weight, x[1]);
        x[2] = fmaf(values[i].z, weight, x[2]), x[3] = fmaf(values[i].w, weight, x[3]);
      }
    }
  }

  /// As a result: dimensions `dim` and up.
  template <class Params>
  __device__ void store(const Params& p, const DecodeSegment& segment, const DecodeRow& row,
                        std::uint32_t dim) const {
    if (!decode_has_dim(p, dim)) return;
    const RowEnd result(reference, NoScale(), total,
                        p.sink == nullptr ? nullptr : p.sink + row.head);
    const float factor =
        result.factor * decode_value_descale(p, segment.batch_idx, segment.kv_head);
    const float a = x[0] * factor, b = x[1] * factor, c = x[2] * factor, d = x[3] * factor;
    const bool is_f16 = p.q_is_f16 != 0;
    *reinterpret_cast<uint2*>(static_cast<std::uint16_t*>(p.out) +
                              row.offset(p.out_strides, segment.batch_idx) + dim) =
        make_uint2(is_f16 ? Fp16::pack(a, b) : Bf16::pack(a, b),
                   is_f16 ? Fp16::pack(c, d) : Bf16::pack(c, d));
    if (dim == 0 && p.lse != nullptr) p.lse[row.lse_offset(p, segment.batch_idx)] = result.lse;
  }
};

}  // namespace tilewright::tile
