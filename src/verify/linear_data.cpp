#include "verify/linear_data.h"

#include "base/error.h"
#include "base/safetensors_model.h"
#include "formats/block_scale.h"
#include "verify/attention/data.h"

#include <cstring>

namespace tilewright::cli {

namespace {

using Shape = std::vector<std::int64_t>;

ConstTensorView view_of(const std::vector<std::uint8_t>& bytes, DType dtype, Shape shape) {
  return contiguous_view(static_cast<const void*>(bytes.data()), dtype, std::move(shape));
}

void copy_tensor(const SafetensorsModel& file, const std::string& name,
                 std::vector<std::uint8_t>& to, ConstTensorView& view) {
  const ConstTensorView from = file.tensor(name);
  const std::span<const std::byte> bytes = contiguous_bytes(from, name);
  to.resize(bytes.size());
  std::memcpy(to.data(), bytes.data(), bytes.size());
  view = view_of(to, from.dtype, from.shape);
}

float read_factor(const SafetensorsModel& file, const std::string& name) {
  const std::vector<float> values = to_floats(file.tensor(name), name);
  require(values.size() == 1, ErrorKind::kInvalidArgument,
          "linear: {} has {} elements; expected one scale for the tensor", name, values.size());
  return values[0];
}

// The tensor with the block scales of a weight, by the names that are in use.
std::string find_scale(const SafetensorsModel& file, const std::string& name) {
  std::vector<std::string> names = {name + "_scale", name + "_scale_inv"};
  const std::string suffix = ".weight";
  if (name.ends_with(suffix))
    names.push_back(name.substr(0, name.size() - suffix.size()) + ".scale");
  std::string tried;
  for (const std::string& candidate : names) {
    if (file.contains(candidate)) return candidate;
    tried += (tried.empty() ? "" : ", ") + candidate;
  }
  fail(ErrorKind::kInvalidArgument, "linear: {} is quantised, but none of {} is in the file", name,
       tried);
}

void set_shape(LinearWeightData& data) {
  const ConstTensorView& view = data.source.values;
  require(view.shape.size() == 2, ErrorKind::kInvalidArgument,
          "linear: the weight has shape {}; expected [n, k]", shape_text(view.shape));
  const bool is_packed = view.dtype == DType::kU8 || view.dtype == DType::kI8;
  data.n = view.shape[0];
  data.k = view.shape[1] * (is_packed ? 2 : 1);
}

LinearWeightData load_quantised(const SafetensorsModel& file, const std::string& name,
                                const std::string& stem) {
  LinearWeightData data;
  LinearWeightSource& source = data.source;
  copy_tensor(file, name, data.values, source.values);
  copy_tensor(file, find_scale(file, stem), data.scales, source.scales);
  if (source.values.dtype == DType::kF8_E4M3) {
    source.format = NumberFormat::kFp8;
  } else if (source.scales.dtype == DType::kF8_E4M3) {
    source.format = NumberFormat::kNvfp4;
    if (file.contains(stem + "_scale_2"))
      source.global_scale = read_factor(file, stem + "_scale_2");
    if (file.contains(stem + "_global_scale")) {
      source.global_scale = read_factor(file, stem + "_global_scale");
      source.is_global_scale_reciprocal = true;
    }
  } else {
    source.format = NumberFormat::kMxfp4;
  }
  set_shape(data);
  return data;
}

}  // namespace

std::vector<float> draw_normal_floats(std::int64_t count, std::uint64_t seed) {
  const std::vector<std::uint16_t> codes = draw_normal(count, seed, DType::kBF16);
  std::vector<float> values(codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i)
    values[i] = std::bit_cast<float>(std::uint32_t{codes[i]} << 16);
  return values;
}

LinearWeightData quantise_weight(NumberFormat format, std::vector<float> weights, std::int64_t n,
                                 std::int64_t k, bool has_pow2_scales) {
  LinearWeightData data;
  data.n = n;
  data.k = k;
  data.source.format = format;
  if (format == NumberFormat::kBf16) {
    for (const float x : weights) {
      const std::uint32_t code = encode(kBf16, static_cast<double>(x));
      data.values.push_back(static_cast<std::uint8_t>(code));
      data.values.push_back(static_cast<std::uint8_t>(code >> 8));
    }
    data.source.values = view_of(data.values, DType::kBF16, {n, k});
  } else {
    const bool is_fp8 = format == NumberFormat::kFp8, is_nvfp4 = format == NumberFormat::kNvfp4;
    const BlockFormat& fp8 = has_pow2_scales ? kFp8Block128x128Ue8m0 : kFp8Block128x128;
    const BlockFormat& block = is_fp8 ? fp8 : is_nvfp4 ? kNvfp4 : kMxfp4;
    const QuantizedTensor q = quantize(block, weights, n, k);
    data.scales = q.scales;
    if (is_fp8) {
      for (std::int64_t row = 0; row < n; ++row)
        data.values.insert(data.values.end(), q.codes.begin() + row * q.padded_cols,
                           q.codes.begin() + row * q.padded_cols + k);
      data.source.values = view_of(data.values, DType::kF8_E4M3, {n, k});
      data.source.scales = view_of(data.scales, has_pow2_scales ? DType::kF8_E8M0 : DType::kF32,
                                   {q.padded_rows / 128, q.padded_cols / 128});
    } else {
      require(k % block.block_cols == 0, ErrorKind::kInvalidArgument,
              "linear: k = {}; expected a multiple of {} for {}", k, block.block_cols,
              to_string(format));
      data.values = q.codes;
      data.source.values = view_of(data.values, DType::kF4, {n, k});
      data.source.scales = view_of(data.scales, is_nvfp4 ? DType::kF8_E4M3 : DType::kF8_E8M0,
                                   {n, k / block.block_cols});
      if (is_nvfp4) data.source.global_scale = q.tensor_scale;
    }
  }
  data.original = std::move(weights);
  return data;
}

LinearWeightData load_weight(const SafetensorsModel& file, const std::string& name,
                             NumberFormat format, bool has_pow2_scales) {
  if (!file.contains(name) && file.contains(name + "_packed"))
    return load_quantised(file, name + "_packed", name);
  const ConstTensorView view = file.tensor(name);
  if (bits_per_elem(view.dtype) <= 8) return load_quantised(file, name, name);
  require(view.shape.size() == 2, ErrorKind::kInvalidArgument,
          "linear: {} has shape {}; expected [n, k]", name, shape_text(view.shape));
  return quantise_weight(format, to_floats(view, name), view.shape[0], view.shape[1],
                         has_pow2_scales);
}

LinearWeightData load_weight(const std::string& path, const std::string& name, NumberFormat format,
                             bool has_pow2_scales) {
  LinearWeightData data = load_weight(SafetensorsModel(path), name, format, has_pow2_scales);
  data.origin = path + ": " + name;
  return data;
}

}  // namespace tilewright::cli
