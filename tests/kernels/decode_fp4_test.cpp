// Packed FP4 words on the device: every code at every place under every scale byte, against the
// formats. bf16 must be exact, e4m3 rounded to nearest even.
#include "formats/packed_matrix.h"
#include "formats/packed_weight.h"
#include "kernels/probe/decode_fp4_probe.h"
#include "tests/kernels/kernel_test.h"

#include <cmath>
#include <set>

namespace tilewright::kernels {
namespace {

// 16 words a scale byte: place i holds code (word + 5 i) % 16.
constexpr int kWords = 256 * 16;
std::uint8_t code_at(int word, int i) {
  return static_cast<std::uint8_t>((word + 5 * i) % 16);
}
// Bytes of rows g and g + 8.
std::uint32_t byte_at(int word, int row) {
  const std::uint32_t byte = static_cast<std::uint32_t>(word) / 16;
  return row == 0 ? byte : (byte * 7 + 3) & 255;
}
double scale_of(WeightFormat format, std::uint32_t byte) {
  return format == WeightFormat::kNvfp4
             ? std::ldexp(1 + (byte & 7) / 8.0, static_cast<int>(byte >> 3))
             : std::ldexp(1, static_cast<int>(byte));
}
bool is_used(WeightFormat format, std::uint32_t byte) {
  return format == WeightFormat::kNvfp4 || (byte >= 128 && byte <= kMxfp4LargestByte);
}

class DecodeFp4 : public KernelTest {
 protected:
  struct Decoded {
    std::vector<std::uint32_t> bf16, e4m3;
  };
  Decoded decode_all(const char* name, WordOrder order) const {
    std::vector<std::uint32_t> words, scales;
    for (int w = 0; w < kWords; ++w) {
      std::uint8_t codes[8];
      for (int i = 0; i < 8; ++i) codes[i] = code_at(w, i);
      words.push_back(encode_word(order, codes));
      scales.push_back(byte_at(w, 0) | byte_at(w, 1) << 24);
    }
    const Buffer word_buffer = Buffer::from(device(), words);
    const Buffer scale_buffer = Buffer::from(device(), scales);
    const Output<std::uint32_t> bf16(device(), kWords * 4), e4m3(device(), kWords * 2);
    run_kernel(
        device(), name,
        {.grid = {ceil_div(kWords, kDecodeFp4ProbeThreads)}, .block = {kDecodeFp4ProbeThreads}},
        DecodeFp4ProbeParams{pointer_to<const std::uint32_t>(word_buffer),
                             pointer_to<const std::uint32_t>(scale_buffer), bf16.pointer(),
                             e4m3.pointer(), kWords});
    return {bf16.read(), e4m3.read()};
  }

