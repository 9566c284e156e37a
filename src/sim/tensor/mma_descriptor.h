// What a tcgen05.mma multiplies: its text (MmaMode) and its instruction descriptor, a word that is
// known only when it runs. Source: PTX ISA, "tcgen05: Instruction descriptor", "Matrix shapes".
#pragma once

#include "formats/format_spec.h"
#include "sim/tensor/integer_multiply.h"
#include "sim/tensor/matrix_descriptor.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright::sim {

enum class MmaKind : std::uint8_t { kF16, kTf32, kF8f6f4, kI8, kMxf8f6f4, kMxf4, kMxf4nvf4 };

/// "f16", as in .kind::f16
std::string_view name_of(MmaKind kind) noexcept;

constexpr bool is_block_scaled(MmaKind kind) {
  return kind >= MmaKind::kMxf8f6f4;
}
/// Two elements to a byte, k 64 or 96.
constexpr bool is_fp4(MmaKind kind) {
  return kind >= MmaKind::kMxf4;
}

/// What the text of the instruction says.
struct MmaMode {
  MmaKind kind = MmaKind::kF16;
  int cta_group = 1;
  bool is_ws = false;
  bool is_a_in_tmem = false;
  int scale_block = 0;  ///< elements of k to a scale: 16, 32, or 0 without block scales
  int target = 100;     ///< 100 or 103
};

/// Format of D in Tensor Memory.
enum class MmaSum : std::uint8_t { kF16, kF32, kS32 };

/// The fields of an instruction descriptor.
struct MmaDescriptor {
  int m = 0, n = 0, k = 0;
  MmaSum sum = MmaSum::kF32;
  const FormatSpec* a = nullptr;  ///< nullptr for integers
  const FormatSpec* b = nullptr;
  IntegerType a_integer = IntegerType::kU8, b_integer = IntegerType::kU8;
  bool is_a_negated = false, is_b_negated = false;
  OperandMajor a_major = OperandMajor::kK, b_major = OperandMajor::kK;
  bool is_saturating = false;
  const FormatSpec* scale = nullptr;  ///< ue8m0 or ue4m3; nullptr without block scales
  int a_scale_id = 0, b_scale_id = 0;

  constexpr bool operator==(const MmaDescriptor&) const = default;
};

/// Bits 5..4 type of D (SFB's id if block scaled), 9..7 and 12..10 types of A and B, 13 and 14
/// negate, 15 and 16 MN-major, 22..17 N / 8, 23 type of the scales, 28..24 M / 16, 30..29 SFA's id,
/// 31 k96. Types that the kind does not have become nullptr; check_mma_descriptor() names them.
MmaDescriptor decode_mma_descriptor(std::uint32_t bits, const MmaMode& mode);

/// What is wrong: the field, its value, what was expected. Empty if nothing is.
std::string check_mma_descriptor(std::uint32_t bits, const MmaMode& mode);
/// What only a careful reading demands: bits that mean something on later devices, or with other
/// instructions, are 0.
std::string check_mma_later_bits(std::uint32_t bits, const MmaMode& mode);
/// "0x8200490: m128n256k16, f32 += bf16 * bf16, B MN-major"
std::string describe_mma_descriptor(std::uint32_t bits, const MmaMode& mode);

/// Bits of an element in shared memory along the contiguous index, padding included: 8 for the 4-
/// and 6-bit types of f8f6f4, which come in groups of 16 elements in 16 bytes.
constexpr int container_bits(const MmaMode& mode) {
  switch (mode.kind) {
    case MmaKind::kF16:
      return 16;
    case MmaKind::kTf32:
      return 32;
    case MmaKind::kMxf4:
    case MmaKind::kMxf4nvf4:
      return 4;
    default:
      return 8;
  }
}

}  // namespace tilewright::sim
