// A block of the tile kernel for the usual case: operands are finite, fp32 holds all products, and
// no lane has a result that needs care. Half the work of compute_block(), which takes over where a
// block turns out to need it. Included only by tile_kernel_body.h, for AVX2 and AVX-512.
//
// Exponents are added as bytes, with saturation: what saturates is so small beside 2^base that
// either another term is larger or the range check below hands the block on.
#pragma once

#include "sim/tensor/tile_rounding.h"

#include <immintrin.h>

namespace tilewright::sim {
namespace {

using Bytes16 = std::int8_t __attribute__((vector_size(16)));
using Bytes32 = std::int8_t __attribute__((vector_size(32)));

template <int kCount>
struct ByteVector {
  using Type = Bytes16;
};
template <>
struct ByteVector<32> {
  using Type = Bytes32;
};

inline Bytes16 add_saturated(const Bytes16& a, const Bytes16& b) {
  return bits_as<Bytes16>(_mm_adds_epi8(bits_as<__m128i>(a), bits_as<__m128i>(b)));
}
inline Bytes32 add_saturated(const Bytes32& a, const Bytes32& b) {
  return bits_as<Bytes32>(_mm256_adds_epi8(bits_as<__m256i>(a), bits_as<__m256i>(b)));
}

/// Rounds toward zero.
inline Floats to_floats(const Ints& ints) {
#ifdef __AVX512F__
  // The form with a mask: GCC 12 warns of the other.
  return bits_as<Floats>(_mm512_maskz_cvt_roundepi32_ps(0xFFFF, bits_as<__m512i>(ints),
                                                        _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
#else
  const Ints sign = ints >> 31;
  const Floats value = truncate_to_float<false>((ints ^ sign) - sign);
  return bits_as<Floats>(words_of(bits_as<Ints>(value)) | (words_of(sign) & 0x80000000U));
#endif
}

/// A strip for fast blocks.
struct FastTile {
  int k;
  int fraction_bits;
  const float* a;  ///< values * 2^F, [rows][k]
  const float* b;  ///< values, [k][stride]
  int stride;
  const std::int8_t* a_exponents;  ///< less `base`
  const std::int8_t* b_exponents;
  int most_with_care;  ///< CareLimit::most
  int base;
};

/// The largest exponent that a product has.
inline int base_of(const ExponentRange& a, const ExponentRange& b) {
  return is_empty(a) || is_empty(b) ? 0 : a.greatest + b.greatest;
}

/// Whether bytes can express all that matters, exponents of A being less base_of(): a sum that
/// saturates stands for one up to base - 128 + the largest exponent of B, and a largest exponent
/// of -102 or less is not taken here.
inline bool can_add_bytes(const ExponentRange& a, const ExponentRange& b) {
  const int base = base_of(a, b);
  return is_empty(a) || is_empty(b) || (base + b.greatest <= 27 && -128 <= base && base <= 127);
}

/// Exponents of A less `base`, at least -128.
inline const std::int8_t* relative_exponents(const std::int8_t* exponents, int base, int count,
                                             Arena& arena) {
  if (base == 0) return exponents;
  auto* const result = arena.take<std::int8_t>(count);
  const __m256i less = _mm256_set1_epi8(static_cast<char>(base));
  for (int i = 0; i < count; i += 32) {
    store(result + i, _mm256_subs_epi8(load<__m256i>(exponents + i), less));
  }
  return result;
}

template <int kRows, int kVectors>
inline void add_products(const FastTile& tile, int row, int first_k, int last_k,
                         const Floats (&scales)[kRows][kVectors], Words (&sums)[kRows][kVectors]) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[r][v] = Words{};
  }
  const float* const a = tile.a + row * tile.k;
  const float* b = tile.b + first_k * tile.stride;
  for (int i = first_k; i < last_k; ++i, b += tile.stride) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const auto values = load<Floats>(b + v * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const Floats scaled = values * a[r * tile.k + i] * scales[r][v];
        sums[r][v] += words_of(__builtin_convertvector(scaled, Ints));
      }
    }
  }
}

