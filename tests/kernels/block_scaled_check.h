// Operands, launches and expectations for the block-scaled GEMMs of Blackwell.
#pragma once

#include "formats/block_scale.h"
#include "formats/pack.h"
#include "formats/scale_layout.h"
#include "kernels/linear/sm100_block_scaled.h"
#include "tests/formats/block_data.h"
#include "tests/kernels/gemm_check.h"

#include <cmath>

namespace tilewright::kernels {

using device::TensorMapSwizzle;
using device::TensorMapType;

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

/// A variant of the kernels, and how it is launched.
struct BlockScaledVariant {
  BlockScaledConfig config;
  bool is_requantising;

  std::string entry() const {
    return fmt::format("{}_{}_{}cta_n{}",
                       config.is_nvfp4() ? "sm100_nvfp4_gemm" : "sm100_mxfp8_mxfp4_gemm",
                       is_requantising ? "nvfp4" : "bf16", config.tile.cluster(), config.tile.n);
  }
};

struct BlockScaledOutputs {
  std::vector<std::uint8_t> d, scales;
};

/// Buffers and maps of one launch.
class BlockScaledLaunch {
 public:
  BlockScaledLaunch(const Device& device, const BlockScaledVariant& variant, const ScaledMatrix& a,
                    const ScaledMatrix& b, float alpha, float encode_scale)
      : device_(device),
        variant_(variant),
        a_(Buffer::from(device, a.packed(32))),
        // Tensor copies that unpack 4-bit elements want rows of whole 128.
        b_(Buffer::from(device, b.packed(variant.config.is_nvfp4() ? 32 : 128))),
        a_scales_(Buffer::from(device, a.swizzled_scales())),
        b_scales_(Buffer::from(device, b.swizzled_scales())),
        row_bytes_(variant.is_requantising ? (b.rows + 1) / 2 : b.rows * 2),
        d_(device, static_cast<std::size_t>(a.rows * row_bytes_)),
        d_scales_(device, variant.is_requantising ? static_cast<std::size_t>(swizzled_scale_bytes(
                                                        a.rows, (b.rows + 15) / 16))
                                                  : 0) {
    params_.m = static_cast<std::int32_t>(a.rows);
    params_.n = static_cast<std::int32_t>(b.rows);
    params_.k = static_cast<std::int32_t>(a.k);
    params_.tiles_m = static_cast<std::int32_t>(ceil_div(a.rows, variant.config.tile_m()));
    params_.tiles_n = static_cast<std::int32_t>(ceil_div(b.rows, variant.config.tile.n));
    params_.d = d_.pointer();
    params_.d_row_bytes = row_bytes_;
    params_.d_scales = d_scales_.pointer();
    params_.alpha = alpha;
    params_.encode_scale = encode_scale;
    if (a.rows > 0 && b.rows > 0 && a.k > 0) make_operand_maps(a, b);
    params_.has_d_map = a.rows > 0 && row_bytes_ > 0 && row_bytes_ % 16 == 0 ? 1 : 0;
    if (params_.has_d_map != 0) make_result_map();
  }

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
  using Extent = std::uint64_t;

  void make_operand_maps(const ScaledMatrix& a, const ScaledMatrix& b) {
    const BlockScaledConfig& config = variant_.config;
    store_map(params_.a_map, bytes_map("A", a_, a.rows, a.k * a.element.bits() / 8, 128));
    if (config.is_nvfp4()) {
      store_map(params_.b_map, bytes_map("B", b_, b.rows, b.k / 2, config.b_box_rows()));
    } else {
      const Extent pitch = (static_cast<Extent>(b.k) + 127) / 128 * 128;
      store_map(params_.b_map,
                device::encode_tensor_map(
                    device_, {.name = "B",
                              .type = TensorMapType::k16U4Align16B,
                              .address = b_.address(),
                              .dims = {pitch, static_cast<Extent>(b.rows)},
                              .strides_bytes = {pitch / 2},
                              .box = {128, static_cast<std::uint32_t>(config.b_box_rows())},
                              .swizzle = TensorMapSwizzle::k128B}));
    }
    store_map(params_.a_scale_map, scale_map("scales of A", a_scales_, a, 1));
    store_map(params_.b_scale_map,
              scale_map("scales of B", b_scales_, b, config.scale_box_atoms_n()));
  }
  device::abi::CUtensorMap bytes_map(const char* name, const Buffer& buffer, std::int64_t rows,
                                     std::int64_t row_bytes, int box_rows) const {
    return device::encode_tensor_map(
        device_, {.name = name,
                  .type = TensorMapType::kUint8,
                  .address = buffer.address(),
                  .dims = {static_cast<Extent>(row_bytes), static_cast<Extent>(rows)},
                  .strides_bytes = {static_cast<Extent>(row_bytes)},
                  .box = {kBlockScaledStepBytes, static_cast<std::uint32_t>(box_rows)},
                  .swizzle = TensorMapSwizzle::k128B});
  }
  device::abi::CUtensorMap scale_map(const char* name, const Buffer& buffer, const ScaledMatrix& of,
                                     int box_atoms) const {
    const auto atoms_k = static_cast<Extent>(scale_tiles_along_k(of.blocks()));
    return device::encode_tensor_map(
        device_, {.name = name,
                  .type = TensorMapType::kUint32,
                  .address = buffer.address(),
                  .dims = {128, atoms_k, ceil_div(of.rows, 128)},
                  .strides_bytes = {512, atoms_k * 512},
                  .box = {128, static_cast<std::uint32_t>(variant_.config.scale_atoms_k()),
                          static_cast<std::uint32_t>(box_atoms)}});
  }
  void make_result_map() {
    const bool is_bf16 = !variant_.is_requantising;
    store_map(
        params_.d_map,
        device::encode_tensor_map(
            device_, {.name = "D",
                      .type = is_bf16 ? TensorMapType::kBfloat16 : TensorMapType::kUint8,
                      .address = d_.address(),
                      .dims = {static_cast<Extent>(is_bf16 ? row_bytes_ / 2 : row_bytes_),
                               static_cast<Extent>(params_.m)},
                      .strides_bytes = {static_cast<Extent>(row_bytes_)},
                      .box = {is_bf16 ? 64u : 32u, kBlockScaledStoreRows},
                      .swizzle = is_bf16 ? TensorMapSwizzle::k128B : TensorMapSwizzle::k32B}));
  }

  const Device& device_;
  BlockScaledVariant variant_;
  Buffer a_, b_, a_scales_, b_scales_;
  std::int64_t row_bytes_;
  Output<std::uint8_t> d_, d_scales_;
  BlockScaledGemmParams params_ = {};
};

}  // namespace tilewright::kernels
