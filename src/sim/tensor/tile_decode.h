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

inline bool is_empty(const ExponentRange& range) {
  return range.greatest < range.least;
}

/// A decoded operand. Infinities and NaNs count as zeros here, their rows are marked.
struct Decoded {
  float* values;           ///< A: [padded_rows][k]; B: [k][padded_rows]
  std::int8_t* exponents;  ///< likewise
  std::int32_t* specials;  ///< [padded_rows]: -1 if the row holds an infinity or a NaN, else 0
  std::int32_t* nans;      ///< [padded_rows]: -1 if it holds a NaN
  int padded_rows;
  ExponentRange range;
  bool has_specials;  ///< any row has
};

/// kLanes consecutive codes as 32-bit words.
inline Words load_codes(const std::uint8_t* codes) {
  return widen_unsigned(load<Bytes>(codes));
}
inline Words load_codes(const std::uint16_t* codes) {
  using Codes = std::uint16_t __attribute__((vector_size(2 * kLanes)));
  return __builtin_convertvector(load<Codes>(codes), Words);
}
inline Words load_codes(const std::uint32_t* codes) {
  return load<Words>(codes);
}

/// Extremes of the magnitudes of codes; the least one of those that are not 0, less 1.
struct CodeExtremes {
  Words greatest = Words{};
  Words least = ~Words{};
};

/// A format that is fp32 without its last bits: bf16, tf32.
inline bool is_cut_fp32(const KernelFormat& f) {
  return f.bias == 127;
}

/// Decodes one vector of codes. kMasked: infinities and NaNs become zeros. kIsCut: is_cut_fp32(),
/// and `unit` is a zero of the sign that all values are multiplied by.
//
// What the loops around it need is passed by value: a store could change anything behind a
// reference (-fno-strict-aliasing).
template <bool kMasked, bool kIsCut>
inline void decode_vector(const Words& code, const KernelFormat& f, const Floats& unit,
                          float* values, std::int8_t* exponents, CodeExtremes& extremes) {
  Words magnitude = code & f.magnitude_mask;
  if constexpr (kMasked) magnitude &= words_of(magnitude < f.first_special);
  extremes.greatest = larger(magnitude, extremes.greatest);
  extremes.least = magnitude - 1 < extremes.least ? magnitude - 1 : extremes.least;
  const Ints exponent = larger(ints_of(magnitude >> f.mantissa_bits), Ints{} + 1) - f.bias;
  if constexpr (kIsCut) {
    Words value = code << (23 - f.mantissa_bits);
    if constexpr (kMasked) value = magnitude << (23 - f.mantissa_bits) | (value & 0x80000000U);
    store(values, value ^ bits_as<Words>(unit));
    store(exponents, narrow(exponent));  // of zero as of subnormal numbers: kZeroExponent
    return;
  }
  const Words sign = code << (31 - __builtin_ctz(f.sign_mask)) & 0x80000000U;
  // As the bits of an fp32, off by the difference of the biases only; also subnormal numbers.
  const Floats value = bits_as<Floats>(magnitude << (23 - f.mantissa_bits)) * unit;
  store(values, bits_as<Words>(value) ^ sign);
  store(exponents, narrow(magnitude == 0 ? Ints{} + kZeroExponent : exponent));
}

/// Decodes codes that lie as they are decoded (readable in whole vectors).
template <bool kMasked, bool kIsCut, class Code>
inline CodeExtremes decode_rows(const Code* codes, int count, const KernelFormat f,
                                const Floats unit, float* values, std::int8_t* exponents) {
  CodeExtremes extremes;
  for (int i = 0; i < count; i += kLanes) {
    decode_vector<kMasked, kIsCut>(load_codes(codes + i) >> f.code_shift, f, unit, values + i,
                                   exponents + i, extremes);
  }
  return extremes;
}

