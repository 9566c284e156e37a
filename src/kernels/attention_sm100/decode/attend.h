// Warps 0-3 of a tensor-core decode kernel, between its two products: a thread has a key, and all
// rows' scores of it, so a row's maximum and sum go across threads. Sums do once a segment. Maxima
// do when some score is above the running one by more than kLag (in log2): a vote of all threads
// says whether, else nothing is exchanged.
//
// Codes: a query times a power of two, up to 2^8, is the sum a + b / 16 + c / 256 of e4m3 codes,
// each of which is what the ones before have left, rounded: 12 bits, and 2^-26 of the largest. A
// weight times 2^7 likewise. They are columns of the products; the sum is taken behind them.
#pragma once

#include "kernels/attention/decode/rows.h"
#include "kernels/attention_sm100/decode/state.h"
#include "ptx/barrier_vote.h"
#include "ptx/convert_fp8.h"
#include "ptx/fence.h"
#include "ptx/load_store.h"
#include "ptx/math.h"
#include "ptx/store_shared.h"
#include "ptx/warp_roles.h"
#include "tile/element.h"
#include "tile/row_end.h"
#include "tile/tensor_memory.h"

#include <cstdint>

namespace tilewright::tile {

inline constexpr float kPartScale = 16.0f;  ///< of what a part has left for the next one

/// Four numbers as codes; `x` becomes what is left of them, times kPartScale.
__device__ inline std::uint32_t take_codes(float (&x)[4]) {
  const std::uint32_t codes = ptx::cvt_rn_satfinite_e4m3x4_f32(x[0], x[1], x[2], x[3]);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float2 pair =
        Fp16::unpack(ptx::cvt_rn_f16x2_e4m3x2(static_cast<std::uint16_t>(codes >> (16 * i))));
    x[2 * i] = (x[2 * i] - pair.x) * kPartScale;
    x[2 * i + 1] = (x[2 * i + 1] - pair.y) * kPartScale;
  }
  return codes;
}

/// Queries of a segment to shared memory, as the K-major operand.
template <class Decode>
struct DecodeQueries {
  const Decode& d;
  const DecodeSegment& segment;
  std::uint32_t columns = static_cast<std::uint32_t>(16 * d.chunks(segment) * Decode::kParts);

  __device__ std::uint32_t place(std::uint32_t column, std::uint32_t byte) const {
    const std::uint32_t span = d.span();
    return d.queries + byte / span * (columns * span) +
           swizzled_at(column * span + byte % span, span);
  }
  __device__ float2 unpack(std::uint32_t pair) const {
    return d.p.q_is_f16 != 0 ? Fp16::unpack(pair) : Bf16::unpack(pair);
  }

  __device__ void put() const {
    const std::uint32_t lane = threadIdx.x % 32, rows = columns / Decode::kParts;
    const int pairs = d.params.width / 64;  // of a lane
#pragma unroll 1
    for (std::uint32_t row = threadIdx.x / 32; row < rows; row += 4) {
      const DecodeRow of(d.p, segment.kv_head,
                         segment.m_tile * Decode::kRows + static_cast<std::int32_t>(row));
      const auto* const q =
          static_cast<const std::uint16_t*>(d.p.q) + of.offset(d.p.q_strides, segment.batch_idx);
      std::uint32_t x[4] = {};
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (of.exists && decode_has_dim(d.p, 2 * (i * 32 + lane)))
          x[i] = ptx::ld_global_nc_u32(q + 2 * (i * 32 + lane));
      if constexpr (Decode::kIsCodes) {
        put_codes(x, pairs, row, rows);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (i < pairs) ptx::st_shared_u32(place(row, 4 * (i * 32 + lane)), x[i]);
      }
    }
    ptx::fence_proxy_async_shared_cta();
  }

