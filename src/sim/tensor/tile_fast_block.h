// Strips of the tile kernel for the usual case: operands are finite, fp32 holds all products, and
// no lane has a result that needs care. Half the work of compute_block(), which takes over where a
// block turns out to need it. Included only by tile_kernel_body.h, for AVX2 and AVX-512.
//
// Exponents are added as bytes, with saturation: what saturates is so small beside 2^base that
// either another term is larger or the range check below hands the block on.
//
// All of it rounds toward zero (RoundsTowardZero): what is not exact is one conversion of integers
// to fp32, which is to be truncated, and terms that the next step turns into 0.
#pragma once

#include "sim/tensor/tile_rounding.h"

#include <immintrin.h>

namespace tilewright::sim {
namespace {

using Bytes16 = std::int8_t __attribute__((vector_size(16)));
using Bytes32 = std::int8_t __attribute__((vector_size(32)));

template <int kCount>
struct ByteVector {
  using Type = Bytes16;
};
template <>
struct ByteVector<32> {
  using Type = Bytes32;
};

inline Bytes16 add_saturated(const Bytes16& a, const Bytes16& b) {
  return bits_as<Bytes16>(_mm_adds_epi8(bits_as<__m128i>(a), bits_as<__m128i>(b)));
}
inline Bytes32 add_saturated(const Bytes32& a, const Bytes32& b) {
  return bits_as<Bytes32>(_mm256_adds_epi8(bits_as<__m256i>(a), bits_as<__m256i>(b)));
}

/// A word in all words of a vector of bytes.
inline void spread_word(std::uint32_t word, Bytes16& to) {
  to = bits_as<Bytes16>(_mm_set1_epi32(static_cast<int>(word)));
}
inline void spread_word(std::uint32_t word, Bytes32& to) {
  to = bits_as<Bytes32>(_mm256_set1_epi32(static_cast<int>(word)));
}

/// The rounding of SSE and AVX arithmetic, for as long as it lives. The compiler knows nothing of
/// it, hence the barriers; functions that have one are not inlined.
class RoundsTowardZero {
 public:
  RoundsTowardZero() : old_(_mm_getcsr()) { set(old_ | _MM_ROUND_TOWARD_ZERO); }
  ~RoundsTowardZero() { set(old_); }
  RoundsTowardZero(const RoundsTowardZero&) = delete;
  RoundsTowardZero& operator=(const RoundsTowardZero&) = delete;

