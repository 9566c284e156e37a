// Matrices for the quantising kernels, as they lie on the device: of every kind of number, with
// blocks that decide on the last bit of a quotient.
#pragma once

#include "formats/block_scale.h"
#include "kernels/quantize/quantize.h"
#include "tests/formats/block_data.h"
#include "tests/kernels/kernel_test.h"

#include <cmath>
#include <limits>

namespace tilewright::kernels {

/// A matrix of a format of at most 32 bits, rows `stride` codes apart, and what the codes stand
/// for.
struct SourceMatrix {
  std::vector<std::uint8_t> bytes;
  std::vector<float> values;  ///< contiguous
  std::int64_t rows, cols, stride;
};

/// Rows of very different sizes, zeros of both signs, subnormal numbers, ties of e4m3 and e2m1
/// times odd scales, and in some blocks of 128 an infinity or a NaN.
inline SourceMatrix draw_source(const FormatSpec& format, std::int64_t rows, std::int64_t cols,
                                std::uint64_t seed, std::int64_t stride = 0,
                                bool has_infinities = true) {
  std::mt19937_64 random(seed);
  const int span = format.exponent_bits == 5 ? 14 : 120;
  std::vector<float> values = rough_values(rows, cols, -span, span, seed + 1);
  constexpr float kTies[] = {0.25f, 0.75f, 1.75f, 2.5f, 5.0f, 0.0009765625f, 17.0f, 1.0625f, 19.0f};
  for (std::int64_t row = 1; row < rows;
       row += 3) {  // quotients near ties: amax is 448 or 6 scales
    const auto scale = static_cast<float>(std::ldexp(uniform(random) + 1, span == 14 ? -6 : -3));
    for (std::int64_t col = 0; col < cols; ++col) {
      float& x = values[row * cols + col];
      x = std::copysign(nudged(kTies[random() % std::size(kTies)] * scale, random), x);
      if (random() % 16 == 0) x = (random() % 2 == 0 ? 448.0f : 6.0f) * scale;
    }
  }
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    if (random() % 512 == 0)
      values[i] = std::numeric_limits<float>::denorm_min() * (random() % 999);
    if (random() % 1024 == 0 && has_infinities)
      values[i] = random() % 2 == 0 ? -std::numeric_limits<float>::infinity()
                                    : std::numeric_limits<float>::quiet_NaN();
  }
  SourceMatrix source = {{}, {}, rows, cols, stride == 0 ? cols : stride};
  const int elem_bytes = format.bits() / 8;
  source.bytes.assign(rows * source.stride * elem_bytes, 0x77);
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    std::uint32_t code = encode(format, values[i], {.saturation = Saturation::kSaturate});
    if (std::isinf(values[i])) code = infinity_code(format) | (code & format.sign_mask());
    source.values.push_back(static_cast<float>(decode(format, code)));
    std::memcpy(&source.bytes[(i / cols * source.stride + i % cols) * elem_bytes], &code,
                elem_bytes);
  }
  return source;
}

/// What formats/ says of the rows, padded to out_rows x out_cols with zero codes and scales of 0.
struct Quantized {
  std::vector<std::uint8_t> codes, scales;
  float tensor_scale = 1;
};

inline std::vector<float> gathered(const SourceMatrix& source,
                                   const std::vector<std::int32_t>& row_index) {
  if (row_index.empty()) return source.values;
  std::vector<float> values;
  for (const std::int32_t row : row_index) {
    for (std::int64_t col = 0; col < source.cols; ++col)
      values.push_back(row < 0 ? 0.0f : source.values[row * source.cols + col]);
  }
  return values;
}

/// Scales row-major, [out_rows, out_cols / block_cols]; code_bits 4 or 8.
inline Quantized expected_of(const BlockFormat& format, const std::vector<float>& values,
                             std::int64_t rows, std::int64_t cols, std::int64_t out_rows,
                             std::int64_t out_cols, const QuantizeOptions& options = {}) {
  const QuantizedTensor tensor = quantize(format, values, rows, cols, options);
  const int bits = format.element.bits(), bytes = scale_bytes(format);
  const std::int64_t blocks = out_cols / format.block_cols;
  const std::int64_t have = tensor.padded_cols / format.block_cols;
  Quantized out = {{}, {}, tensor.tensor_scale};
  out.codes.resize(out_rows * out_cols * bits / 8);
  out.scales.resize(out_rows / format.block_rows * blocks * bytes);
  for (std::int64_t row = 0; row < tensor.padded_rows; ++row)
    std::memcpy(&out.codes[row * out_cols * bits / 8],
                &tensor.codes[row * tensor.padded_cols * bits / 8], tensor.padded_cols * bits / 8);
  for (std::int64_t row = 0; row < tensor.padded_rows / format.block_rows; ++row)
    std::memcpy(&out.scales[row * blocks * bytes], &tensor.scales[row * have * bytes],
                have * bytes);
  return out;
}

/// The first difference, with its place.
inline void expect_bytes(const std::vector<std::uint8_t>& found,
                         const std::vector<std::uint8_t>& expected, const std::string& what,
                         std::int64_t row_bytes) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(int{found[i]}, int{expected[i]})
        << what << ": byte " << i << ", row " << i / row_bytes << ", byte " << i % row_bytes
        << " of it";
}

struct SourceFormat {
  const char* name;
  FormatSpec format;
};
inline constexpr SourceFormat kSourceFormats[] = {{"bf16", kBf16}, {"f16", kFp16}, {"f32", kFp32}};

}  // namespace tilewright::kernels
