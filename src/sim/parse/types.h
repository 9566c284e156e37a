// The scalar types and state spaces of PTX.
#pragma once

#include <cstdint>
#include <string_view>

namespace tilewright::sim {

enum class Type : std::uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kBf16,
  kF32,
  kF64,
  kTf32,
  kF16x2,
  kBf16x2,
  kF32x2,
  kU16x2,
  kS16x2,
  // Packed and narrow formats: they stand in modifiers, never in declarations.
  kE4m3,
  kE5m2,
  kE2m3,
  kE3m2,
  kE2m1,
  kUe8m0,
  kUe4m3,
  kE4m3x2,
  kE5m2x2,
  kE2m3x2,
  kE3m2x2,
  kE2m1x2,
  kUe8m0x2,
  kE4m3x4,
  kE5m2x4,
  kE2m3x4,
  kE3m2x4,
  kE2m1x4,
  kU4,
  kS4,
  kB1,
  kB4x16,
  kB6x16,
};

/// "f32" for Type::kF32; "?" for kNone.
std::string_view name_of(Type type) noexcept;

/// The type of a modifier without its dot, kNone if it names no type.
Type parse_type(std::string_view name) noexcept;

/// Bits of one value; 1 for kPred, 0 for kNone. Packed types count all their elements.
int bits_of(Type type) noexcept;

/// The type of that many bits and no meaning: kB8 to kB128.
constexpr Type bits_type(int bits) noexcept {
  return bits == 8    ? Type::kB8
         : bits == 16 ? Type::kB16
         : bits == 32 ? Type::kB32
         : bits == 64 ? Type::kB64
                      : Type::kB128;
}

constexpr bool is_signed(Type type) noexcept {
  return type == Type::kS8 || type == Type::kS16 || type == Type::kS32 || type == Type::kS64 ||
         type == Type::kS4 || type == Type::kS16x2;
}
constexpr bool is_float(Type type) noexcept {
  return (type >= Type::kF16 && type <= Type::kF32x2) ||
         (type >= Type::kE4m3 && type <= Type::kE2m1x4);
}

enum class Space : std::uint8_t {
  kGeneric,
  kReg,
  kSpecialReg,
  kConst,
  kGlobal,
  kLocal,
  kParam,
  kShared,
};

/// "shared" for Space::kShared.
std::string_view name_of(Space space) noexcept;

}  // namespace tilewright::sim
