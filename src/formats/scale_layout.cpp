#include "formats/scale_layout.h"

#include "formats/matrix_shape.h"

namespace tilewright {

std::vector<uint8_t> swizzle_scales(std::span<const uint8_t> scales, int64_t rows, int64_t cols) {
  require_shape("swizzle_scales", rows, cols);
  require_size("swizzle_scales", "scales", scales.size(), rows * cols, rows, cols);
  std::vector<uint8_t> bytes(swizzled_scale_bytes(rows, cols));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      bytes[swizzled_scale_offset(row, col, cols)] = scales[row * cols + col];
    }
  }
  return bytes;
}

std::vector<uint8_t> unswizzle_scales(std::span<const uint8_t> bytes, int64_t rows, int64_t cols) {
  require_shape("unswizzle_scales", rows, cols);
  require_size("unswizzle_scales", "bytes", bytes.size(), swizzled_scale_bytes(rows, cols), rows,
               cols);
  std::vector<uint8_t> scales(rows * cols);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      scales[row * cols + col] = bytes[swizzled_scale_offset(row, col, cols)];
    }
  }
  return scales;
}

}  // namespace tilewright
