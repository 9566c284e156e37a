// Vectors for the tile kernels, in GCC's vector extensions (clang has them too). Included only by
// tile_kernel_*.cpp, which define TILEWRIGHT_VECTOR_BYTES; hence the unnamed namespace, and no use
// of the C++ library (tile_kernel.h says why).
#pragma once

#include <cstdint>
#include <cstring>

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

inline std::int32_t any_of(const Ints& vector) {
  std::int32_t any = 0;
  for (int i = 0; i < kLanes; ++i) any |= vector[i];
  return any;
}

}  // namespace
}  // namespace tilewright::sim
