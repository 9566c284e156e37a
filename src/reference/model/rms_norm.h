// Float64 reference of RMS normalisation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

struct RmsNormParams {
  int64_t rows = 0;
  int64_t dim = 0;
  double eps = 1e-6;  ///< added to the mean square
};

/// out[r,:] = x[r,:] / sqrt(mean_c(x[r,c]^2) + eps) * weight[:]
/// Shapes   x, out [rows, dim]; weight [dim], or empty for none. The normalisation of every head of
///          [tokens, heads, head_dim] is rows = tokens * heads, dim = head_dim
/// Layout   contiguous
/// Errors   InvalidArgument if an array does not have its shape or eps is negative or not finite. A
///          row of zeros with eps = 0 gives NaN
/// Thread   safe
std::vector<double> rms_norm(const RmsNormParams& params, std::span<const double> x,
                             std::span<const double> weight = {});

}  // namespace tilewright::reference
