// What tile_multiply.cpp and the kernels compiled for each set of vector instructions share.
//
// Only plain data and function pointers: the kernels are compiled with options that other files are
// not, so an inline function of the standard library instantiated there could be the copy that the
// linker keeps for the whole program, and would then crash on a processor without AVX-512.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewright::sim {

/// FormatSpec as the kernels need it.
struct KernelFormat {
  int mantissa_bits;
  int bias;
  std::uint32_t magnitude_mask;
  std::uint32_t sign_mask;
  std::uint32_t first_special;  ///< magnitudes from here on are infinities and NaNs
  std::uint32_t first_nan;      ///< magnitudes from here on are NaNs
  int code_shift;               ///< tf32: 13
  int code_bytes;
  std::uint32_t negate_mask;  ///< sign_mask or 0
};

struct KernelOperand {
  const std::byte* codes;  ///< rows x k
  int rows;
  KernelFormat format;
};

struct TileKernelCall {
  KernelOperand a;
  KernelOperand b;
  int k;
  int fraction_bits;
  int output;              ///< OutputFormat
  int least_exponent;      ///< of TensorArithmetic
  const std::uint32_t* c;  ///< or nullptr
  std::uint32_t* d;
  void* workspace;  ///< kTileWorkspaceBytes, aligned to 64
  void* context;    ///< for `element`
  /// D[row][col] where vectors do not get it right: infinities, NaNs, sums beyond 31 bits, and sums
  /// so small that they could be subnormal or that zeros would seem to be larger.
  std::uint32_t (*element)(void* context, int row, int col, std::uint32_t c);
};

/// Largest call of a kernel. With few fraction bits, k may be kMaxTileKShort.
inline constexpr int kMaxTileRows = 256;
inline constexpr int kMaxTileK = 32;
inline constexpr int kMaxTileKShort = 64;
inline constexpr int kMaxShortFractionBits = 13;
inline constexpr int kMaxFractionBits = 25;
inline constexpr std::size_t kTileWorkspaceBytes = std::size_t{1} << 20;

void multiply_tile_generic(const TileKernelCall& call);
void multiply_tile_avx2(const TileKernelCall& call);
void multiply_tile_avx512(const TileKernelCall& call);

}  // namespace tilewright::sim
