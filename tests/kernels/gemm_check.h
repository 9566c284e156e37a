// What the tensor-core GEMMs have to give: d[i,j] = sum_l a[i,l] b[j,l], and how far off they may
// be.
#pragma once

#include "reference/error_bound.h"
#include "reference/linear/linear.h"
#include "tests/kernels/kernel_test.h"

#include <cmath>

namespace tilewright::kernels {

using reference::kBf16TensorCore;
using reference::kHopperE4m3TensorCore;
using reference::TensorCore;

/// Bound on the error of a sum of k products. With M = sum |a b|, every term and every partial sum
/// is at most M (1 + growth), so a step loses at most step_error() M (1 + growth); growth itself is
/// that of all steps together, below 1/2 in all tests, hence the factor 2.
inline double tensor_core_bound(const TensorCore& core, int k, double magnitude) {
  const double growth = std::ceil(static_cast<double>(k) / core.depth) * core.step_error();
  EXPECT_LT(growth, 0.5) << "k = " << k << " is too deep for a bound";
  return 2 * growth * magnitude;
}

struct GemmProblem {
  int m, n, k;
};

/// `output` is the format in which d was stored.
inline void check_gemm(const GemmProblem& p, const std::vector<double>& a,
                       const std::vector<double>& b, Numbers numbers, const TensorCore& core,
                       const FormatSpec& output, const std::vector<double>& d) {
  const reference::LinearShape shape = {p.m, p.n, p.k};
  const std::vector<double> exact = reference::linear(shape, a, b);
  const std::vector<double> magnitude = reference::linear_magnitude(shape, a, b);
  ASSERT_EQ(d.size(), exact.size());
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (numbers == Numbers::kIntegers) {
      ASSERT_EQ(d[i], round_to(output, exact[i])) << "row " << i / p.n << ", column " << i % p.n;
      continue;
    }
    const double sum_bound = tensor_core_bound(core, p.k, magnitude[i]);
    // Round to nearest of what is at most |exact| + sum_bound.
    const double u = std::ldexp(1, -output.mantissa_bits - 1);
    const double bound = sum_bound + u * (std::abs(exact[i]) + sum_bound);
    ASSERT_LE(std::abs(d[i] - exact[i]), bound) << "row " << i / p.n << ", column " << i % p.n;
  }
}

/// Rows of `cols` elements, `pitch` apart; the rest is NaN in every format of ours.
template <class Code>
std::vector<Code> pad_rows(const std::vector<Code>& codes, int rows, int cols, int pitch) {
  std::vector<Code> padded(static_cast<std::size_t>(rows) * pitch, static_cast<Code>(~0));
  for (int row = 0; row < rows; ++row) {
    std::copy_n(codes.begin() + static_cast<std::ptrdiff_t>(row) * cols, cols,
                padded.begin() + static_cast<std::ptrdiff_t>(row) * pitch);
  }
  return padded;
}

inline int round_up(int x, int multiple) {
  return (x + multiple - 1) / multiple * multiple;
}

}  // namespace tilewright::kernels
