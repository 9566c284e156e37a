// Operands, launches and expectations for the block-scaled GEMMs of Blackwell.
#pragma once

#include "formats/block_scale.h"
#include "formats/pack.h"
#include "formats/scale_layout.h"
#include "ops/block_scaled_linear/bind.h"
#include "tests/formats/block_data.h"
#include "tests/kernels/gemm_check.h"

#include <cmath>

namespace tilewright::kernels {

/// The tensor core's sums: products of one instruction and the accumulator.
inline constexpr TensorCore kMxf4nvf4TensorCore = {64, 35, 23};
inline constexpr TensorCore kMxf8f6f4TensorCore = {32, 25, 23};

/// One matrix [rows, k] of codes, with a scale code per block along k.
struct ScaledMatrix {
  FormatSpec element, scale;
  std::int64_t rows, k;
  int block;
  std::vector<std::uint8_t> codes, scales;  // row-major

  std::int64_t blocks() const { return k / block; }
  double value(std::int64_t row, std::int64_t col) const {
    return decode(element, codes[row * k + col]) *
           decode(scale, scales[row * blocks() + col / block]);
  }
  std::vector<double> values() const {
    std::vector<double> all;
    for (std::int64_t i = 0; i < rows * k; ++i) all.push_back(value(i / k, i % k));
    return all;
  }

  /// Dense rows, each padded to a multiple of `multiple` elements of -6 or NaN.
  std::vector<std::uint8_t> packed(std::int64_t multiple) const {
    const std::int64_t pitch = (k + multiple - 1) / multiple * multiple;
    std::vector<std::uint8_t> padded(static_cast<std::size_t>(rows * pitch),
                                     static_cast<std::uint8_t>(element.bits() == 4 ? 0xf : 0xff));
    for (std::int64_t i = 0; i < rows * k; ++i) padded[i / k * pitch + i % k] = codes[i];
    return pack_codes(padded, element.bits());
  }
  /// In the order of the hardware, NaN in the padding.
  std::vector<std::uint8_t> swizzled_scales() const {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(swizzled_scale_bytes(rows, blocks())),
                                    0xff);
    for (std::int64_t i = 0; i < rows * blocks(); ++i)
      bytes[swizzled_scale_offset(i / blocks(), i % blocks(), blocks())] = scales[i];
    return bytes;
  }
};

/// Random codes for which the tensor core's sums are exact but for their last rounding: scales span
/// few powers of two, and e4m3 elements are multiples of 1/8 below 2.
inline ScaledMatrix draw_matrix(std::uint64_t seed, const FormatSpec& element, int block,
                                std::int64_t rows, std::int64_t k) {
  Random random(seed);
  ScaledMatrix matrix = {element, block == 16 ? kUe4m3 : kUe8m0, rows, k, block, {}, {}};
  for (std::int64_t i = 0; i < rows * k; ++i) {
    const auto bits = static_cast<int>(random.bits() >> 7 & 0xff);
    const double eighths = (bits % 31 - 15) / 8.0;
    matrix.codes.push_back(
        static_cast<std::uint8_t>(element.bits() == 4 ? bits & 0xf : encode(element, eighths)));
  }
  for (std::int64_t i = 0; i < rows * matrix.blocks(); ++i) {
    const auto bits = static_cast<std::uint32_t>(random.bits() >> 9);
    const std::uint32_t code =
        matrix.scale == kUe4m3 ? (5 + bits % 4) << 3 | (bits >> 8 & 7) : 127 - 3 + bits % 7;
    matrix.scales.push_back(static_cast<std::uint8_t>(code));
  }
  return matrix;
}

/// Quantised normal numbers.
inline ScaledMatrix quantize_matrix(std::uint64_t seed, const BlockFormat& format,
                                    std::int64_t rows, std::int64_t k) {
  const std::vector<float> values = normal_values(rows * k, seed);
  const QuantizedTensor tensor = quantize(format, values, rows, k);
  return {format.element,
          format.scale,
          rows,
          k,
          format.block_cols,
          unpack_codes(tensor.codes, format.element.bits(), rows * k),
          tensor.scales};
}

/// Truncated to 24 significant bits.
inline double truncate_to_float(double x) {
  const auto rounded = static_cast<float>(x);
  return std::abs(rounded) > std::abs(x) ? std::nextafter(rounded, 0.0f) : rounded;
}

/// What the tensor core accumulates, where alignment loses nothing: the products of one instruction
/// are added exactly, and every sum is truncated to f32.
inline std::vector<float> accumulate(const BlockScaledConfig& config, const ScaledMatrix& a,
                                     const ScaledMatrix& b) {
  const std::vector<double> x = a.values(), y = b.values();
  std::vector<float> sums;
  for (std::int64_t i = 0; i < a.rows * b.rows; ++i) {
    const double* row = x.data() + i / b.rows * a.k;
    const double* col = y.data() + i % b.rows * a.k;
    double sum = 0;
    for (std::int64_t k = 0; k < a.k; ++k) {
      sum += row[k] * col[k];
      if ((k + 1) % config.instruction_k() == 0 || k + 1 == a.k) sum = truncate_to_float(sum);
    }
    sums.push_back(static_cast<float>(sum));
  }
  return sums;
}

using ops::BlockScaledVariant;

struct BlockScaledOutputs {
  std::vector<std::uint8_t> d, scales;
};

/// Buffers and arguments of one launch.
class BlockScaledLaunch {
 public:
  BlockScaledLaunch(const Device& device, const BlockScaledVariant& variant, const ScaledMatrix& a,
                    const ScaledMatrix& b, float alpha, float encode_scale)
      : device_(device),
        variant_(variant),
        a_(Buffer::from(device, a.packed(32))),
        b_(Buffer::from(device, b.packed(variant.config.unpacks_weight() ? 128 : 32))),
        a_scales_(Buffer::from(device, a.swizzled_scales())),
        b_scales_(Buffer::from(device, b.swizzled_scales())),
        d_(device, static_cast<std::size_t>(a.rows * variant.out_row_bytes(b.rows))),
        d_scales_(device, variant.is_requantising ? static_cast<std::size_t>(swizzled_scale_bytes(
                                                        a.rows, (b.rows + 15) / 16))
                                                  : 0),
        params_(ops::bind_block_scaled(device, variant, {a.rows, b.rows, a.k},
                                       {.a = pointer_to<const void>(a_),
                                        .b = pointer_to<const void>(b_),
                                        .a_scales = pointer_to<const void>(a_scales_),
                                        .b_scales = pointer_to<const void>(b_scales_),
                                        .d = d_.pointer(),
                                        .d_scales = d_scales_.pointer(),
                                        .a_row_bytes = variant.x_row_bytes(a.k),
                                        .b_row_bytes = variant.weight_row_bytes(b.k),
                                        .d_row_bytes = variant.out_row_bytes(b.rows)},
                                       {alpha, encode_scale})) {}

  BlockScaledOutputs run(std::uint32_t clusters) {
    const BlockScaledConfig& config = variant_.config;
    run_kernel(device_, variant_.entry(),
               {.grid = {clusters * static_cast<std::uint32_t>(config.tile.cluster())},
                .block = {kBlockScaledThreads},
                .dynamic_shared_bytes = static_cast<std::uint32_t>(config.shared_bytes())},
               params_);
    return {d_.read(), d_scales_.read()};
  }

 private:
  const Device& device_;
  BlockScaledVariant variant_;
  Buffer a_, b_, a_scales_, b_scales_;
  Output<std::uint8_t> d_, d_scales_;
  BlockScaledGemmParams params_;
};

}  // namespace tilewright::kernels
