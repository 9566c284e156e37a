#include "formats/block_scale.h"

#include "base/error.h"
#include "formats/matrix_shape.h"
#include "formats/pack.h"

#include <cmath>

namespace tilewright {

namespace {

constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

int64_t num_blocks(const BlockFormat& format, const QuantizedTensor& tensor) {
  return tensor.padded_rows / format.block_rows * (tensor.padded_cols / format.block_cols);
}

int64_t code_bytes(const BlockFormat& format, const QuantizedTensor& tensor) {
  return packed_bytes(Packing::kDense, format.element.bits(),
                      tensor.padded_rows * tensor.padded_cols);
}

/// Where element `elem_idx` of block `block_idx` lies in the padded matrix; both count row-major.
struct Position {
  int64_t row;
  int64_t col;
};

Position position_of(const BlockFormat& format, const QuantizedTensor& tensor, int64_t block_idx,
                     int64_t elem_idx) {
  const int64_t blocks_across = tensor.padded_cols / format.block_cols;
  return {block_idx / blocks_across * format.block_rows + elem_idx / format.block_cols,
          block_idx % blocks_across * format.block_cols + elem_idx % format.block_cols};
}

/// max |x|, or NaN if any x is NaN or infinite.
float finite_amax(std::span<const float> values) {
  float amax = 0;
  for (const float x : values) {
    if (!std::isfinite(x)) return std::numeric_limits<float>::quiet_NaN();
    amax = std::max(amax, std::fabs(x));
  }
  return amax;
}

float default_encode_scale(const BlockFormat& format, std::span<const float> values) {
  float amax = 0;
  for (const float x : values) {
    if (std::isfinite(x)) amax = std::max(amax, std::fabs(x));
  }
  return tensor_encode_scale(format, amax);
}

struct EncodedBlock {
  uint32_t scale_code;
  std::vector<uint8_t> codes;
};

EncodedBlock encode_block(const BlockFormat& format, std::span<const float> values,
                          float encode_scale, float stretch) {
  const float ideal = ideal_block_scale(format, finite_amax(values), encode_scale, stretch);
  EncodedBlock block{encode(format.scale, ideal), {}};
  const float scale = static_cast<float>(decode(format.scale, block.scale_code));
  block.codes.reserve(values.size());
  for (const float x : values) {
    block.codes.push_back(static_cast<uint8_t>(encode_element(format, x, scale, encode_scale)));
  }
  return block;
}

double squared_error(const BlockFormat& format, std::span<const float> values,
                     const EncodedBlock& block, float tensor_scale) {
  const float scale = static_cast<float>(decode(format.scale, block.scale_code));
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double error =
        double{values[i]} - decode_element(format, block.codes[i], scale, tensor_scale);
    sum += error * error;
  }
  return sum;
}

/// The block as the options want it.
EncodedBlock choose_block(const BlockFormat& format, std::span<const float> values,
                          float encode_scale, float tensor_scale, bool four_over_six) {
  EncodedBlock on_six = encode_block(format, values, encode_scale, 1.0f);
  if (!four_over_six) return on_six;
  EncodedBlock on_four = encode_block(format, values, encode_scale, 1.5f);
  const bool is_better = squared_error(format, values, on_four, tensor_scale) <
                         squared_error(format, values, on_six, tensor_scale);
  return is_better ? on_four : on_six;
}

/// Zero outside the matrix.
void gather_block(const BlockFormat& format, const QuantizedTensor& tensor,
                  std::span<const float> values, int64_t block_idx, std::span<float> block) {
  for (size_t i = 0; i < block.size(); ++i) {
    const auto [row, col] = position_of(format, tensor, block_idx, static_cast<int64_t>(i));
    const bool is_inside = row < tensor.rows && col < tensor.cols;
    block[i] = is_inside ? values[row * tensor.cols + col] : 0.0f;
  }
}

void scatter_block(const BlockFormat& format, const EncodedBlock& block, int64_t block_idx,
                   QuantizedTensor& tensor) {
  for (size_t i = 0; i < block.codes.size(); ++i) {
    const auto [row, col] = position_of(format, tensor, block_idx, static_cast<int64_t>(i));
    store_code(tensor.codes.data(), Packing::kDense, format.element.bits(),
               row * tensor.padded_cols + col, block.codes[i]);
  }
  for (int byte = 0; byte < scale_bytes(format); ++byte) {
    tensor.scales[block_idx * scale_bytes(format) + byte] =
        static_cast<uint8_t>(block.scale_code >> (8 * byte));
  }
}

uint32_t load_scale_code(const BlockFormat& format, const QuantizedTensor& tensor,
                         int64_t block_idx) {
  uint32_t code = 0;
  for (int byte = 0; byte < scale_bytes(format); ++byte) {
    code |= uint32_t{tensor.scales[block_idx * scale_bytes(format) + byte]} << (8 * byte);
  }
  return code;
}

void require_options(const BlockFormat& format, const QuantizeOptions& options) {
  require(format.has_tensor_scale || !options.encode_scale, ErrorKind::kInvalidArgument,
          "quantize: encode_scale = {} given for {}, which has no tensor scale. Leave it out.",
          options.encode_scale.value_or(0), format.name);
  require(
      format.has_tensor_scale || !options.four_over_six, ErrorKind::kInvalidArgument,
      "quantize: four_over_six needs block scales finer than powers of two, as in nvfp4, but the "
      "format is {}. Switch it off.",
      format.name);
  const float scale = options.encode_scale.value_or(1);
  require(std::isfinite(scale) && scale > 0 && std::isfinite(1 / scale),
          ErrorKind::kInvalidArgument,
          "quantize: encode_scale = {}; expected a number above 0 that is finite, as is its "
          "reciprocal. Checkpoints store the reciprocal.",
          scale);
}

void require_tensor(const BlockFormat& format, const QuantizedTensor& tensor) {
  require_shape("dequantize", tensor.rows, tensor.cols);
  const int64_t padded_rows = round_up(tensor.rows, format.block_rows);
  const int64_t padded_cols = round_up(tensor.cols, format.block_cols);
  require(
      tensor.padded_rows == padded_rows && tensor.padded_cols == padded_cols,
      ErrorKind::kInvalidArgument,
      "dequantize: padded to {} x {}, but {} pads {} x {} to {} x {}. Name the format the tensor "
      "was quantised with.",
      tensor.padded_rows, tensor.padded_cols, format.name, tensor.rows, tensor.cols, padded_rows,
      padded_cols);
  require_size("dequantize", "codes", tensor.codes.size(), code_bytes(format, tensor), tensor.rows,
               tensor.cols);
  require_size("dequantize", "scales", tensor.scales.size(),
               num_blocks(format, tensor) * scale_bytes(format), tensor.rows, tensor.cols);
}

}  // namespace