 private:
  __device__ void put_codes(const std::uint32_t (&x)[4], int pairs, std::uint32_t row,
                            std::uint32_t rows) const {
    const std::uint32_t lane = threadIdx.x % 32;
    float top = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      top = fmaxf(top, fmaxf(fabsf(unpack(x[i]).x), fabsf(unpack(x[i]).y)));
    const int exponent = __reduce_max_sync(0xffffffffu, __float_as_int(top)) >> 23;
    const int field = min(max(127 + 127 + 7 - exponent, 1), 253);  // the largest is below 2^8
    const float factor = __int_as_float(field << 23);
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      if (i >= pairs) break;
      const float2 a = unpack(x[i]), b = unpack(x[i + 1]);
      float left[4] = {a.x * factor, a.y * factor, b.x * factor, b.y * factor};
#pragma unroll
      for (std::uint32_t part = 0; part < Decode::kParts; ++part) {
        const std::uint32_t codes = take_codes(left);
        ptx::st_shared_u16(place(part * rows + row, 2 * (i * 32 + lane)),
                           static_cast<std::uint16_t>(codes));
        if (i + 1 < pairs)
          ptx::st_shared_u16(place(part * rows + row, 2 * (i * 32 + 32 + lane)),
                             static_cast<std::uint16_t>(codes >> 16));
      }
    }
    if (lane != 0) return;
    const std::int64_t at =
        segment.batch_idx * d.p.descale.batch + segment.kv_head * d.p.descale.head;
    const float descale = d.p.descale.k == nullptr ? 1.0f : d.p.descale.k[at];
    const float whole = d.p.softcap_scale != 0.0f ? d.p.softcap_scale : d.p.scale_log2;
    d.state.unit[row] = __int_as_float((254 - field) << 23) * descale * whole;
  }
};

/// For 16 numbers of each lane: of number i what all lanes have of it, in lanes 2 i and 2 i + 1.
template <class Combine>
__device__ float combine_lanes(const float (&x)[16], const Combine& combine) {
  float v[8];
  const auto step = [&](auto& to, const auto& from, int half) {
    const auto bit = static_cast<std::uint32_t>(2 * half);
    const bool keeps_upper = (threadIdx.x & bit) != 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (i >= half) break;
      const float kept = keeps_upper ? from[i + half] : from[i];
      const float sent = keeps_upper ? from[i] : from[i + half];
      to[i] = combine(kept, __shfl_xor_sync(0xffffffffu, sent, bit));
    }
  };
  step(v, x, 8);
  step(v, v, 4), step(v, v, 2), step(v, v, 1);
  return combine(v[0], __shfl_xor_sync(0xffffffffu, v[0], 1));
}

/// Scores, weights and sums of a thread's key.
template <class Decode>
struct DecodeAttender {
  static constexpr int kChunks = Decode::kChunks, kParts = Decode::kParts;
  /// Weights are 2^kShift at most above, and by kLag more until the maximum follows.
  static constexpr float kLag = Decode::kIsCodes ? 1.0f : kRescaleAbove;
  static constexpr float kShift = Decode::kIsCodes ? 7.0f : 0.0f;

  const Decode& d;
  int chunks = 0;           ///< of the segment
  float x[kChunks][16];     ///< scores in log2, then weights
  float sums[kChunks][16];  ///< of this thread's keys
  std::uint32_t count = 0;  ///< steps of all segments
  DeepPosition at;          ///< item of the step's keys; those of values are behind it

  __device__ explicit DecodeAttender(const Decode& decode) : d(decode) {}

  __device__ std::uint32_t warp() const { return threadIdx.x / 32; }
  __device__ std::uint32_t lane() const { return threadIdx.x % 32; }

  /// Once. Products of 64 rows leave half of the lanes as they are, and loads read them all.
  __device__ void clear_unused_lanes() const {
    if (d.dims() >= 128) return;
    constexpr std::uint32_t kZeros[16] = {};
#pragma unroll 1
    for (int column = 0; column < Decode::kColumns; column += 16)
      ptx::tcgen05_st_32x32b(
          own_lanes(d.columns + Decode::kResults) + static_cast<std::uint32_t>(column), kZeros);
    ptx::tcgen05_wait_st_sync_aligned();
  }

  /// Without steps the queries are not needed.
  __device__ void begin(const DecodeSegment& segment, bool has_steps) {
    chunks = d.chunks(segment);
#pragma unroll
    for (auto& chunk : sums)
#pragma unroll
      for (float& sum : chunk) sum = 0.0f;
    if (threadIdx.x < Decode::kRows) d.state.reference[threadIdx.x] = -INFINITY;
    if (has_steps) DecodeQueries<Decode>{d, segment}.put();
    ptx::bar_sync<kDecodeRowBarrier, kernels::kTensorDecodeRowThreads>();
    if (has_steps) ptx::mbarrier_arrive(ptx::shared_address(&d.state.q_ready));
  }

