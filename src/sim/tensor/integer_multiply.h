// Tile products of the types that tensor cores compute without a rounding of their own: integers,
// bits, and f64. D[m][n] = C[m][n] + sum over k of A[m][k] * B[n][k], laid out as in
// tile_multiply.h.
#pragma once

#include "sim/tensor/tile_multiply.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace tilewright::sim {

enum class IntegerType { kS8, kU8, kS4, kU4 };

/// Dense, row-major, k contiguous. 4-bit elements are packed in pairs, the lower k in the low half
/// of a byte; k is even.
struct IntegerOperand {
  std::span<const std::byte> codes;
  IntegerType type;
};

/// The exact sum modulo 2^32, or with is_saturating the exact sum clamped once to the range of s32.
/// An empty c is all zeros; c and d may be the same array.
/// Errors   InvalidArgument if a size does not fit the extents, or an extent is not in 1..256
void multiply_integer_tile(const TileExtents& extents, const IntegerOperand& a,
                           const IntegerOperand& b, bool is_saturating,
                           std::span<const std::int32_t> c, std::span<std::int32_t> d);

/// How two rows of bits are combined before the ones are counted: .and.popc, .xor.popc.
enum class BitOperation { kAnd, kXor };

/// k counts bits, a multiple of 32 up to 256; bit 0 of byte 0 is k = 0. Modulo 2^32.
void multiply_bit_tile(const TileExtents& extents, std::span<const std::byte> a,
                       std::span<const std::byte> b, BitOperation operation,
                       std::span<const std::int32_t> c, std::span<std::int32_t> d);

/// A chain of fused multiply-adds in the order of k, each rounded to nearest even. Of several NaNs
/// a step keeps that of b, else of the sum, else of a, as recorded from an H200.
void multiply_f64_tile(const TileExtents& extents, std::span<const double> a,
                       std::span<const double> b, std::span<const double> c, std::span<double> d);

}  // namespace tilewright::sim
