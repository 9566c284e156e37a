// From a checkpoint's order to the bricks that the Hopper kernels read (kernels/linear/
// packed_weight.h), on the host.
#pragma once

#include "formats/packed_matrix.h"
#include "ops/linear/source.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tilewright::ops {

kernels::WeightFormat to_kernel(NumberFormat format) noexcept;
/// The order of FP4 codes for these activations.
kernels::WordOrder word_order(LinearActivations activations) noexcept;

/// One row of a packed matrix, in a checkpoint's order: bytes of its values and of its one-byte
/// scales. Without values it is a row of zeros.
struct PackRow {
  const std::uint8_t* values = nullptr;
  const std::uint8_t* scales = nullptr;
};

/// Rows may come from anywhere, and from several matrices that share a scale origin.
struct PackRequest {
  kernels::PackedShape shape;
  kernels::WordOrder order;
  std::span<const PackRow> rows;  ///< shape.rows
  /// Exponent of the largest scale (scale_origin()); of FP4.
  int origin = 0;
};

/// Exponent of the largest of some scales by its code: UE4M3 of kNvfp4, UE8M0 of kMxfp4.
int scale_origin(NumberFormat format, std::uint8_t largest_scale) noexcept;
/// log2 of what products with weights decoded for those activations have to be multiplied with.
int bias_exponent(NumberFormat format, kernels::WordOrder decoded_for, int origin) noexcept;
/// Errors   InvalidArgument if MXFP4 scales span more than the packed byte holds
void require_scale_span(const HostWeight& weight);

/// Writes shape.bytes() bytes, all of them, on all threads.
void pack_bricks(const PackRequest& request, std::span<std::uint8_t> out);

struct PackedWeight {
  NumberFormat format = NumberFormat::kBf16;
  kernels::PackedShape shape;
  kernels::WordOrder order;
  std::unique_ptr<std::uint8_t[]> bricks;  ///< shape.bytes()
  std::vector<float> block_scales;         ///< kFp8: [k / 128][row / 128]
  float global_scale = 1;
  int origin = 0;  ///< as in PackRequest

  /// Factor of every product with weights decoded for those activations, whatever the order of the
  /// codes: global scale and bias.
  float alpha(kernels::WordOrder decoded_for) const noexcept;

  std::span<const std::uint8_t> bytes() const noexcept {
    return {bricks.get(), static_cast<std::size_t>(shape.bytes())};
  }
};

/// A kFp8 weight as rows, for a tensor core that reads them beside e4m3 activations.
struct E4m3Rows {
  std::vector<std::uint8_t> values;  ///< [n][k rounded up to 64], in operand order; zeros beyond k
  std::vector<float> scales;         ///< as PackedWeight::block_scales
};
E4m3Rows e4m3_rows(const HostWeight& weight);

/// Errors   as require_scale_span
PackedWeight pack_weight(const HostWeight& weight, LinearActivations activations);

/// What the kernels make of a packed weight, row-major [rows, k] without padding: the products'
/// factors before alpha and block scales, as bf16 decodes them (exact) or as e4m3 (rounded). An
/// independent reading of the layout for tests, and the same-rounding reference of W4A8.
std::vector<double> unpack_weight(const PackedWeight& weight, kernels::WordOrder as);

}  // namespace tilewright::ops
