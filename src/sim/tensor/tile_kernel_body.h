// The tile kernel, included once by each tile_kernel_*.cpp, which first defines
//   TILEWRIGHT_VECTOR_BYTES   width of its vectors
//   TILEWRIGHT_BLOCK_ROWS     rows of outputs computed together, so many as registers allow
// Everything is in an unnamed namespace and nothing of the C++ library is used (tile_kernel.h, why).
//
// Per block of outputs and per k:
//   pass 1   emax = max(ea + eb)                      16-bit lanes
//   pass 2   sum += int(a * 2^F * b * 2^-emax)        the conversion to int truncates toward zero
// All of pass 2 but the conversion is exact: a product has at most 22 bits, the scale is a power of
// two, and what underflows would have become 0. |term| < 2^(F+2) and F <= 25, so 16 products of
// 11-bit operands stay below 2^31; longer k uses 8-bit operands or is summed in two halves.
// The accumulator C joins in the epilogue, in double, where the sum is rounded.
//
// Products that fp32 cannot hold (wide exponent ranges of bf16 and tf32) take the same path with
// double in place of float. What is left is computed one by one through TileKernelCall::element.
#pragma once

#include "sim/tensor/tile_kernel.h"

#include <cstring>

namespace tilewright::sim {
namespace {

constexpr int kVectorBytes = TILEWRIGHT_VECTOR_BYTES;
constexpr int kBlockRows = TILEWRIGHT_BLOCK_ROWS;
constexpr int kLanes = kVectorBytes / 4;  // of one vector of 32-bit numbers
constexpr int kHalf = kLanes / 2;
constexpr int kZeroExponent = -126;
constexpr int kMaxBlockLanes = 2 * kLanes;

using Floats = float __attribute__((vector_size(kVectorBytes)));
using Ints = std::int32_t __attribute__((vector_size(kVectorBytes)));
using Words = std::uint32_t __attribute__((vector_size(kVectorBytes)));
using HalfFloats = float __attribute__((vector_size(kVectorBytes / 2)));
using HalfInts = std::int32_t __attribute__((vector_size(kVectorBytes / 2)));
using Doubles = double __attribute__((vector_size(kVectorBytes)));
using Longs = std::int64_t __attribute__((vector_size(kVectorBytes)));
using Shorts = std::int16_t __attribute__((vector_size(kVectorBytes / 2)));  // kLanes of them

template <class To, class From>
inline To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
template <class Vector>
inline Vector load(const void* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}
template <class Vector>
inline void store(void* to, const Vector& vector) {
  std::memcpy(to, &vector, sizeof vector);
}

// ---- Decoding -----------------------------------------------------------------------------------

/// A decoded operand. Rows are padded with zeros to a multiple of the block.
template <class Real>
struct Decoded {
  Real* values;             ///< [k][padded_rows] of the lanes' operand, else [padded_rows][k]
  std::int16_t* exponents;  ///< likewise
  std::int32_t* specials;   ///< [padded_rows]: -1 if the row holds an infinity or a NaN, else 0
  int padded_rows;
};

/// Extremes of the exponents of nonzero numbers; least > greatest if all are zero.
struct ExponentRange {
  int least = 1 << 20;
  int greatest = -(1 << 20);
};

inline float power_of_two(int exponent) {
  return bits_as<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

template <class Code>
inline std::uint32_t load_code(const std::byte* codes, std::size_t index) {
  Code code;
  std::memcpy(&code, codes + index * sizeof(Code), sizeof code);
  return code;
}

/// Codes to fp32 values, exponents and flags: element-wise loops that the compiler vectorises.
template <class Code>
inline void decode_codes(const std::byte* codes, int count, const KernelFormat& f, float* values,
                         std::int16_t* exponents, std::int32_t* specials, ExponentRange* range) {
  const float unit = power_of_two(127 - f.bias);
  const int to_fp32 = 23 - f.mantissa_bits;
  int least = range->least;
  int greatest = range->greatest;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t code =
        (load_code<Code>(codes, static_cast<std::size_t>(i)) >> f.code_shift) ^ f.negate_mask;
    const std::uint32_t magnitude = code & f.magnitude_mask;
    const bool is_special = magnitude >= f.first_special;
    const std::uint32_t finite = is_special ? 0 : magnitude;
    const std::uint32_t sign = (code & f.sign_mask) != 0 ? 0x80000000U : 0U;
    const auto field = static_cast<int>(finite >> f.mantissa_bits);
    const int exponent = (field > 1 ? field : 1) - f.bias;
    values[i] = bits_as<float>(finite << to_fp32) * bits_as<float>(bits_as<std::uint32_t>(unit) |
                                                                    sign);
    exponents[i] = static_cast<std::int16_t>(finite == 0 ? kZeroExponent : exponent);
    specials[i] = is_special ? -1 : 0;
    const int low = finite == 0 ? 1 << 20 : exponent;
    const int high = finite == 0 ? -(1 << 20) : exponent;
    least = low < least ? low : least;
    greatest = high > greatest ? high : greatest;
  }
  range->least = least;
  range->greatest = greatest;
}

/// A bump allocator over the workspace.
class Arena {
 public:
  explicit Arena(void* memory) : next_(static_cast<char*>(memory)) {}
  template <class T>
  T* take(int count) {
    T* const result = reinterpret_cast<T*>(next_);
    next_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return result;
  }

