#include "tilewright/tilewright.h"

#include "base/error.h"
#include "formats/block_scale.h"
#include "formats/matrix_shape.h"
#include "formats/pack.h"
#include "ops/c_api/convert/versions.h"
#include "ops/c_api/status.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

using nlohmann::json;
using tilewright::BlockFormat;
using tilewright::ErrorKind;
using tilewright::FormatSpec;
using tilewright::Rounding;
using tilewright::Saturation;
using tilewright::ScaleChoice;
using tilewright::c_api::guarded;
using tilewright::c_api::require_address;

namespace {

template <class Value>
struct Named {
  std::string_view name;
  Value value;
};

constexpr std::array<Named<Rounding>, 5> kRoundings = {{{"nearest_even", Rounding::kNearestEven},
                                                        {"nearest_away", Rounding::kNearestAway},
                                                        {"toward_zero", Rounding::kTowardZero},
                                                        {"up", Rounding::kUp},
                                                        {"down", Rounding::kDown}}};
constexpr std::array<Named<ScaleChoice>, 4> kChoices = {
    {{"nearest", ScaleChoice::kNearest},
     {"four_over_six", ScaleChoice::kFourOverSix},
     {"exact_nearest", ScaleChoice::kExactNearest},
     {"exact_best", ScaleChoice::kExactBest}}};

/// The value of that name, the first for NULL. Errors   InvalidArgument that lists the names
template <class Value, std::size_t kCount>
Value named(const char* function, const char* what, const char* name,
            const std::array<Named<Value>, kCount>& all) {
  if (name == nullptr) return all.front().value;
  std::string names;
  for (const Named<Value>& each : all) {
    if (each.name == name) return each.value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", each.name);
  }
  tilewright::fail(ErrorKind::kInvalidArgument, "{}: {} = \"{}\"; expected one of {}", function,
                   what, name, names);
}

Saturation saturation_of(std::int32_t is_saturating) {
  if (is_saturating < 0) return Saturation::kDefault;
  return is_saturating == 0 ? Saturation::kNone : Saturation::kSaturate;
}

std::string list_formats() {
  json formats = json::array(), blocks = json::array();
  for (const FormatSpec& format : tilewright::kFormats) {
    formats.push_back({{"name", format.name},
                       {"bits", format.bits()},
                       {"exponent_bits", format.exponent_bits},
                       {"mantissa_bits", format.mantissa_bits},
                       {"max", tilewright::max_finite(format)}});
  }
  for (const BlockFormat& format : tilewright::kBlockFormats) {
    blocks.push_back({{"name", format.name},
                      {"element", format.element.name},
                      {"scale", format.scale.name},
                      {"block_rows", format.block_rows},
                      {"block_cols", format.block_cols},
                      {"has_tensor_scale", format.has_tensor_scale}});
  }
  return json{{"formats", formats}, {"block_formats", blocks}}.dump();
}

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// A matrix in a block format, without its codes and scales.
tilewright::QuantizedTensor shape_of(const char* function, const BlockFormat& format,
                                     std::int64_t rows, std::int64_t cols) {
  tilewright::require_shape(function, rows, cols);
  tilewright::QuantizedTensor out;
  out.rows = rows;
  out.cols = cols;
  out.padded_rows = round_up(rows, format.block_rows);
  out.padded_cols = round_up(cols, format.block_cols);
  return out;
}

std::size_t code_bytes_of(const BlockFormat& format, const tilewright::QuantizedTensor& shape) {
  return static_cast<std::size_t>(tilewright::packed_bytes(
      tilewright::Packing::kDense, format.element.bits(), shape.padded_rows * shape.padded_cols));
}

std::size_t scale_bytes_of(const BlockFormat& format, const tilewright::QuantizedTensor& shape) {
  const std::int64_t num_blocks =
      shape.padded_rows / format.block_rows * (shape.padded_cols / format.block_cols);
  return static_cast<std::size_t>(num_blocks * tilewright::scale_bytes(format));
}

template <class T>
void copy_out(const std::vector<T>& from, T* to) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size() * sizeof(T));
}

}  // namespace

tw_status tw_formats(const char** text) {
  return guarded([&] {
    require_address(text, "tw_formats", "json");
    static const std::string list = list_formats();
    *text = list.c_str();
  });
}

tw_status tw_format_encode(const char* format, const char* rounding, std::int32_t is_saturating,
                           const double* values, std::size_t count, std::uint32_t* codes) {
  return guarded([&] {
    require_address(format, "tw_format_encode", "format");
    const FormatSpec& spec = tilewright::format_by_name(format);
    tilewright::EncodeOptions options;
    options.rounding = named("tw_format_encode", "rounding", rounding, kRoundings);
    options.saturation = saturation_of(is_saturating);
    if (count == 0) return;
    require_address(values, "tw_format_encode", "values");
    require_address(codes, "tw_format_encode", "codes");
    for (std::size_t i = 0; i < count; ++i) {
      codes[i] = tilewright::encode(spec, values[i], options);
    }
  });
}

