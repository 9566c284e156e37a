// Experts into another number format.
#include "base/error.h"
#include "base/quote.h"
#include "formats/block_scale.h"
#include "model/weights.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace tilewright::model {
namespace {

struct FormatName {
  ExpertFormat format;
  std::string_view name, block_format;
};
constexpr FormatName kFormats[] = {{ExpertFormat::kStored, "stored", ""},
                                   {ExpertFormat::kBf16, "bf16", ""},
                                   {ExpertFormat::kFp8, "fp8", "fp8_128x128_ue8m0"},
                                   {ExpertFormat::kMxfp4, "mxfp4", "mxfp4"},
                                   {ExpertFormat::kNvfp4, "nvfp4", "nvfp4"}};

std::string_view block_format_of(ExpertFormat format) {
  for (const FormatName& row : kFormats)
    if (row.format == format) return row.block_format;
  return {};
}

ConstTensorView view_of(const void* data, DType dtype, std::vector<std::int64_t> shape) {
  return contiguous_view(data, dtype, std::move(shape));
}

void to_bf16(Matrix& matrix, MatrixStorage& storage) {
  const std::vector<float> values = read_matrix(matrix);
  std::vector<std::uint8_t> bytes(2 * values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto code = static_cast<std::uint16_t>(encode(kBf16, values[i]));
    std::memcpy(&bytes[2 * i], &code, sizeof code);
  }
  Matrix plain;
  plain.name = matrix.name;
  plain.rows = matrix.rows;
  plain.cols = matrix.cols;
  plain.codes = view_of(storage.keep(std::move(bytes)), DType::kBF16, {matrix.rows, matrix.cols});
  matrix = std::move(plain);
}

// Codes and scales as a checkpoint with DeepSeek's names has them; nvfp4 with ModelOpt's.
void to_blocks(Matrix& matrix, const BlockFormat& format, float amax, MatrixStorage& storage) {
  QuantizeOptions options;
  if (format.has_tensor_scale) options.encode_scale = tensor_encode_scale(format, amax);
  QuantizedTensor tensor = quantize(format, read_matrix(matrix), matrix.rows, matrix.cols, options);
  const auto names =
      format.has_tensor_scale ? CheckpointNames::kModelOpt : CheckpointNames::kDeepSeek;
  const auto parts = checkpoint_parts(names, format, matrix.name, matrix.rows, matrix.cols);
  Matrix result;
  result.name = matrix.name;
  result.format = format.name;
  result.rows = matrix.rows;
  result.cols = matrix.cols;
  result.tensor_scale = tensor.tensor_scale;
  result.codes = view_of(storage.keep(std::move(tensor.codes)), parts[0].dtype, parts[0].shape);
  result.scales = view_of(storage.keep(std::move(tensor.scales)), parts[1].dtype, parts[1].shape);
  matrix = std::move(result);
}

}  // namespace

std::optional<ExpertFormat> expert_format_by_name(std::string_view name) {
  for (const FormatName& row : kFormats)
    if (row.name == name) return row.format;
  return std::nullopt;
}

const void* MatrixStorage::keep(std::vector<std::uint8_t> bytes) {
  kept_.push_back(std::make_unique<std::vector<std::uint8_t>>(std::move(bytes)));
  return kept_.back()->data();
}

void convert_matrices(std::vector<Matrix*> matrices, ExpertFormat format, MatrixStorage& storage) {
  if (format == ExpertFormat::kStored) return;
  const std::string_view name = block_format_of(format);
  std::erase_if(matrices, [&](const Matrix* matrix) { return matrix->format == name; });
  if (format == ExpertFormat::kBf16) {
    for (Matrix* matrix : matrices) to_bf16(*matrix, storage);
    return;
  }
  const BlockFormat& blocks = block_format_by_name(name);
  float amax = 0;
  for (const Matrix* matrix : matrices) {
    require(matrix->cols % blocks.block_cols == 0, ErrorKind::kUnsupported,
            "weight {}: {} columns are not whole blocks of {}, as {} needs them. Leave the experts "
            "as they are stored",
            quote(matrix->name), matrix->cols, blocks.block_cols, name);
    if (blocks.has_tensor_scale) amax = std::max(amax, finite_amax(read_matrix(*matrix)));
  }
  for (Matrix* matrix : matrices) to_blocks(*matrix, blocks, amax, storage);
}

}  // namespace tilewright::model
