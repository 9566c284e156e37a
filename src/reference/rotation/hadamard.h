// Float64 reference of the Hadamard transform, optionally with random signs (incoherent
// processing).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

struct HadamardParams {
  int64_t rows = 0;
  int64_t dim = 0;     ///< a power of two
  double scale = 1.0;  ///< dim^-0.5 makes the transform orthogonal
};

/// out[r,j] = scale * sum_i signs[i] * x[r,i] * H[i,j]
/// H[i,j] = (-1)^(number of bits set in i & j), which is the order of Sylvester: H_1 = [1],
/// H_2n = [H_n H_n; H_n -H_n]. At scale dim^-0.5 and without signs it is its own inverse.
/// Shapes   x, out [rows, dim]; signs [dim] of +1 and -1, or empty for all +1
/// Layout   contiguous
/// Accuracy plain double sum over a full column of H, no butterflies
/// Errors   InvalidArgument if an array does not have its shape, dim is not a power of two, or a
///          sign is not +1 or -1
/// Thread   safe
/// Source   FlashAttention-3, section 3.3 (signs); DeepSeek-V4 indexer (no signs, scale 128^-0.5)
std::vector<double> hadamard(const HadamardParams& params, std::span<const double> x,
                             std::span<const double> signs = {});

}  // namespace tilewright::reference
