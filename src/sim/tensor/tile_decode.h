// Decoding of operands for the tile kernels. Included only by tile_kernel_*.cpp (tile_vectors.h).
#pragma once

#include "sim/tensor/tile_kernel.h"
#include "sim/tensor/tile_vectors.h"

namespace tilewright::sim {
namespace {

constexpr int kZeroExponent = -126;  ///< TensorNumber::kZeroExponent

/// Hands out the workspace.
class Arena {
 public:
  explicit Arena(void* memory) : next_(static_cast<char*>(memory)) {}
  /// Memory for `count` numbers and a vector beyond, so that whole vectors may be stored.
  template <class T>
  T* take(int count) {
    T* const result = reinterpret_cast<T*>(next_);
    next_ += (static_cast<std::size_t>(count) * sizeof(T) + 127) / 64 * 64;
    return result;
  }

 private:
  char* next_;
};

/// Extremes of the exponents of nonzero numbers; least > greatest if all are zero.
struct ExponentRange {
  int least = 1 << 20;
  int greatest = -(1 << 20);
};

/// A decoded operand. Infinities and NaNs count as zeros here, their rows are marked.
struct Decoded {
  float* values;            ///< A: [padded_rows][k]; B: [k][padded_rows]
  std::int16_t* exponents;  ///< likewise
  std::int32_t* specials;   ///< [padded_rows]: -1 if the row holds an infinity or a NaN, else 0
  std::int32_t* nans;       ///< [padded_rows]: -1 if it holds a NaN
  int padded_rows;
  ExponentRange range;
};

/// kLanes consecutive codes as 32-bit words.
inline Words load_codes(const std::uint8_t* codes) {
  using Codes = std::uint8_t __attribute__((vector_size(kLanes)));
  return __builtin_convertvector(load<Codes>(codes), Words);
}
inline Words load_codes(const std::uint16_t* codes) {
  using Codes = std::uint16_t __attribute__((vector_size(2 * kLanes)));
  return __builtin_convertvector(load<Codes>(codes), Words);
}
inline Words load_codes(const std::uint32_t* codes) {
  return load<Words>(codes);
}

/// Decodes `count` codes (readable in whole vectors). Returns nonzero if there are infinities or
/// NaNs.
template <class Code>
inline std::int32_t decode_codes(const Code* codes, int count, const KernelFormat& f, Decoded& to) {
  const Floats unit = powers_of_two(Ints{} + (127 - f.bias));
  const Ints zero_exponent = Ints{} + kZeroExponent;
  Ints least = Ints{} + to.range.least;
  Ints greatest = Ints{} + to.range.greatest;
  Ints any{};
  for (int i = 0; i < count; i += kLanes) {
    const Words code = (load_codes(codes + i) >> f.code_shift) ^ f.negate_mask;
    Ints magnitude = ints_of(code & f.magnitude_mask);
    const Ints is_finite = magnitude < static_cast<std::int32_t>(f.first_special);
    any |= ~is_finite;
    magnitude &= is_finite;
    const Ints is_zero = magnitude == 0;
    const Ints exponent = larger(magnitude >> f.mantissa_bits, Ints{} + 1) - f.bias;
    const Words sign = words_of((code & f.sign_mask) != 0) & 0x80000000U;
    // As the bits of an fp32, off by the difference of the biases only; also subnormal numbers.
    const Floats value = bits_as<Floats>(magnitude << (23 - f.mantissa_bits)) * unit;
    store(to.values + i, bits_as<Words>(value) | sign);
    store(to.exponents + i, __builtin_convertvector(is_zero ? zero_exponent : exponent, Shorts));
    least = (is_zero | (exponent > least)) != 0 ? least : exponent;
    greatest = (is_zero | (exponent < greatest)) != 0 ? greatest : exponent;
  }
  for (int i = 0; i < kLanes; ++i) {
    if (least[i] < to.range.least) to.range.least = least[i];
    if (greatest[i] > to.range.greatest) to.range.greatest = greatest[i];
  }
  return any_of(any);
}

/// Marks the rows that hold infinities or NaNs.
template <class Code>
inline void mark_specials(const Code* codes, int rows, int row_step, int k, int k_step,
                          const KernelFormat& f, Decoded& to) {
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < k; ++i) {
      const std::uint32_t code = codes[row * row_step + i * k_step];
      const std::uint32_t magnitude = code >> f.code_shift & f.magnitude_mask;
      if (magnitude >= f.first_special) to.specials[row] = -1;
      if (magnitude >= f.first_nan) to.nans[row] = -1;
    }
  }
}

/// Rows padded with zeros to a multiple of `multiple`; kIsTransposed: [k][padded_rows].
template <class Code, bool kIsTransposed>
inline Decoded decode_as(const KernelOperand& operand, int k, int multiple, Arena& arena) {
  const int padded = (operand.rows + multiple - 1) / multiple * multiple;
  Code* const codes = arena.take<Code>(padded * k);
  if constexpr (kIsTransposed) {
    if (padded != operand.rows) std::memset(codes, 0, sizeof(Code) * padded * k);
    const std::byte* from = operand.codes;
    for (int row = 0; row < operand.rows; ++row) {
      for (int i = 0; i < k; ++i, from += sizeof(Code)) {
        std::memcpy(codes + i * padded + row, from, sizeof(Code));
      }
    }
  } else {
    const std::size_t bytes = sizeof(Code) * operand.rows * k;
    std::memcpy(codes, operand.codes, bytes);
    std::memset(reinterpret_cast<char*>(codes) + bytes, 0, sizeof(Code) * padded * k - bytes);
  }
  Decoded result{arena.take<float>(padded * k),
                 arena.take<std::int16_t>(padded * k),
                 arena.take<std::int32_t>(padded),
                 arena.take<std::int32_t>(padded),
                 padded,
                 {}};
  std::memset(result.specials, 0, sizeof(std::int32_t) * padded);
  std::memset(result.nans, 0, sizeof(std::int32_t) * padded);
  if (decode_codes(codes, padded * k, operand.format, result) != 0) {
    mark_specials(codes, operand.rows, kIsTransposed ? 1 : k, k, kIsTransposed ? padded : 1,
                  operand.format, result);
  }
  return result;
}

template <bool kIsTransposed>
inline Decoded decode_operand(const KernelOperand& operand, int k, int multiple, Arena& arena) {
  switch (operand.format.code_bytes) {
    case 1:
      return decode_as<std::uint8_t, kIsTransposed>(operand, k, multiple, arena);
    case 2:
      return decode_as<std::uint16_t, kIsTransposed>(operand, k, multiple, arena);
    default:
      return decode_as<std::uint32_t, kIsTransposed>(operand, k, multiple, arena);
  }
}

}  // namespace
}  // namespace tilewright::sim
