// Quantising and dequantising in the formats of block_format.h, exact to the last bit.
//
// Published quantisers agree on the formulas and differ in how they round. Everything here computes
// in fp32, in the order written, as the sources named in block_format.h do, so that scale bytes and
// codes come out equal and not merely close. The rules for one block are constexpr.
#pragma once

#include "formats/block_format.h"
#include "formats/minifloat.h"
#include "formats/scale_choice.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace tilewright {

/// The encode scale G that maps the largest magnitude of a tensor to the top of both levels:
/// 448 * 6 / tensor_amax (384 * 6 for the exact choices), at most FLT_MAX; 1 for a tensor of zeros.
constexpr float tensor_encode_scale(const BlockFormat& format, float tensor_amax,
                                    ScaleChoice choice = ScaleChoice::kNearest) {
  if (tensor_amax == 0) return 1;
  const double scale = decode(kUe4m3, top_scale_code(choice));
  const float top = static_cast<float>(scale * max_finite(format.element));
  return std::min(top / tensor_amax, std::numeric_limits<float>::max());
}

/// The scale of a block before it is rounded to the scale format: stored is
/// encode(format.scale, ideal_block_scale(...)), to nearest even and ue4m3 saturating. With max the
/// largest element value, G = encode_scale and amax first raised to min_amax:
///
///     kAmax       amax * (G * fp32(1 / max)) * stretch
///     kCeilPow2   2^ceil(log2(amax * fp32(1 / max)))
///     kFloorPow2  2^(floor(log2 amax) - floor(log2 max)), at least 2^-127
///
/// stretch = 1.5 makes an NVFP4 amax land on the element 4 instead of 6. An amax that is NaN or
/// infinite gives NaN.
constexpr float ideal_block_scale(const BlockFormat& format, float amax, float encode_scale = 1,
                                  float stretch = 1) {
  const bool is_finite = amax <= std::numeric_limits<float>::max();
  if (!is_finite) return std::numeric_limits<float>::quiet_NaN();
  const float raised = std::max(amax, format.min_amax);
  const float reciprocal = 1.0f / static_cast<float>(max_finite(format.element));
  if (format.rule == ScaleRule::kAmax) return raised * (encode_scale * reciprocal) * stretch;
  if (format.rule == ScaleRule::kCeilPow2) {
    return static_cast<float>(round_to(kUe8m0, raised * reciprocal, {.rounding = Rounding::kUp}));
  }
  const auto log2 = static_cast<int>(encode(kUe8m0, raised, {.rounding = Rounding::kTowardZero}));
  const int code = std::max(log2 - max_exponent(format.element), 0);
  return static_cast<float>(decode(kUe8m0, static_cast<uint32_t>(code)));
}

/// The exact scales around an ideal one, finite and not negative: the largest not above it, the
/// smallest not below it (the top one if there is none), and the nearer of the two, the larger on a
/// tie.
struct ExactScales {
  std::uint32_t below, above, nearest;
};
constexpr ExactScales exact_scales(float ideal) {
  const std::uint32_t below =
      exact_scale_at_most(encode(kUe4m3, ideal, {.rounding = Rounding::kTowardZero}));
  const auto low = static_cast<float>(decode(kUe4m3, below));
  if (low >= ideal) return {below, below, below};
  const std::uint32_t above = exact_scale_after(below);
  const float middle = (low + static_cast<float>(decode(kUe4m3, above))) * 0.5f;
  return {below, above, ideal < middle ? below : above};
}

/// What elements under two levels of scales are multiplied by: min(1 / (scale * (1 / G)), FLT_MAX).
constexpr float element_factor(float scale, float encode_scale) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const float step = scale * (1 / encode_scale);
  return step > 0 ? std::min(1 / step, kMax) : kMax;
}

/// The code of one element, given the value of its stored block scale; nearest even, saturating:
///
///     one level   x / scale
///     two levels  x * min(1 / (scale * (1 / G)), FLT_MAX)
///
/// Under a NaN scale every code is 0. Under an NVFP4 scale of 0 (a block so small that its scale
/// rounds to 0) nonzero elements saturate; they decode to 0 all the same.
constexpr uint32_t encode_element(const BlockFormat& format, float x, float scale,
                                  float encode_scale = 1) {
  if (scale != scale) return 0;
  if (!format.has_tensor_scale) return encode(format.element, x / scale);
  return encode(format.element, x * element_factor(scale, encode_scale));
}

/// element * scale * tensor_scale, in that order.
constexpr float decode_element(const BlockFormat& format, uint32_t code, float scale,
                               float tensor_scale = 1) {
  return static_cast<float>(decode(format.element, code)) * scale * tensor_scale;
}

/// A matrix in a block format. Rows and columns are padded with zeros to whole blocks.
struct QuantizedTensor {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t padded_rows = 0;  ///< rows rounded up to a multiple of block_rows
  int64_t padded_cols = 0;  ///< cols rounded up to a multiple of block_cols
  /// Packing::kDense, element (r, c) at index r * padded_cols + c.
  std::vector<uint8_t> codes;
  /// Row-major [padded_rows / block_rows, padded_cols / block_cols], scale_bytes() each. For the
  /// order that Blackwell reads, see scale_layout.h.
  std::vector<uint8_t> scales;
  float tensor_scale = 1;  ///< 1 / G where the format has a tensor scale, else 1
};

struct QuantizeOptions {
  /// G, for formats with a tensor scale. Default: tensor_encode_scale() of the largest finite
  /// magnitude and the choice. DeepSeek-V4 KV caches use 1; activations often a constant from
  /// calibration.
  std::optional<float> encode_scale = std::nullopt;
  ScaleChoice choice = ScaleChoice::kNearest;  ///< NVFP4
};

/// Largest finite magnitude; 0 if there is none.
float finite_amax(std::span<const float> values);

/// Quantises a row-major [rows, cols] matrix. A block that holds a NaN or an infinity gets a NaN
/// scale and zero codes, and decodes to NaN as a whole; other blocks are not affected. Zeros keep
/// their sign.
/// Errors   InvalidArgument if values.size() != rows * cols, a dimension is negative or not below
///          2^31, an option does not apply to the format, or encode_scale or its reciprocal is not
///          a finite number above 0
QuantizedTensor quantize(const BlockFormat& format, std::span<const float> values, int64_t rows,
                         int64_t cols, const QuantizeOptions& options = {});

/// The row-major [rows, cols] matrix that a QuantizedTensor stands for, without the padding.
/// Errors   InvalidArgument if its shape and array sizes do not fit the format
std::vector<float> dequantize(const BlockFormat& format, const QuantizedTensor& tensor);

}  // namespace tilewright
