// What scaled_multiply.cpp and the kernels for block scales share. Plain data only, as in
// tile_kernel.h, which says why.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewright::sim {

/// Extents of columns are padded to a multiple of this; what is beyond counts as zeros.
inline constexpr int kFp4Padding = 32;
/// Elements of k whose products are summed exactly before they are scaled.
inline constexpr int kFp4Group = 16;

struct Fp4KernelCall {
  int m, n;
  int padded_n;
  int num_groups;  ///< k / kFp4Group
  /// Values times 2, as four bytes a word, lowest k first. A: plus kFp4Bias, [m][k / 4]; B:
  /// [k / 4][padded_n].
  const std::uint32_t* a;
  const std::uint32_t* b;
  const std::int32_t* b_corrections;  ///< kFp4Bias times the sum of a group: [groups][padded_n]
  /// The scales as numbers, over 2 for the factor in the values, and the exponents they are aligned
  /// by. A: [m][groups]; B: [groups][padded_n].
  const double* a_scales;
  const double* b_scales;
  const std::int32_t* a_exponents;
  const std::int32_t* b_exponents;
  const std::int32_t* a_specials;  ///< [m]: -1 if a scale is no number, else 0
  const std::int32_t* b_specials;  ///< [padded_n]
  int fraction_bits;
  const std::uint32_t* c;  ///< [m][n] or nullptr
  std::uint32_t* d;
  void* context;  ///< for `element`
  /// D[row][col] where vectors do not get it right: infinities, NaNs, results that are subnormal
  std::uint32_t (*element)(void* context, int row, int col, std::uint32_t c);
};

/// Makes A's bytes nonnegative: values are -12..12.
inline constexpr int kFp4Bias = 12;

/// Accumulators divided by scales, and products multiplied by them (mxf8f6f4).
struct ScaleKernelCall {
  int m, n;
  /// Of the scales; kNoScale for what is no number.
  const std::int32_t* a_exponents;  ///< [m]
  const std::int32_t* b_exponents;  ///< [n]
  const std::uint32_t* c;           ///< [m][n] or nullptr
  std::uint32_t* products;          ///< the accumulators divided, then what became of them
  std::uint32_t* d;
  void* context;  ///< for `element`
  /// D[row][col] where scaling changes more than the exponent
  std::uint32_t (*element)(void* context, int row, int col, std::uint32_t c);
};

inline constexpr std::int32_t kNoScale = 1 << 20;
/// Beyond this, zeros and products of a tile change places in the search for the largest exponent.
inline constexpr std::int32_t kMostShift = 64;

void multiply_fp4_generic(const Fp4KernelCall& call);
void multiply_fp4_avx2(const Fp4KernelCall& call);
void multiply_fp4_avx512(const Fp4KernelCall& call);

void divide_by_scales_generic(const ScaleKernelCall& call);
void divide_by_scales_avx2(const ScaleKernelCall& call);
void divide_by_scales_avx512(const ScaleKernelCall& call);
void multiply_by_scales_generic(const ScaleKernelCall& call);
void multiply_by_scales_avx2(const ScaleKernelCall& call);
void multiply_by_scales_avx512(const ScaleKernelCall& call);

}  // namespace tilewright::sim
