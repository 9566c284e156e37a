// The tile kernel, compiled once by each tile_kernel_*.cpp, which first defines
//   TILEWRIGHT_VECTOR_BYTES   width of its vectors
//   TILEWRIGHT_BLOCK_ROWS     rows of two vectors computed together, as many as registers allow
//
// Columns of D lie in the lanes of vectors. Per block of outputs and per k:
//   pass 1   largest = max(ea + eb)                        16-bit lanes
//   pass 2   sum    += int(b * (a * 2^F) * 2^-largest)     the conversion truncates toward zero
// All of pass 2 but the conversion is exact: a product has at most 22 bits, scales are powers of
// two, and what underflows would have become 0. |term| < 2^(F+2), so 16 terms fit 32 bits at
// F = 25. The accumulator C joins afterwards, where the sum is rounded.
//
// Products that fp32 cannot hold (wide exponent ranges of bf16 and tf32) take the same path with
// double in place of float. Lanes that are left are computed by TileKernelCall::element.
#pragma once

#include "sim/tensor/tile_rounding.h"

#ifdef __AVX2__
#include "sim/tensor/tile_fast_block.h"
#endif

namespace tilewright::sim {
namespace {

/// One block: kBlockRows<kVectors> rows of kVectors vectors.
template <int kVectors>
struct Block {
  Words c[kBlockRows<kVectors>][kVectors];
  Words d[kBlockRows<kVectors>][kVectors];
  Ints largest[kBlockRows<kVectors>][kVectors];  ///< exponents
  Words sums[kBlockRows<kVectors>]
            [kVectors];  ///< unsigned, as lanes that are not used may overflow
  Ints specials[kBlockRows<kVectors>][kVectors];
};

/// Largest exponents up to `most` need care: zero times another operand has up to that here, but no
/// part in the search (its own -126 and the other's), and results could be subnormal.
struct CareLimit {
  int most;
  bool has_such_products;  ///< that are not zero

