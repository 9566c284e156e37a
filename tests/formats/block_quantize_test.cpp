// Whole matrices: bytes against a plain re-derivation, ragged shapes, special values, errors.
#include "formats/block_scale.h"
#include "formats/scale_layout.h"
#include "tests/formats/block_data.h"
#include "tests/formats/oracle.h"

#include <cstring>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {
namespace {

using testing::ElementsAre;

constexpr float kFltInfinity = std::numeric_limits<float>::infinity();
constexpr float kFltNan = std::numeric_limits<float>::quiet_NaN();

// --- a second quantiser, as plain as the formulas ------------------------------------------------

struct Expected {
  std::vector<uint8_t> codes, scales;  // codes unpacked, of the padded matrix
  std::vector<float> values;           // dequantised, of the padded matrix
};

const oracle::Rounder& rounder_of(const FormatSpec& format) {
  static const oracle::Rounder kE4m3Rounder(kE4m3);
  static const oracle::Rounder kE2m1Rounder(kE2m1);
  return format == kE4m3 ? kE4m3Rounder : kE2m1Rounder;
}

/// Value and stored bytes of the scale.
std::pair<float, std::vector<uint8_t>> expected_scale(const std::string& name, float amax,
                                                      float encode_scale) {
  const bool is_fp8 = name.find("fp8") != std::string::npos;
  if (name == "nvfp4") {
    const float ideal = amax * (encode_scale * (1.0f / 6.0f));
    const uint32_t code = rounder_of(kE4m3).encode(ideal, {});
    return {static_cast<float>(rounder_of(kE4m3).values()[code]), {static_cast<uint8_t>(code)}};
  }
  if (name == "fp8_1x128" || name == "fp8_128x128") {
    const float scale = std::max(amax, 1e-4f) * (1.0f / 448.0f);
    std::vector<uint8_t> bytes(4);
    std::memcpy(bytes.data(), &scale, 4);
    return {scale, bytes};
  }
  int log2 = 0;
  if (name == "mxfp8" || name == "mxfp4") {
    log2 = amax == 0 ? -127 : std::ilogb(amax) - (is_fp8 ? 8 : 2);
  } else {
    const float ratio = is_fp8 ? std::max(amax, 1e-4f) * (1.0f / 448.0f)
                               : std::max(amax, std::ldexp(6.0f, -126)) * (1.0f / 6.0f);
    log2 = static_cast<int>(std::ceil(std::log2(static_cast<long double>(ratio))));
  }
  log2 = std::max(log2, -127);
  return {std::ldexp(1.0f, log2), {static_cast<uint8_t>(log2 + 127)}};
}

Expected expected_tensor(const BlockFormat& format, std::span<const float> matrix, int64_t rows,
                         int64_t cols, float encode_scale) {
  const int64_t block_rows = format.block_rows, block_cols = format.block_cols;
  const int64_t down = (rows + block_rows - 1) / block_rows;
  const int64_t across = (cols + block_cols - 1) / block_cols;
  const int64_t padded_cols = across * block_cols;
  std::vector<float> padded(down * block_rows * padded_cols);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) padded[r * padded_cols + c] = matrix[r * cols + c];
  }
  Expected expected{std::vector<uint8_t>(padded.size()), {}, std::vector<float>(padded.size())};
  for (int64_t block = 0; block < down * across; ++block) {
    const int64_t first = block / across * block_rows * padded_cols + block % across * block_cols;
    float amax = 0;
    for (int64_t i = 0; i < block_rows * block_cols; ++i) {
      amax =
          std::fmax(amax, std::fabs(padded[first + i / block_cols * padded_cols + i % block_cols]));
    }
    const auto [scale, bytes] = expected_scale(format.name, amax, encode_scale);
    expected.scales.insert(expected.scales.end(), bytes.begin(), bytes.end());
    for (int64_t i = 0; i < block_rows * block_cols; ++i) {
      const int64_t at = first + i / block_cols * padded_cols + i % block_cols;
      const float scaled = format.has_tensor_scale
                               ? padded[at] * std::fmin(1.0f / (scale * (1.0f / encode_scale)),
                                                        std::numeric_limits<float>::max())
                               : padded[at] / scale;
      const uint32_t code = rounder_of(format.element).encode(scaled, {});
      const uint32_t sign = 1u << (format.element.bits() - 1);
      const auto magnitude =
          static_cast<float>(rounder_of(format.element).values()[code & (sign - 1)]);
      expected.codes[at] = static_cast<uint8_t>(code);
      expected.values[at] = (code & sign ? -magnitude : magnitude) * scale * (1.0f / encode_scale);
    }
  }
  return expected;
}

std::vector<uint8_t> packed(const BlockFormat& format, const std::vector<uint8_t>& codes) {
  if (format.element.bits() == 8) return codes;
  std::vector<uint8_t> bytes(codes.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(codes[2 * i] | codes[2 * i + 1] << 4);
  }
  return bytes;
}

