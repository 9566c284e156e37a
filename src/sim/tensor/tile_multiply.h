// Products of whole operand tiles in the arithmetic of a tensor core: what wgmma, mma.sync and
// tcgen05.mma compute once their operands have been gathered. Pure functions of dense arrays.
#pragma once

#include "sim/tensor/dot_add.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tilewright::sim {

/// Extents of D[m][n] = C[m][n] + sum over k of A[m][k] * B[n][k].
struct TileExtents {
  int m;
  int n;
  int k;
};

inline std::size_t elems(int rows, int cols) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
}

/// One operand, dense and row-major with k contiguous: A is m x k, B is n x k.
/// Codes are bytes (formats of up to 8 bits, in the low bits), little-endian 16-bit words (fp16,
/// bf16) or 32-bit words (tf32: the fp32 word). Alignment is free.
struct TileOperand {
  std::span<const std::byte> codes;
  const FormatSpec* format;
  bool is_negated = false;  ///< imm-scale-a, imm-scale-b of -1
};

/// Bytes of a code of an operand in memory.
constexpr int code_bytes(const FormatSpec& format) {
  if (is_tf32(format)) return 4;
  return format.bits() <= 8 ? 1 : 2;
}

/// The same code, compiled for different vector instructions.
enum class KernelVariant { kGeneric, kAvx2, kAvx512 };

/// True if this processor and this build have the variant. kGeneric is always there.
bool is_supported(KernelVariant variant) noexcept;
/// The fastest supported variant. Found once.
KernelVariant best_variant() noexcept;
std::string_view name_of(KernelVariant variant) noexcept;

/// D = C + A * B^T with every element as dot_add() gives it, bit for bit.
/// Layout   c and d row-major m x n, one element per 32-bit word (fp16 in the low half). An empty c
///          is all zeros. c and d may be the same array, but not overlap otherwise.
/// Errors   InvalidArgument if a size does not fit the extents, an extent is not in 1..256, a
///          format is fp32 or has no sign, or the variant is not supported
/// Thread   safe; expects the default floating-point environment
void multiply_tile(const TensorArithmetic& arithmetic, const TileExtents& extents,
                   const TileOperand& a, const TileOperand& b, std::span<const std::uint32_t> c,
                   std::span<std::uint32_t> d, KernelVariant variant = best_variant());

/// The same, element by element through dot_add(), some 50 times slower. multiply_tile() hands on
/// to it what has no kernel: is_exact, fraction_bits above 25, k above 32 (64 up to 13 fraction
/// bits).
void multiply_tile_reference(const TensorArithmetic& arithmetic, const TileExtents& extents,
                             const TileOperand& a, const TileOperand& b,
                             std::span<const std::uint32_t> c, std::span<std::uint32_t> d);

}  // namespace tilewright::sim
