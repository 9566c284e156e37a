// Rows of a DeepSeek-V4 cache as operands of mma.sync, for few heads: the rows as they are in
// shared memory, two ways.
//
//   scores   S^T[key, head]: a lane has 16 dimensions of keys g and g + 8, a quarter (t) of 64
//   values   O^T[dimension, head]: a lane has 8 dimensions, an eighth (g) of 64, of four keys
//
// (g = lane / 4, t = lane % 4.) Codes become bf16 by moving their bits, which leaves a power of two
// to be made good elsewhere: e4m3 comes out times 2^-120 and without its block's scale, e2m1 times
// scale and 2^-8. The order of dimensions within a product is that of the moves; q stands in it.
//
// Instructions for four e4m3: 7, of which 5 on the half-rate integer unit; for values 8 and 6. For
// eight e2m1: 15 and 4 multiplications.
#pragma once

#include "formats/kv_page.h"
#include "ptx/convert_fp8.h"
#include "ptx/load_store.h"
#include "tile/bf16_pair.h"

#include <cstdint>

namespace tilewright::tile {

/// A lane's four values are those of keys t + 0, 8, 4 and 12.
__device__ constexpr std::uint32_t few_heads_value_key(std::uint32_t i) {
  return i % 2 * 8 + i / 2 * 4;
}
/// Addresses in shared memory of a lane's rows.
using ScoreRows = std::uint32_t[2];
using ValueRows = std::uint32_t[4];
/// A operands of four products.
using KeyFragments = std::uint32_t[4][4];

/// Four e4m3 as bf16 times 2^-120: bytes 1 and 3, bytes 0 and 2. NaN codes become 480.
__device__ inline void place_e4m3(std::uint32_t& odd, std::uint32_t& even, std::uint32_t codes) {
  odd = (codes & 0x80008000u) | (codes >> 4 & 0x07f007f0u);
  even = (codes << 8 & 0x80008000u) | (codes << 4 & 0x07f007f0u);
}
/// Eight e2m1 as bf16 times 2^-126: nibbles i and i + 4.
__device__ inline void place_e2m1(std::uint32_t (&pairs)[4], std::uint32_t codes) {
  constexpr std::uint32_t kSigns = 0x80008000u, kMagnitudes = 0x01c001c0u;
  pairs[0] = (codes << 12 & kSigns) | (codes << 6 & kMagnitudes);
  pairs[1] = (codes << 8 & kSigns) | (codes << 2 & kMagnitudes);
  pairs[2] = (codes << 4 & kSigns) | (codes >> 2 & kMagnitudes);
  pairs[3] = (codes & kSigns) | (codes >> 6 & kMagnitudes);
}
/// Two positive e4m3 in the low bytes of the halves, times 2^118, in bf16.
__device__ inline std::uint32_t scale_e2m1_factors(std::uint32_t scales) {
  return mul_bf16x2(mul_bf16x2(scales << 4, 0x7b807b80u), 0x7a807a80u);
}

/// 64 dimensions in bf16, 128 bytes from `at` on in each row.
__device__ inline void load_bf16_scores(KeyFragments& a, const ScoreRows& rows, std::uint32_t at,
                                        std::uint32_t t) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint4 words = ptx::ld_shared_v4_u32(rows[r] + at + i * 64 + t * 16);
      a[2 * i][r] = words.x, a[2 * i][2 + r] = words.y;
      a[2 * i + 1][r] = words.z, a[2 * i + 1][2 + r] = words.w;
    }
  }
}
/// Product i: dimensions 2 i (rows g of the operand) and 2 i + 1 (rows g + 8) of the lane's eight.
__device__ inline void load_bf16_values(KeyFragments& a, const ValueRows& rows, std::uint32_t at,
                                        std::uint32_t g) {
#pragma unroll
  for (int pair = 0; pair < 2; ++pair) {
    const uint4 x = ptx::ld_shared_v4_u32(rows[2 * pair] + at + g * 16);
    const uint4 y = ptx::ld_shared_v4_u32(rows[2 * pair + 1] + at + g * 16);
    const std::uint32_t first[4] = {x.x, x.y, x.z, x.w}, second[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      a[i][2 * pair] = __byte_perm(first[i], second[i], 0x5410);
      a[i][2 * pair + 1] = __byte_perm(first[i], second[i], 0x7632);
    }
  }
}

/// The 448 plain dimensions of a format in blocks of 64. kQuery, kRopeQuery: what bf16 pairs of q
/// are multiplied with; kScore: what scores then are; kValue: plain dimensions of results.
template <KvFormat Format>
struct FewHeadsKeys;

template <>
struct FewHeadsKeys<KvFormat::kFp8> {
  static constexpr float kValue = 1.0f;
  static constexpr bool kIsF16 = true;  // fragments; and a scale a key and block is left out

