// Scales and elements of one block: published check values and limits.
#include "formats/block_scale.h"

#include "tests/formats/expect_invalid.h"

#include <bit>
#include <cmath>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace tilewright {
namespace {

constexpr float kFltMax = std::numeric_limits<float>::max();
constexpr float kFltInfinity = std::numeric_limits<float>::infinity();
constexpr float kFltNan = std::numeric_limits<float>::quiet_NaN();

uint32_t stored_scale(const BlockFormat& format, float amax, float encode_scale = 1) {
  return encode(format.scale, ideal_block_scale(format, amax, encode_scale));
}

float above(float x) {
  return std::nextafter(x, kFltInfinity);
}

TEST(BlockFormats, NamesAreUniqueAndConstantsAreTheirRows) {
  std::set<std::string> names;
  for (const BlockFormat& format : kBlockFormats) EXPECT_TRUE(names.insert(format.name).second);
  for (const BlockFormat& format :
       {kFp8Block1x128, kFp8Block1x128Ue8m0, kFp8Block128x128, kFp8Block128x128Ue8m0,
        kFp8Block64Pow2, kMxfp8, kMxfp8Ceil, kMxfp4, kMxfp4Ceil, kNvfp4}) {
    EXPECT_STREQ(block_format_by_name(format.name).name, format.name);
    names.erase(format.name);
  }
  EXPECT_TRUE(names.empty()) << "a row without a named constant: " << *names.begin();
  expect_invalid([] { block_format_by_name("mxfp5"); },
                 "there is no 'mxfp5'; expected one of fp8_");
  expect_invalid([] { block_format_by_name(""); }, "mxfp4_ceil, nvfp4. Names are lower case");
}

TEST(BlockScale, Fp8PowersOfTwo) {
  for (const BlockFormat& format :
       {kFp8Block64Pow2, kFp8Block1x128Ue8m0, kFp8Block128x128Ue8m0, kMxfp8Ceil}) {
    EXPECT_EQ(stored_scale(format, 1.0f), 119u);    // 2^-8
    EXPECT_EQ(stored_scale(format, 448.0f), 127u);  // 2^0, exactly full
    EXPECT_EQ(stored_scale(format, above(448.0f)), 128u);
    EXPECT_EQ(stored_scale(format, 449.0f), 128u);
    EXPECT_EQ(stored_scale(format, 0.0f), 105u);  // 2^-22, from the floor of 1e-4
    EXPECT_EQ(stored_scale(format, 1e-4f), 105u);
    EXPECT_EQ(stored_scale(format, 1e-30f), 105u);
    EXPECT_EQ(stored_scale(format, kFltMax), 127u + 120);
  }
}

TEST(BlockScale, Fp8Fp32IsAmaxTimesTheRoundedReciprocal) {
  const float reciprocal = 1.0f / 448.0f;
  for (const float amax : {1e-4f, 0.3f, 1.0f, 447.9f, 448.0f, 1e10f}) {
    EXPECT_EQ(stored_scale(kFp8Block1x128, amax), std::bit_cast<uint32_t>(amax * reciprocal));
    EXPECT_EQ(stored_scale(kFp8Block128x128, amax), std::bit_cast<uint32_t>(amax * reciprocal));
  }
  EXPECT_EQ(stored_scale(kFp8Block1x128, 0), std::bit_cast<uint32_t>(1e-4f * reciprocal));
}

TEST(BlockScale, Mxfp4Ceil) {
  EXPECT_EQ(stored_scale(kMxfp4Ceil, 6.0f), 127u);
  EXPECT_EQ(stored_scale(kMxfp4Ceil, 6.01f), 128u);
  EXPECT_EQ(stored_scale(kMxfp4Ceil, above(6.0f)), 128u);
  EXPECT_EQ(stored_scale(kMxfp4Ceil, 1.0f), 125u);  // 2^-2
  EXPECT_EQ(stored_scale(kMxfp4Ceil, 0.0f), 1u);    // 2^-126, from the floor of 6 * 2^-126
  EXPECT_EQ(stored_scale(kMxfp4Ceil, kFltMax), 127u + 126);
}

TEST(BlockScale, OcpFloor) {
  // 2^(floor(log2 amax) - 2) for e2m1, - 8 for e4m3.
  EXPECT_EQ(stored_scale(kMxfp4, 4.0f), 127u);
  EXPECT_EQ(stored_scale(kMxfp4, 6.0f), 127u);
  EXPECT_EQ(stored_scale(kMxfp4, 7.99f), 127u);
  EXPECT_EQ(stored_scale(kMxfp4, 8.0f), 128u);
  EXPECT_EQ(stored_scale(kMxfp4, 3.99f), 126u);
  EXPECT_EQ(stored_scale(kMxfp8, 256.0f), 127u);
  EXPECT_EQ(stored_scale(kMxfp8, 511.9f), 127u);
  EXPECT_EQ(stored_scale(kMxfp8, 512.0f), 128u);
  // The smallest scale is 2^-127: blocks of zeros, and of numbers too small for a smaller one.
  for (const float amax : {0.0f, 0x1p-149f, 0x1p-126f, 0x1p-125f, 0x1.fp-125f}) {
    EXPECT_EQ(stored_scale(kMxfp4, amax), 0u) << amax;
  }
  EXPECT_EQ(stored_scale(kMxfp4, 0x1p-124f), 1u);
  EXPECT_EQ(stored_scale(kMxfp8, 0x1p-119f), 0u);
  EXPECT_EQ(stored_scale(kMxfp8, 0x1p-118f), 1u);
  EXPECT_EQ(stored_scale(kMxfp4, kFltMax), 252u);
  EXPECT_EQ(stored_scale(kMxfp8, kFltMax), 246u);
}

TEST(BlockScale, Nvfp4) {
  EXPECT_EQ(stored_scale(kNvfp4, 6.0f), 0x38u);  // 1.0
  EXPECT_EQ(stored_scale(kNvfp4, 0.0f), 0u);
  // The block that holds the tensor's amax gets the largest scale, whatever the amax.
  for (const float amax : {1e-20f, 0.7f, 5.0f, 1234.5f, 1e30f}) {
    EXPECT_EQ(stored_scale(kNvfp4, amax, tensor_encode_scale(kNvfp4, amax)), 0x7eu) << amax;
  }
  EXPECT_EQ(stored_scale(kNvfp4, 1e6f), 0x7eu);       // saturates with G = 1
  EXPECT_EQ(stored_scale(kNvfp4, 6 * 0x1p-9f), 1u);   // the smallest scale
  EXPECT_EQ(stored_scale(kNvfp4, 6 * 0x1p-10f), 0u);  // a tie, to even
  EXPECT_EQ(stored_scale(kNvfp4, above(6.0001f * 0x1p-10f)), 1u);
}

TEST(BlockScale, TensorEncodeScale) {
  EXPECT_EQ(tensor_encode_scale(kNvfp4, 2688.0f), 1.0f);
  EXPECT_EQ(tensor_encode_scale(kNvfp4, 3.0f), 896.0f);
  EXPECT_EQ(tensor_encode_scale(kNvfp4, 0.0f), 1.0f);
  EXPECT_EQ(tensor_encode_scale(kNvfp4, 1e-38f), kFltMax);  // would be infinite
}

TEST(BlockScale, NotFiniteGivesTheNanOfTheScaleFormat) {
  for (const BlockFormat& format : kBlockFormats) {
    for (const float amax : {kFltNan, kFltInfinity}) {
      EXPECT_TRUE(is_nan(format.scale, stored_scale(format, amax))) << format.name;
    }
    EXPECT_EQ(encode_element(format, 3.0f, kFltNan), 0u) << format.name;
  }
}

// The fp32 product amax * fp32(1 / max) is rounded twice. It still has the exponent of the exact
// ceil(log2(amax / max)) for every mantissa, and hence at every amax without underflow, so that
// nothing ever saturates and DeepGEMM's division gives the same byte.
TEST(BlockScale, CeilIsExactForEveryMantissa) {
  for (const BlockFormat& format : {kFp8Block64Pow2, kMxfp4Ceil}) {
    const auto max = static_cast<float>(max_finite(format.element));
    for (uint32_t mantissa = 0; mantissa < 1u << 23; ++mantissa) {
      const float amax = std::bit_cast<float>(0x3f800000 | mantissa);
      const float scale = ideal_block_scale(format, amax);
      ASSERT_LE(amax, scale * max) << std::hexfloat << amax;  // both products are exact
      ASSERT_GT(amax, scale / 2 * max) << std::hexfloat << amax;
    }
  }
}

// FlashMLA's test quantiser clamps the scale amax / 448 at 1e-4 where production clamps amax. The
// bytes agree from amax = 448 * 2^-14 up; below, its scale stays at 2^-13 (byte 114).
TEST(BlockScale, AgreesWithFlashMlasTestQuantiserAboveItsFloor) {
  const auto flash_mla = [](float amax) {
    return encode(kUe8m0, std::max(amax / 448, 1e-4f), {.rounding = Rounding::kUp});
  };
  EXPECT_EQ(flash_mla(0), 114u);
  for (float amax = 1e-3f; amax < 1e3f; amax *= 1.01f) {
    if (amax > 448 * 0x1p-14f) {
      EXPECT_EQ(stored_scale(kFp8Block64Pow2, amax), flash_mla(amax)) << amax;
    } else {
      EXPECT_LT(stored_scale(kFp8Block64Pow2, amax), flash_mla(amax)) << amax;
    }
  }
}

// MXFP4 weights become FP8 without loss: element * 2^k is an e4m3 value for exponents -8 .. 6.
TEST(BlockScale, Mxfp4FitsE4m3OverFifteenBinades) {
  for (int exponent = -10; exponent <= 8; ++exponent) {
    bool is_exact = true;
    for (uint32_t code = 0; code < 16; ++code) {
      const double value = std::ldexp(decode(kE2m1, code), exponent);
      is_exact &= round_to(kE4m3, value) == value;
    }
    EXPECT_EQ(is_exact, -8 <= exponent && exponent <= 6) << exponent;
  }
}

TEST(BlockElement, ZeroScaleOfNvfp4SaturatesCodesAndDecodesToZero) {
  EXPECT_EQ(encode_element(kNvfp4, 1e-3f, 0.0f), 0x7u);
  EXPECT_EQ(encode_element(kNvfp4, -1e-3f, 0.0f), 0xfu);
  EXPECT_EQ(encode_element(kNvfp4, 0.0f, 0.0f), 0x0u);
  EXPECT_EQ(encode_element(kNvfp4, -0.0f, 0.0f), 0x8u);
  EXPECT_EQ(decode_element(kNvfp4, 0x7, 0.0f), 0.0f);
}

TEST(BlockElement, ElementsSaturate) {
  EXPECT_EQ(encode_element(kMxfp4, 7.9f, 1.0f), 0x7u);
  EXPECT_EQ(encode_element(kMxfp8, -511.0f, 1.0f), 0xfeu);
  EXPECT_EQ(encode_element(kFp8Block1x128, kFltMax, 0x1p-22f), 0x7eu);
}

static_assert(ideal_block_scale(kFp8Block64Pow2, 1.0f) == 0x1p-8f);
static_assert(ideal_block_scale(kMxfp4, 6.0f) == 1.0f);
static_assert(encode(kNvfp4.scale, ideal_block_scale(kNvfp4, 6.0f)) == 0x38);
static_assert(encode_element(kNvfp4, -6.0f, 1.0f) == 0xf);
static_assert(decode_element(kMxfp8, 0x7e, 0.5f) == 224.0f);

}  // namespace
}  // namespace tilewright
