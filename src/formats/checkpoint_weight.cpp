#include "formats/checkpoint_weight.h"

#include "base/error.h"
#include "base/quote.h"
#include "formats/pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tilewright {

namespace {

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kScaleNames[] = {".weight_scale", ".scale", ".weight_scale_inv"};
constexpr std::string_view kTensorScaleName = ".weight_scale_2";

template <class... Args>
[[noreturn]] void refuse(std::string_view name, fmt::format_string<Args...> format,
                         Args&&... args) {
  fail(ErrorKind::kInvalidArgument, "weight {}: {}", quote(name),
       fmt::format(format, std::forward<Args>(args)...));
}

bool holds_fp4(DType dtype) {
  return dtype == DType::kU8 || dtype == DType::kI8 || dtype == DType::kF4;
}
bool is_plain(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF32;
}
bool may_be_codes(DType dtype) {
  return holds_fp4(dtype) || dtype == DType::kF8_E4M3;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// "x" of "x.weight"; nothing else can be quantised.
std::string stem_of(std::string_view name) {
  return std::string(name.substr(0, name.size() - kWeight.size()));
}

/// Without the dimensions of 1 that stand between those of a matrix.
std::vector<std::int64_t> squeezed(std::vector<std::int64_t> shape) {
  if (shape.size() == 4 && shape[1] == 1 && shape[3] == 1) return {shape[0], shape[2]};
  return shape;
}

float read_scalar(const SafetensorsModel& model, const std::string& name) {
  const ConstTensorView view = model.tensor(name);
  if (view.dtype != DType::kF32 || checked_num_elems(view.shape, name) != 1)
    refuse(name, "is {} {}; expected one F32", to_string(view.dtype), shape_text(view.shape));
  float value;
  std::memcpy(&value, view.data, sizeof value);
  if (!(std::isfinite(value) && value > 0))
    refuse(name, "is {}; expected a finite number above 0", value);
  return value;
}

/// Codes [rows, cols] of the weight, and which format its scales make of them.
void find_shape(CheckpointWeight& weight) {
  weight.rows = weight.codes.shape[0];
  weight.cols = weight.codes.shape[1];
  const DType dtype = weight.codes.dtype;
  if (dtype == DType::kU8 || dtype == DType::kI8) weight.cols *= 2;  // two a byte
}

void find_format(CheckpointWeight& weight, const std::string& scale_name) {
  const DType scale = weight.scales.dtype;
  const bool is_e8m0 = scale == DType::kF8_E8M0 || scale == DType::kU8;
  if (weight.codes.dtype == DType::kF8_E4M3 && (scale == DType::kF32 || is_e8m0)) {
    weight.format = is_e8m0 ? "fp8_128x128_ue8m0" : "fp8_128x128";
  } else if (holds_fp4(weight.codes.dtype) && scale == DType::kF8_E4M3) {
    weight.format = "nvfp4";
  } else if (holds_fp4(weight.codes.dtype) && is_e8m0) {
    weight.format = "mxfp4";
  } else {
    refuse(weight.name, "is {} with {} of {}; no format that is known has both",
           to_string(weight.codes.dtype), quote(scale_name), to_string(scale));
  }
  const BlockFormat& format = block_format_by_name(weight.format);
  if (format.block_rows == 1 && weight.cols % format.block_cols != 0)
    refuse(weight.name, "has {} columns; {} needs a multiple of {}", weight.cols, weight.format,
           format.block_cols);
  const std::vector<std::int64_t> expected = {ceil_div(weight.rows, format.block_rows),
                                              ceil_div(weight.cols, format.block_cols)};
  const std::vector<std::int64_t> stored = weight.scales.shape;
  weight.scales = contiguous_view(weight.scales.data, scale, expected);
  if (squeezed(stored) != expected)
    refuse(weight.name, "is [{}, {}] in {}, whose scales are {}; {} has {}", weight.rows,
           weight.cols, weight.format, shape_text(expected), quote(scale_name), shape_text(stored));
}

}  // namespace

CheckpointWeight find_checkpoint_weight(const SafetensorsModel& model, std::string_view name,
                                        ScaleCheck check) {
  CheckpointWeight weight;
  weight.name = std::string(name);
  weight.codes = model.tensor(name);
  if (weight.codes.shape.size() != 2)
    refuse(name, "has the shape {}; expected a matrix", shape_text(weight.codes.shape));
  find_shape(weight);
  if (is_plain(weight.codes.dtype)) return weight;
  if (!may_be_codes(weight.codes.dtype) || !name.ends_with(kWeight))
    refuse(name,
           "is {}; expected BF16, F16 or F32, or codes (U8, I8, F4, F8_E4M3) under a name that "
           "ends in .weight",
           to_string(weight.codes.dtype));
  const std::string stem = stem_of(name);
  for (const std::string_view suffix : kScaleNames) {
    const std::string scale_name = stem + std::string(suffix);
    if (!model.contains(scale_name)) continue;
    weight.scales = model.tensor(scale_name);
    weight.companions.push_back(scale_name);
    find_format(weight, scale_name);
    break;
  }
  if (weight.format.empty())
    refuse(name,
           "is {}, but its scales are missing: expected a tensor {} with _scale or _scale_inv "
           "behind it, or {}",
           to_string(weight.codes.dtype), quote(name), quote(stem + ".scale"));
  if (check == ScaleCheck::kNow) check_checkpoint_scales(weight);
  const std::string second = stem + std::string(kTensorScaleName);
  if (weight.format == "nvfp4") {
    if (!model.contains(second))
      refuse(name, "is nvfp4, but its tensor scale {} is missing", quote(second));
    weight.tensor_scale = read_scalar(model, second);
    weight.companions.push_back(second);
  }
  return weight;
}

namespace {

/// Codes of a one-byte scale from 0 to this are neither NaN nor negative, and no others.
std::uint8_t last_good_scale(const BlockFormat& format) {
  return format.scale == kUe4m3 ? 0x7e : 0xfe;
}

// A maximum, which compilers do many bytes at a time: a model has 9 GB of them.
bool are_good(std::uint8_t last, const std::uint8_t* bytes, std::int64_t count) {
  std::uint8_t most = 0;
  for (std::int64_t i = 0; i < count; ++i) most = std::max(most, bytes[i]);
  return most <= last;
}

}  // namespace

void check_checkpoint_scales(const CheckpointWeight& weight) {
  if (weight.format.empty()) return;
  const BlockFormat& format = block_format_by_name(weight.format);
  const bool is_float = scale_bytes(format) == 4;
  const std::int64_t rows = weight.scales.shape[0], cols = weight.scales.shape[1];
  const std::uint8_t last = last_good_scale(format);
  const auto* const bytes = static_cast<const std::uint8_t*>(weight.scales.data);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = row * weight.scales.strides[0];
    if (!is_float && are_good(last, bytes + first, cols)) continue;
    for (std::int64_t col = 0; col < cols; ++col) {
      float value;
      if (is_float)
        std::memcpy(&value, bytes + 4 * (first + col), sizeof value);
      else
        value = static_cast<float>(
            decode(format.scale == kUe4m3 ? kE4m3 : format.scale, bytes[first + col]));
      if (std::isfinite(value) && !std::signbit(value)) continue;
      refuse(weight.name,
             "scale number {} (row-major) is {}; expected a finite number of at least 0",
             row * cols + col, value);
    }
  }
}