 private:
  static void set(unsigned mode) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    _mm_setcsr(mode);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
  }
  unsigned old_;
};

constexpr int kStepsAtOnce = 16;  ///< of k; at F = 25, sums of more might leave 32 bits

/// What fast blocks need of A, besides its values.
struct FastA {
  const float* values;             ///< [rows][k]
  const std::uint32_t* exponents;  ///< less `base`, in all bytes of a word
  int rows;                        ///< padded to whole blocks
  int base;
};

/// A strip for fast blocks.
struct FastTile {
  int k;
  int fraction_bits;
  FastA a;
  const float* b;  ///< values, [k][columns of the strip]
  const std::int8_t* b_exponents;
  std::int8_t* largest;  ///< [rows][columns]: exponents of the products, less `base`
  int most_with_care;    ///< CareLimit::most
};

/// Whether fp32 holds all products with all of their bits. They have no factor of 2^F here: it is
/// in the scales.
inline bool can_multiply(const ExponentRange& a, const ExponentRange& b) {
  return is_empty(a) || is_empty(b) ||
         (a.greatest + b.greatest + 2 <= 127 && a.least + b.least - 22 >= -126);
}

/// What exponents of A are taken less: nothing, or the largest of them.
inline int base_of(const ExponentRange& a, bool is_wide) {
  return is_wide && !is_empty(a) ? a.greatest : 0;
}

/// Whether bytes can express all that matters, exponents of A being less base_of(). What saturates
/// stands for up to base - 128 + the largest exponent of B, and a largest exponent of -102 or less
/// is not taken here.
inline bool can_add_bytes(const ExponentRange& b, int base, bool is_wide) {
  return !is_wide || is_empty(b) || base + (b.greatest > 0 ? b.greatest : 0) <= 26;
}

/// Exponents of A less `base`, at least -128, in all bytes of a word.
inline const std::uint32_t* spread_exponents(const std::int8_t* exponents, int base, int count,
                                             Arena& arena) {
  auto* const result = arena.take<std::uint32_t>(count);
  for (int i = 0; i < count; i += kLanes) {
    const Ints less = larger(widen(load<Bytes>(exponents + i)) - base, Ints{} - 128);
    store(result + i, (words_of(less) & 255) * 0x01010101U);
  }
  return result;
}

inline FastA prepare_fast(const Decoded& a, int k, bool is_wide, Arena& arena) {
  const int base = base_of(a.range, is_wide), rows = a.padded_rows;
  return {a.values, spread_exponents(a.exponents, base, rows * k, arena), rows, base};
}

/// Finds the largest exponents of the products of kRows rows.
template <int kRows, int kColumns>
inline void find_largest(const FastTile& tile, int row) {
  using Exponents = typename ByteVector<kColumns>::Type;
  const int k = tile.k;
  Exponents found[kRows];
#pragma GCC unroll 8
  for (Exponents& in_row : found) in_row = Exponents{} + std::int8_t{-128};
  const std::uint32_t* const a = tile.a.exponents + row * k;
  const std::int8_t* b = tile.b_exponents;
  for (int i = 0; i < k; ++i, b += kColumns) {
    const auto exponents = load<Exponents>(b);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      Exponents of_a;
      spread_word(a[r * k + i], of_a);
      found[r] = larger(add_saturated(exponents, of_a), found[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    std::memcpy(tile.largest + (row + r) * kColumns, &found[r], kColumns);
  }
}

/// Where a block is in its strip, and its accumulators.
struct FastPlace {
  int row;
  int col;  ///< in the strip
  const std::uint32_t* c;
  int c_pitch;
  std::uint32_t* d;
  int d_pitch;
};

/// Adds the products of `steps` steps in k, on the grid of each output.
template <int kRows, int kVectors, int kColumns>
inline void add_products(const float* a, int k, int steps, const float* b,
                         const Floats (&scales)[kRows][kVectors], Words (&sums)[kRows][kVectors]) {
  for (int i = 0; i < steps; ++i, b += kColumns) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const auto values = load<Floats>(b + v * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const Floats scaled = values * a[r * k + i] * scales[r][v];
        sums[r][v] += words_of(__builtin_convertvector(scaled, Ints));
      }
    }
  }
}

/// -1 in the lanes of a vector of columns where all products with this row of A are zero.
template <int kColumns>
inline Ints zero_products(const FastTile& tile, int row, int col) {
  std::uint32_t any_in_row = 0;
  for (int i = 0; i < tile.k; ++i) {
    any_in_row |= load<std::uint32_t>(tile.a.values + row * tile.k + i) << 1;
  }
  if (any_in_row == 0) return Ints{} - 1;
  Words any{};
  for (int i = 0; i < tile.k; ++i) any |= load<Words>(tile.b + i * kColumns + col);
  return any << 1 == 0;
}

/// Padding and masked scores make whole rows of zeros. Lanes whose sum has nothing but zeros get an
/// exponent that the block can work with: largest[kRows][kVectors]. False if a lane is left outside
/// of least..greatest. All exponents are those of bits of fp32 numbers.
template <int kRows, int kVectors, int kColumns>
[[gnu::noinline]] bool settle_zeros(const FastTile& tile, const FastPlace& at, int least,
                                    int greatest, Ints* largest) {
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v, ++largest) {
      const Ints is_outside = (*largest < least) | (*largest > greatest);
      if (any_of(is_outside) == 0) continue;
      const auto old = load<Words>(at.c + r * at.c_pitch + v * kLanes);
      const Ints is_zero =
          zero_products<kColumns>(tile, at.row + r, at.col + v * kLanes) & (old == 0);
      if (any_of(is_outside & ~is_zero) != 0) return false;
      *largest = (*largest & ~is_outside) | (is_outside & greatest);
    }
  }
  return true;
}

