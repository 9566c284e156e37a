#include "formats/block_scale.h"

#include "base/error.h"
#include "formats/fast_encode.h"
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

/// The largest magnitude, or NaN if any x is NaN or infinite.
float block_amax(std::span<const float> values) {
  std::uint32_t amax = 0;
  for (const float x : values) amax = std::max(amax, std::bit_cast<std::uint32_t>(x) & 0x7fffffffu);
  const float found = std::bit_cast<float>(amax);
  return std::isfinite(found) ? found : std::numeric_limits<float>::quiet_NaN();
}

/// What the blocks of a tensor have in common.
struct Encoder {
  const BlockFormat& format;
  float encode_scale, tensor_scale;
  ScaleChoice choice;
};

struct EncodedBlock {
  std::uint32_t scale_code = 0;
  std::vector<uint8_t> codes;
};

/// encode_element() for a block.
template <const FormatSpec& kFormat>
void encode_elements(const Encoder& encoder, std::span<const float> values, float scale,
                     std::uint8_t* codes) {
  if (!encoder.format.has_tensor_scale) {
    for (std::size_t i = 0; i < values.size(); ++i)
      codes[i] = static_cast<std::uint8_t>(encode_nearest(kFormat, values[i] / scale));
    return;
  }
  const float factor = element_factor(scale, encoder.encode_scale);
  for (std::size_t i = 0; i < values.size(); ++i)
    codes[i] = static_cast<std::uint8_t>(encode_nearest(kFormat, values[i] * factor));
}

EncodedBlock encode_block(const Encoder& encoder, std::span<const float> values,
                          std::uint32_t scale_code) {
  const BlockFormat& format = encoder.format;
  EncodedBlock block = {scale_code, std::vector<std::uint8_t>(values.size())};
  const float scale = static_cast<float>(decode(format.scale, scale_code));
  if (scale != scale) return block;
  if (format.element == kE2m1) {
    encode_elements<kE2m1>(encoder, values, scale, block.codes.data());
  } else if (format.element == kE4m3) {
    encode_elements<kE4m3>(encoder, values, scale, block.codes.data());
  } else {
    for (std::size_t i = 0; i < values.size(); ++i)
      block.codes[i] =
          static_cast<std::uint8_t>(encode_element(format, values[i], scale, encoder.encode_scale));
  }
  return block;
}

double squared_error(const Encoder& encoder, std::span<const float> values,
                     const EncodedBlock& block) {
  const float scale = static_cast<float>(decode(encoder.format.scale, block.scale_code));
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double error = double{values[i]} - decode_element(encoder.format, block.codes[i], scale,
                                                            encoder.tensor_scale);
    sum += error * error;
  }
  return sum;
}

/// The block with the scale that has the smaller error, the first on a tie.
EncodedBlock better_block(const Encoder& encoder, std::span<const float> values,
                          std::uint32_t first_scale, std::uint32_t second_scale) {
  EncodedBlock first = encode_block(encoder, values, first_scale);
  if (first_scale == second_scale) return first;
  EncodedBlock second = encode_block(encoder, values, second_scale);
  const bool is_better =
      squared_error(encoder, values, second) < squared_error(encoder, values, first);
  return is_better ? second : first;
}

/// The block as the choice wants it.
EncodedBlock choose_block(const Encoder& encoder, std::span<const float> values) {
  const BlockFormat& format = encoder.format;
  const float amax = block_amax(values);
  const float ideal = ideal_block_scale(format, amax, encoder.encode_scale);
  const std::uint32_t nearest = encode(format.scale, ideal);
  if (encoder.choice == ScaleChoice::kNearest || ideal != ideal)
    return encode_block(encoder, values, nearest);
  if (encoder.choice == ScaleChoice::kFourOverSix) {
    const float stretched = ideal_block_scale(format, amax, encoder.encode_scale, 1.5f);
    return better_block(encoder, values, nearest, encode(format.scale, stretched));
  }
  const ExactScales exact = exact_scales(ideal);
  if (encoder.choice == ScaleChoice::kExactNearest)
    return encode_block(encoder, values, exact.nearest);
  return better_block(encoder, values, exact.above, exact.below);
}

std::uint32_t load_scale_code(const BlockFormat& format, const QuantizedTensor& tensor,
                              int64_t block_idx) {
  std::uint32_t code = 0;
  for (int byte = 0; byte < scale_bytes(format); ++byte) {
    code |= std::uint32_t{tensor.scales[block_idx * scale_bytes(format) + byte]} << (8 * byte);
  }
  return code;
}

/// The part of a row that lies in a block: where its codes begin, and how much of it is matrix.
struct Segment {
  int64_t row, col, length;
  int64_t code_idx;
};

Segment segment_of(const BlockFormat& format, const QuantizedTensor& tensor, int64_t block_idx,
                   int64_t row_in_block) {
  const int64_t blocks_across = tensor.padded_cols / format.block_cols;
  const int64_t row = block_idx / blocks_across * format.block_rows + row_in_block;
  const int64_t col = block_idx % blocks_across * format.block_cols;
  const int64_t inside = std::min<int64_t>(format.block_cols, tensor.cols - col);
  return {row, col, row < tensor.rows ? std::max<int64_t>(inside, 0) : 0,
          row * tensor.padded_cols + col};
}

