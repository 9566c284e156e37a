// Contract of the block reduction: what a CTA finds out about one row of numbers, with shuffles,
// votes and a little shared memory.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

struct BlockReductionParams {
  const float* floats;          ///< [rows, cols], contiguous
  const std::int32_t* ints;     ///< [rows, cols], contiguous
  float* sum;                   ///< [rows]
  float* largest;               ///< [rows]; -inf if cols = 0
  std::int32_t* int_sum;        ///< [rows], modulo 2^32
  std::uint32_t* int_xor;       ///< [rows]
  std::uint32_t* num_negative;  ///< [rows] of the ints
  std::int32_t* prefix;         ///< [rows, cols] inclusive sums of the ints, modulo 2^32
  std::int32_t cols;
};

/// A CTA per row.
inline constexpr int kBlockReductionThreads = 256;

}  // namespace tilewright::kernels