float largest(std::span<const float> values) {
  float amax = 0;
  for (const float x : values) amax = std::fmax(amax, std::fabs(x));
  return amax;
}

void expect_like_plain(const BlockFormat& format, const std::vector<float>& matrix, int64_t rows,
                       int64_t cols, std::optional<float> encode_scale = {}) {
  SCOPED_TRACE(testing::Message() << format.name << " " << rows << " x " << cols);
  float plain_scale = 1;
  if (format.has_tensor_scale) {
    plain_scale = encode_scale.value_or(largest(matrix) == 0 ? 1.0f : 2688.0f / largest(matrix));
  }
  const Expected expected = expected_tensor(format, matrix, rows, cols, plain_scale);
  const QuantizedTensor tensor =
      quantize(format, matrix, rows, cols, {.encode_scale = encode_scale});
  ASSERT_EQ(tensor.rows, rows);
  ASSERT_EQ(tensor.cols, cols);
  ASSERT_EQ(tensor.padded_rows % format.block_rows, 0);
  ASSERT_EQ(tensor.padded_cols % format.block_cols, 0);
  ASSERT_EQ(tensor.tensor_scale, 1.0f / plain_scale);
  ASSERT_EQ(tensor.scales, expected.scales);
  ASSERT_EQ(tensor.codes, packed(format, expected.codes));
  const std::vector<float> values = dequantize(format, tensor);
  ASSERT_EQ(std::ssize(values), rows * cols);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      ASSERT_EQ(values[r * cols + c], expected.values[r * tensor.padded_cols + c]) << r << "," << c;
    }
  }
}

TEST(Quantize, BytesLikeThePlainQuantiser) {
  for (const BlockFormat& format : kBlockFormats) {
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{128, 256}, {7, 512}, {256, 128}}) {
      const uint64_t seed = rows * 1000 + cols;
      expect_like_plain(format, normal_values(rows * cols, seed), rows, cols);
      expect_like_plain(format, rough_values(rows, cols, -30, 30, seed), rows, cols);
      // Down to fp32 subnormals and up to values whose squares overflow.
      expect_like_plain(format, rough_values(rows, cols, -149, 120, seed), rows, cols);
    }
  }
}

// The middles between neighbouring values of a format, with the values themselves if wanted.
std::vector<double> ties_of(const FormatSpec& format, double from, double to, bool with_values) {
  std::vector<double> ties;
  const std::vector<double>& values = rounder_of(format).values();
  for (size_t i = 0; values[i + 1] <= to; ++i) {
    if (values[i] < from) continue;
    ties.push_back((values[i] + values[i + 1]) / 2);
    if (with_values) ties.push_back(values[i]);
  }
  return ties;
}

// Random data almost never tells x / s from x * (1 / s), or amax * (G / 6) from (amax * G) / 6.
TEST(Quantize, BytesAtTiesFollowTheOrderOfOperations) {
  constexpr int64_t kRows = 256, kCols = 512;
  std::mt19937_64 random(61);
  for (int trial = 0; trial < 8; ++trial) {
    std::vector<double> scales;
    for (int i = 0; i < 64; ++i) scales.push_back(std::exp2(8 * uniform(random)));
    const auto fp8_ties = ties_of(kE4m3, 1, 448, false);
    expect_like_plain(kFp8Block1x128,
                      near_ties(kRows, kCols, 128, fp8_ties, scales, 448, 1, random()), kRows,
                      kCols);

    const auto encode_scale = static_cast<float>(std::exp2(20 * uniform(random) - 10));
    const auto fp4_ties = ties_of(kE2m1, 0, 6, false);
    const auto ue4m3_ties = ties_of(kE4m3, 1, 448, true);
    expect_like_plain(kNvfp4,
                      near_ties(kRows, kCols, 16, fp4_ties, ue4m3_ties, 6, encode_scale, random()),
                      kRows, kCols, encode_scale);
  }
}

TEST(Quantize, RaggedShapesArePaddedWithZeros) {
  for (const BlockFormat& format : kBlockFormats) {
    for (const int64_t rows : {1, 2, 127, 129}) {
      for (const int64_t cols : {1, 15, 17, 33, 65, 127, 129, 200}) {
        expect_like_plain(format, rough_values(rows, cols, -3, 3, rows + cols), rows, cols);
      }
    }
  }
}

TEST(Quantize, Nvfp4WithAGivenEncodeScale) {
  for (const float encode_scale : {1.0f, 896.0f, 0.01f, 1e30f}) {
    expect_like_plain(kNvfp4, rough_values(16, 64, -12, 6, 5), 16, 64, encode_scale);
  }
}

TEST(Quantize, EmptyMatrices) {
  for (const BlockFormat& format : kBlockFormats) {
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{0, 0}, {0, 64}, {64, 0}}) {
      const QuantizedTensor tensor = quantize(format, {}, rows, cols);
      EXPECT_TRUE(tensor.codes.empty());
      EXPECT_TRUE(tensor.scales.empty());
      EXPECT_TRUE(dequantize(format, tensor).empty());
    }
  }
}

