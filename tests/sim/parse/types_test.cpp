#include "sim/parse/types.h"

#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

TEST(SimTypes, NamesAreReadBack) {
  for (int i = static_cast<int>(Type::kPred); i <= static_cast<int>(Type::kB6x16); ++i) {
    const auto type = static_cast<Type>(i);
    EXPECT_EQ(parse_type(name_of(type)), type) << name_of(type);
    EXPECT_GT(bits_of(type), 0) << name_of(type);
  }
  for (const char* name : {"", "?", "f33", "b32 ", "s", "rn"}) {
    EXPECT_EQ(parse_type(name), Type::kNone) << name;
  }
}

TEST(SimTypes, Bits) {
  EXPECT_EQ(bits_of(Type::kNone), 0);
  EXPECT_EQ(bits_of(Type::kPred), 1);
  EXPECT_EQ(bits_of(Type::kB128), 128);
  EXPECT_EQ(bits_of(Type::kBf16x2), 32);
  EXPECT_EQ(bits_of(Type::kF32x2), 64);
  EXPECT_EQ(bits_of(Type::kE2m1x2), 8);
  EXPECT_EQ(bits_of(Type::kE3m2x4), 32);
  EXPECT_EQ(bits_of(Type::kB6x16), 96);
}

TEST(SimTypes, Classes) {
  EXPECT_TRUE(is_signed(Type::kS16x2));
  EXPECT_FALSE(is_signed(Type::kU64));
  EXPECT_TRUE(is_float(Type::kTf32));
  EXPECT_TRUE(is_float(Type::kE4m3x4));
  EXPECT_FALSE(is_float(Type::kB32));
  EXPECT_FALSE(is_float(Type::kU16x2));
}

TEST(SimTypes, Spaces) {
  EXPECT_EQ(name_of(Space::kGeneric), "generic");
  EXPECT_EQ(name_of(Space::kShared), "shared");
}

}  // namespace
}  // namespace tilewright::sim
