#include "reference/linear/linear.h"

#include "reference/dot.h"
#include "reference/shape.h"

#include <algorithm>
#include <cmath>

namespace tilewright::reference {
namespace {

void check(const LinearShape& shape, std::span<const double> x, std::span<const double> w) {
  require_shape("linear", "x", x.size(), "[m, k]", {shape.m, shape.k});
  require_shape("linear", "w", w.size(), "[n, k]", {shape.n, shape.k});
}

}  // namespace

std::vector<double> linear(const LinearShape& shape, std::span<const double> x,
                           std::span<const double> w, std::span<const double> bias) {
  check(shape, x, w);
  if (!bias.empty()) require_shape("linear", "bias", bias.size(), "[n]", {shape.n});
  std::vector<double> out(shape.m * shape.n);
  constexpr int64_t kRows = 16;  // of x stay in the cache while a row of w meets them
  for (int64_t first = 0; first < shape.m; first += kRows) {
    for (int64_t j = 0; j < shape.n; ++j) {
      for (int64_t i = first; i < std::min(first + kRows, shape.m); ++i) {
        const double sum = dot(x.data() + i * shape.k, w.data() + j * shape.k, shape.k);
        out[i * shape.n + j] = bias.empty() ? sum : sum + bias[j];
      }
    }
  }
  return out;
}

std::vector<double> linear_magnitude(const LinearShape& shape, std::span<const double> x,
                                     std::span<const double> w) {
  check(shape, x, w);
  std::vector<double> out;
  for (int64_t i = 0; i < shape.m; ++i) {
    for (int64_t j = 0; j < shape.n; ++j) {
      double sum = 0;
      for (int64_t c = 0; c < shape.k; ++c) {
        sum += std::abs(x[i * shape.k + c] * w[j * shape.k + c]);
      }
      out.push_back(sum);
    }
  }
  return out;
}

}  // namespace tilewright::reference