/// Whole vectors inside the tile. False if a lane needs care: then nothing was written. That is so
/// up to CareLimit::most and beyond a biased 253, whose scales would be no normal numbers.
template <int kRows, int kVectors, int kColumns, int kOutput>
inline bool compute_fast_block(const FastTile& tile, const FastPlace& at) {
  constexpr int kInfinity = 255 << 23;
  const int k = tile.k;
  const int f = tile.fraction_bits;
  const int least = (tile.most_with_care + 128) << 23, greatest = 253 << 23;
  Ints largest[kRows][kVectors];  // exponents of the sums, where fp32 numbers have them
  Ints lowest = Ints{} + greatest, highest = Ints{} + least;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const std::int8_t* const found = tile.largest + (at.row + r) * kColumns + at.col;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const auto of_c = load<Ints>(at.c + r * at.c_pitch + v * kLanes) & kInfinity;
      const Ints of_products =
          (widen(load<Bytes>(found + v * kLanes)) << 23) + ((tile.a.base + 127) << 23);
      largest[r][v] = larger(of_products, of_c);
      lowest = largest[r][v] < lowest ? largest[r][v] : lowest;
      highest = larger(largest[r][v], highest);
    }
  }
  if (any_of((lowest < least) | (highest > greatest)) != 0) [[unlikely]] {
    Ints settled[kRows][kVectors];
    std::memcpy(settled, largest, sizeof settled);
    if (!settle_zeros<kRows, kVectors, kColumns>(tile, at, least, greatest, settled[0])) {
      return false;
    }
    std::memcpy(largest, settled, sizeof settled);
  }
  // 2^(F - largest), whose bits wrap around where F is large.
  const std::uint32_t scale_of_one = static_cast<std::uint32_t>(254 + f) << 23;
  Floats scales[kRows][kVectors];
  Ints terms[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      scales[r][v] = bits_as<Floats>(ints_of(scale_of_one - words_of(largest[r][v])));
      const auto old = load<Floats>(at.c + r * at.c_pitch + v * kLanes);
      terms[r][v] = __builtin_convertvector(old * scales[r][v], Ints);
    }
  }
  // The sum of 16 products is less than 2^(F+6); with C, one that leaves 32 bits comes back at
  // most 2^26 from the other end. More of them at F = 25 are watched as they join.
  const bool is_long = k > kStepsAtOnce && f > kMaxShortFractionBits;
  Ints overflow{};
  const float* const a = tile.a.values + at.row * k;
  const float* const b = tile.b + at.col;
  for (int first = 0; first < k; first += kStepsAtOnce) {
    Words sums[kRows][kVectors] = {};
    const int steps = k - first < kStepsAtOnce ? k - first : kStepsAtOnce;
    add_products<kRows, kVectors, kColumns>(a + first, k, steps, b + first * kColumns, scales,
                                            sums);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const Ints sum = ints_of(words_of(terms[r][v]) + sums[r][v]);
        if (is_long) overflow |= (terms[r][v] ^ sum) & (ints_of(sums[r][v]) ^ sum);
        terms[r][v] = sum;
      }
    }
  }
  Ints greatest_sum{};
  Floats results[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      results[r][v] = __builtin_convertvector(terms[r][v], Floats);
      greatest_sum = larger(bits_as<Ints>(results[r][v]) & 0x7FFFFFFF, greatest_sum);
    }
  }
  constexpr int kNearOverflow = 0x4EF80000;  // 2^31 - 2^26
  if (any_of((overflow < 0) | (greatest_sum >= kNearOverflow)) != 0) [[unlikely]]
    return false;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const Ints scale = (254 << 23) - bits_as<Ints>(scales[r][v]);
      Words code = bits_as<Words>(results[r][v] * bits_as<Floats>(scale));
      if constexpr (kOutput == kOutputF32E8M13) code &= ~((1U << 10) - 1);
      store(at.d + r * at.d_pitch + v * kLanes, code);
    }
  }
  return true;
}

/// Blocks of a strip that fast code left, by row and column.
class LeftBlocks {
 public:
  void add(int row, int col) { places_[count_++] = {row, col}; }
  template <class Function>
  void for_each(const Function& function) const {
    for (int i = 0; i < count_; ++i) function(places_[i].row, places_[i].col);
  }

 private:
  struct Place {
    int row, col;
  };
  Place places_[kMaxTileRows * 2];
  int count_ = 0;
};

/// The blocks of a strip whose columns are all inside the tile.
template <int kRows, int kVectors, int kColumns, int kOutput>
[[gnu::noinline]] void compute_fast_strip(const FastTile& tile, const TileKernelCall& call,
                                          int first_col, LeftBlocks& left) {
  alignas(64) static constexpr std::uint32_t kZeros[kColumns] = {};
  constexpr int kRowsAtOnce = kBlockRows<1>;
  const RoundsTowardZero rounding;
  for (int row = 0; row < tile.a.rows; row += kRowsAtOnce) {
    find_largest<kRowsAtOnce, kColumns>(tile, row);
  }
  const bool can_be_fast = tile.most_with_care + 128 <= 253;
  const int pitch = call.b.rows;
  for (int row = 0; row < tile.a.rows; row += kRows) {
    for (int col = 0; col < kColumns; col += kVectors * kLanes) {
      const int element = row * pitch + first_col + col;
      const bool has_c = call.c != nullptr;
      const FastPlace at{
          row,  col, has_c ? call.c + element : kZeros + col, has_c ? pitch : 0, call.d + element,
          pitch};
      const bool is_inside = row + kRows <= call.a.rows;
      if (!can_be_fast || !is_inside ||
          !compute_fast_block<kRows, kVectors, kColumns, kOutput>(tile, at)) {
        left.add(row, col);
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::sim