// --- check values --------------------------------------------------------------------------------

// FlashInfer's test of the DeepSeek-V4 KV cache: every e2m1 value, -0 kept as code 8.
TEST(Quantize, Nvfp4KvBytes) {
  const std::vector<float> values = {0, -0.0f, .5f, -.5f, 1, -1, 1.5f, -1.5f,
                                     2, -2,    3,   -3,   4, -4, 6,    -6};
  const QuantizedTensor tensor = quantize(kNvfp4, values, 1, 16, {.encode_scale = 1.0f});
  EXPECT_THAT(tensor.scales, ElementsAre(0x38));
  EXPECT_THAT(tensor.codes, ElementsAre(0x80, 0x91, 0xa2, 0xb3, 0xc4, 0xd5, 0xe6, 0xf7));
  EXPECT_EQ(tensor.tensor_scale, 1.0f);
  EXPECT_EQ(dequantize(kNvfp4, tensor), values);
}

TEST(Quantize, ZeroBlocks) {
  const std::map<std::string, std::vector<uint8_t>> scales = {
      {"fp8_1x128", {0xad, 0xac, 0x6f, 0x34}},  // fp32(1e-4) * fp32(1 / 448), little endian
      {"fp8_128x128", {0xad, 0xac, 0x6f, 0x34}},
      {"fp8_1x128_ue8m0", {105}},
      {"fp8_128x128_ue8m0", {105}},
      {"fp8_64_pow2", {105}},
      {"mxfp8", {0}},
      {"mxfp8_ceil", {105}},
      {"mxfp4", {0}},
      {"mxfp4_ceil", {1}},
      {"nvfp4", {0}}};
  for (const BlockFormat& format : kBlockFormats) {
    const std::vector<float> zeros(format.block_cols, 0.0f);
    const QuantizedTensor tensor = quantize(format, zeros, 1, format.block_cols);
    EXPECT_EQ(tensor.scales, scales.at(format.name)) << format.name;
    EXPECT_THAT(tensor.codes, testing::Each(0)) << format.name;
    EXPECT_EQ(dequantize(format, tensor), zeros) << format.name;
  }
}

TEST(Quantize, ScalesOf128x128BlocksAreRowMajor) {
  // Block (i, j) holds one value, 448 * 2^(4i + j), so its scale is 2^(4i + j).
  std::vector<float> values(256 * 384);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j)
      values[(128 * i + 77) * 384 + 128 * j + 5] = std::ldexp(448.0f, 4 * i + j);
  }
  const QuantizedTensor tensor = quantize(kFp8Block128x128Ue8m0, values, 256, 384);
  EXPECT_THAT(tensor.scales, ElementsAre(127, 128, 129, 131, 132, 133));
  EXPECT_EQ(dequantize(kFp8Block128x128Ue8m0, tensor), values);
}

// The way from a matrix to what a Blackwell kernel reads: scales in the 128x4 order.
TEST(Quantize, ScalesFeedTheBlackwellLayout) {
  const QuantizedTensor tensor = quantize(kNvfp4, normal_values(130 * 160, 3), 130, 160);
  const int64_t scale_cols = tensor.padded_cols / kNvfp4.block_cols;
  const auto swizzled = swizzle_scales(tensor.scales, tensor.padded_rows, scale_cols);
  EXPECT_EQ(swizzled[swizzled_scale_offset(129, 7, scale_cols)],
            tensor.scales[129 * scale_cols + 7]);
  EXPECT_EQ(std::ssize(swizzled), 2 * 3 * 512);
}

// --- values that are not finite ------------------------------------------------------------------

TEST(Quantize, NotFiniteValuesPoisonTheirBlockOnly) {
  for (const BlockFormat& format : kBlockFormats) {
    SCOPED_TRACE(format.name);
    const int64_t cols = 3 * format.block_cols;
    const int64_t rows = format.block_rows;
    for (const float bad : {kFltNan, -kFltNan, kFltInfinity, -kFltInfinity}) {
      std::vector<float> values = normal_values(rows * cols, 11);
      const std::vector<float> clean = dequantize(format, quantize(format, values, rows, cols));
      // The largest magnitude stays outside the poisoned block, so G does not change.
      values[format.block_cols + 1] = 0;
      values[0] = 100;
      const QuantizedTensor before = quantize(format, values, rows, cols);
      values[format.block_cols + 1] = bad;
      const QuantizedTensor after = quantize(format, values, rows, cols);
      EXPECT_EQ(after.tensor_scale, before.tensor_scale);
      const std::vector<float> expected = dequantize(format, before);
      const std::vector<float> actual = dequantize(format, after);
      for (int64_t i = 0; i < rows * cols; ++i) {
        const bool is_poisoned = i % cols / format.block_cols == 1;
        ASSERT_EQ(std::isnan(actual[i]), is_poisoned) << i;
        ASSERT_TRUE(is_poisoned || actual[i] == expected[i]) << i;
      }
    }
  }
}

}  // namespace
}  // namespace tilewright
