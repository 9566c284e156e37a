// mma.sync of 8-bit floats. Neither sm_90 nor sm_100 has a unit for it: ptxas converts the operands
// to fp16, which holds them all, and makes two products of them and an addition.
#pragma once

#include "sim/tensor/tile_multiply.h"

namespace tilewright::sim {

/// D = A * B^T + C as that code computes it, in the output format of `arithmetic` (kF32 or kF16):
///     P = sum over k with k % 4 < 2, as of mma.sync of fp16, without accumulator
///     Q = P + sum over the other k, likewise
///     D = Q + C, one addition to nearest even
/// is_exact: the exact sum instead, as of multiply_tile().
/// Layout   as multiply_tile(); a and b are 8-bit, c has all elements, k is a multiple of 4,
///          and nothing is larger than m16n8k32 has it
/// Errors   as multiply_tile()
void multiply_converted_tile(const TensorArithmetic& arithmetic, const TileExtents& extents,
                             const TileOperand& a, const TileOperand& b,
                             std::span<const std::uint32_t> c, std::span<std::uint32_t> d);

}  // namespace tilewright::sim