QuantizedTensor quantize(const BlockFormat& format, std::span<const float> values, int64_t rows,
                         int64_t cols, const QuantizeOptions& options) {
  require_shape("quantize", rows, cols);
  require_size("quantize", "values", values.size(), rows * cols, rows, cols);
  require_options(format, options);
  const float encode_scale = !format.has_tensor_scale ? 1.0f
                             : options.encode_scale   ? *options.encode_scale
                                                      : default_encode_scale(format, values);
  QuantizedTensor tensor;
  tensor.rows = rows;
  tensor.cols = cols;
  tensor.padded_rows = round_up(rows, format.block_rows);
  tensor.padded_cols = round_up(cols, format.block_cols);
  tensor.tensor_scale = 1 / encode_scale;
  tensor.codes.resize(code_bytes(format, tensor));
  tensor.scales.resize(num_blocks(format, tensor) * scale_bytes(format));
  std::vector<float> block(format.block_rows * format.block_cols);
  for (int64_t idx = 0; idx < num_blocks(format, tensor); ++idx) {
    gather_block(format, tensor, values, idx, block);
    scatter_block(
        format,
        choose_block(format, block, encode_scale, tensor.tensor_scale, options.four_over_six), idx,
        tensor);
  }
  return tensor;
}

std::vector<float> dequantize(const BlockFormat& format, const QuantizedTensor& tensor) {
  require_tensor(format, tensor);
  std::vector<float> values(tensor.rows * tensor.cols);
  const int64_t block_elems = int64_t{format.block_rows} * format.block_cols;
  for (int64_t block_idx = 0; block_idx < num_blocks(format, tensor); ++block_idx) {
    const float scale =
        static_cast<float>(decode(format.scale, load_scale_code(format, tensor, block_idx)));
    for (int64_t i = 0; i < block_elems; ++i) {
      const auto [row, col] = position_of(format, tensor, block_idx, i);
      if (row >= tensor.rows || col >= tensor.cols) continue;
      const uint8_t code = load_code(tensor.codes.data(), Packing::kDense, format.element.bits(),
                                     row * tensor.padded_cols + col);
      values[row * tensor.cols + col] = decode_element(format, code, scale, tensor.tensor_scale);
    }
  }
  return values;
}

}  // namespace tilewright
