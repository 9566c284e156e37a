// Linear layers of FP8 tokens: problems, how their weights are packed, and float64 references.
#pragma once

#include "formats/block_scale.h"
#include "formats/e4m3_magnitudes.h"
#include "formats/packed_matrix.h"
#include "kernels/linear/wide/sm90_wide_e4m3.h"
#include "tests/kernels/gemm_check.h"

#include <cmath>
#include <limits>

namespace tilewright::kernels {

struct WideProblem {
  WeightFormat format;
  std::int32_t tokens, n, k;
  std::vector<std::int32_t> segments = {};  ///< empty: one matrix
  bool has_k_scales = false, is_swiglu = false, is_f32 = false;
  float limit = std::numeric_limits<float>::infinity();

  std::int32_t matrices() const {
    return segments.empty() ? 1 : static_cast<std::int32_t>(segments.size()) - 1;
  }
  std::int32_t matrix_of(std::int32_t token) const {
    std::int32_t e = 0;
    while (!segments.empty() && token >= segments[e + 1]) ++e;
    return e;
  }
  PackedShape shape() const { return {format, n, k}; }
  std::int32_t x_pitch() const { return round_up(k, kBrickK); }
  std::int32_t scale_pitch() const { return round_up(tokens, 4); }
  std::int32_t blocks_k() const { return (k + 127) / 128; }
  /// FP8: blocks of rows, those of the gate and of up apart.
  std::int32_t blocks_rows() const {
    return is_swiglu ? 2 * ((n / 2 + 127) / 128) : (n + 127) / 128;
  }
  std::int32_t block_of(std::int32_t row) const {
    if (!is_swiglu) return row / 128;
    return row / 16 * 8 / 128 + (row % 16 < 8 ? 0 : blocks_rows() / 2);
  }
};

/// Data as the kernel gets it, and as numbers.
struct WideData {
  std::vector<std::uint8_t> weights, x;
  std::vector<float> block_scales, x_scales, alphas, bias, row_weights;
  std::vector<double> folded, plain;  ///< [matrix][n][k]: rounded to e4m3, and not
  std::vector<double> x_values;       ///< [tokens][k]: e4m3, without scales
};

inline double decode_e4m3(std::uint64_t code) {
  return decode(kE4m3, static_cast<std::uint32_t>(code & 255));
}

/// Element of an FP4 matrix: random code under the scale byte that its group already has.
inline void put_fp4(const WideProblem& p, WideData& data, std::int64_t matrix, std::int32_t row,
                    std::int32_t k, std::uint32_t code) {
  const std::int64_t brick = matrix * p.shape().bytes() + p.shape().brick_offset(row, k);
  const BrickPlace place = brick_place(p.format, row % 16, k % 64);
  std::uint32_t word = 0;
  std::uint8_t* at = data.weights.data() + brick + place.word * 4;
  std::memcpy(&word, at, 4);
  std::uint8_t codes[8] = {};
  codes[place.place] = static_cast<std::uint8_t>(code);
  word |= encode_word(WordOrder::kE4m3, codes);
  std::memcpy(at, &word, 4);
  const std::uint32_t byte =
      data.weights[brick + brick_scale_offset(p.format, row % 16, k % kBrickK)];
  const double sign = code & 8 ? -1 : 1, magnitude = decode(kE2m1, code & 7);
  const double scale = p.format == WeightFormat::kNvfp4
                           ? (1 + byte % 8 / 8.0) * std::ldexp(1, static_cast<int>(byte / 8) - 26)
                           : std::ldexp(1, static_cast<int>(byte) - 248);
  data.folded.push_back(sign * decode_e4m3(e4m3_magnitudes(p.format, byte) >> 8 * (code & 7)));
  data.plain.push_back(sign * magnitude * scale);
}

inline void fill_weights(const WideProblem& p, WideData& data, Random& random) {
  data.weights.resize(static_cast<std::size_t>(p.matrices() * p.shape().bytes()));
  for (std::int64_t e = 0; e < p.matrices(); ++e) {
    for (std::int32_t row = 0; row < p.n; ++row) {
      for (std::int32_t k = 0; k < p.k; ++k) {
        const std::int64_t brick = e * p.shape().bytes() + p.shape().brick_offset(row, k);
        if (is_fp4(p.format)) {
          std::uint8_t& byte =
              data.weights[brick + brick_scale_offset(p.format, row % 16, k % kBrickK)];
          if (byte == 0) {
            // Mostly of three binades; a few so small that e4m3 has few digits left, or none.
            const auto drawn = static_cast<std::uint32_t>(random.bits() % 1000);
            byte = static_cast<std::uint8_t>(p.format == WeightFormat::kNvfp4
                                                 ? (drawn < 20 ? 80 + drawn * 6 : 226 + drawn % 24)
                                                 : (drawn < 20 ? 226 + drawn : 249 + drawn % 4));
          }
          put_fp4(p, data, e, row, k, random.bits() % 16);
        } else {
          const double value = draw(random, Numbers::kUniform, kE4m3);
          const BrickPlace place = brick_place(p.format, row % 16, k % 64);
          data.weights[brick + place.word * 4 + place.place] =
              static_cast<std::uint8_t>(encode(kE4m3, value));
          const double scale =
              data.block_scales[(e * p.blocks_k() + k / 128) * p.blocks_rows() + p.block_of(row)];
          data.folded.push_back(value * scale);
          data.plain.push_back(value * scale);
        }
      }
    }
  }
}

inline std::vector<float> draw_floats(Random& random, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(random.uniform(0.5, 2)));
  return values;
}

