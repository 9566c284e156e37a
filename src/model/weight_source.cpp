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

// Rows that share a scale with rows before them become bf16.
bool begins_a_block(const MatrixRows& part) {
  return weight_format(*part.matrix) != NumberFormat::kFp8 || part.first % kFp8BlockRows == 0;
}

bool are_whole_blocks(const MatrixRows& part, std::int64_t groups) {
  return groups == 1 || weight_format(*part.matrix) != NumberFormat::kFp8 ||
         part.rows / groups % kFp8BlockRows == 0;
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

void append(std::vector<std::uint8_t>& to, const ConstTensorView& view) {
  const auto* const bytes = static_cast<const std::uint8_t*>(view.data);
  const std::int64_t elems = view.shape[0] * view.shape[1];
  to.insert(to.end(), bytes, bytes + elems * bits_per_elem(view.dtype) / 8);
}

// Blocks of scales do not cross from one to the next: can_stack().
WeightSource stacked_fp8(std::span<const MatrixRows> parts) {
  WeightSource result = {.source = {.format = NumberFormat::kFp8}, .values = {}, .scales = {}};
  std::int64_t rows = 0;
  for (const MatrixRows& part : parts) {
    const WeightSource single = quantised(part);
    append(result.values, single.source.values);
    append(result.scales, single.source.scales);
    rows += part.rows;
  }
  const Matrix& first = *parts[0].matrix;
  const auto view = [&](const std::vector<std::uint8_t>& bytes, const ConstTensorView& of,
                        std::int64_t num_rows) {
    return contiguous_view(static_cast<const void*>(bytes.data()), of.dtype,
                           {num_rows, of.shape[1]});
  };
  result.source.values = view(result.values, first.codes, rows);
  result.source.scales =
      view(result.scales, first.scales, (rows + kFp8BlockRows - 1) / kFp8BlockRows);
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

bool can_stack(const MatrixRows& upper, const MatrixRows& lower) {
  const NumberFormat format = weight_format(*upper.matrix);
  if (format != weight_format(*lower.matrix)) return false;
  if (format == NumberFormat::kBf16) return true;
  return format == NumberFormat::kFp8 && begins_a_block(upper) && begins_a_block(lower) &&
         upper.rows % kFp8BlockRows == 0 &&
         upper.matrix->scales.dtype == lower.matrix->scales.dtype;
}

WeightSource weight_source(std::span<const MatrixRows> parts, std::int64_t groups) {
  const MatrixRows& first = parts[0];
  for (const MatrixRows& part : parts) check_checkpoint_scales(*part.matrix);
  if (weight_format(*first.matrix) != NumberFormat::kBf16 && begins_a_block(first) &&
      are_whole_blocks(first, groups)) {
    WeightSource result = parts.size() == 1 ? quantised(first) : stacked_fp8(parts);
    result.source.groups = groups;
    return result;
  }
  WeightSource result;
  result.source = {.format = NumberFormat::kBf16};
  result.source.groups = groups;
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