/// Decodes [num_words][padded] words of several codes each, the lowest bits being the lowest k.
template <bool kMasked, bool kIsCut, class Code>
inline CodeExtremes decode_words(const std::uint32_t* words, int num_words, int padded,
                                 const KernelFormat f, const Floats unit, float* values,
                                 std::int8_t* exponents) {
  constexpr int kCodes = 4 / sizeof(Code);
  constexpr auto kCodeMask = static_cast<std::uint32_t>(static_cast<Code>(-1));
  CodeExtremes extremes;
  for (int w = 0; w < num_words; ++w) {
    for (int i = 0; i < padded; i += kLanes) {
      const auto word = load<Words>(words + w * padded + i);
#pragma GCC unroll 4
      for (int part = 0; part < kCodes; ++part) {
        const Words code = word >> (part * 8 * static_cast<int>(sizeof(Code))) & kCodeMask;
        const int at = (w * kCodes + part) * padded + i;
        decode_vector<kMasked, kIsCut>(code >> f.code_shift, f, unit, values + at, exponents + at,
                                       extremes);
      }
    }
  }
  return extremes;
}

/// [rows][num_words] to [num_words][padded]; num_words is a multiple of 4.
inline void transpose_words(const std::byte* from, int rows, int num_words, int padded,
                            std::uint32_t* to) {
  using Four = std::uint32_t __attribute__((vector_size(16)));
  int row = 0;
  for (; row + 4 <= rows; row += 4) {
    for (int w = 0; w < num_words; w += 4) {
      Four in[4];
      for (int i = 0; i < 4; ++i) {
        in[i] = load<Four>(from + (static_cast<std::ptrdiff_t>(row + i) * num_words + w) * 4);
      }
      const Four a = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5);
      const Four b = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7);
      const Four c = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5);
      const Four d = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
      store(to + w * padded + row, __builtin_shufflevector(a, c, 0, 1, 4, 5));
      store(to + (w + 1) * padded + row, __builtin_shufflevector(a, c, 2, 3, 6, 7));
      store(to + (w + 2) * padded + row, __builtin_shufflevector(b, d, 0, 1, 4, 5));
      store(to + (w + 3) * padded + row, __builtin_shufflevector(b, d, 2, 3, 6, 7));
    }
  }
  for (; row < rows; ++row) {
    for (int w = 0; w < num_words; ++w) {
      std::memcpy(to + w * padded + row,
                  from + (static_cast<std::ptrdiff_t>(row) * num_words + w) * 4, 4);
    }
  }
}

inline ExponentRange range_of(const CodeExtremes& extremes, const KernelFormat& f) {
  const std::uint32_t greatest = greatest_lane(extremes.greatest);
  const std::uint32_t least = ~greatest_lane(~extremes.least);
  const auto exponent = [&f](std::uint32_t magnitude) {
    const auto field = static_cast<int>(magnitude >> f.mantissa_bits);
    return (field < 1 ? 1 : field) - f.bias;
  };
  if (greatest == 0) return {};
  return {exponent(least + 1), exponent(greatest)};
}

/// Marks the rows that hold infinities or NaNs. Codes are [rows][k].
template <class Code>
inline void mark_specials(const std::byte* codes, int rows, int k, const KernelFormat& f,
                          Decoded& to) {
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < k; ++i, codes += sizeof(Code)) {
      const std::uint32_t magnitude = load<Code>(codes) >> f.code_shift & f.magnitude_mask;
      if (magnitude >= f.first_special) to.specials[row] = -1;
      if (magnitude >= f.first_nan) to.nans[row] = -1;
    }
  }
}

