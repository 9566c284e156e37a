// What the quantising kernels have in common: 16 neighbouring numbers of a thread, their largest
// magnitude, quotients and scales that are those of formats/block_scale.h to the last bit.
#pragma once

#include "kernels/quantize/quantize.h"
#include "ptx/convert_fp8.h"

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace tilewright::tile {

/// Bit pattern of an infinite magnitude: where it or a NaN, which is larger, turns up as the amax,
/// a block is not finite. Magnitudes compare as their patterns do.
inline constexpr std::uint32_t kInfinityBits = 0x7f800000u;

/// How a kernel reads a format: words of `kPerWord` numbers.
struct LoadBf16 {
  static constexpr int kPerWord = 2;
  static __device__ float value(const std::uint32_t* words, int i) {
    const std::uint32_t word = words[i / 2];
    return __uint_as_float(i % 2 == 0 ? word << 16 : word & 0xffff0000u);
  }
  // The larger magnitudes of two pairs; a NaN is larger than anything.
  static __device__ std::uint32_t max_abs(std::uint32_t a, std::uint32_t b) {
    return __vmaxu2(a, b & 0x7fff7fffu);
  }
  static __device__ std::uint32_t amax_bits(std::uint32_t pair) {
    return max(pair << 16, pair & 0xffff0000u);
  }
};
struct LoadF16 {
  static constexpr int kPerWord = 2;
  static __device__ float value(const std::uint32_t* words, int i) {
    const std::uint32_t word = words[i / 2];
    return __half2float(
        __ushort_as_half(static_cast<unsigned short>(i % 2 == 0 ? word & 0xffffu : word >> 16)));
  }
  static __device__ std::uint32_t max_abs(std::uint32_t a, std::uint32_t b) {
    return __vmaxu2(a, b & 0x7fff7fffu);
  }
  static __device__ std::uint32_t amax_bits(std::uint32_t pair) {
    const auto code = static_cast<unsigned short>(max(pair >> 16, pair & 0xffffu));
    return __float_as_uint(__half2float(__ushort_as_half(code)));
  }
};
struct LoadF32 {
  static constexpr int kPerWord = 1;
  static __device__ float value(const std::uint32_t* words, int i) {
    return __uint_as_float(words[i]);
  }
  static __device__ std::uint32_t max_abs(std::uint32_t a, std::uint32_t b) {
    return max(a, b & 0x7fffffffu);
  }
  static __device__ std::uint32_t amax_bits(std::uint32_t magnitude) { return magnitude; }
};

/// 16 neighbours of a row as they lie in memory.
template <class Load>
struct Chunk {
  static constexpr int kWords = kernels::kQuantizeChunk / Load::kPerWord;
  std::uint32_t words[kWords];

  __device__ float operator[](int i) const { return Load::value(words, i); }

  /// `count` numbers, in [0, 16], and zeros behind them.
  __device__ void load(const void* row, std::int64_t col, int count, bool is_aligned) {
    constexpr int kBytes = 4 / Load::kPerWord;
    const auto* const from = static_cast<const unsigned char*>(row) + col * kBytes;
    if (is_aligned && count >= kernels::kQuantizeChunk) {
#pragma unroll
      for (int i = 0; i < kWords; i += 4) {
        const uint4 four = __ldg(reinterpret_cast<const uint4*>(from) + i / 4);
        words[i] = four.x;
        words[i + 1] = four.y;
        words[i + 2] = four.z;
        words[i + 3] = four.w;
      }
      return;
    }
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = 0;
#pragma unroll
    for (int i = 0; i < kernels::kQuantizeChunk; ++i) {
      if (i >= count) continue;
      if constexpr (Load::kPerWord == 1) {
        words[i] = __ldg(reinterpret_cast<const std::uint32_t*>(from) + i);
      } else {
        const std::uint32_t half = __ldg(reinterpret_cast<const unsigned short*>(from) + i);
        words[i / 2] |= i % 2 == 0 ? half : half << 16;
      }
    }
  }

  /// Pattern of the largest magnitude, as fp32.
  __device__ std::uint32_t amax_bits() const {
    std::uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < kWords; ++i) most = Load::max_abs(most, words[i]);
    return Load::amax_bits(most);
  }
};

/// Where row `row` of the result begins in `in`; null for a row of zeros.
template <class Load>
__device__ const void* source_row(const kernels::QuantizeParams& params, std::int32_t row) {
  if (row >= params.rows) return nullptr;
  const std::int32_t from = params.row_index != nullptr ? __ldg(params.row_index + row) : row;
  if (from < 0) return nullptr;
  constexpr int kBytes = 4 / Load::kPerWord;
  return static_cast<const unsigned char*>(params.in) + from * params.in_stride * kBytes;
}

template <class Load>
__device__ void load_chunk(Chunk<Load>& chunk, const kernels::QuantizeParams& params,
                           std::int32_t row, std::int32_t col) {
  const void* const from = source_row<Load>(params, row);
  const int left = params.cols - col;
  const int count = from == nullptr || left < 0 ? 0 : min(left, kernels::kQuantizeChunk);
  chunk.load(from, col, count, params.is_in_aligned != 0);
}

