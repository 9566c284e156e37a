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
    std::vector<std::uint8_t> copy;
    const auto rows = contiguous_rows(part.matrix->codes, part.first, part.first + part.rows, copy);
    std::memcpy(to.data() + start, rows.data, static_cast<std::size_t>(part.rows * cols * 2));
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

WeightSource quantised(const MatrixRows& part) {
  const Matrix& m = *part.matrix;
  const NumberFormat format = weight_format(m);
  const std::int64_t block_rows = format == NumberFormat::kFp8 ? kFp8BlockRows : 1;
  const std::int64_t last = part.first + part.rows;
  WeightSource result = {.source = {.format = format}, .values = {}, .scales = {}};
  result.source.values = contiguous_rows(m.codes, part.first, last, result.values);
  result.source.scales = contiguous_rows(m.scales, part.first / block_rows,
                                         (last + block_rows - 1) / block_rows, result.scales);
  if (format == NumberFormat::kNvfp4) result.source.global_scale = m.tensor_scale;
  return result;
}

bool is_bf16(const Matrix& matrix) {
  return matrix.format.empty() && matrix.codes.dtype == DType::kBF16;
}

// As it stands, if rows need no filling up and no conversion.
bool can_be_shown(const MatrixRows& part) {
  return is_bf16(*part.matrix) && part.rows == stacked_rows(part.rows);
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
  const MatrixRows& first = parts[0];
  for (const MatrixRows& part : parts) check_checkpoint_scales(*part.matrix);
  if (parts.size() == 1 && !can_stack(*first.matrix) && begins_a_block(first))
    return quantised(first);
  WeightSource result;
  result.source = {.format = NumberFormat::kBf16};
  if (parts.size() == 1 && can_be_shown(first)) {
    result.source.values =
        contiguous_rows(first.matrix->codes, first.first, first.first + first.rows, result.values);
    return result;
  }
  std::int64_t rows = 0;
  for (const MatrixRows& part : parts) {
    append_bf16(result.values, part);
    rows += stacked_rows(part.rows);
  }
  result.source.values = contiguous_view(static_cast<const void*>(result.values.data()),
                                         DType::kBF16, {rows, first.matrix->cols});
  return result;
}

}  // namespace tilewright::model
