#include "sim/tensor/converted_multiply.h"

#include "base/error.h"
#include "formats/minifloat.h"

#include <array>
#include <bit>
#include <cmath>
#include <span>

namespace tilewright::sim {

namespace {

/// The fp16 codes of all 8-bit codes; NaNs become the canonical one.
std::array<std::uint16_t, 256> codes_as_fp16(const FormatSpec& format) {
  std::array<std::uint16_t, 256> table{};
  for (std::uint32_t code = 0; code < table.size(); ++code) {
    table[code] = static_cast<std::uint16_t>(encode(kFp16, decode(format, code)));
  }
  return table;
}

const std::array<std::uint16_t, 256>& fp16_table(const FormatSpec& format) {
  static const std::array<std::uint16_t, 256> e4m3 = codes_as_fp16(kE4m3),
                                              e5m2 = codes_as_fp16(kE5m2);
  return format.mantissa_bits == kE4m3.mantissa_bits ? e4m3 : e5m2;
}

constexpr std::size_t kMaxCodes = 16 * 32;  // of A, the larger operand of mma.sync
constexpr std::size_t kMaxSums = 16 * 8;

/// Both halves of an operand, [rows][k / 2] each: k % 4 below 2, and the others.
struct Halves {
  std::array<std::uint16_t, kMaxCodes / 2> low, high;
  std::size_t bytes;

  explicit Halves(const TileOperand& operand) : bytes(operand.codes.size()) {
    const auto& table = fp16_table(*operand.format);
    const auto* from = reinterpret_cast<const unsigned char*>(operand.codes.data());
    for (std::size_t i = 0; i < bytes; i += 4, from += 4) {
      low[i / 2] = table[from[0]];
      low[i / 2 + 1] = table[from[1]];
      high[i / 2] = table[from[2]];
      high[i / 2 + 1] = table[from[3]];
    }
  }
  TileOperand low_codes() const { return codes(low); }
  TileOperand high_codes() const { return codes(high); }

 private:
  TileOperand codes(const std::array<std::uint16_t, kMaxCodes / 2>& half) const {
    return {std::as_bytes(std::span(half)).first(bytes), &kFp16};
  }
};

std::uint32_t add_fp32(std::uint32_t a, std::uint32_t b) {
  const float sum = std::bit_cast<float>(a) + std::bit_cast<float>(b);
  return sum != sum ? nan_code(kFp32) : std::bit_cast<std::uint32_t>(sum);
}

// A double holds the sum of any two fp16 exactly.
std::uint32_t add_fp16(std::uint32_t a, std::uint32_t b) {
  const double sum = decode(kFp16, a) + decode(kFp16, b);
  return std::isnan(sum) ? nan_code(kFp16) : encode(kFp16, sum);
}

}  // namespace

void multiply_converted_tile(const TensorArithmetic& arithmetic, const TileExtents& extents,
                             const TileOperand& a, const TileOperand& b,
                             std::span<const std::uint32_t> c, std::span<std::uint32_t> d) {
  if (arithmetic.is_exact) return multiply_tile(arithmetic, extents, a, b, c, d);
  const bool is_f16 = arithmetic.output == OutputFormat::kF16;
  require(a.format->bits() == 8 && b.format->bits() == 8 && extents.k % 4 == 0 &&
              arithmetic.output != OutputFormat::kF32E8M13,
          ErrorKind::kInvalidArgument,
          "multiply_converted_tile: {} by {}, k = {}; expected 8-bit floats and a multiple of 4",
          a.format->name, b.format->name, extents.k);
  require(a.codes.size() <= kMaxCodes && b.codes.size() <= kMaxCodes && d.size() <= kMaxSums,
          ErrorKind::kInvalidArgument,
          "multiply_converted_tile: operands of {} and {} bytes, {} sums; at most {}, {} and {}",
          a.codes.size(), b.codes.size(), d.size(), kMaxCodes, kMaxCodes, kMaxSums);
  const Halves a_halves(a), b_halves(b);
  const TileExtents half{extents.m, extents.n, extents.k / 2};
  std::array<std::uint32_t, kMaxSums> all_sums;
  const auto sums = std::span(all_sums).first(d.size());
  multiply_tile(arithmetic, half, a_halves.low_codes(), b_halves.low_codes(), {}, sums);
  multiply_tile(arithmetic, half, a_halves.high_codes(), b_halves.high_codes(), sums, sums);
  for (std::size_t i = 0; i < d.size(); ++i) {
    d[i] = is_f16 ? add_fp16(sums[i], c[i]) : add_fp32(sums[i], c[i]);
  }
}

}  // namespace tilewright::sim