/// x / scale, rounded once, for numbers that share a scale: the quotient by the reciprocal, then
/// two steps of correction, of which the second is exact (Markstein). Zeros keep their sign,
/// because the correction is subtracted.
class Quotient {
 public:
  __device__ explicit Quotient(float scale) : scale_(scale) { reciprocal_ = __frcp_rn(scale); }
  __device__ float operator()(float x) const {
    float q = __fmul_rn(x, reciprocal_);
    q = __fmaf_rn(-__fmaf_rn(q, scale_, -x), reciprocal_, q);
    return __fmaf_rn(-__fmaf_rn(q, scale_, -x), reciprocal_, q);
  }

 private:
  float scale_, reciprocal_;
};

/// Code of the smallest power of two not below v > 0, which is normal and finite.
__device__ inline std::uint32_t ue8m0_up(float v) {
  return (__float_as_uint(v) + 0x7fffffu) >> 23;
}
/// 2^(code - 127); code 0 is a subnormal number.
__device__ inline float ue8m0_value(std::uint32_t code) {
  return code == 0 ? __uint_as_float(0x00400000u) : __uint_as_float(code << 23);
}

/// Code of a block's power of two, of an amax that was raised to its least: by the OCP rule, from
/// the exponents alone, or the power above amax times the reciprocal of the largest element.
__device__ inline std::uint32_t ue8m0_code(float raised, float reciprocal, int max_exponent,
                                           bool is_floor) {
  const int log2 = static_cast<int>(__float_as_uint(raised) >> 23);
  return is_floor ? static_cast<std::uint32_t>(max(log2 - max_exponent, 0))
                  : ue8m0_up(__fmul_rn(raised, reciprocal));
}

/// An e4m3 block: the pattern of its scale as it is stored, and its value; 1 where it is NaN.
struct Fp8Scale {
  std::uint32_t stored;
  float value;
  bool is_finite;

  __device__ Fp8Scale(const kernels::QuantizeParams& params, std::uint32_t amax_bits) {
    constexpr float kReciprocal = 1.0f / 448;
    constexpr int kMaxExponent = 8;
    is_finite = amax_bits < kInfinityBits;
    const float raised = fmaxf(__uint_as_float(amax_bits), params.min_amax);
    if (params.is_pow2 == 0) {
      value = __fmul_rn(raised, kReciprocal);
      stored = __float_as_uint(value);
    } else {
      stored = ue8m0_code(raised, kReciprocal, kMaxExponent, params.is_floor != 0);
      value = ue8m0_value(stored);
    }
    if (is_finite) return;
    stored = params.is_pow2 == 0 ? 0x7fffffffu : 0xffu;
    value = 1;
  }
};

/// The 16 codes of a chunk in four words: of elements 4d .. 4d + 3, or in operand order of
/// {2d, 2d + 1, 2d + 8, 2d + 9}.
template <class Load>
__device__ uint4 fp8_codes(const Chunk<Load>& chunk, const Fp8Scale& scale, bool is_operand) {
  const Quotient quotient(scale.value);
  float q[kernels::kQuantizeChunk];
#pragma unroll
  for (int i = 0; i < kernels::kQuantizeChunk; ++i) q[i] = quotient(chunk[i]);
  const auto word = [&](int i, int j) {
    return ptx::cvt_rn_satfinite_e4m3x4_f32(q[i], q[i + 1], q[j], q[j + 1]);
  };
  if (!scale.is_finite) return make_uint4(0, 0, 0, 0);
  if (is_operand) return make_uint4(word(0, 8), word(2, 10), word(4, 12), word(6, 14));
  return make_uint4(word(0, 2), word(4, 6), word(8, 10), word(12, 14));
}

/// Word d of lane t of every four neighbouring lanes goes to word t of lane d.
__device__ inline uint4 transpose_in_quad(uint4 w) {
  const bool is_odd = (threadIdx.x & 1) != 0, is_upper = (threadIdx.x & 2) != 0;
  const auto exchange = [](std::uint32_t& keep_low, std::uint32_t& keep_high, bool is_high,
                           int step) {
    const std::uint32_t sent = is_high ? keep_low : keep_high;
    const std::uint32_t got = __shfl_xor_sync(~0u, sent, step);
    (is_high ? keep_low : keep_high) = got;
  };
  exchange(w.x, w.y, is_odd, 1);
  exchange(w.z, w.w, is_odd, 1);
  exchange(w.x, w.z, is_upper, 2);
  exchange(w.y, w.w, is_upper, 2);
  return w;
}

/// Byte offset, or index, of the scale of block `block` of row `row`.
__device__ inline std::int64_t scale_index(const kernels::QuantizeParams& params, std::int32_t row,
                                           std::int32_t block, std::int32_t num_blocks) {
  if (params.scale_order == kernels::ScaleOrder::kStrided)
    return row * params.scale_row_stride + block * params.scale_block_stride;
  const std::int64_t tile = std::int64_t{row / 128} * ((num_blocks + 3) / 4) + block / 4;
  return tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
}

}  // namespace tilewright::tile
