// Accumulators in and results out of the tile kernels. Included only by tile_kernel_*.cpp
// (tile_vectors.h).
#pragma once

#include "sim/tensor/tile_decode.h"

namespace tilewright::sim {
namespace {

// OutputFormat, which this file must not include.
constexpr int kOutputF32 = 0;
constexpr int kOutputF32E8M13 = 1;
constexpr int kOutputF16 = 2;

/// Vectors of the widest strips: as many bytes of exponents fill a vector.
constexpr int kWideVectors = TILEWRIGHT_VECTOR_BYTES == 32 ? 4 : 2;

/// Rows of a block: half as many vectors in a row leave registers for twice as many rows.
template <int kVectors>
constexpr int kBlockRows = TILEWRIGHT_BLOCK_ROWS * 2 / kVectors;

template <int kOutput>
constexpr std::uint32_t canonical_nan() {
  return kOutput == kOutputF16 ? 0x7FFF : 0x7FFFFFFF;
}

/// One vector of accumulators.
struct Accumulators {
  Floats values;
  Ints exponents;
  Ints specials;
};

template <int kOutput>
inline Accumulators decode_accumulators(const Words& code) {
  Accumulators c;
  if constexpr (kOutput == kOutputF16) {
    const Ints magnitude = ints_of(code & 0x7FFF);
    const Ints field = magnitude >> 10;
    const Words sign = (code & 0x8000) << 16;
    const Floats value = bits_as<Floats>(magnitude << 13) * powers_of_two(Ints{} + 112);
    c.values = bits_as<Floats>(bits_as<Words>(value) | sign);
    c.exponents = magnitude == 0 ? Ints{} + kZeroExponent : larger(field, Ints{} + 1) - 15;
    c.specials = field == 31;
  } else {
    const Ints field = ints_of(code >> 23 & 255);
    c.values = bits_as<Floats>(code);
    c.exponents = larger(field, Ints{} + 1) - 127;
    c.specials = field == 255;
  }
  return c;
}

/// value * 2^exponents for exponents beyond those of an fp32. Rounds only what comes below 2^-63.
inline Floats scale_twice(const Floats& value, const Ints& exponents) {
  const Ints half = exponents >> 1;
  return value * powers_of_two(half) * powers_of_two(exponents - half);
}

/// The accumulator on the grid of the products: int(c * 2^(F - largest)).
template <bool kIsWide>
inline Ints accumulator_term(const Floats& c, const Ints& largest, int fraction_bits) {
  const Floats unit = powers_of_two(Ints{} + fraction_bits);
  const Floats scaled = kIsWide ? scale_twice(c, -largest) : c * powers_of_two(-largest);
  return __builtin_convertvector(scaled * unit, Ints);
}

/// a + b; lanes of `specials` are set where that leaves 32 bits.
inline Ints add_checked(const Ints& a, const Ints& b, Ints& specials) {
  const Ints sum = ints_of(words_of(a) + words_of(b));
  specials |= ((a ^ sum) & (b ^ sum)) < 0;
  return sum;
}

/// Magnitudes below 2^31 to fp32, rounded toward zero; kToOdd: the last bit is set if anything was
/// cut off, so that a later rounding to fewer bits is right.
template <bool kToOdd>
inline Floats truncate_to_float(const Ints& magnitude) {
  const Floats nearest = __builtin_convertvector(magnitude, Floats);
  const Ints back = __builtin_convertvector(nearest, Ints);
  const Ints is_above = (back > magnitude) | (nearest >= 0x1p31F);
  Ints bits = bits_as<Ints>(nearest) + is_above;
  if constexpr (kToOdd) bits |= (back != magnitude) & 1;
  return bits_as<Floats>(bits);
}

/// Nonnegative fp32 numbers to fp16 codes, to nearest even.
inline Ints encode_f16(const Floats& value) {
  // Adding and subtracting 1.5 * 2^23 units of the last place rounds to that place.
  const Ints exponent = larger(bits_as<Ints>(value) >> 23, Ints{} + (127 - 14));
  const Floats magic = bits_as<Floats>((words_of(exponent + 13) << 23) | (1U << 22));
  const Floats rounded = (value + magic) - magic;
  const Floats smallest = powers_of_two(Ints{} - 14);
  const Ints normal = (bits_as<Ints>(rounded) >> 13) - ((127 - 15) << 10);
  // Beyond the smallest normal number, units of the last place are those of subnormal numbers.
  const Ints subnormal = (bits_as<Ints>(rounded + smallest) - bits_as<Ints>(smallest)) >> 13;
  const Ints code = rounded < smallest ? subnormal : normal;
  return code > 0x7C00 ? Ints{} + 0x7C00 : code;
}

/// Rounds sum * 2^(largest - F) to the output.
template <int kOutput, bool kIsWide>
inline Words round_sums(const Ints& sum, const Ints& largest, int fraction_bits) {
  const Ints sign = sum >> 31;
  const Ints magnitude = ints_of(words_of(sum ^ sign) - words_of(sign));
  // Down to here scaling is exact, because results are 0 or normal numbers.
  const Ints exponents = larger(largest, Ints{} + (fraction_bits - 126)) - fraction_bits;
  const Floats integer = truncate_to_float<kOutput == kOutputF16>(magnitude);
  const Floats value =
      kIsWide ? scale_twice(integer, exponents) : integer * powers_of_two(exponents);
  const Words sign_bit = words_of(sign) & 0x80000000U;
  if constexpr (kOutput == kOutputF16) {
    const Words code = words_of(encode_f16(value));
    return code | (code == 0 ? Words{} : sign_bit >> 16);
  }
  Words code = bits_as<Words>(value);
  if constexpr (kOutput == kOutputF32E8M13) code &= ~((1U << 10) - 1);
  return code | sign_bit;
}

}  // namespace
}  // namespace tilewright::sim
