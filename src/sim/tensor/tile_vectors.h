// Vectors for the tile kernels, in GCC's vector extensions (clang has them too). Included only by
// tile_kernel_*.cpp, which define TILEWRIGHT_VECTOR_BYTES; hence the unnamed namespace, and no use
// of the C++ library (tile_kernel.h says why).
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace tilewright::sim {
namespace {

constexpr int kVectorBytes = TILEWRIGHT_VECTOR_BYTES;
constexpr int kLanes = kVectorBytes / 4;  ///< of a vector of 32-bit numbers
constexpr int kHalfLanes = kLanes / 2;

using Floats = float __attribute__((vector_size(kVectorBytes)));
using Ints = std::int32_t __attribute__((vector_size(kVectorBytes)));
using Words = std::uint32_t __attribute__((vector_size(kVectorBytes)));
using Bytes = std::int8_t __attribute__((vector_size(kVectorBytes / 4)));    ///< kLanes of them
using Shorts = std::int16_t __attribute__((vector_size(kVectorBytes / 2)));  ///< kLanes of them
using Doubles = double __attribute__((vector_size(kVectorBytes)));           ///< kHalfLanes
using Longs = std::int64_t __attribute__((vector_size(kVectorBytes)));
using HalfInts = std::int32_t __attribute__((vector_size(kVectorBytes / 2)));
using HalfWords = std::uint32_t __attribute__((vector_size(kVectorBytes / 2)));
using HalfFloats = float __attribute__((vector_size(kVectorBytes / 2)));

template <class To, class From>
inline To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

template <class Vector>
inline Vector load(const void* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

template <class Vector>
inline void store(void* to, const Vector& vector) {
  std::memcpy(to, &vector, sizeof vector);
}

/// The first `count` numbers of a vector, zeros beyond. Whole vectors without a call of memcpy.
template <class Vector>
inline Vector load_some(const void* from, int count) {
  if (count == kLanes) return load<Vector>(from);
  Vector vector{};
  std::memcpy(&vector, from, 4 * static_cast<std::size_t>(count));
  return vector;
}
template <class Vector>
inline void store_some(void* to, const Vector& vector, int count) {
  if (count == kLanes) return store(to, vector);
  std::memcpy(to, &vector, 4 * static_cast<std::size_t>(count));
}

/// The larger number of each lane.
template <class Vector>
inline Vector larger(Vector a, Vector b) {
  return a > b ? a : b;
}

inline Words words_of(const Ints& ints) {
  return bits_as<Words>(ints);
}
inline Ints ints_of(const Words& words) {
  return bits_as<Ints>(words);
}

// Between bytes and words: __builtin_convertvector of GCC 12 goes lane by lane where sizes differ
// by more than a factor of two.
#if defined(__AVX512F__)
inline Ints widen(const Bytes& bytes) {
  return bits_as<Ints>(_mm512_maskz_cvtepi8_epi32(0xFFFF, bits_as<__m128i>(bytes)));
}
inline Words widen_unsigned(const Bytes& bytes) {
  return bits_as<Words>(_mm512_maskz_cvtepu8_epi32(0xFFFF, bits_as<__m128i>(bytes)));
}
inline Bytes narrow(const Ints& ints) {
  return bits_as<Bytes>(_mm512_maskz_cvtepi32_epi8(0xFFFF, bits_as<__m512i>(ints)));
}
#elif defined(__AVX2__)
inline Ints widen(const Bytes& bytes) {
  return bits_as<Ints>(_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(bits_as<long long>(bytes))));
}
inline Words widen_unsigned(const Bytes& bytes) {
  return bits_as<Words>(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bits_as<long long>(bytes))));
}
inline Bytes narrow(const Ints& ints) {
  const auto both = bits_as<__m256i>(ints);
  const __m128i shorts =
      _mm_packs_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
  return bits_as<Bytes>(_mm_cvtsi128_si64(_mm_packs_epi16(shorts, shorts)));
}
#else
inline Ints widen(const Bytes& bytes) {
  return __builtin_convertvector(bytes, Ints);
}
inline Words widen_unsigned(const Bytes& bytes) {
  return words_of(widen(bytes)) & 255;
}
inline Bytes narrow(const Ints& ints) {
  return __builtin_convertvector(ints, Bytes);
}
#endif

/// 2^exponents, for -126 <= exponent <= 127; otherwise anything.
inline Floats powers_of_two(const Ints& exponents) {
  return bits_as<Floats>(words_of(exponents + 127) << 23);
}

/// Half of a vector of 32-bit numbers.
template <class Half, class Vector>
inline Half half_of(const Vector& vector, int half) {
  Half result;
  std::memcpy(&result, reinterpret_cast<const char*>(&vector) + half * sizeof result,
              sizeof result);
  return result;
}

inline std::uint32_t greatest_lane(const Words& vector) {
  Words rest = vector;
#pragma GCC unroll 4
  for (int step = kLanes / 2; step > 0; step /= 2) {
    Words shifted;
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) shifted[i] = rest[(i + step) % kLanes];
    rest = larger(shifted, rest);
  }
  return rest[0];
}

/// Nonzero if a lane is.
inline std::int32_t any_of(const Ints& vector) {
#if defined(__AVX512F__)
  const auto lanes = bits_as<__m512i>(vector);
  return static_cast<std::int32_t>(_mm512_test_epi32_mask(lanes, lanes));
#elif defined(__AVX2__)
  const auto lanes = bits_as<__m256i>(vector);
  return 1 - _mm256_testz_si256(lanes, lanes);
#else
  std::int32_t any = 0;
  for (int i = 0; i < kLanes; ++i) any |= vector[i];
  return any;
#endif
}

}  // namespace
}  // namespace tilewright::sim
