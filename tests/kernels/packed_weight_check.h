// Random weights in the packed formats, and what they stand for: a packer of its own, element by
// element.
#pragma once

#include "formats/minifloat.h"
#include "formats/packed_matrix.h"
#include "formats/packed_weight.h"
#include "tests/reference/inputs.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tilewright::kernels {

struct TestWeights {
  PackedShape shape;
  std::vector<std::uint8_t> bricks;
  std::vector<float> block_scales;  ///< kFp8: [k / 128][gate, up][row / 128 or 256]
  std::vector<double> values;       ///< [rows, k]
  int bias_exponent = 0;            ///< for bf16
};

/// Codes of FP4 of a matrix [rows, k] into the words of its bricks.
inline void pack_fp4_codes(TestWeights& w, WordOrder order,
                           const std::vector<std::uint8_t>& codes) {
  const auto code = [&](int row, int k) -> std::uint8_t {
    if (row >= w.shape.rows || k >= w.shape.k) return 0;
    return codes[static_cast<std::size_t>(row) * static_cast<std::size_t>(w.shape.k) +
                 static_cast<std::size_t>(k)];
  };
  for (int row = 0; row < w.shape.rows; row += kBrickRows) {
    for (int k = 0; k < w.shape.k; k += kBrickK) {
      std::uint8_t* brick = w.bricks.data() + w.shape.brick_offset(row, k);
      for (int part = 0; part < 128; ++part) {
        const int g = part / 16, s = part / 4 % 4, d = part % 4;
        std::uint8_t eight[8];
        for (int i = 0; i < 8; ++i)
          eight[i] = code(row + g + i / 4 * 8, k + s * kGroupK + element_of_word(d, i % 4));
        const std::uint32_t word = encode_word(order, eight);
        const int at = brick_place(w.shape.format, g, s * kGroupK + element_of_word(d, 0)).word;
        std::memcpy(brick + at * 4, &word, 4);
      }
    }
  }
}

/// A scale for a row's 16 or 32 elements from k on; its value.
inline double draw_scale(TestWeights& w, int row, int k, reference::Random& random) {
  const WeightFormat format = w.shape.format;
  std::uint8_t& byte =
      w.bricks[static_cast<std::size_t>(w.shape.brick_offset(row, k)) +
               static_cast<std::size_t>(brick_scale_offset(format, row % kBrickRows, k % kBrickK))];
  if (format == WeightFormat::kNvfp4) {
    constexpr int kShift = nvfp4_shift(8);
    const ScaleParts parts = split_ue4m3(1 + static_cast<std::uint32_t>(random.bits() % 126));
    byte = nvfp4_scale_byte(parts, kShift);
    w.bias_exponent = nvfp4_bias_exponent(WordOrder::kBf16, kShift);
    return std::ldexp(1 + parts.mantissa / 8.0, parts.exponent);
  }
  const int exponent = static_cast<int>(random.bits() % 8) - 9;
  byte = mxfp4_scale_byte(exponent, -2);
  w.bias_exponent = mxfp4_bias_exponent(WordOrder::kBf16, -2);
  return std::ldexp(1, exponent);
}

inline void draw_fp4(TestWeights& w, WordOrder order, reference::Random& random) {
  const int group = w.shape.format == WeightFormat::kNvfp4 ? 16 : 32;
  std::vector<std::uint8_t> codes;
  for (int row = 0; row < w.shape.rows; ++row) {
    double scale = 0;
    for (int k = 0; k < w.shape.k; ++k) {
      if (k % group == 0) scale = draw_scale(w, row, k, random);
      codes.push_back(static_cast<std::uint8_t>(random.bits() % 16));
      w.values.push_back(decode(kE2m1, codes.back()) * scale);
    }
  }
  pack_fp4_codes(w, order, codes);
}

/// Elements of 8 or 16 bits, each where it belongs.
inline void draw_whole(TestWeights& w, bool is_swiglu, reference::Random& random) {
  const bool is_fp8 = w.shape.format == WeightFormat::kFp8;
  const int halves = is_swiglu ? 2 : 1;
  const int blocks_rows = (w.shape.rows + 128 * halves - 1) / (128 * halves);
  if (is_fp8) {
    for (int i = 0; i < w.shape.scale_blocks_k() * halves * blocks_rows; ++i)
      w.block_scales.push_back(static_cast<float>(random.uniform(0.5, 2)));
  }
  for (int row = 0; row < w.shape.rows; ++row) {
    for (int k = 0; k < w.shape.k; ++k) {
      const FormatSpec& format = is_fp8 ? kE4m3 : kBf16;
      const std::uint32_t code = encode(format, random.uniform(-2, 2));
      const BrickPlace place = brick_place(w.shape.format, row % kBrickRows, k % kBrickK);
      std::memcpy(w.bricks.data() + w.shape.brick_offset(row, k) + place.word * 4 +
                      place.place * (is_fp8 ? 1 : 2),
                  &code, is_fp8 ? 1 : 2);
      double value = decode(format, code);
      if (is_fp8) {
        const int half = is_swiglu ? row % kBrickRows / 8 : 0;
        value *= static_cast<double>(w.block_scales[static_cast<std::size_t>(
            (k / 128 * halves + half) * blocks_rows + row / (128 * halves))]);
      }
      w.values.push_back(value);
    }
  }
}

/// `is_swiglu`: rows as in swiglu_row(), which matters for the block scales only.
inline TestWeights make_weights(PackedShape shape, WordOrder order, std::uint64_t seed,
                                bool is_swiglu) {
  TestWeights w = {.shape = shape,
                   .bricks = std::vector<std::uint8_t>(static_cast<std::size_t>(shape.bytes())),
                   .block_scales = {},
                   .values = {}};
  reference::Random random(seed);
  if (is_fp4(shape.format)) {
    draw_fp4(w, order, random);
  } else {
    draw_whole(w, is_swiglu, random);
  }
  return w;
}

}  // namespace tilewright::kernels
