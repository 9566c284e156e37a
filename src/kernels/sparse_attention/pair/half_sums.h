// Half sums of a row on their way to its other thread, three bytes each.
//
// A row of 32 sums goes as multiples of 2^(E - 22), where all are below 2^E, with that step beside
// them: off by at most half a step, 2^-22 of the largest. Adding 1.5 * 2^23 to such a multiple
// leaves it in the lowest 24 bits of a number whose highest byte is always the same; three of four
// numbers give that byte's place to the fourth. A warp whose rows have a NaN, an infinity or a sum
// of more than 32 in units of log2 sends all as they are: so no score is off by more than 2^-17 of
// these units, whatever keys there are that the row does not see, and a weight by 2^-17 ln 2, where
// it is rounded to 2^-9.
#pragma once

#include "ptx/byte_permute.h"
#include "ptx/packed_math.h"

#include <cstdint>

namespace tilewright::tile {

class PairHalfSums {
 public:
  /// All lanes of a warp, a row each; `scale_log2` brings sums to units of log2. A barrier shows
  /// them.
  __device__ void send(const float (&x)[32], float scale_log2) {
    const std::uint32_t lane = threadIdx.x % 32;
    const float most = largest_magnitude(x);
    // NaN compares false.
    const bool is_whole = __any_sync(0xffffffffu, !(most * fabsf(scale_log2) <= kMostInBytes)) != 0;
    // most < 2^(exponent - 126)
    const std::uint32_t exponent = max(__float_as_uint(most) >> 23, 22u);
    steps_[lane] = is_whole ? 0.0f : __uint_as_float((exponent - 21) << 23);
    if (is_whole) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        chunks_[i][lane] = make_uint4(__float_as_uint(x[4 * i]), __float_as_uint(x[4 * i + 1]),
                                      __float_as_uint(x[4 * i + 2]), __float_as_uint(x[4 * i + 3]));
      }
      return;
    }
    const float inverse = __uint_as_float((275 - exponent) << 23);
    std::uint32_t words[24];
#pragma unroll
    for (int i = 0; i < 8; ++i) pack(&words[3 * i], &x[4 * i], inverse);
#pragma unroll
    for (int i = 0; i < 6; ++i) {
      chunks_[i][lane] =
          make_uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
    }
  }

  /// Adds what the lane of the other warp sent.
  __device__ void add_to(float (&x)[32]) const {
    const std::uint32_t lane = threadIdx.x % 32;
    const float step = steps_[lane];
    if (__any_sync(0xffffffffu, step == 0.0f)) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const uint4 rest = chunks_[i][lane];
        x[4 * i] += __uint_as_float(rest.x), x[4 * i + 1] += __uint_as_float(rest.y);
        x[4 * i + 2] += __uint_as_float(rest.z), x[4 * i + 3] += __uint_as_float(rest.w);
      }
      return;
    }
    std::uint32_t words[24];
#pragma unroll
    for (int i = 0; i < 6; ++i) {
      const uint4 four = chunks_[i][lane];
      words[4 * i] = four.x, words[4 * i + 1] = four.y;
      words[4 * i + 2] = four.z, words[4 * i + 3] = four.w;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) unpack_and_add(&x[4 * i], &words[3 * i], step);
  }

 private:
  static constexpr float kMostInBytes = 32.0f;
  static constexpr float kShift = 12582912.0f;         // 1.5 * 2^23
  static constexpr std::uint32_t kHighestByte = 0x4b;  // of kShift plus or minus 2^22

  static __device__ float largest_magnitude(const float (&x)[32]) {
    float most[4] = {};
#pragma unroll
    for (int i = 0; i < 32; i += 2)
      most[i / 2 % 4] = ptx::max3_abs_nan_f32(most[i / 2 % 4], x[i], x[i + 1]);
    return ptx::max3_abs_nan_f32(ptx::max3_abs_nan_f32(most[0], most[1], most[2]), most[3], 0.0f);
  }
  static __device__ void pack(std::uint32_t* words, const float* x, float inverse) {
    const float2 low =
        ptx::fma_rn_f32x2(make_float2(x[0], x[1]), ptx::both(inverse), ptx::both(kShift));
    const float2 high =
        ptx::fma_rn_f32x2(make_float2(x[2], x[3]), ptx::both(inverse), ptx::both(kShift));
    const std::uint32_t fourth = __float_as_uint(high.y);
    words[0] = ptx::prmt_b32(__float_as_uint(low.x), fourth, 0x4210);
    words[1] = ptx::prmt_b32(__float_as_uint(low.y), fourth, 0x5210);
    words[2] = ptx::prmt_b32(__float_as_uint(high.x), fourth, 0x6210);
  }
  static __device__ void unpack_and_add(float* x, const std::uint32_t* words, float step) {
    const auto number = [&](int i) {
      return __uint_as_float(ptx::prmt_b32(words[i], kHighestByte, 0x4210));
    };
    const std::uint32_t fourth =
        ptx::prmt_b32(ptx::prmt_b32(words[0], words[1], 0x0073),
                      ptx::prmt_b32(words[2], kHighestByte, 0x0043), 0x5410);
    const float2 low = ptx::add_rn_f32x2(make_float2(number(0), number(1)), ptx::both(-kShift));
    const float2 high =
        ptx::add_rn_f32x2(make_float2(number(2), __uint_as_float(fourth)), ptx::both(-kShift));
    const float2 first = ptx::fma_rn_f32x2(low, ptx::both(step), make_float2(x[0], x[1]));
    const float2 second = ptx::fma_rn_f32x2(high, ptx::both(step), make_float2(x[2], x[3]));
    x[0] = first.x, x[1] = first.y, x[2] = second.x, x[3] = second.y;
  }

  uint4 chunks_[8][32];
  float steps_[32];  // 0: sums as they are
};

}  // namespace tilewright::tile
