#include "sim/tensor/integer_multiply.h"

#include "base/error.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace tilewright::sim {

namespace {

constexpr int kMaxExtent = 256;

void check_extents(const char* function, const TileExtents& e) {
  const auto fits = [](int extent) { return 0 < extent && extent <= kMaxExtent; };
  require(fits(e.m) && fits(e.n) && fits(e.k), ErrorKind::kInvalidArgument,
          "{}: extents {} x {} x {}; each must be 1..{}", function, e.m, e.n, e.k, kMaxExtent);
}

void check_size(const char* function, const char* array, std::size_t size, std::size_t expected) {
  require(size == expected, ErrorKind::kInvalidArgument, "{}: {} has {} elements, expected {}",
          function, array, size, expected);
}

void check_results(const char* function, const TileExtents& e, std::size_t c, std::size_t d) {
  const std::size_t expected = elems(e.m, e.n);
  if (c != 0) check_size(function, "c", c, expected);
  check_size(function, "d", d, expected);
}

bool is_nibble(IntegerType type) {
  return type == IntegerType::kS4 || type == IntegerType::kU4;
}

std::int16_t decode(IntegerType type, std::uint8_t byte, bool is_high) {
  const int nibble = is_high ? byte >> 4 : byte & 15;
  switch (type) {
    case IntegerType::kS8:
      return static_cast<std::int8_t>(byte);
    case IntegerType::kU8:
      return byte;
    case IntegerType::kS4:
      return static_cast<std::int16_t>(nibble >= 8 ? nibble - 16 : nibble);
    case IntegerType::kU4:
      break;
  }
  return static_cast<std::int16_t>(nibble);
}

/// Elements as numbers, [rows][k], or [k][rows] if is_transposed.
std::vector<std::int16_t> decode_operand(const char* name, const IntegerOperand& operand, int rows,
                                         int k, bool is_transposed) {
  const bool is_packed = is_nibble(operand.type);
  require(!is_packed || k % 2 == 0, ErrorKind::kInvalidArgument,
          "multiply_integer_tile: k = {} of packed 4-bit elements; expected an even number", k);
  check_size("multiply_integer_tile", name, operand.codes.size(),
             elems(rows, is_packed ? k / 2 : k));
  std::vector<std::int16_t> values(elems(rows, k));
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < k; ++i) {
      const std::size_t at = elems(row, k) + static_cast<std::size_t>(i);
      const auto byte = static_cast<std::uint8_t>(operand.codes[is_packed ? at / 2 : at]);
      values[is_transposed ? elems(i, rows) + static_cast<std::size_t>(row) : at] =
          decode(operand.type, byte, i % 2 != 0);
    }
  }
  return values;
}

std::int32_t add_to(std::int32_t c, std::int64_t sum, bool is_saturating) {
  sum += c;
  if (is_saturating) {
    using Limits = std::numeric_limits<std::int32_t>;
    sum = std::clamp<std::int64_t>(sum, Limits::min(), Limits::max());
  }
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(sum)));
}

double quieted(double nan) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(nan) | std::uint64_t{1} << 51);
}

/// a * b + sum, with the NaN that an H200 gives: of several that of b, else of the sum, else of a;
/// a negative one where none came in.
double fused_step(double a, double b, double sum) {
  for (const double operand : {b, sum, a}) {
    if (std::isnan(operand)) return quieted(operand);
  }
  const double result = std::fma(a, b, sum);
  return std::isnan(result) ? -std::numeric_limits<double>::quiet_NaN() : result;
}

}  // namespace

void multiply_integer_tile(const TileExtents& extents, const IntegerOperand& a,
                           const IntegerOperand& b, bool is_saturating,
                           std::span<const std::int32_t> c, std::span<std::int32_t> d) {
  check_extents("multiply_integer_tile", extents);
  check_results("multiply_integer_tile", extents, c.size(), d.size());
  const auto a_values = decode_operand("a", a, extents.m, extents.k, false);
  const auto b_values = decode_operand("b", b, extents.n, extents.k, true);
  const auto n = static_cast<std::size_t>(extents.n);
  // 256 products of at most 255 * 255 fit 32 bits.
  std::int32_t sums[kMaxExtent];
  for (int row = 0; row < extents.m; ++row) {
    std::fill_n(sums, n, 0);
    for (int k = 0; k < extents.k; ++k) {
      const std::int16_t factor = a_values[elems(row, extents.k) + static_cast<std::size_t>(k)];
      const std::int16_t* const b_row = b_values.data() + elems(k, extents.n);
      for (std::size_t col = 0; col < n; ++col) sums[col] += factor * b_row[col];
    }
    for (std::size_t col = 0; col < n; ++col) {
      const std::size_t at = elems(row, extents.n) + col;
      d[at] = add_to(c.empty() ? 0 : c[at], sums[col], is_saturating);
    }
  }
}

void multiply_bit_tile(const TileExtents& extents, std::span<const std::byte> a,
                       std::span<const std::byte> b, BitOperation operation,
                       std::span<const std::int32_t> c, std::span<std::int32_t> d) {
  check_extents("multiply_bit_tile", extents);
  check_results("multiply_bit_tile", extents, c.size(), d.size());
  require(extents.k % 32 == 0, ErrorKind::kInvalidArgument,
          "multiply_bit_tile: k = {} bits; expected a multiple of 32", extents.k);
  const auto bytes = static_cast<std::size_t>(extents.k / 8);
  check_size("multiply_bit_tile", "a", a.size(), bytes * static_cast<std::size_t>(extents.m));
  check_size("multiply_bit_tile", "b", b.size(), bytes * static_cast<std::size_t>(extents.n));
  const auto word_at = [](std::span<const std::byte> bits, std::size_t byte) {
    std::uint32_t word = 0;
    std::memcpy(&word, bits.data() + byte, sizeof word);
    return word;
  };
  for (std::size_t row = 0; row < static_cast<std::size_t>(extents.m); ++row) {
    for (std::size_t col = 0; col < static_cast<std::size_t>(extents.n); ++col) {
      int count = 0;
      for (std::size_t byte = 0; byte < bytes; byte += sizeof(std::uint32_t)) {
        const std::uint32_t x = word_at(a, row * bytes + byte);
        const std::uint32_t y = word_at(b, col * bytes + byte);
        count += std::popcount(operation == BitOperation::kAnd ? x & y : x ^ y);
      }
      const std::size_t at = row * static_cast<std::size_t>(extents.n) + col;
      d[at] = add_to(c.empty() ? 0 : c[at], count, false);
    }
  }
}

void multiply_f64_tile(const TileExtents& extents, std::span<const double> a,
                       std::span<const double> b, std::span<const double> c, std::span<double> d) {
  check_extents("multiply_f64_tile", extents);
  check_results("multiply_f64_tile", extents, c.size(), d.size());
  check_size("multiply_f64_tile", "a", a.size(), elems(extents.m, extents.k));
  check_size("multiply_f64_tile", "b", b.size(), elems(extents.n, extents.k));
  for (int row = 0; row < extents.m; ++row) {
    for (int col = 0; col < extents.n; ++col) {
      const std::size_t at = elems(row, extents.n) + static_cast<std::size_t>(col);
      double sum = c.empty() ? 0.0 : c[at];
      for (int k = 0; k < extents.k; ++k) {
        const auto i = static_cast<std::size_t>(k);
        sum = fused_step(a[elems(row, extents.k) + i], b[elems(col, extents.k) + i], sum);
      }
      d[at] = sum;
    }
  }
}

}  // namespace tilewright::sim