  __device__ void add_step(const DecodeSegment& segment, std::int32_t step) {
    const std::int32_t first_key = Decode::first_key(segment, step);
    wait_for_tensor_memory(ptx::shared_address(&d.state.s_full[count & 1]), count >> 1 & 1);
    load_scores();
    finish_scores(segment, first_key);
    const bool moves = raise_references();
    exponentiate();
    if (count > 0) wait_for_tensor_memory(ptx::shared_address(&d.state.o_done), (count - 1) & 1);
    if (moves && step > 0) rescale_results();
    put_weights();
    if (d.params.has_boxes != 0) hide_values(segment, first_key);
    ptx::fence_proxy_async_shared_cta();
    hand_over_tensor_memory(ptx::shared_address(&d.state.p_ready));
    at.advance(d.stages), at.advance(d.stages);
    ++count;
  }
  /// Until all results of the steps are there.
  __device__ void wait_results() const {
    wait_for_tensor_memory(ptx::shared_address(&d.state.o_done), (count - 1) & 1);
  }

  /// Columns of 16 rows' scores or results, parts added up.
  __device__ void load_columns(float (&to)[16], std::uint32_t from, int chunk) const {
    float part[kParts][16];
#pragma unroll
    for (int i = 0; i < kParts; ++i)
      ptx::tcgen05_ld_32x32b(part[i], from + static_cast<std::uint32_t>(16 * (i * chunks + chunk)));
    ptx::tcgen05_wait_ld_sync_aligned();
#pragma unroll
    for (int i = 0; i < kParts; ++i) ptx::tcgen05_fence_operand(part[i]);
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      to[i] = part[0][i];
      if constexpr (kParts == 3)
        to[i] += (part[1][i] + part[2][i] * (1 / kPartScale)) * (1 / kPartScale);
    }
  }

 private:
  template <class Body>
  __device__ void for_chunks(const Body& body) {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk)
      if (chunk < chunks) body(chunk);
  }
  /// 16 numbers of rows, the same for all threads.
  __device__ static void read_rows(float (&to)[16], const float* from) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4 four = *reinterpret_cast<const float4*>(from + 4 * i);
      to[4 * i] = four.x, to[4 * i + 1] = four.y, to[4 * i + 2] = four.z, to[4 * i + 3] = four.w;
    }
  }

  __device__ void load_scores() {
    const std::uint32_t from = own_lanes(d.columns + (count & 1) * Decode::kColumns);
    for_chunks([&](int c) { load_columns(x[c], from, c); });
  }

  /// Products to scores in log2, of hidden keys to -inf. The rows that see a key follow each other.
  __device__ void finish_scores(const DecodeSegment& segment, std::int32_t first_key) {
    const kernels::DecodeAnyParams& p = d.p;
    const std::int32_t key = first_key + static_cast<std::int32_t>(threadIdx.x);
    const std::int32_t first_position = segment.length - p.q_len;
    std::int32_t begin = p.is_causal != 0 ? key - first_position : 0;
    std::int32_t end = min(key - first_position + p.window_left + 1, p.q_len);
    const std::int32_t chunk = decode_chunk_begin(p, key) - first_position;  // counted in queries
    if (p.chunk < kernels::kDecodeUnbounded)
      begin = max(begin, chunk), end = min(end, chunk + p.chunk);
    if (key >= segment.key_end) end = 0;
    begin = min(max(begin, 0), p.q_len) * p.group - segment.m_tile * Decode::kRows;
    end = max(end, 0) * p.group - segment.m_tile * Decode::kRows;
    const bool is_capped = p.softcap_scale != 0.0f;
    for_chunks([&](int c) {
      float unit[16];
      if constexpr (Decode::kIsCodes) {
        read_rows(unit, d.state.unit + 16 * c);
      } else {
#pragma unroll
        for (float& of : unit) of = is_capped ? p.softcap_scale : p.scale_log2;
      }
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        x[c][i] *= unit[i];
        if (is_capped) x[c][i] = tanh_of_half(x[c][i]) * p.scale_log2;
        if (16 * c + i < begin || 16 * c + i >= end) x[c][i] = -INFINITY;
      }
    });
  }

  /// True for all threads or none.
  __device__ bool raise_references() {
    bool grows = false;
    for_chunks([&](int c) {
      float reference[16];
      read_rows(reference, d.state.reference + 16 * c);
#pragma unroll
      for (int i = 0; i < 16; ++i) grows = grows || x[c][i] > reference[i] + kLag;
    });
    constexpr int kThreads = kernels::kTensorDecodeRowThreads;
    if (!ptx::bar_red_or<kThreads>(kDecodeRowBarrier, grows)) return false;
    for_chunks([&](int c) {
      const float top = combine_lanes(x[c], [](float a, float b) { return fmaxf(a, b); });
      if (lane() % 2 == 0) d.state.part[warp()][16 * c + lane() / 2] = top;
    });
    ptx::bar_sync<kDecodeRowBarrier, kThreads>();
    const auto row = static_cast<int>(threadIdx.x);
    if (row < 16 * chunks) {
      const float before = d.state.reference[row];
      float top = before;
#pragma unroll
      for (const auto& of_warp : d.state.part) top = fmaxf(top, of_warp[row]);
      d.state.factor[row] = ptx::ex2_approx_ftz_f32(before - (top == -INFINITY ? 0.0f : top));
      d.state.reference[row] = top;
    }
    ptx::bar_sync<kDecodeRowBarrier, kThreads>();
    for_chunks([&](int c) {
      float factor[16];
      read_rows(factor, d.state.factor + 16 * c);
#pragma unroll
      for (int i = 0; i < 16; ++i) sums[c][i] *= factor[i];
    });
    return true;
  }

  __device__ void exponentiate() {
    for_chunks([&](int c) {
      float reference[16];
      read_rows(reference, d.state.reference + 16 * c);
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const float base = reference[i] == -INFINITY ? 0.0f : reference[i];
        x[c][i] = ptx::ex2_approx_ftz_f32(x[c][i] - base + kShift);
        sums[c][i] += x[c][i];
      }
    });
  }

  /// Results of all earlier steps times factors of rows: of columns.
  __device__ void rescale_results() {
    const int m_tiles = d.params.width > 128 ? d.params.width / 128 : 1;
#pragma unroll 1
    for (int i = 0; i < m_tiles * kParts * chunks; ++i) {
      const int tile = i / (kParts * chunks), column = i % (kParts * chunks);
      const std::uint32_t at = own_lanes(d.columns + Decode::kResults) +
                               static_cast<std::uint32_t>(tile * Decode::kColumns + 16 * column);
      float o[16], factor[16];
      std::uint32_t words[16];
      read_rows(factor, d.state.factor + 16 * (column % chunks));
      ptx::tcgen05_ld_32x32b(o, at);
      ptx::tcgen05_wait_ld_sync_aligned();
      ptx::tcgen05_fence_operand(o);
#pragma unroll
      for (int k = 0; k < 16; ++k) words[k] = __float_as_uint(o[k] * factor[k]);
      ptx::tcgen05_st_32x32b(at, words);
    }
    ptx::tcgen05_wait_st_sync_aligned();
  }

  /// 16 bytes of a key's weights at a time: of 8 rows, or of a part of 16.
  __device__ std::uint32_t weight_at(int group) const {
    return d.weights + static_cast<std::uint32_t>(group) * (kernels::kTensorDecodeKeys * 16) +
           threadIdx.x * 16;
  }
  __device__ void put_weights() {
    for_chunks([&](int c) {
      if constexpr (Decode::kIsCodes) {
        std::uint32_t words[kParts][4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float left[4] = {x[c][4 * i], x[c][4 * i + 1], x[c][4 * i + 2], x[c][4 * i + 3]};
#pragma unroll
          for (int part = 0; part < kParts; ++part) words[part][i] = take_codes(left);
        }
#pragma unroll
        for (int part = 0; part < kParts; ++part)
          ptx::st_shared_v4_u32(weight_at(part * chunks + c), words[part]);
      } else {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          std::uint32_t words[4];
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const float a = x[c][8 * h + 2 * i], b = x[c][8 * h + 2 * i + 1];
            words[i] = d.params.is_f16 != 0 ? Fp16::pack(a, b) : Bf16::pack(a, b);
          }
          ptx::st_shared_v4_u32(weight_at(2 * c + h), words);
        }
      }
    });
  }

  /// Values that no row sees, but came in a box with others, become zeros: what has weight 0 must
  /// be finite.
  __device__ void hide_values(const DecodeSegment& segment, std::int32_t first_key) {
    if (first_key >= segment.key_begin && first_key + kernels::kTensorDecodeKeys <= segment.key_end)
      return;
    DeepPosition values = at;
    values.advance(d.stages);
    ptx::mbarrier_wait_parity(d.full(values), values.parity);
    const std::int32_t key = first_key + static_cast<std::int32_t>(threadIdx.x);
    if (key >= segment.key_begin && key < segment.key_end) return;
    constexpr std::uint32_t kZeros[4] = {};
    const std::uint32_t span = d.span();
#pragma unroll 1
    for (std::uint32_t byte = 0; byte < d.row_bytes(); byte += 16)
      ptx::st_shared_v4_u32(d.item(values) + byte / span * (kernels::kTensorDecodeKeys * span) +
                                swizzled_at(threadIdx.x * span + byte % span, span),
                            kZeros);
  }
};

}  // namespace tilewright::tile