  static __device__ void unpack(std::uint32_t& low, std::uint32_t& high, std::uint32_t codes) {
    low = ptx::cvt_rn_f16x2_e4m3x2(static_cast<std::uint16_t>(codes));
    high = ptx::cvt_rn_f16x2_e4m3x2(static_cast<std::uint16_t>(codes >> 16));
  }
  static __device__ void load_scores(KeyFragments& a, const ScoreRows& rows, std::uint32_t block,
                                     std::uint32_t t) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const uint4 x = ptx::ld_shared_v4_u32(rows[r] + block * 64 + t * 16);
      const std::uint32_t words[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) unpack(a[i][r], a[i][2 + r], words[i]);
    }
  }
  /// IsWide: bf16 times 2^-60 instead of f16, for factors that f16 weights would not hold.
  template <bool IsWide>
  static __device__ void load_values(KeyFragments& a, const ValueRows& rows, std::uint32_t block,
                                     std::uint32_t g) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const uint2 x = ptx::ld_shared_v2_u32(rows[2 * pair] + block * 64 + g * 8);
      const uint2 y = ptx::ld_shared_v2_u32(rows[2 * pair + 1] + block * 64 + g * 8);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t first = i < 2 ? x.x : x.y, second = i < 2 ? y.x : y.y;
        std::uint32_t &even = a[i][2 * pair], &odd = a[i][2 * pair + 1];
        if constexpr (IsWide) {
          place_e4m3(even, odd, __byte_perm(first, second, i % 2 == 0 ? 0x4501 : 0x6723));
          even = mul_bf16x2(even, 0x5d805d80u), odd = mul_bf16x2(odd, 0x5d805d80u);
        } else {
          unpack(even, odd, __byte_perm(first, second, i % 2 == 0 ? 0x5140 : 0x7362));
        }
      }
    }
  }
  /// The scale of a block of a key, for sums of its products; `scales` are four of the key's.
  static __device__ float sum_factor(std::uint32_t scales, int byte) {
    return __uint_as_float((scales >> 8 * byte & 255u) << 23);
  }
};

template <>
struct FewHeadsKeys<KvFormat::kNvfp4> {
  static constexpr float kValue = 0x1p8f;
  static constexpr bool kIsF16 = false;
  static constexpr std::uint32_t kScalesAt = kv_data_bytes(KvFormat::kNvfp4);

  static __device__ uint4 arrange(const uint4& q) {
    constexpr std::uint32_t kFactor = 0x43804380u;  // 2^8
    return make_uint4(mul_bf16x2(__byte_perm(q.x, q.z, 0x5410), kFactor),
                      mul_bf16x2(__byte_perm(q.x, q.z, 0x7632), kFactor),
                      mul_bf16x2(__byte_perm(q.y, q.w, 0x5410), kFactor),
                      mul_bf16x2(__byte_perm(q.y, q.w, 0x7632), kFactor));
  }
  static __device__ void load_scores(KeyFragments& a, const ScoreRows& rows, std::uint32_t block,
                                     std::uint32_t t) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const uint2 x = ptx::ld_shared_v2_u32(rows[r] + block * 32 + t * 8);
      const std::uint32_t scales = ptx::ld_shared_u32(rows[r] + kScalesAt + block * 4);
      const std::uint32_t factor = scale_e2m1_factors(__byte_perm(scales, 0, scale_selector(t)));
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        std::uint32_t pairs[4];
        place_e2m1(pairs, half == 0 ? x.x : x.y);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          a[2 * half + i / 2][i % 2 * 2 + r] = mul_bf16x2(pairs[i], factor);
      }
    }
  }
  template <bool IsWide>
  static __device__ void load_values(KeyFragments& a, const ValueRows& rows, std::uint32_t block,
                                     std::uint32_t g) {
    const std::uint32_t selector = g / 2 * 0x0101 + 0x0400;
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      std::uint32_t codes[2], scales[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        codes[i] = ptx::ld_shared_u32(rows[2 * pair + i] + block * 32 + g * 4);
        scales[i] = ptx::ld_shared_u32(rows[2 * pair + i] + kScalesAt + block * 4);
      }
      const std::uint32_t both = __byte_perm(scales[0], scales[1], selector);
      const std::uint32_t factor = scale_e2m1_factors(__byte_perm(both, 0, 0x4240));
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        std::uint32_t pairs[4];
        place_e2m1(pairs, __byte_perm(codes[0], codes[1], half == 0 ? 0x5410 : 0x7632));
#pragma unroll
        for (int i = 0; i < 4; ++i)
          a[2 * half + i / 2][2 * pair + i % 2] = mul_bf16x2(pairs[i], factor);
      }
    }
  }
};

template <>
struct FewHeadsKeys<KvFormat::kBf16> {
  static constexpr float kValue = 1.0f;
  static constexpr bool kIsF16 = false;

  static __device__ uint4 arrange(const uint4& q) { return q; }
  static __device__ void load_scores(KeyFragments& a, const ScoreRows& rows, std::uint32_t block,
                                     std::uint32_t t) {
    load_bf16_scores(a, rows, block * 128, t);
  }
  template <bool IsWide>
  static __device__ void load_values(KeyFragments& a, const ValueRows& rows, std::uint32_t block,
                                     std::uint32_t g) {
    load_bf16_values(a, rows, block * 128, g);
  }
};

}  // namespace tilewright::tile
