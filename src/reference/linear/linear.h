// Float64 reference of a linear layer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

struct LinearShape {
  int64_t m = 0;  ///< rows of x (tokens)
  int64_t n = 0;  ///< output features
  int64_t k = 0;  ///< input features
};

/// out[i,j] = sum_c x[i,c] * w[j,c] + bias[j]
/// Shapes   x [m, k]; w [n, k], the order of checkpoints; bias [n] or empty; out [m, n]
/// Layout   contiguous
/// Accuracy plain double sum: errs by at most about (k + 1) * 2^-53 * linear_magnitude()
/// Errors   InvalidArgument if an array does not have its shape
/// Thread   safe
std::vector<double> linear(const LinearShape& shape, std::span<const double> x,
                           std::span<const double> w, std::span<const double> bias = {});

/// out[i,j] = sum_c |x[i,c] * w[j,c]|, the factor of every a-priori error bound of linear()
/// (error_bound.h). Shapes, layout and errors as linear().
std::vector<double> linear_magnitude(const LinearShape& shape, std::span<const double> x,
                                     std::span<const double> w);

}  // namespace tilewright::reference
