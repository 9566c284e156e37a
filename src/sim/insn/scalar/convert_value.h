// cvt of single values, every form of it: the plain path that the fast ones are tested against.
#pragma once

#include "formats/minifloat.h"
#include "sim/parse/types.h"

#include <cstdint>

namespace tilewright::sim {

/// Rounding to an integral value: .rni .rzi .rmi .rpi.
enum class IntegralRounding : std::uint8_t { kNone, kNearest, kZero, kDown, kUp };

/// One conversion of one element; the types are scalar ones.
struct Conversion {
  Type to = Type::kNone;
  Type from = Type::kNone;
  EncodeOptions encode;
  IntegralRounding integral = IntegralRounding::kNone;
  bool ftz = false;   ///< subnormal f32 inputs and results become zero
  bool sat = false;   ///< floats: to [0, 1]; integers: to the range of the type
  bool relu = false;  ///< negative to +0
};

constexpr bool is_integer(Type type) {
  return type >= Type::kU8 && type <= Type::kS64;
}
constexpr bool is_scalar_float(Type type) {
  return type == Type::kF16 || type == Type::kBf16 || type == Type::kF32 || type == Type::kF64;
}
/// Of tf32 the whole 32-bit register.
inline int storage_bits(Type type) {
  return type == Type::kTf32 ? 32 : bits_of(type);
}

/// The bits of the result for the bits of the source.
std::uint64_t convert(const Conversion& conversion, std::uint64_t source);

/// The number format of a narrow type, nullptr if it is none of formats/.
const FormatSpec* format_of(Type type) noexcept;

/// f32 codes -> e4m3 or e5m2, nearest even, saturating; written so that compilers vectorise it.
template <bool kIsE5m2>
constexpr std::uint32_t to_fp8(std::uint32_t word) {
  constexpr int kMantissa = kIsE5m2 ? 2 : 3;
  constexpr int kShift = 23 - kMantissa;
  constexpr std::uint32_t kBiasChange = (127 - (kIsE5m2 ? 15 : 7)) << kMantissa;
  constexpr std::uint32_t kMax = kIsE5m2 ? 0x7b : 0x7e;
  // below the smallest normal number: adding this leaves multiples of the smallest subnormal
  constexpr float kMagic = kIsE5m2 ? 0x1p7f : 0x1p14f;
  constexpr std::uint32_t kSmallestNormal = (kIsE5m2 ? 127u - 14 : 127u - 6) << 23;
  const std::uint32_t magnitude = word & 0x7fffffff;
  const std::uint32_t rounded =
      (magnitude + ((1u << (kShift - 1)) - 1) + ((magnitude >> kShift) & 1)) >> kShift;
  const std::uint32_t normal = rounded - kBiasChange;
  const std::uint32_t capped = normal > kMax ? kMax : normal;
  const float small = std::bit_cast<float>(magnitude) + kMagic;
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(small) - std::bit_cast<std::uint32_t>(kMagic);
  std::uint32_t code = magnitude < kSmallestNormal ? subnormal : capped;
  code = magnitude > 0x7f800000 ? 0x7f : code | ((word >> 24) & 0x80);
  return code;
}

}  // namespace tilewright::sim
