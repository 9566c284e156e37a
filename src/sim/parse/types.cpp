#include "sim/parse/types.h"

#include <array>
#include <cstddef>

namespace tilewright::sim {
namespace {

struct TypeRow {
  Type type;
  std::string_view name;
  int bits;
};

// In the order of the enumeration, so that a type is an index.
constexpr std::array kTypes = {
    TypeRow{Type::kNone, "?", 0},
    TypeRow{Type::kPred, "pred", 1},
    TypeRow{Type::kB8, "b8", 8},
    TypeRow{Type::kB16, "b16", 16},
    TypeRow{Type::kB32, "b32", 32},
    TypeRow{Type::kB64, "b64", 64},
    TypeRow{Type::kB128, "b128", 128},
    TypeRow{Type::kU8, "u8", 8},
    TypeRow{Type::kU16, "u16", 16},
    TypeRow{Type::kU32, "u32", 32},
    TypeRow{Type::kU64, "u64", 64},
    TypeRow{Type::kS8, "s8", 8},
    TypeRow{Type::kS16, "s16", 16},
    TypeRow{Type::kS32, "s32", 32},
    TypeRow{Type::kS64, "s64", 64},
    TypeRow{Type::kF16, "f16", 16},
    TypeRow{Type::kBf16, "bf16", 16},
    TypeRow{Type::kF32, "f32", 32},
    TypeRow{Type::kF64, "f64", 64},
    TypeRow{Type::kTf32, "tf32", 32},
    TypeRow{Type::kF16x2, "f16x2", 32},
    TypeRow{Type::kBf16x2, "bf16x2", 32},
    TypeRow{Type::kF32x2, "f32x2", 64},
    TypeRow{Type::kU16x2, "u16x2", 32},
    TypeRow{Type::kS16x2, "s16x2", 32},
    TypeRow{Type::kE4m3, "e4m3", 8},
    TypeRow{Type::kE5m2, "e5m2", 8},
    TypeRow{Type::kE2m3, "e2m3", 6},
    TypeRow{Type::kE3m2, "e3m2", 6},
    TypeRow{Type::kE2m1, "e2m1", 4},
    TypeRow{Type::kUe8m0, "ue8m0", 8},
    TypeRow{Type::kUe4m3, "ue4m3", 8},
    TypeRow{Type::kE4m3x2, "e4m3x2", 16},
    TypeRow{Type::kE5m2x2, "e5m2x2", 16},
    // Values of six bits stand in bytes, values of four bits side by side.
    TypeRow{Type::kE2m3x2, "e2m3x2", 16},
    TypeRow{Type::kE3m2x2, "e3m2x2", 16},
    TypeRow{Type::kE2m1x2, "e2m1x2", 8},
    TypeRow{Type::kUe8m0x2, "ue8m0x2", 16},
    TypeRow{Type::kE4m3x4, "e4m3x4", 32},
    TypeRow{Type::kE5m2x4, "e5m2x4", 32},
    TypeRow{Type::kE2m3x4, "e2m3x4", 32},
    TypeRow{Type::kE3m2x4, "e3m2x4", 32},
    TypeRow{Type::kE2m1x4, "e2m1x4", 16},
    TypeRow{Type::kU4, "u4", 4},
    TypeRow{Type::kS4, "s4", 4},
    TypeRow{Type::kB1, "b1", 1},
    TypeRow{Type::kB4x16, "b4x16_p64", 64},
    TypeRow{Type::kB6x16, "b6x16_p32", 96},
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (static_cast<std::size_t>(kTypes[i].type) != i) return false;
  }
  return kTypes.back().type == Type::kB6x16;
}
static_assert(is_in_order());

constexpr std::array<std::string_view, 8> kSpaceNames = {"generic", "reg",   "sreg",  "const",
                                                         "global",  "local", "param", "shared"};
static_assert(kSpaceNames.size() == static_cast<std::size_t>(Space::kShared) + 1);

}  // namespace

std::string_view name_of(Type type) noexcept {
  return kTypes[static_cast<std::size_t>(type)].name;
}

Type parse_type(std::string_view name) noexcept {
  for (const TypeRow& row : kTypes) {
    if (row.type != Type::kNone && row.name == name) return row.type;
  }
  return Type::kNone;
}

int bits_of(Type type) noexcept {
  return kTypes[static_cast<std::size_t>(type)].bits;
}

std::string_view name_of(Space space) noexcept {
  return kSpaceNames[static_cast<std::size_t>(space)];
}

}  // namespace tilewright::sim
