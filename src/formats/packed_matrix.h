// How a matrix of weights is packed into the bricks of packed_weight.h: its shape, the place of
// every element, the bits of FP4 codes and of their scales.
//
// Scales of FP4 are stored so that the kernels need one or two instructions for 16 weights, and a
// power of two remains for the epilogue: true weight = decoded weight * 2^bias_exponent().
//   kNvfp4   1.mmm * 2^e as the byte (e + shift) << 3 | mmm, 0 <= e + shift <= 31: five bits of
//            exponent, no subnormals. UE4M3 has 18 binades. A zero scale becomes zero codes
//   kMxfp4   2^e as the byte 254 + e - largest e of the matrix, 128..254
#pragma once

#include "formats/packed_weight.h"

#include <cstdint>

namespace tilewright::kernels {

/// A matrix [rows, k] of weights as it is packed.
struct PackedShape {
  WeightFormat format;
  std::int32_t rows, k;

  constexpr std::int32_t bricks_rows() const { return (rows + kBrickRows - 1) / kBrickRows; }
  constexpr std::int32_t bricks_k() const { return (k + kBrickK - 1) / kBrickK; }
  constexpr std::int64_t bytes() const {
    return std::int64_t{bricks_rows()} * bricks_k() * brick_bytes(format);
  }
  /// Of the brick that holds (row, k).
  constexpr std::int64_t brick_offset(std::int32_t row, std::int32_t at_k) const {
    return (std::int64_t{at_k / kBrickK} * bricks_rows() + row / kBrickRows) * brick_bytes(format);
  }
  /// kFp8: the f32 block scales, [k / 128][row / 128].
  constexpr std::int32_t scale_blocks_rows() const {
    return (rows + kFp8BlockRows - 1) / kFp8BlockRows;
  }
  constexpr std::int32_t scale_blocks_k() const { return (k + kFp8BlockK - 1) / kFp8BlockK; }
};

/// The element, 0..15 of its group, that is the i-th (0..3) of word d (0..3); kBf16 apart.
constexpr int element_of_word(int d, int i) {
  return 2 * d + (i & 1) + (i & 2) * 4;
}
/// The inverse of element_of_word(): the word and the place in it.
constexpr int word_of_element(int element) {
  return (element & 7) >> 1;
}
constexpr int place_of_element(int element) {
  return (element & 1) | ((element & 8) >> 2);
}

/// Where element (row, k) of a brick stands: row 0..15, k 0..63.
struct BrickPlace {
  int word;   ///< of 32 bits, from the start of the brick
  int place;  ///< FP4: 0..7 of encode_word()'s codes; FP8: byte 0..3; bf16: half 0..1
};
constexpr BrickPlace brick_place(WeightFormat format, int row, int k) {
  const int granule = granule_position(row % 8, k / kGroupK) * 4, half = row / 8;
  const int element = k % kGroupK, d = word_of_element(element), i = place_of_element(element);
  if (is_fp4(format)) return {granule + d, half * 4 + i};
  if (format == WeightFormat::kFp8) return {half * kGranules * 4 + granule + d, i};
  const int part = half * 2 + element / 8;
  return {part * kGranules * 4 + granule + d, element % 2};
}
/// FP4: offset in a brick of the scale byte of (row, k).
constexpr int brick_scale_offset(WeightFormat format, int row, int k) {
  const int groups = format == WeightFormat::kNvfp4 ? 4 : 2, group = k * groups / kBrickK;
  return brick_code_bytes(format) + ((row % 8) * 2 + row / 8) * groups + group;
}

/// The element of K, 0..63, whose FP8 activation stands at byte p of a block of 64 ("operand
/// order"): p = 32 i + 16 h + 4 t + b holds k = 16 t + element_of_word(2 i + h, b).
constexpr int operand_order(int p) {
  return 16 * (p / 4 % 4) + element_of_word(p / 16, p % 4);
}
/// Its inverse: the byte where k stands.
constexpr int operand_place(int k) {
  const int element = k % kGroupK;
  return 16 * word_of_element(element) + 4 * (k / kGroupK) + place_of_element(element);
}

/// Eight e2m1 codes (sign in bit 3) as a word: codes 0..3 are the elements of row g, 4..7 of g + 8.
///
/// kBf16: the word holds four pairs in its halves (first element low): row g's first two, row
/// g + 8's first two, row g's last two, row g + 8's last two. Bits of a half, s sign, m magnitude:
///     pair 0: s 15, m 8..6   pair 1: s 12, m 5..3   pair 2: s 9, m 2..0   pair 3: s 14, m 13 11 10
/// kE4m3: codes of row g are in the low half of the word, those of row g + 8 in its high half. Byte
/// i / 2 of a half holds codes i and i + 1 (i even) in pairs of bits, from the lowest on: the low
/// two bits of the magnitude of code i, those of code i + 1; high bit of the magnitude and sign of
/// code i, those of code i + 1.
constexpr std::uint32_t encode_word(WordOrder order, const std::uint8_t (&codes)[8]) {
  std::uint32_t word = 0;
  for (int i = 0; i < 8; ++i) {
    const std::uint32_t code = codes[i] & 15u, magnitude = code & 7, sign = code >> 3;
    if (order == WordOrder::kE4m3) {
      const int at = i / 4 * 16 + i % 4 / 2 * 8 + i % 2 * 2;
      word |= ((magnitude & 3) | (sign << 1 | magnitude >> 2) << 4) << at;
      continue;
    }
    const int pair = (i & 2) + i / 4;
    std::uint32_t half = 0;
    if (pair == 0) half = sign << 15 | magnitude << 6;
    if (pair == 1) half = sign << 12 | magnitude << 3;
    if (pair == 2) half = sign << 9 | magnitude;
    if (pair == 3) half = sign << 14 | (magnitude & 4) << 11 | (magnitude & 3) << 10;
    word |= half << 16 * (i & 1);
  }
  return word;
}

/// A positive scale 2^exponent * (1 + mantissa / 8).
struct ScaleParts {
  int exponent, mantissa;
};
/// Of a UE4M3 code, 1..126, normalised: exponents -9..8.
constexpr ScaleParts split_ue4m3(std::uint32_t code) {
  int exponent = static_cast<int>(code >> 3 & 15) - 7, mantissa = static_cast<int>(code & 7);
  if (exponent > -7) return {exponent, mantissa};
  exponent = -6;
  for (; mantissa != 0 && mantissa < 8; mantissa *= 2) --exponent;
  return {exponent, mantissa & 7};
}

/// kNvfp4: the shift that gives a matrix's largest scale the exponent field 31. Any shift that
/// keeps all fields in 0..31 is good for bf16; for e4m3 this one wastes no range.
constexpr int nvfp4_shift(int largest_exponent) {
  return 31 - largest_exponent;
}
constexpr std::uint8_t nvfp4_scale_byte(ScaleParts scale, int shift) {
  return static_cast<std::uint8_t>((scale.exponent + shift) << 3 | scale.mantissa);
}
/// kMxfp4; representable while exponent >= largest_exponent - kMxfp4Span.
inline constexpr int kMxfp4LargestByte = 254, kMxfp4Span = 126;
constexpr std::uint8_t mxfp4_scale_byte(int exponent, int largest_exponent) {
  return static_cast<std::uint8_t>(kMxfp4LargestByte + exponent - largest_exponent);
}
/// kMxfp4 into e4m3 is exact while exponent >= largest_exponent - this.
inline constexpr int kMxfp4SpanE4m3 = 14;

/// What the decoders make of a scale byte: bf16 factor of the code times 2^-126, as bits.
constexpr std::uint32_t bf16_factor(WeightFormat format, std::uint32_t byte) {
  return format == WeightFormat::kNvfp4 ? (byte << 4) + (223u << 7) : byte << 7;
}

/// log2(true weight / decoded weight), per matrix: belongs into alpha.
///   bf16  NVFP4 decodes to code * 1.mmm * 2^(field - 30), MXFP4 to code * 2^(byte - 253)
///   e4m3  NVFP4 decodes to code * 1.mmm * 2^(field - 26) rounded to e4m3 (at most 360),
///         MXFP4 to code * 2^(byte - 248) (at most 384)
constexpr int nvfp4_bias_exponent(WordOrder order, int shift) {
  return (order == WordOrder::kBf16 ? 30 : 26) - shift;
}
constexpr int mxfp4_bias_exponent(WordOrder order, int largest_exponent) {
  return largest_exponent - (order == WordOrder::kBf16 ? 1 : 6);
}

/// Packed row of the gate or up projection for the fused SwiGLU: 8 rows of gate and 8 of up in
/// every brick, so that gate and up of a column of h are in one thread. Give FP8 block scales as
/// [k / 128][gate, up][column / 128] then.
constexpr std::int32_t swiglu_row(std::int32_t column, bool is_up) {
  return column / 8 * 16 + (is_up ? 8 : 0) + column % 8;
}

}  // namespace tilewright::kernels