 private:
  char* next_;
};

/// Row-major, as in the operand.
struct FlatOperand {
  float* values;
  std::int16_t* exponents;
  std::int32_t* specials;
  ExponentRange range;
};

inline FlatOperand decode_flat(const KernelOperand& operand, int k, Arena& arena) {
  const int count = operand.rows * k;
  FlatOperand flat{arena.take<float>(count), arena.take<std::int16_t>(count),
                   arena.take<std::int32_t>(count), {}};
  const auto decode = operand.format.code_bytes == 1   ? &decode_codes<std::uint8_t>
                      : operand.format.code_bytes == 2 ? &decode_codes<std::uint16_t>
                                                       : &decode_codes<std::uint32_t>;
  decode(operand.codes, count, operand.format, flat.values, flat.exponents, flat.specials,
         &flat.range);
  return flat;
}

/// Copies a flat operand to its place: rows stay rows (with values times 2^fraction_bits) or become
/// lanes.
template <class Real, bool kIsTransposed>
inline Decoded<Real> arrange(const FlatOperand& flat, int rows, int k, int multiple, Real factor,
                             Arena& arena) {
  Decoded<Real> result;
  const int padded = (rows + multiple - 1) / multiple * multiple;
  result.padded_rows = padded;
  result.values = arena.take<Real>(padded * k);
  result.exponents = arena.take<std::int16_t>(padded * k);
  result.specials = arena.take<std::int32_t>(padded);
  const int row_step = kIsTransposed ? 1 : k;
  const int k_step = kIsTransposed ? padded : 1;
  for (int row = 0; row < padded; ++row) {
    std::int32_t special = 0;
    for (int i = 0; i < k; ++i) {
      const int to = row * row_step + i * k_step;
      const bool is_inside = row < rows;
      result.values[to] = is_inside ? static_cast<Real>(flat.values[row * k + i]) * factor : Real{};
      result.exponents[to] = is_inside ? flat.exponents[row * k + i] : std::int16_t{kZeroExponent};
      special |= is_inside ? flat.specials[row * k + i] : 0;
    }
    result.specials[row] = special;
  }
  return result;
}

// ---- One block: kBlockRows rows times kVectors vectors of lanes ---------------------------------

template <int kVectors>
struct Block {
  Shorts exponents[kBlockRows][kVectors];  ///< largest of the products
  Ints largest[kBlockRows][kVectors];      ///< of all terms
  Ints sums[kBlockRows][kVectors];
};

template <int kVectors, class Real>
inline void find_largest_exponents(const Decoded<Real>& rows, const Decoded<Real>& lanes, int row,
                                   int lane, int k, Block<kVectors>& block) {
  Shorts largest[kBlockRows][kVectors];
  for (auto& r : largest) {
    for (auto& v : r) v = Shorts{} + std::int16_t{2 * kZeroExponent};
  }
  const std::int16_t* row_exponents = rows.exponents + row * k;
  for (int i = 0; i < k; ++i) {
    const std::int16_t* at = lanes.exponents + i * lanes.padded_rows + lane;
    for (int v = 0; v < kVectors; ++v) {
      const auto exponents = load<Shorts>(at + v * kLanes);
      for (int r = 0; r < kBlockRows; ++r) {
        const Shorts sum = exponents + row_exponents[r * k + i];
        largest[r][v] = sum > largest[r][v] ? sum : largest[r][v];
      }
    }
  }
  std::memcpy(block.exponents, largest, sizeof largest);
}

template <int kVectors>
inline void sum_products(const Decoded<float>& rows, const Decoded<float>& lanes, int row, int lane,
                         int first_k, int last_k, int k, Block<kVectors>& block) {
  Ints sums[kBlockRows][kVectors];
  Floats scales[kBlockRows][kVectors];
  for (int r = 0; r < kBlockRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = Ints{};
      scales[r][v] = bits_as<Floats>((127 - block.largest[r][v]) << 23);
    }
  }
  const float* row_values = rows.values + row * k;
  for (int i = first_k; i < last_k; ++i) {
    const float* at = lanes.values + i * lanes.padded_rows + lane;
    for (int v = 0; v < kVectors; ++v) {
      const auto values = load<Floats>(at + v * kLanes);
      for (int r = 0; r < kBlockRows; ++r) {
        const Floats scaled = values * row_values[r * k + i] * scales[r][v];
        sums[r][v] += __builtin_convertvector(scaled, Ints);
      }
    }
  }
  std::memcpy(block.sums, sums, sizeof sums);
}

template <class Vector>
inline HalfInts half_of(const Vector& vector, int half) {
  HalfInts result;
  std::memcpy(&result, reinterpret_cast<const char*>(&vector) + half * sizeof result,
              sizeof result);
  return result;
}

/// 2^exponent of 32-bit lanes.
inline Doubles powers_of_two(HalfInts exponents) {
  return bits_as<Doubles>((__builtin_convertvector(exponents, Longs) + 1023) << 52);
}

template <int kVectors>
inline void sum_products(const Decoded<double>& rows, const Decoded<double>& lanes, int row,
                         int lane, int first_k, int last_k, int k, Block<kVectors>& block) {
  for (int r = 0; r < kBlockRows; ++r) {
    const double* row_values = rows.values + (row + r) * k;
    for (int v = 0; v < 2 * kVectors; ++v) {
      HalfInts sum{};
      const Doubles scale = powers_of_two(-half_of(block.largest[r][v / 2], v % 2));
      const double* at = lanes.values + lane + v * kHalf;
      for (int i = first_k; i < last_k; ++i) {
        const Doubles scaled = load<Doubles>(at + i * lanes.padded_rows) * row_values[i] * scale;
        sum += __builtin_convertvector(scaled, HalfInts);
      }
      std::memcpy(reinterpret_cast<char*>(&block.sums[r][v / 2]) + v % 2 * sizeof sum, &sum,
                  sizeof sum);
    }
  }
}

// ---- Epilogue -----------------------------------------------------------------------------------

/// The accumulator of one vector of outputs.
struct Accumulators {
  Floats values;
  Ints exponents;
  Ints specials;
};

template <bool kIsF16>
inline Accumulators decode_accumulators(const std::uint32_t* codes) {
  const auto code = load<Words>(codes);
  Accumulators c;
  if constexpr (kIsF16) {
    const Words magnitude = code & 0x7FFF;
    const Ints field = bits_as<Ints>(magnitude >> 10);
    const Words sign = (code & 0x8000) << 16;
    const Floats unit = bits_as<Floats>(sign | ((127 + 112) << 23));
    c.values = bits_as<Floats>(magnitude << 13) * unit;
    c.exponents = (field > 1 ? field : 1) - 15;
    c.exponents = magnitude == 0 ? Ints{} + kZeroExponent : c.exponents;
    c.specials = field == 31;
  } else {
    const Ints field = bits_as<Ints>(code >> 23 & 255);
    c.values = bits_as<Floats>(code);
    c.exponents = (field > 1 ? field : 1) - 127;
    c.specials = field == 255;
  }
  return c;
}

/// fp64 numbers to fp16 codes, to nearest even; what rounds to zero becomes +0.
inline Longs encode_f16(Doubles value) {
  const Longs bits = bits_as<Longs>(value);
  const Longs magnitude = bits & 0x7FFFFFFFFFFFFFFF;
  // Adding and subtracting 1.5 * 2^52 units in the last place rounds to that place.
  const Longs field = magnitude >> 52;
  const Longs least = Longs{} + (1023 - 14);
  const Longs exponent = field > least ? field : least;
  const Doubles magic = bits_as<Doubles>(((exponent + 42) << 52) | (std::int64_t{1} << 51));
  const Doubles rounded = (bits_as<Doubles>(magnitude) + magic) - magic;
  // In units of 2^-24 a subnormal number is its own code; others drop to 10 fraction bits.
  const Longs fixed = bits_as<Longs>(rounded);
  const Longs normal = (fixed >> 42) - (std::int64_t{1023 - 15} << 10);
  const Doubles one = bits_as<Doubles>(Longs{} + (std::int64_t{1023 - 14} << 52));
  const Longs subnormal = bits_as<Longs>(rounded + one) - bits_as<Longs>(one);
  Longs code = rounded < one ? subnormal >> 42 : normal;
  code = code > 0x7C00 ? Longs{} + 0x7C00 : code;
  const Longs sign = (bits >> 48) & 0x8000;
  return code == 0 ? code : code | sign;
}

/// Rounds the sums of one vector of outputs and reports the lanes that need `element` instead.
template <int kOutput, int kRealBytes>
inline Words finish(const Ints& sums, const Ints& high_sums, const Accumulators& c,
                    const Ints& largest, int fraction_bits, Ints& specials) {
  Words result;
  for (int half = 0; half < 2; ++half) {
    const HalfInts exponents = half_of(largest, half);
    const Doubles to_grid = powers_of_two(fraction_bits - exponents);
    HalfFloats c_half;
    std::memcpy(&c_half, reinterpret_cast<const char*>(&c.values) + half * sizeof c_half,
                sizeof c_half);
    const HalfInts c_term =
        __builtin_convertvector(__builtin_convertvector(c_half, Doubles) * to_grid, HalfInts);
    Doubles sum = __builtin_convertvector(half_of(sums, half), Doubles) +
                  __builtin_convertvector(c_term, Doubles) +
                  __builtin_convertvector(half_of(high_sums, half), Doubles);
    if constexpr (kOutput == 2) {
      const Doubles value = sum * powers_of_two(exponents - fraction_bits);
      const HalfInts codes = __builtin_convertvector(encode_f16(value), HalfInts);
      std::memcpy(reinterpret_cast<char*>(&result) + half * sizeof codes, &codes, sizeof codes);
      continue;
    }
    constexpr int kCutBits = kOutput == 1 ? 39 : 29;
    sum = bits_as<Doubles>(bits_as<Longs>(sum) & ~((std::int64_t{1} << kCutBits) - 1));
    const Doubles value = sum * powers_of_two(exponents - fraction_bits);
    const HalfFloats rounded = __builtin_convertvector(value, HalfFloats);
    const HalfInts is_zero = __builtin_convertvector(sum == Doubles{}, HalfInts);
    // Subnormal results would be rounded to nearest by the conversion.
    const HalfInts is_small = (exponents < fraction_bits - 126) & ~is_zero;
    HalfInts special = half_of(specials, half) | is_small;
    std::memcpy(reinterpret_cast<char*>(&result) + half * sizeof rounded, &rounded, sizeof rounded);
    std::memcpy(reinterpret_cast<char*>(&specials) + half * sizeof special, &special,
                sizeof special);
  }
  if constexpr (kRealBytes == 4) specials |= largest > 126;  // the scale is not a normal fp32
  return result;
}

template <int kVectors>
inline void load_c(const TileKernelCall& call, int row, int lane, int lanes,
                   std::uint32_t (&c)[kBlockRows][kMaxBlockLanes]) {
  for (int r = 0; r < kBlockRows; ++r) {
    const bool is_row = row + r < call.rows.rows && call.c != nullptr;
    if (is_row && call.lane_stride == 1 && lanes == kVectors * kLanes) {
      std::memcpy(c[r], call.c + (row + r) * call.row_stride + lane, kVectors * kLanes * 4);
      continue;
    }
    for (int i = 0; i < kVectors * kLanes; ++i) {
      c[r][i] = is_row && i < lanes
                    ? call.c[(row + r) * call.row_stride + (lane + i) * call.lane_stride]
                    : 0;
    }
  }
}

/// Lanes that the vectors could not compute, then everything to memory.
template <int kVectors>
inline void store_d(const TileKernelCall& call, int row, int lane, int lanes, bool has_specials,
                    const Ints (&specials)[kBlockRows][kVectors],
                    const std::uint32_t (&c)[kBlockRows][kMaxBlockLanes],
                    std::uint32_t (&d)[kBlockRows][kMaxBlockLanes]) {
  for (int r = 0; r < kBlockRows && row + r < call.rows.rows; ++r) {
    for (int i = 0; has_specials && i < lanes; ++i) {
      if (specials[r][i / kLanes][i % kLanes] != 0) {
        d[r][i] = call.element(call.context, row + r, lane + i, c[r][i]);
      }
    }
    std::uint32_t* const to = call.d + (row + r) * call.row_stride + lane * call.lane_stride;
    if (call.lane_stride == 1 && lanes == kVectors * kLanes) {
      std::memcpy(to, d[r], kVectors * kLanes * 4);
      continue;
    }
    for (int i = 0; i < lanes; ++i) to[i * call.lane_stride] = d[r][i];
  }
}

template <int kVectors, int kOutput, class Real>
inline void compute_block(const TileKernelCall& call, const Decoded<Real>& rows,
                          const Decoded<Real>& lanes, int row, int lane) {
  const int num_lanes = call.lanes.rows - lane < kVectors * kLanes ? call.lanes.rows - lane
                                                                  : kVectors * kLanes;
  Block<kVectors> block;
  alignas(64) std::uint32_t c[kBlockRows][kMaxBlockLanes];
  alignas(64) std::uint32_t d[kBlockRows][kMaxBlockLanes];
  load_c<kVectors>(call, row, lane, num_lanes, c);
  find_largest_exponents<kVectors>(rows, lanes, row, lane, call.k, block);
  Accumulators accumulators[kBlockRows][kVectors];
  for (int r = 0; r < kBlockRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      accumulators[r][v] = decode_accumulators<kOutput == 2>(c[r] + v * kLanes);
      const Ints products = __builtin_convertvector(block.exponents[r][v], Ints);
      const Ints exponents = accumulators[r][v].exponents;
      block.largest[r][v] = products > exponents ? products : exponents;
    }
  }
  // 16 terms of up to 2^(F+2) fit 31 bits at F = 25; more terms only if they are smaller.
  const int split = call.k > 16 && call.fraction_bits > 13 ? call.k / 2 : call.k;
  Ints high_sums[kBlockRows][kVectors] = {};
  if (split < call.k) {
    sum_products<kVectors>(rows, lanes, row, lane, split, call.k, call.k, block);
    std::memcpy(high_sums, block.sums, sizeof high_sums);
  }
  sum_products<kVectors>(rows, lanes, row, lane, 0, split, call.k, block);
  Ints specials[kBlockRows][kVectors];
  Ints any{};
  for (int r = 0; r < kBlockRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      specials[r][v] = accumulators[r][v].specials | rows.specials[row + r] |
                       load<Ints>(lanes.specials + lane + v * kLanes);
      const Words result = finish<kOutput, sizeof(Real)>(
          block.sums[r][v], high_sums[r][v], accumulators[r][v], block.largest[r][v],
          call.fraction_bits, specials[r][v]);
      any |= specials[r][v];
      store(d[r] + v * kLanes, result);
    }
  }
  std::int32_t has_specials = 0;
  for (int i = 0; i < kLanes; ++i) has_specials |= any[i];
  store_d<kVectors>(call, row, lane, num_lanes, has_specials != 0, specials, c, d);
}

