// What the weights of a linear layer stand for, and what remains of them and of activations in
// e4m3.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tilewright::reference {

/// A weight [n, k] as checkpoints store it, row-major.
struct StoredWeight {
  std::string_view format;  ///< "bf16", "fp8", "mxfp4", "nvfp4"
  int64_t n = 0, k = 0;
  std::span<const uint8_t> values = {};      ///< bf16 little-endian, e4m3, or two e2m1 in a byte
  std::span<const uint8_t> scales = {};      ///< mxfp4: ue8m0 [n, k/32]; nvfp4: ue4m3 [n, k/16]
  std::span<const float> block_scales = {};  ///< fp8: [ceil(n/128), ceil(k/128)]
  double global_scale = 1;                   ///< nvfp4
  double largest_scale = 0;  ///< of the whole matrix, if these are some of its rows; 0: found
};

/// w[j,c] = value * scale * global_scale, row-major [n, k], exact but for the last product.
/// Errors   InvalidArgument if an array does not have its shape, or the format is none of the four
std::vector<double> dequantize(const StoredWeight& weight);

/// The same for a tensor core that multiplies e4m3: values of 4 bits times their scale are rounded
/// to e4m3 (nearest even), after a power of two that gives the largest scale of the matrix the
/// exponent 5 (mxfp4: 6); bf16 and fp8 stay as they are.
std::vector<double> dequantize_as_e4m3(const StoredWeight& weight);

/// x [m, k] rounded to e4m3 with one scale for `block` neighbours of a row (0: for a row), by the
/// rule of the format fp8_1x128 (formats/block_format.h) in its fp32 arithmetic: code times scale.
/// A block with a NaN or an infinity becomes NaN.
std::vector<double> round_to_fp8(std::span<const float> x, int64_t m, int64_t k, int64_t block);

}  // namespace tilewright::reference