  CareLimit(const ExponentRange& a, const ExponentRange& b, int fraction_bits) {
    const int greatest = larger_of(larger_of(a.greatest, b.greatest), fraction_bits - 1);
    most = kZeroExponent + greatest;
    has_such_products = !is_empty(a) && !is_empty(b) && a.least + b.least <= most;
  }
  static int larger_of(int a, int b) { return a > b ? a : b; }
};

/// A strip of the tile whose operands are decoded: all rows, and as many columns as a block has.
/// `a` and `b` are the values as float or double.
template <class Real>
struct DecodedTile {
  const TileKernelCall& call;
  const Decoded& a_parts;
  const Decoded& b_parts;  ///< of the strip only
  const Real* a;
  const Real* b;
  CareLimit care;
};

template <int kVectors, class Real>
inline void find_largest_exponents(const DecodedTile<Real>& tile, int row, Block<kVectors>& block) {
  const int k = tile.call.k;
  const int stride = tile.b_parts.padded_rows;
  Shorts largest[kBlockRows<kVectors>][kVectors];
  for (auto& in_row : largest) {
    for (Shorts& vector : in_row) vector = Shorts{} + std::int16_t{2 * kZeroExponent};
  }
  const std::int8_t* const a = tile.a_parts.exponents + row * k;
  const std::int8_t* b = tile.b_parts.exponents;
  for (int i = 0; i < k; ++i, b += stride) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const auto exponents = __builtin_convertvector(load<Bytes>(b + v * kLanes), Shorts);
#pragma GCC unroll 8
      for (int r = 0; r < kBlockRows<kVectors>; ++r) {
        largest[r][v] = larger<Shorts>(exponents + std::int16_t{a[r * k + i]}, largest[r][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kBlockRows<kVectors>; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      block.largest[r][v] = __builtin_convertvector(largest[r][v], Ints);
    }
  }
}

template <int kVectors>
inline void sum_products(const DecodedTile<float>& tile, int row, int first_k, int last_k,
                         Block<kVectors>& block) {
  const int k = tile.call.k;
  const int stride = tile.b_parts.padded_rows;
  Words sums[kBlockRows<kVectors>][kVectors];
  Floats scales[kBlockRows<kVectors>][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kBlockRows<kVectors>; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = Words{};
      scales[r][v] = powers_of_two(-block.largest[r][v]);
    }
  }
  const float* const a = tile.a + row * k;
  const float* b = tile.b + first_k * stride;
  for (int i = first_k; i < last_k; ++i, b += stride) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const auto values = load<Floats>(b + v * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kBlockRows<kVectors>; ++r) {
        const Floats scaled = values * a[r * k + i] * scales[r][v];
        sums[r][v] += words_of(__builtin_convertvector(scaled, Ints));
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kBlockRows<kVectors>; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) block.sums[r][v] = sums[r][v];
  }
}

template <int kVectors>
inline void sum_products(const DecodedTile<double>& tile, int row, int first_k, int last_k,
                         Block<kVectors>& block) {
  const int k = tile.call.k;
  const int stride = tile.b_parts.padded_rows;
  for (int r = 0; r < kBlockRows<kVectors>; ++r) {
    const double* const a = tile.a + (row + r) * k;
    for (int v = 0; v < 2 * kVectors; ++v) {
      const auto largest = half_of<HalfInts>(block.largest[r][v / 2], v % 2);
      const auto scale = bits_as<Doubles>((1023 - __builtin_convertvector(largest, Longs)) << 52);
      const double* b = tile.b + first_k * stride + v * kHalfLanes;
      HalfWords sum{};
      for (int i = first_k; i < last_k; ++i, b += stride) {
        const Doubles scaled = load<Doubles>(b) * a[i] * scale;
        sum += bits_as<HalfWords>(__builtin_convertvector(scaled, HalfInts));
      }
      std::memcpy(reinterpret_cast<char*>(&block.sums[r][v / 2]) + v % 2 * sizeof sum, &sum,
                  sizeof sum);
    }
  }
}

/// C into the block, zeros beyond the tile.
template <int kVectors>
inline void load_c(const TileKernelCall& call, int row, int col, int num_cols,
                   Block<kVectors>& block) {
  for (int r = 0; r < kBlockRows<kVectors>; ++r) {
    const bool is_inside = row + r < call.a.rows && call.c != nullptr;
    const std::uint32_t* const from = is_inside ? call.c + (row + r) * call.b.rows + col : nullptr;
    if (is_inside && num_cols == kVectors * kLanes) {
      std::memcpy(block.c[r], from, sizeof block.c[r]);
    } else {
      std::memset(block.c[r], 0, sizeof block.c[r]);
      if (is_inside) std::memcpy(block.c[r], from, sizeof(std::uint32_t) * num_cols);
    }
  }
}

/// The lanes that vectors could not compute.
template <int kVectors, int kOutput, class Real>
void compute_specials(const DecodedTile<Real>& tile, int row, int col, int num_cols,
                      Block<kVectors>& block) {
  const TileKernelCall& call = tile.call;
  for (int r = 0; r < kBlockRows<kVectors> && row + r < call.a.rows; ++r) {
    for (int i = 0; i < num_cols; ++i) {
      const int v = i / kLanes;
      const int lane = i % kLanes;
      if (block.specials[r][v][lane] == 0) continue;
      const bool is_nan = (tile.a_parts.nans[row + r] | tile.b_parts.nans[i]) != 0;
      block.d[r][v][lane] = is_nan
                                ? canonical_nan<kOutput>()
                                : call.element(call.context, row + r, col + i, block.c[r][v][lane]);
    }
  }
}

template <int kVectors>
inline void store_d(const TileKernelCall& call, int row, int col, int num_cols,
                    const Block<kVectors>& block) {
  for (int r = 0; r < kBlockRows<kVectors> && row + r < call.a.rows; ++r) {
    std::uint32_t* const to = call.d + (row + r) * call.b.rows + col;
    if (num_cols == kVectors * kLanes) {
      std::memcpy(to, block.d[r], sizeof block.d[r]);
    } else {
      std::memcpy(to, block.d[r], sizeof(std::uint32_t) * num_cols);
    }
  }
}

template <int kVectors, int kOutput, class Real>
inline void compute_block(const DecodedTile<Real>& tile, int row, int col) {
  constexpr bool kIsWide = sizeof(Real) == 8;
  const TileKernelCall& call = tile.call;
  const Ints has_such_products = Ints{} - (tile.care.has_such_products ? 1 : 0);
  const int left = call.b.rows - col;
  const int num_cols = left < kVectors * kLanes ? left : kVectors * kLanes;
  Block<kVectors> block;
  Ints terms[kBlockRows<kVectors>][kVectors];
  load_c(call, row, col, num_cols, block);
  find_largest_exponents(tile, row, block);
#pragma GCC unroll 8
  for (int r = 0; r < kBlockRows<kVectors>; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const Accumulators c = decode_accumulators<kOutput>(block.c[r][v]);
      Ints largest = larger(block.largest[r][v], c.exponents);
      Ints specials = c.specials | tile.a_parts.specials[row + r] |
                      load<Ints>(tile.b_parts.specials + v * kLanes);
      if constexpr (!kIsWide) specials |= largest > 126;  // its inverse is no normal fp32
      if constexpr (kOutput == kOutputF16) {
        largest = larger(largest, Ints{} + call.least_exponent);  // more than any zero's
      } else {
        specials |= (largest <= tile.care.most) & (has_such_products | (c.values != 0));
      }
      block.specials[r][v] = specials;
      block.largest[r][v] = largest;
      terms[r][v] = accumulator_term<kIsWide>(c.values, largest, call.fraction_bits);
    }
  }
  const int split = call.k > 16 && call.fraction_bits > kMaxShortFractionBits ? 16 : call.k;
  Ints any{};
  for (int first = 0; first < call.k; first += split) {
    const int last = first + split < call.k ? first + split : call.k;
    sum_products(tile, row, first, last, block);
#pragma GCC unroll 8
    for (int r = 0; r < kBlockRows<kVectors>; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        terms[r][v] = add_checked(terms[r][v], ints_of(block.sums[r][v]), block.specials[r][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kBlockRows<kVectors>; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      block.d[r][v] =
          round_sums<kOutput, kIsWide>(terms[r][v], block.largest[r][v], call.fraction_bits);
      any |= block.specials[r][v];
    }
  }
  if (any_of(any) != 0) {
    compute_specials<kVectors, kOutput>(tile, row, col, num_cols, block);
  }
  store_d(call, row, col, num_cols, block);
}

/// Vectors of a block in a strip of so many.
constexpr int block_vectors(int vectors) {
  return vectors < 2 ? vectors : 2;
}

/// The block at a column of a strip that begins at `first_col`.
template <int kVectors, int kOutput, class Real>
inline void compute_block_of_strip(const DecodedTile<Real>& strip, int row, int col,
                                   int first_col) {
  if (first_col + col >= strip.call.b.rows) return;
  const Decoded& all = strip.b_parts;
  const Decoded from{all.values + col, all.exponents + col, all.specials + col, all.nans + col,
                     all.padded_rows,  all.range,           all.has_specials};
  compute_block<kVectors, kOutput>(
      DecodedTile<Real>{strip.call, strip.a_parts, from, strip.a, strip.b + col, strip.care}, row,
      first_col + col);
}

/// A whole strip, block by block.
template <int kVectors, int kOutput, class Real>
void compute_strip(const DecodedTile<Real>& tile, int col) {
  constexpr int kWidth = block_vectors(kVectors);
  for (int row = 0; row < tile.a_parts.padded_rows; row += kBlockRows<kWidth>) {
    for (int v = 0; v < kVectors; v += kWidth) {
      compute_block_of_strip<kWidth, kOutput>(tile, row, v * kLanes, col);
    }
  }
}

/// values * 2^exponent in another type.
template <class Real>
inline const Real* scaled(const float* values, int count, int exponent, Arena& arena) {
  const auto factor = static_cast<Real>(std::uint32_t{1} << exponent);
  auto* const result = arena.take<Real>(count);
  for (int i = 0; i < count; ++i) result[i] = static_cast<Real>(values[i]) * factor;
  return result;
}

/// What all strips have in common.
struct DecodedA {
  Decoded parts;
  const float* values;  ///< times 2^F
#ifdef __AVX2__
  bool is_wide;  ///< exponents of products may not fit bytes
  FastA fast;
#endif
};

/// fp32 holds all products.
template <int kVectors, int kOutput>
void compute_narrow(const TileKernelCall& call, const DecodedA& a, const Decoded& b, int col,
                    Arena& arena) {
  const CareLimit care(a.parts.range, b.range, call.fraction_bits);
  const DecodedTile<float> tile{call, a.parts, b, a.values, b.values, care};
#ifdef __AVX2__
  constexpr int kWidth = block_vectors(kVectors), kColumns = kVectors * kLanes;
  if (kOutput != kOutputF16 && col + kColumns <= call.b.rows && !a.parts.has_specials &&
      !b.has_specials && can_add_bytes(b.range, a.fast.base, a.is_wide) &&
      can_multiply(a.parts.range, b.range)) {
    auto* const largest = arena.take<std::int8_t>(a.fast.rows * kColumns);
    const FastTile fast{call.k,  call.fraction_bits, a.fast, b.values, b.exponents,
                        largest, care.most};
    LeftBlocks left;
    compute_fast_strip<kBlockRows<kWidth>, kWidth, kColumns, kOutput>(fast, call, col, left);
    left.for_each(
        [&](int row, int at) { compute_block_of_strip<kWidth, kOutput>(tile, row, at, col); });
    return;
  }
#endif
  (void)arena;
  compute_strip<kVectors, kOutput>(tile, col);
}

template <int kVectors, int kOutput>
void decode_and_compute(const TileKernelCall& call, const DecodedA& a, int col, Arena arena) {
  const KernelOperand& all = call.b;
  const int left = all.rows - col;
  const auto row_bytes = static_cast<std::ptrdiff_t>(call.k) * all.format.code_bytes;
  const KernelOperand strip{all.codes + col * row_bytes,
                            left < kVectors * kLanes ? left : kVectors * kLanes, all.format};
  const Decoded b = decode_operand<true>(strip, call.k, kVectors * kLanes, arena);
  // a * 2^F and a * 2^F * b are finite and, with all of their bits, not below the smallest normal.
  const int f = call.fraction_bits;
  const ExponentRange& range = a.parts.range;
  if (range.greatest + f + 2 <= 127 && range.greatest + b.range.greatest + f + 2 <= 127 &&
      range.least + b.range.least - 22 + f >= -126) {
    return compute_narrow<kVectors, kOutput>(call, a, b, col, arena);
  }
  const int count = a.parts.padded_rows * call.k;
  const double* const scaled_a = scaled<double>(a.parts.values, count, f, arena);
  const double* const wide_b = scaled<double>(b.values, b.padded_rows * call.k, 0, arena);
  const CareLimit care(range, b.range, f);
  compute_strip<kVectors, kOutput>(DecodedTile<double>{call, a.parts, b, scaled_a, wide_b, care},
                                   col);
}

/// Columns are decoded and used strip by strip: then they stay in the first cache.
template <int kOutput>
void compute_rounded(const TileKernelCall& call, const DecodedA& a, const Arena& arena) {
  for (int col = 0; col < call.b.rows;) {
    const int left = call.b.rows - col;
    if (kWideVectors > 2 && left >= kWideVectors * kLanes) {
      decode_and_compute<kWideVectors, kOutput>(call, a, col, arena);
      col += kWideVectors * kLanes;
    } else if (left > kLanes) {
      decode_and_compute<2, kOutput>(call, a, col, arena);
      col += 2 * kLanes;
    } else {
      decode_and_compute<1, kOutput>(call, a, col, arena);
      col += kLanes;
    }
  }
}

void run_tile_kernel(const TileKernelCall& call) {
  Arena arena(call.workspace);
  DecodedA a{};
  a.parts = decode_operand<false>(call.a, call.k, kBlockRows<1>, arena);
  a.values = scaled<float>(a.parts.values, a.parts.padded_rows * call.k, call.fraction_bits, arena);
#ifdef __AVX2__
  a.is_wide = call.a.format.bias > 15 || call.b.format.bias > 15;
  a.fast = prepare_fast(a.parts, call.k, a.is_wide, arena);
#endif
  if (call.output == kOutputF32) compute_rounded<kOutputF32>(call, a, arena);
  if (call.output == kOutputF32E8M13) compute_rounded<kOutputF32E8M13>(call, a, arena);
  if (call.output == kOutputF16) compute_rounded<kOutputF16>(call, a, arena);
}

}  // namespace
}  // namespace tilewright::sim
