// Between rows of registers and the dense tiles that tensor arithmetic works on. Everything is one
// warp's part: 16 (or 8) rows of A and D, all of B.
//
// All operand types share one rule when counted in 32-bit words: with g = lane / 4, q = lane % 4,
// register r of A holds word q + 4 * (r / 2) of row g + 8 * (r % 2), register r of B holds word
// q + 4 * r of column g.
#pragma once

#include "formats/format_spec.h"
#include "sim/parse/types.h"
#include "sim/state/warp.h"
#include "sim/tensor/integer_multiply.h"
#include "sim/tensor/tile_multiply.h"

#include <cstdint>
#include <span>

namespace tilewright::sim {

/// A's registers into words[row][words_per_row].
void gather_a(Warp& warp, std::span<const Row> registers, int words_per_row, std::uint32_t* words);
/// B's registers into words[column][words_per_row].
void gather_b(Warp& warp, std::span<const Row> registers, int words_per_row, std::uint32_t* words);

/// Accumulators of 32 bits, two columns of row g in a pair of registers, then those of row g + 8:
/// d[row][n] for 16 rows (8 if there are only N / 4 registers).
void gather_d32(Warp& warp, std::span<const Row> registers, int n, int rows, std::uint32_t* d);
void scatter_d32(Warp& warp, std::span<const Row> registers, int n, int rows,
                 const std::uint32_t* d);
/// Accumulators of 16 bits, two to a register; one per word in d.
void gather_d16(Warp& warp, std::span<const Row> registers, int n, int rows, std::uint32_t* d);
void scatter_d16(Warp& warp, std::span<const Row> registers, int n, int rows,
                 const std::uint32_t* d);

/// The number format of a tensor operand type, nullptr for integers and f64.
const FormatSpec* tensor_format_of(Type type) noexcept;

/// Types whose product is summed in s32.
struct IntegerOperands {
  bool is_integer = false;
  bool is_bits = false;
  IntegerType a = IntegerType::kS8, b = IntegerType::kS8;
};
IntegerOperands integer_operands(Type a, Type b) noexcept;

}  // namespace tilewright::sim