tw_status tw_format_decode(const char* format, const std::uint32_t* codes, std::size_t count,
                           double* values) {
  return guarded([&] {
    require_address(format, "tw_format_decode", "format");
    const FormatSpec& spec = tilewright::format_by_name(format);
    if (count == 0) return;
    require_address(codes, "tw_format_decode", "codes");
    require_address(values, "tw_format_decode", "values");
    for (std::size_t i = 0; i < count; ++i) {
      tilewright::require(std::uint64_t{codes[i]} < std::uint64_t{1} << spec.bits(),
                          ErrorKind::kInvalidArgument,
                          "tw_format_decode: codes[{}] = {:#x}; {} has {} bits", i, codes[i],
                          spec.name, spec.bits());
      values[i] = tilewright::decode(spec, codes[i]);
    }
  });
}

tw_status tw_block_quantize_sizes(const char* format, std::int64_t rows, std::int64_t cols,
                                  std::size_t* code_bytes, std::size_t* scale_bytes) {
  return guarded([&] {
    require_address(format, "tw_block_quantize_sizes", "format");
    const BlockFormat& spec = tilewright::block_format_by_name(format);
    const auto shape = shape_of("tw_block_quantize_sizes", spec, rows, cols);
    if (code_bytes != nullptr) *code_bytes = code_bytes_of(spec, shape);
    if (scale_bytes != nullptr) *scale_bytes = scale_bytes_of(spec, shape);
  });
}

tw_status tw_block_quantize(const char* format, const float* values, std::int64_t rows,
                            std::int64_t cols, float encode_scale, const char* scale_choice,
                            std::uint8_t* codes, std::uint8_t* scales, float* tensor_scale) {
  const char* const function = "tw_block_quantize";
  return guarded([&] {
    require_address(format, function, "format");
    const BlockFormat& spec = tilewright::block_format_by_name(format);
    const auto shape = shape_of(function, spec, rows, cols);
    tilewright::QuantizeOptions options;
    if (encode_scale != 0) options.encode_scale = encode_scale;
    options.choice = named(function, "scale_choice", scale_choice, kChoices);
    if (rows > 0 && cols > 0) {
      require_address(values, function, "values");
      require_address(codes, function, "codes");
      require_address(scales, function, "scales");
    }
    const auto count = static_cast<std::size_t>(shape.rows * shape.cols);
    const auto made = tilewright::quantize(spec, {values, count}, rows, cols, options);
    copy_out(made.codes, codes);
    copy_out(made.scales, scales);
    if (tensor_scale != nullptr) *tensor_scale = made.tensor_scale;
  });
}

tw_status tw_block_dequantize(const char* format, const std::uint8_t* codes,
                              const std::uint8_t* scales, float tensor_scale, std::int64_t rows,
                              std::int64_t cols, float* values) {
  const char* const function = "tw_block_dequantize";
  return guarded([&] {
    require_address(format, function, "format");
    const BlockFormat& spec = tilewright::block_format_by_name(format);
    tilewright::QuantizedTensor tensor = shape_of(function, spec, rows, cols);
    if (rows == 0 || cols == 0) return;
    require_address(codes, function, "codes");
    require_address(scales, function, "scales");
    require_address(values, function, "values");
    tensor.codes.assign(codes, codes + code_bytes_of(spec, tensor));
    tensor.scales.assign(scales, scales + scale_bytes_of(spec, tensor));
    tensor.tensor_scale = tensor_scale;
    copy_out(tilewright::dequantize(spec, tensor), values);
  });
}

tw_status tw_codes_pack(std::int32_t bits, const std::uint8_t* codes, std::size_t count,
                        std::uint8_t* bytes) {
  return guarded([&] {
    if (count > 0) require_address(codes, "tw_codes_pack", "codes");
    const auto packed = tilewright::pack_codes({codes, count}, bits);
    if (!packed.empty()) require_address(bytes, "tw_codes_pack", "bytes");
    copy_out(packed, bytes);
  });
}

tw_status tw_codes_unpack(std::int32_t bits, const std::uint8_t* bytes, std::size_t count,
                          std::uint8_t* codes) {
  return guarded([&] {
    if (count > 0) {
      require_address(bytes, "tw_codes_unpack", "bytes");
      require_address(codes, "tw_codes_unpack", "codes");
    }
    const auto num_codes = static_cast<std::int64_t>(count);
    const std::int64_t size =
        tilewright::packed_bytes(tilewright::Packing::kDense, bits, num_codes);
    copy_out(tilewright::unpack_codes({bytes, static_cast<std::size_t>(size)}, bits, num_codes),
             codes);
  });
}