ConstTensorView contiguous_rows(const ConstTensorView& matrix, std::int64_t first,
                                std::int64_t last, std::vector<std::uint8_t>& copy) {
  const std::int64_t bits = bits_per_elem(matrix.dtype), row_bytes = matrix.shape[1] * bits / 8;
  const std::int64_t stride_bytes = matrix.strides[0] * bits / 8;
  const auto* const from = static_cast<const std::uint8_t*>(matrix.data) + first * stride_bytes;
  const std::vector<std::int64_t> shape = {last - first, matrix.shape[1]};
  if (row_bytes == stride_bytes || last - first <= 1)
    return contiguous_view(static_cast<const void*>(from), matrix.dtype, shape);
  copy.resize(static_cast<std::size_t>((last - first) * row_bytes));
  for (std::int64_t row = 0; row < last - first; ++row)
    std::memcpy(copy.data() + row * row_bytes, from + row * stride_bytes,
                static_cast<std::size_t>(row_bytes));
  return contiguous_view(static_cast<const void*>(copy.data()), matrix.dtype, shape);
}

bool is_checkpoint_companion(const SafetensorsModel& model, std::string_view name) {
  for (const std::string_view suffix :
       {kScaleNames[0], kScaleNames[1], kScaleNames[2], kTensorScaleName}) {
    if (!name.ends_with(suffix)) continue;
    const std::string weight =
        std::string(name.substr(0, name.size() - suffix.size())) + std::string(kWeight);
    return model.contains(weight) && may_be_codes(model.tensor(weight).dtype);
  }
  return false;
}