/// Zero outside the matrix.
void gather_block(const BlockFormat& format, const QuantizedTensor& tensor,
                  std::span<const float> values, int64_t block_idx, std::span<float> block) {
  for (int64_t row = 0; row < format.block_rows; ++row) {
    const Segment segment = segment_of(format, tensor, block_idx, row);
    const auto to = block.subspan(row * format.block_cols, format.block_cols);
    const float* const from =
        segment.length > 0 ? values.data() + segment.row * tensor.cols + segment.col : nullptr;
    std::copy_n(from, segment.length, to.begin());
    std::fill(to.begin() + segment.length, to.end(), 0.0f);
  }
}

void scatter_block(const BlockFormat& format, const EncodedBlock& block, int64_t block_idx,
                   QuantizedTensor& tensor) {
  const int bits = format.element.bits();
  for (int64_t row = 0; row < format.block_rows; ++row) {
    const int64_t first = segment_of(format, tensor, block_idx, row).code_idx;
    const std::uint8_t* const from = block.codes.data() + row * format.block_cols;
    if (bits == 8) {
      std::copy_n(from, format.block_cols, tensor.codes.begin() + first);
    } else if (bits == 4 && format.block_cols % 2 == 0) {
      for (int i = 0; i < format.block_cols / 2; ++i)
        tensor.codes[first / 2 + i] = static_cast<std::uint8_t>(from[2 * i] | from[2 * i + 1] << 4);
    } else {
      for (int i = 0; i < format.block_cols; ++i)
        store_code(tensor.codes.data(), Packing::kDense, bits, first + i, from[i]);
    }
  }
  for (int byte = 0; byte < scale_bytes(format); ++byte) {
    tensor.scales[block_idx * scale_bytes(format) + byte] =
        static_cast<uint8_t>(block.scale_code >> (8 * byte));
  }
}

void require_options(const BlockFormat& format, const QuantizeOptions& options) {
  require(format.has_tensor_scale || !options.encode_scale, ErrorKind::kInvalidArgument,
          "quantize: encode_scale = {} given for {}, which has no tensor scale. Leave it out.",
          options.encode_scale.value_or(0), format.name);
  require(
      format.has_tensor_scale || options.choice == ScaleChoice::kNearest,
      ErrorKind::kInvalidArgument,
      "quantize: four over six and exact scales need block scales finer than powers of two, as in "
      "nvfp4, but the format is {}. Choose the nearest scale.",
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

float finite_amax(std::span<const float> values) {
  float amax = 0;
  for (const float x : values) {
    if (std::isfinite(x)) amax = std::max(amax, std::fabs(x));
  }
  return amax;
}

QuantizedTensor quantize(const BlockFormat& format, std::span<const float> values, int64_t rows,
                         int64_t cols, const QuantizeOptions& options) {
  require_shape("quantize", rows, cols);
  require_size("quantize", "values", values.size(), rows * cols, rows, cols);
  require_options(format, options);
  const float encode_scale = !format.has_tensor_scale
                                 ? 1.0f
                                 : options.encode_scale.value_or(tensor_encode_scale(
                                       format, finite_amax(values), options.choice));
  QuantizedTensor tensor;
  tensor.rows = rows;
  tensor.cols = cols;
  tensor.padded_rows = round_up(rows, format.block_rows);
  tensor.padded_cols = round_up(cols, format.block_cols);
  tensor.tensor_scale = 1 / encode_scale;
  tensor.codes.resize(code_bytes(format, tensor));
  tensor.scales.resize(num_blocks(format, tensor) * scale_bytes(format));
  std::vector<float> block(format.block_rows * format.block_cols);
  const Encoder encoder = {format, encode_scale, tensor.tensor_scale, options.choice};
  for (int64_t idx = 0; idx < num_blocks(format, tensor); ++idx) {
    gather_block(format, tensor, values, idx, block);
    scatter_block(format, choose_block(encoder, block), idx, tensor);
  }
  return tensor;
}

std::vector<float> dequantize(const BlockFormat& format, const QuantizedTensor& tensor) {
  require_tensor(format, tensor);
  std::vector<float> values(tensor.rows * tensor.cols);
  const int bits = format.element.bits();
  std::vector<float> elements;
  for (std::uint64_t code = 0; code < format.element.num_codes(); ++code)
    elements.push_back(
        static_cast<float>(decode(format.element, static_cast<std::uint32_t>(code))));
  for (int64_t block_idx = 0; block_idx < num_blocks(format, tensor); ++block_idx) {
    const float scale =
        static_cast<float>(decode(format.scale, load_scale_code(format, tensor, block_idx)));
    for (int64_t row = 0; row < format.block_rows; ++row) {
      const Segment segment = segment_of(format, tensor, block_idx, row);
      const int64_t first = segment.row * tensor.cols + segment.col;
      for (int64_t i = 0; i < segment.length; ++i) {
        const std::uint8_t code =
            load_code(tensor.codes.data(), Packing::kDense, bits, segment.code_idx + i);
        values[first + i] = elements[code] * scale * tensor.tensor_scale;
      }
    }
  }
  return values;
}

}  // namespace tilewright