template <int kOutput, class Real>
void compute_tile(const TileKernelCall& call, const FlatOperand& flat_rows,
                  const FlatOperand& flat_lanes, Arena& arena) {
  const auto factor = static_cast<Real>(power_of_two(call.fraction_bits));
  const auto rows = arrange<Real, false>(flat_rows, call.rows.rows, call.k, kBlockRows, factor,
                                         arena);
  const auto lanes = arrange<Real, true>(flat_lanes, call.lanes.rows, call.k, kLanes, Real{1},
                                         arena);
  for (int lane = 0; lane < lanes.padded_rows;) {
    const bool is_wide = lanes.padded_rows - lane >= 2 * kLanes;
    for (int row = 0; row < rows.padded_rows; row += kBlockRows) {
      if (is_wide) {
        compute_block<2, kOutput, Real>(call, rows, lanes, row, lane);
      } else {
        compute_block<1, kOutput, Real>(call, rows, lanes, row, lane);
      }
    }
    lane += is_wide ? 2 * kLanes : kLanes;
  }
}

template <int kOutput>
inline void compute_rounded(const TileKernelCall& call, const FlatOperand& rows,
                            const FlatOperand& lanes, bool is_narrow, Arena& arena) {
  if (is_narrow) {
    compute_tile<kOutput, float>(call, rows, lanes, arena);
  } else {
    compute_tile<kOutput, double>(call, rows, lanes, arena);
  }
}

void run_tile_kernel(const TileKernelCall& call) {
  Arena arena(call.workspace);
  const FlatOperand rows = decode_flat(call.rows, call.k, arena);
  const FlatOperand lanes = decode_flat(call.lanes, call.k, arena);
  // a * 2^F, a * 2^F * b: finite and, with all of its bits, not below the smallest normal fp32.
  const int headroom = call.fraction_bits + 2;
  const bool is_narrow =
      rows.range.greatest + headroom <= 127 &&
      rows.range.greatest + lanes.range.greatest + headroom <= 127 &&
      rows.range.least + lanes.range.least - 22 + call.fraction_bits >= -126;
  if (call.output == 0) compute_rounded<0>(call, rows, lanes, is_narrow, arena);
  if (call.output == 1) compute_rounded<1>(call, rows, lanes, is_narrow, arena);
  if (call.output == 2) compute_rounded<2>(call, rows, lanes, is_narrow, arena);
}

}  // namespace
}  // namespace tilewright::sim