std::vector<float> dequantize_rows(const BlockFormat& format, const void* codes, const void* scales,
                                   float tensor_scale, std::int64_t rows, std::int64_t cols) {
  const int bits = format.element.bits();
  QuantizedTensor tensor;
  tensor.rows = rows;
  tensor.cols = cols;
  tensor.padded_rows = ceil_div(rows, format.block_rows) * format.block_rows;
  tensor.padded_cols = ceil_div(cols, format.block_cols) * format.block_cols;
  tensor.tensor_scale = tensor_scale;
  const std::int64_t row_bytes = cols * bits / 8, padded_bytes = tensor.padded_cols * bits / 8;
  tensor.codes.resize(static_cast<std::size_t>(tensor.padded_rows * padded_bytes));
  for (std::int64_t row = 0; row < rows; ++row)
    std::memcpy(tensor.codes.data() + row * padded_bytes,
                static_cast<const std::uint8_t*>(codes) + row * row_bytes,
                static_cast<std::size_t>(row_bytes));
  const std::int64_t blocks =
      tensor.padded_rows / format.block_rows * (tensor.padded_cols / format.block_cols);
  const auto* const from = static_cast<const std::uint8_t*>(scales);
  tensor.scales.assign(from, from + blocks * scale_bytes(format));
  return dequantize(format, tensor);
}

std::vector<float> read_checkpoint_rows(const CheckpointWeight& weight, std::int64_t first,
                                        std::int64_t last) {
  std::vector<std::uint8_t> code_copy, scale_copy;
  const void* const codes = contiguous_rows(weight.codes, first, last, code_copy).data;
  if (!weight.format.empty()) {
    const BlockFormat& format = block_format_by_name(weight.format);
    const auto scales = contiguous_rows(weight.scales, first / format.block_rows,
                                        ceil_div(last, format.block_rows), scale_copy);
    return dequantize_rows(format, codes, scales.data, weight.tensor_scale, last - first,
                           weight.cols);
  }
  const std::int64_t count = (last - first) * weight.cols;
  std::vector<float> values(static_cast<std::size_t>(count));
  const auto* const from = static_cast<const std::uint8_t*>(codes);
  if (weight.codes.dtype == DType::kF32) {
    std::memcpy(values.data(), from, static_cast<std::size_t>(count) * sizeof(float));
    return values;
  }
  const bool is_bf16 = weight.codes.dtype == DType::kBF16;
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t code;
    std::memcpy(&code, from + 2 * i, sizeof code);
    values[static_cast<std::size_t>(i)] = is_bf16 ? std::bit_cast<float>(std::uint32_t{code} << 16)
                                                  : static_cast<float>(decode(kFp16, code));
  }
  return values;
}

std::vector<CheckpointPart> checkpoint_parts(CheckpointNames names, const BlockFormat& format,
                                             const std::string& name, std::int64_t rows,
                                             std::int64_t cols) {
  const bool is_model_opt = names == CheckpointNames::kModelOpt;
  const bool is_fp4 = format.element == kE2m1, has_fp32_scales = scale_bytes(format) == 4;
  require(is_model_opt || !format.has_tensor_scale, ErrorKind::kUnsupported,
          "weight {}: DeepSeek's names have no place for the tensor scale of {}. Use those of "
          "ModelOpt",
          quote(name), format.name);
  const std::string stem = stem_of(name);
  const std::int64_t scale_rows = ceil_div(rows, format.block_rows),
                     scale_cols = ceil_div(cols, format.block_cols);
  CheckpointPart codes = {name, DType::kF8_E4M3, {rows, cols}};
  if (is_fp4) codes = {name, is_model_opt ? DType::kU8 : DType::kI8, {rows, cols / 2}};
  CheckpointPart scales = {stem + ".weight_scale", DType::kF8_E4M3, {scale_rows, scale_cols}};
  if (!format.has_tensor_scale) {
    scales.dtype = has_fp32_scales ? DType::kF32 : is_model_opt ? DType::kU8 : DType::kF8_E8M0;
    if (!is_model_opt) scales.name = stem + (has_fp32_scales ? ".weight_scale_inv" : ".scale");
    if (is_model_opt && !is_fp4) scales.shape = {scale_rows, 1, scale_cols, 1};
  }
  std::vector<CheckpointPart> parts = {std::move(codes), std::move(scales)};
  if (format.has_tensor_scale) parts.push_back({stem + ".weight_scale_2", DType::kF32, {}});
  return parts;
}

}  // namespace tilewright