/// The codes in the order in which they are decoded.
template <class Code, bool kIsTransposed>
inline void* arrange_codes(const KernelOperand& operand, int k, int padded, Arena& arena) {
  Code* const codes = arena.take<Code>(padded * k);
  const std::size_t bytes = sizeof(Code) * operand.rows * k;
  if constexpr (!kIsTransposed) {
    std::memcpy(codes, operand.codes, bytes);
    std::memset(reinterpret_cast<char*>(codes) + bytes, 0, sizeof(Code) * padded * k - bytes);
    return codes;
  }
  if (padded != operand.rows) std::memset(codes, 0, sizeof(Code) * padded * k);
  const std::byte* from = operand.codes;
  for (int row = 0; row < operand.rows; ++row) {
    for (int i = 0; i < k; ++i, from += sizeof(Code)) {
      std::memcpy(codes + i * padded + row, from, sizeof(Code));
    }
  }
  return codes;
}

/// Four rows at a time, if rows are whole 16 bytes.
template <class Code>
inline std::uint32_t* arrange_words(const KernelOperand& operand, int k, int padded, Arena& arena) {
  const int num_words = k * static_cast<int>(sizeof(Code)) / 4;
  auto* const words = arena.take<std::uint32_t>(padded * num_words);
  if (padded != operand.rows) std::memset(words, 0, sizeof(std::uint32_t) * padded * num_words);
  transpose_words(operand.codes, operand.rows, num_words, padded, words);
  return words;
}

/// Decodes what arrange_codes() or, if has_words, arrange_words() made. False if there are
/// infinities or NaNs and they were not masked.
template <bool kMasked, class Code>
inline bool decode_arranged(const void* codes, bool has_words, int k, const KernelFormat& f,
                            Decoded& to) {
  const Floats magnitude = powers_of_two(Ints{} + (127 - f.bias));
  const Floats scale = f.negate_mask != 0 ? -magnitude : magnitude;
  const auto decode = [&]<bool kIsCut>() {
    const Floats unit = kIsCut ? bits_as<Floats>(bits_as<Words>(scale) & 0x80000000U) : scale;
    if (has_words) {
      const int num_words = k * static_cast<int>(sizeof(Code)) / 4;
      return decode_words<kMasked, kIsCut, Code>(static_cast<const std::uint32_t*>(codes),
                                                 num_words, to.padded_rows, f, unit, to.values,
                                                 to.exponents);
    }
    return decode_rows<kMasked, kIsCut>(static_cast<const Code*>(codes), to.padded_rows * k, f,
                                        unit, to.values, to.exponents);
  };
  constexpr bool kCanBeCut = sizeof(Code) != 1;
  const CodeExtremes extremes = kCanBeCut && is_cut_fp32(f)
                                    ? decode.template operator()<kCanBeCut>()
                                    : decode.template operator()<false>();
  if (any_of(extremes.greatest >= f.first_special) != 0) return false;
  to.range = range_of(extremes, f);
  return true;
}

/// Rows padded with zeros to a multiple of `multiple`; kIsTransposed: [k][padded_rows].
template <class Code, bool kIsTransposed>
inline Decoded decode_as(const KernelOperand& operand, int k, int multiple, Arena& arena) {
  const KernelFormat& f = operand.format;
  const int padded = (operand.rows + multiple - 1) / multiple * multiple;
  const bool has_words = kIsTransposed && k * sizeof(Code) % 16 == 0;
  const void* const codes = has_words
                                ? arrange_words<Code>(operand, k, padded, arena)
                                : arrange_codes<Code, kIsTransposed>(operand, k, padded, arena);
  Decoded result{arena.take<float>(padded * k),
                 arena.take<std::int8_t>(padded * k),
                 arena.take<std::int32_t>(padded),
                 arena.take<std::int32_t>(padded),
                 padded,
                 {},
                 false};
  std::memset(result.specials, 0, sizeof(std::int32_t) * padded);
  std::memset(result.nans, 0, sizeof(std::int32_t) * padded);
  const bool is_done = decode_arranged<false, Code>(codes, has_words, k, f, result);
  if (!is_done) {
    decode_arranged<true, Code>(codes, has_words, k, f, result);
    mark_specials<Code>(operand.codes, operand.rows, k, f, result);
    result.has_specials = true;
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