  void check(const char* name, WeightFormat format, WordOrder order, bool in_neighbours) const {
    SCOPED_TRACE(name);
    const Decoded decoded = decode_all(name, order);
    // What remains for the epilogue.
    const int bf16_bias = format == WeightFormat::kNvfp4
                              ? nvfp4_bias_exponent(WordOrder::kBf16, 0)
                              : mxfp4_bias_exponent(WordOrder::kBf16, kMxfp4LargestByte);
    const int e4m3_bias = format == WeightFormat::kNvfp4
                              ? nvfp4_bias_exponent(WordOrder::kE4m3, 0)
                              : mxfp4_bias_exponent(WordOrder::kE4m3, kMxfp4LargestByte);
    for (int w = 0; w < kWords; ++w) {
      for (int i = 0; i < 8; ++i) {
        const std::uint32_t byte = byte_at(w, i / 4);
        const double weight = decode(kE2m1, code_at(w, i)) * scale_of(format, byte);
        // Else in pairs of every other one.
        const int of_row = in_neighbours ? i >> 1 & 1 : i & 1;
        const int inside = in_neighbours ? i & 1 : i >> 1 & 1;
        const auto pair = static_cast<std::size_t>(4 * w + 2 * of_row + i / 4);
        const std::uint32_t half = decoded.bf16[pair] >> 16 * inside & 0xffff;
        if (is_used(format, byte)) {
          ASSERT_EQ(decode(kBf16, half), std::ldexp(weight, -bf16_bias))
              << "code " << int{code_at(w, i)} << " at " << i << ", scale byte " << byte;
        }
        if (order == WordOrder::kBf16) continue;
        const std::size_t at = static_cast<std::size_t>(w) * 2 + static_cast<std::size_t>(i / 4);
        const std::uint32_t code = decoded.e4m3[at] >> 8 * (i & 3) & 0xff;
        const double shifted = std::ldexp(weight, -e4m3_bias);
        if (std::abs(shifted) > max_finite(kE4m3)) continue;
        ASSERT_EQ(decode(kE4m3, code), round_to(kE4m3, shifted))
            << "code " << int{code_at(w, i)} << " at " << i << ", scale byte " << byte;
      }
    }
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(DecodeFp4);

TEST_P(DecodeFp4, EveryCodeUnderEveryScale) {
  check("decode_fp4_nvfp4_twiddled", WeightFormat::kNvfp4, WordOrder::kBf16, true);
  check("decode_fp4_nvfp4_braided", WeightFormat::kNvfp4, WordOrder::kE4m3, false);
  check("decode_fp4_nvfp4_braided_neighbours", WeightFormat::kNvfp4, WordOrder::kE4m3, true);
  check("decode_fp4_mxfp4_twiddled", WeightFormat::kMxfp4, WordOrder::kBf16, true);
  check("decode_fp4_mxfp4_braided", WeightFormat::kMxfp4, WordOrder::kE4m3, false);
  check("decode_fp4_mxfp4_braided_neighbours", WeightFormat::kMxfp4, WordOrder::kE4m3, true);
}

TEST(PackedWeight, EveryElementHasAPlaceOfItsOwn) {
  for (const WeightFormat format :
       {WeightFormat::kNvfp4, WeightFormat::kMxfp4, WeightFormat::kFp8, WeightFormat::kBf16}) {
    std::set<std::pair<int, int>> places;
    for (int row = 0; row < kBrickRows; ++row) {
      for (int k = 0; k < kBrickK; ++k) {
        const BrickPlace place = brick_place(format, row, k);
        EXPECT_LT(place.word * 4, brick_code_bytes(format));
        places.emplace(place.word, place.place);
      }
    }
    EXPECT_EQ(places.size(), kBrickRows * kBrickK);
  }
}

TEST(PackedWeight, EveryScaleHasAByteOfItsOwn) {
  for (const WeightFormat format : {WeightFormat::kNvfp4, WeightFormat::kMxfp4}) {
    std::set<int> offsets;
    for (int row = 0; row < kBrickRows; ++row) {
      for (int k = 0; k < kBrickK; ++k) offsets.insert(brick_scale_offset(format, row, k));
    }
    EXPECT_EQ(static_cast<int>(offsets.size()), brick_scale_bytes(format));
    EXPECT_EQ(*offsets.begin(), brick_code_bytes(format));
    EXPECT_EQ(*offsets.rbegin(), brick_bytes(format) - 1);
  }
}

TEST(PackedWeight, OperandOrderIsAPermutation) {
  for (int k = 0; k < kBrickK; ++k) EXPECT_EQ(operand_order(operand_place(k)), k);
}

TEST(PackedWeight, ScalesOfUe4m3AreSplitExactly) {
  for (std::uint32_t code = 1; code < 127; ++code) {
    const ScaleParts parts = split_ue4m3(code);
    EXPECT_EQ(std::ldexp(1 + parts.mantissa / 8.0, parts.exponent), decode(kUe4m3, code));
    EXPECT_GE(parts.exponent, -9);
    EXPECT_LE(parts.exponent, 8);
    EXPECT_LE(nvfp4_scale_byte(parts, nvfp4_shift(8)), 255);
  }
}

TEST(PackedWeight, NoFactorOfAUsedScaleIsInfinite) {
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    EXPECT_TRUE(std::isfinite(decode(kBf16, bf16_factor(WeightFormat::kNvfp4, byte))));
    if (byte <= kMxfp4LargestByte) {
      EXPECT_TRUE(std::isfinite(decode(kBf16, bf16_factor(WeightFormat::kMxfp4, byte))));
    }
  }
}

}  // namespace
}  // namespace tilewright::kernels
