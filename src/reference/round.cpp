#include "reference/round.h"

#include "formats/block_scale.h"
#include "formats/minifloat.h"
#include "reference/shape.h"

#include <algorithm>
#include <cmath>

namespace tilewright::reference {

void round_to_bf16(std::span<double> values) {
  for (double& value : values) value = round_to(kBf16, static_cast<float>(value));
}

double rounding_doubt(const FormatSpec& format, double x, double error) {
  return round_to(format, x + error) - round_to(format, x - error);
}

void round_to_blocks(const BlockFormat& format, std::span<double> values, int64_t rows,
                     int64_t cols, int64_t quantized_cols) {
  require_shape("round", "values", values.size(), "[rows, cols]", {rows, cols});
  require_at_least("round", "cols", cols, quantized_cols);
  std::vector<float> narrow;
  for (int64_t r = 0; r < rows; ++r) {
    const auto row = values.subspan(r * cols, quantized_cols);
    narrow.insert(narrow.end(), row.begin(), row.end());
  }
  QuantizeOptions options;
  if (format.has_tensor_scale) options.encode_scale = 1.0f;
  const auto rounded = dequantize(format, quantize(format, narrow, rows, quantized_cols, options));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < quantized_cols; ++c)
      values[r * cols + c] = rounded[r * quantized_cols + c];
  }
}

void round_rows_to_blocks(const BlockFormat& format, std::span<double> values, int64_t cols,
                          std::optional<float> encode_scale) {
  for (size_t at = 0; at < values.size(); at += cols) {
    const auto row = values.subspan(at, cols);
    const std::vector<float> narrow(row.begin(), row.end());
    QuantizeOptions options;
    if (format.has_tensor_scale) {
      float amax = 0;
      bool is_finite = true;
      for (const float x : narrow) {
        is_finite = is_finite && std::isfinite(x);
        amax = std::max(amax, std::abs(x));
      }
      options.encode_scale =
          encode_scale.value_or(is_finite ? tensor_encode_scale(format, amax) : 1.0f);
    }
    const auto rounded = dequantize(format, quantize(format, narrow, 1, cols, options));
    std::copy_n(rounded.begin(), cols, row.begin());
  }
}

}  // namespace tilewright::reference