inline WideData make_wide_data(const WideProblem& p) {
  Random random(7);
  WideData data;
  data.alphas = draw_floats(random, p.matrices() * (p.is_swiglu ? 2 : 1));
  if (p.is_swiglu) data.alphas[2] = 0;  // a gate of zeros
  data.bias = draw_floats(random, std::int64_t{p.matrices()} * p.n);
  data.row_weights = draw_floats(random, p.tokens);
  data.x_scales = draw_floats(random, p.has_k_scales ? p.blocks_k() * p.scale_pitch() : p.tokens);
  data.block_scales =
      draw_floats(random, std::int64_t{p.matrices()} * p.blocks_k() * p.blocks_rows());
  fill_weights(p, data, random);
  data.x.assign(static_cast<std::size_t>(p.tokens) * p.x_pitch(), 0);
  for (std::int32_t token = 0; token < p.tokens; ++token) {
    for (std::int32_t k = 0; k < p.k; ++k) {
      const double value = draw(random, Numbers::kUniform, kE4m3);
      data.x_values.push_back(value);
      data.x[std::size_t(token) * p.x_pitch() + k / 64 * 64 + operand_place(k % 64)] =
          static_cast<std::uint8_t>(encode(kE4m3, value));
    }
  }
  return data;
}

/// Before SwiGLU and rounding: y [tokens][n], and what bounds its errors.
struct WideSums {
  std::vector<double> y, magnitude;
};

inline WideSums wide_reference(const WideProblem& p, const WideData& data, float alpha,
                               const std::vector<double>& weights) {
  WideSums sums;
  for (std::int32_t token = 0; token < p.tokens; ++token) {
    const std::int64_t e = p.matrix_of(token);
    for (std::int32_t row = 0; row < p.n; ++row) {
      double sum = 0, magnitude = 0;
      for (std::int32_t k = 0; k < p.k; ++k) {
        double product = data.x_values[std::size_t(token) * p.k + k] *
                         weights[static_cast<std::size_t>((e * p.n + row) * p.k + k)];
        if (p.has_k_scales) product *= data.x_scales[k / 128 * p.scale_pitch() + token];
        sum += product;
        magnitude += std::abs(product);
      }
      const std::int64_t half = p.is_swiglu ? 2 * e + row % 16 / 8 : e;  // gate and up
      double factor = double{alpha} * data.alphas[half];
      if (!p.has_k_scales) factor *= data.x_scales[token];
      const double bias = data.bias[e * p.n + row];
      sums.y.push_back(sum * factor + bias);
      sums.magnitude.push_back(magnitude * factor + std::abs(bias));
    }
  }
  return sums;
}

/// Sums of `promote` steps of 128 by the tensor core, each step's bound as of a product that deep;
/// then f32: the sum of the rounds, scales, alpha, bias, a few roundings each.
inline double wide_bound(const WideE4m3Variant& variant, std::int32_t k, double magnitude) {
  const int steps = (k + 127) / 128, depth = variant.promote == 0 ? steps : variant.promote;
  const double rounds = std::ceil(static_cast<double>(steps) / depth);
  return tensor_core_bound(kHopperE4m3TensorCore, 128 * std::min(depth, steps), magnitude) +
         (rounds + 8) * 0x1p-24 * 2 * magnitude;
}

struct Closeness {
  double cosine, rel_rms;
};
inline Closeness compare(const std::vector<double>& got, const std::vector<double>& want) {
  double dot = 0, a = 0, b = 0, error = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    dot += got[i] * want[i];
    a += got[i] * got[i];
    b += want[i] * want[i];
    error += (got[i] - want[i]) * (got[i] - want[i]);
  }
  return {dot / std::sqrt(a * b), std::sqrt(error / b)};
}

}  // namespace tilewright::kernels