/// Largest exponents of the products, with the bias of fp32.
template <int kRows, int kVectors>
inline void find_largest(const FastTile& tile, int row, Ints (&largest)[kRows][kVectors]) {
  using Exponents = typename ByteVector<kVectors * kLanes>::Type;
  Exponents found[kRows];
  for (Exponents& in_row : found) in_row = Exponents{} + std::int8_t{-128};
  const std::int8_t* const a = tile.a_exponents + row * tile.k;
  const std::int8_t* b = tile.b_exponents;
  for (int i = 0; i < tile.k; ++i, b += tile.stride) {
    const auto exponents = load<Exponents>(b);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Exponents sum = add_saturated(exponents, Exponents{} + a[r * tile.k + i]);
      found[r] = larger(sum, found[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    Bytes parts[sizeof(Exponents) / sizeof(Bytes)];
    std::memcpy(parts, &found[r], sizeof parts);
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      largest[r][v] = widen(parts[v]) + (tile.base + 127);
    }
  }
}

/// -1 in the lanes of a vector of columns where all products with this row of A are zero.
inline Ints zero_products(const FastTile& tile, int row, int col) {
  const float* const a = tile.a + row * tile.k;
  Words of_a{}, of_b{};
  for (int i = 0; i < tile.k; ++i) {
    of_a |= bits_as<Words>(Floats{} + a[i]);
    of_b |= load<Words>(tile.b + i * tile.stride + col);
  }
  return (of_a << 1 == 0) | (of_b << 1 == 0);
}

/// Padding and masked scores make whole rows of zeros. Lanes whose sum has nothing but zeros get an
/// exponent that the block can work with. False if a lane is left outside of least..253.
template <int kRows, int kVectors>
inline bool settle_zeros(const FastTile& tile, int row, const std::uint32_t* c, int pitch,
                         int least, Ints (&largest)[kRows][kVectors],
                         Floats (&scales)[kRows][kVectors], Ints (&terms)[kRows][kVectors]) {
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const Ints is_outside =
          ints_of(words_of(largest[r][v] - least) > static_cast<std::uint32_t>(253 - least));
      if (any_of(is_outside) == 0) continue;
      const Words old = c == nullptr ? Words{} : load<Words>(c + r * pitch + v * kLanes);
      const Ints is_zero = zero_products(tile, row + r, v * kLanes) & (old == 0);
      if (any_of(is_outside & ~is_zero) != 0) return false;
      largest[r][v] = (largest[r][v] & ~is_outside) | (is_outside & 253);
      scales[r][v] = bits_as<Floats>(words_of(254 - largest[r][v]) << 23);
      terms[r][v] &= ~is_outside;  // their scale was no number
    }
  }
  return true;
}

/// Whole vectors inside the tile. False if a lane needs care: then nothing was written. That is so
/// up to CareLimit::most and beyond a biased 253, whose scales would be no normal numbers.
template <int kRows, int kVectors, int kOutput>
inline bool compute_fast_block(const FastTile& tile, int row, const std::uint32_t* c,
                               std::uint32_t* d, int pitch) {
  const int f = tile.fraction_bits;
  const int least = tile.most_with_care + 128;
  const Floats unit = powers_of_two(Ints{} + f);
  Ints largest[kRows][kVectors], terms[kRows][kVectors];
  Floats scales[kRows][kVectors];
  Words sums[kRows][kVectors];
  Words farthest{};
  Ints overflow{};
  find_largest(tile, row, largest);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const Words old = c == nullptr ? Words{} : load<Words>(c + r * pitch + v * kLanes);
      const Ints field = ints_of(old << 1 >> 24);
      largest[r][v] = larger(largest[r][v], field);
      farthest = larger(words_of(largest[r][v] - least), farthest);
      scales[r][v] = bits_as<Floats>(words_of(254 - largest[r][v]) << 23);
      terms[r][v] = __builtin_convertvector(bits_as<Floats>(old) * scales[r][v] * unit, Ints);
    }
  }
  if (least > 253) return false;
  if (any_of(ints_of(farthest > static_cast<std::uint32_t>(253 - least))) != 0 &&
      !settle_zeros(tile, row, c, pitch, least, largest, scales, terms)) {
    return false;
  }
  const int split = tile.k > 16 && f > kMaxShortFractionBits ? 16 : tile.k;
  for (int first = 0; first < tile.k; first += split) {
    const int last = first + split < tile.k ? first + split : tile.k;
    add_products(tile, row, first, last, scales, sums);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const Ints products = ints_of(sums[r][v]);
        const Ints sum = ints_of(words_of(terms[r][v]) + sums[r][v]);
        overflow |= (terms[r][v] ^ sum) & (products ^ sum);
        terms[r][v] = sum;
      }
    }
  }
  if (any_of(overflow < 0) != 0) return false;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const Floats scale = bits_as<Floats>(words_of(largest[r][v] - f) << 23);
      Words code = bits_as<Words>(to_floats(terms[r][v]) * scale);
      if constexpr (kOutput == kOutputF32E8M13) code &= ~((1U << 10) - 1);
      store(d + r * pitch + v * kLanes, code);
    }
  }
  return true;
}

}  // namespace
}  // namespace tilewright::sim
