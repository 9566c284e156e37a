// The kernel for 4-bit operands with block scales. Included only by tile_kernel_*.cpp
// (tile_vectors.h). Columns of D lie in the lanes of vectors.
//
// Sums of 16 products are exact in integers. Scaled, they are exact as doubles: 13 bits by 4 by 4.
// Aligned and truncated to a grid of 2^(largest - F), F = 35, terms have at most 47 bits and their
// sum is exact too.
#pragma once

#include "sim/tensor/scaled_kernel.h"
#include "sim/tensor/tile_vectors.h"

namespace tilewright::sim {
namespace {

/// Sums of products of four bytes each, unsigned by signed: at most 16 products of 24 * 12.
inline Ints dot_words(const std::uint32_t* a, const std::uint32_t* b, int stride) {
#if defined(__AVX512BW__)
  __m512i sum = _mm512_setzero_si512();
  for (int w = 0; w < kFp4Group / 4; ++w) {
    const __m512i words = load<__m512i>(b + w * stride);
    const auto four = _mm512_set1_epi32(static_cast<int>(a[w]));
    sum = _mm512_add_epi16(sum, _mm512_maddubs_epi16(four, words));
  }
  return bits_as<Ints>(_mm512_madd_epi16(sum, _mm512_set1_epi16(1)));
#elif defined(__AVX2__)
  __m256i sum = _mm256_setzero_si256();
  for (int w = 0; w < kFp4Group / 4; ++w) {
    const __m256i words = load<__m256i>(b + w * stride);
    const auto four = _mm256_set1_epi32(static_cast<int>(a[w]));
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(four, words));
  }
  return bits_as<Ints>(_mm256_madd_epi16(sum, _mm256_set1_epi16(1)));
#else
  Ints sum{};
  for (int w = 0; w < kFp4Group / 4; ++w) {
    const Ints words = load<Ints>(b + w * stride);
    for (int part = 0; part < 4; ++part) {
      const auto value = static_cast<std::int32_t>(a[w] >> (8 * part) & 255);
      sum += value * (words << (24 - 8 * part) >> 24);
    }
  }
  return sum;
#endif
}

inline Doubles truncated(const Doubles& values) {
#if defined(__AVX512F__)
  return bits_as<Doubles>(_mm512_maskz_roundscale_pd(0xFF, bits_as<__m512d>(values), 3));
#elif defined(__AVX2__)
  return bits_as<Doubles>(_mm256_round_pd(bits_as<__m256d>(values), 3 | 8));
#else
  return __builtin_convertvector(__builtin_convertvector(values, Longs), Doubles);
#endif
}

/// 2^exponents as doubles, for the exponents of normal numbers.
inline Doubles double_powers(const HalfInts& exponents) {
  return bits_as<Doubles>((__builtin_convertvector(exponents, Longs) + 1023) << 52);
}

/// One vector of columns of a row.
struct Fp4Place {
  const Fp4KernelCall& call;
  int row, col;
};

/// Half of a vector of results, and where they need care.
struct Fp4Half {
  HalfWords codes;
  HalfInts specials;
};

inline Fp4Half add_half(const Fp4Place& place, const Ints* sums, const Ints& largest,
                        const Words& c, int half) {
  const Fp4KernelCall& call = place.call;
  const auto exponents = half_of<HalfInts>(largest, half);
  const Doubles scale = double_powers(call.fraction_bits - exponents);
  const auto old = half_of<HalfFloats>(c, half);
  Doubles sum = truncated(__builtin_convertvector(old, Doubles) * scale);
  const double* b = call.b_scales + place.col + half * kHalfLanes;
  const double* const a = call.a_scales + place.row * call.num_groups;
  for (int g = 0; g < call.num_groups; ++g, b += call.padded_n) {
    const Doubles factor = load<Doubles>(b) * a[g] * scale;
    sum += truncated(__builtin_convertvector(half_of<HalfInts>(sums[g], half), Doubles) * factor);
  }
  const Doubles exact = sum * double_powers(exponents - call.fraction_bits);
  const auto cut = bits_as<Longs>(exact) & ~((std::int64_t{1} << 29) - 1);
  const auto result = __builtin_convertvector(bits_as<Doubles>(cut), HalfFloats);
  const Longs magnitude = cut & 0x7FFFFFFFFFFFFFFF;
  constexpr std::int64_t kLeast = std::int64_t{1023 - 126} << 52;
  constexpr std::int64_t kGreatest = std::int64_t{1023 + 128} << 52;
  const Longs is_zero = magnitude == 0;
  const Longs is_special = ((magnitude < kLeast) & ~is_zero) | (magnitude >= kGreatest);
  const auto keep = bits_as<HalfWords>(__builtin_convertvector(~is_zero, HalfInts));
  return {bits_as<HalfWords>(result) & keep, __builtin_convertvector(is_special, HalfInts)};
}

inline void compute_fp4_vector(const Fp4Place& place) {
  constexpr int kMaxGroups = 16;
  const Fp4KernelCall& call = place.call;
  const int left = call.n - place.col;
  const int num_cols = left < kLanes ? left : kLanes;
  const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(place.row) * call.n + place.col;
  const Words c = call.c == nullptr ? Words{} : load_some<Words>(call.c + at, num_cols);
  const Ints field = ints_of(c >> 23 & 255);
  Ints largest = larger(field, Ints{} + 1) - 127;
  Ints sums[kMaxGroups];
  for (int g = 0; g < call.num_groups; ++g) {
    const std::ptrdiff_t group = static_cast<std::ptrdiff_t>(g) * call.padded_n + place.col;
    const std::uint32_t* const a = call.a + (place.row * call.num_groups + g) * (kFp4Group / 4);
    const std::uint32_t* const b =
        call.b + static_cast<std::ptrdiff_t>(g) * (kFp4Group / 4) * call.padded_n + place.col;
    sums[g] = dot_words(a, b, call.padded_n) - load<Ints>(call.b_corrections + group);
    const Ints exponents =
        load<Ints>(call.b_exponents + group) + call.a_exponents[place.row * call.num_groups + g];
    largest = larger(exponents, largest);
  }
  Words d;
  Ints specials =
      (field == 255) | call.a_specials[place.row] | load<Ints>(call.b_specials + place.col);
  Ints more;
  for (int half = 0; half < 2; ++half) {
    const Fp4Half result = add_half(place, sums, largest, c, half);
    std::memcpy(reinterpret_cast<char*>(&d) + half * sizeof result.codes, &result.codes,
                sizeof result.codes);
    std::memcpy(reinterpret_cast<char*>(&more) + half * sizeof result.specials, &result.specials,
                sizeof result.specials);
  }
  specials |= more;
  if (any_of(specials) != 0) {
    for (int i = 0; i < num_cols; ++i) {
      if (specials[i] != 0) d[i] = call.element(call.context, place.row, place.col + i, c[i]);
    }
  }
  store_some(call.d + at, d, num_cols);
}

void run_fp4_kernel(const Fp4KernelCall& call) {
  for (int row = 0; row < call.m; ++row) {
    for (int col = 0; col < call.n; col += kLanes) compute_fp4_vector({call, row, col});
  }
}

}  // namespace
}  // namespace tilewright::sim
