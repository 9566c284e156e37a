#include "model/weight_source.h"

#include "base/error.h"
#include "formats/minifloat.h"

#include <cstring>

namespace tilewright::model {

namespace {

void append_bf16(std::vector<std::uint8_t>& to, const MatrixRows& part) {
  const std::int64_t cols = part.matrix->cols;
  const std::size_t start = to.size();
  to.resize(start + static_cast<std::size_t>(stacked_rows(part.rows) * cols * 2));
  if (part.matrix->format.empty() && part.matrix->codes.dtype == DType::kBF16) {
    std::memcpy(to.data() + start,
                static_cast<const std::uint8_t*>(part.matrix->codes.data) + part.first * cols * 2,
                static_cast<std::size_t>(part.rows * cols * 2));
    return;
  }
  // Whole blocks of 128 rows at a time, of which some may not be needed.
  const std::int64_t from = part.first / 128 * 128;
  const auto values = read_checkpoint_rows(*part.matrix, from, part.first + part.rows);
  for (std::int64_t i = 0; i < part.rows * cols; ++i) {
    const float x = values[static_cast<std::size_t>((part.first - from) * cols + i)];
    const auto code = static_cast<std::uint16_t>(encode(kBf16, static_cast<double>(x)));
    std::memcpy(to.data() + start + 2 * i, &code, sizeof code);
  }
}

constexpr std::int64_t kFp8BlockRows = 128;

// Rows that share a scale with rows before them become bf16: output groups of fewer than 128 rows.
bool begins_a_block(const MatrixRows& part) {
  return weight_format(*part.matrix) != NumberFormat::kFp8 || part.first % kFp8BlockRows == 0;
}

ConstTensorView rows_of(const ConstTensorView& view, std::int64_t first, std::int64_t rows) {
  ConstTensorView part = view;
  part.data = static_cast<const std::uint8_t*>(view.data) +
              first * view.strides[0] * bits_per_elem(view.dtype) / 8;
  part.shape[0] = rows;
  return part;
}

LinearWeightSource quantised(const MatrixRows& part) {
  const Matrix& m = *part.matrix;
  const NumberFormat format = weight_format(m);
  const std::int64_t block_rows = format == NumberFormat::kFp8 ? kFp8BlockRows : 1;
  LinearWeightSource source = {.format = format};
  source.values = rows_of(m.codes, part.first, part.rows);
  source.scales =
      rows_of(m.scales, part.first / block_rows, (part.rows + block_rows - 1) / block_rows);
  if (format == NumberFormat::kNvfp4) source.global_scale = m.tensor_scale;
  return source;
}

}  // namespace

NumberFormat weight_format(const Matrix& matrix) {
  if (matrix.format.starts_with("fp8_128x128")) return NumberFormat::kFp8;
  if (matrix.format.starts_with("mxfp4")) return NumberFormat::kMxfp4;
  if (matrix.format == "nvfp4") return NumberFormat::kNvfp4;
  return NumberFormat::kBf16;
}

bool can_stack(const Matrix& matrix) {
  return weight_format(matrix) == NumberFormat::kBf16;
}

WeightSource weight_source(std::span<const MatrixRows> parts) {
  WeightSource result;
  if (parts.size() == 1 && !can_stack(*parts[0].matrix) && begins_a_block(parts[0])) {
    result.source = quantised(parts[0]);
    return result;
  }
  std::int64_t rows = 0;
  for (const MatrixRows& part : parts) {
    append_bf16(result.values, part);
    rows += stacked_rows(part.rows);
  }
  result.source = {.format = NumberFormat::kBf16};
  result.source.values = contiguous_view(static_cast<const void*>(result.values.data()),
                                         DType::kBF16, {rows, parts[0].matrix->cols});
  return result;
}

}  // namespace tilewright::model
