// The dot product that the references share.
#pragma once

#include <array>
#include <cstdint>

namespace tilewright::reference {

/// sum_c a[c] * b[c], as eight sums that are added at the end: a compiler may not reorder a plain
/// loop over doubles, and waits for every addition.
inline double dot(const double* a, const double* b, int64_t n) {
  constexpr int64_t kSums = 8;
  std::array<double, kSums> sums = {};
  int64_t c = 0;
  for (; c + kSums <= n; c += kSums) {
    for (int64_t s = 0; s < kSums; ++s) sums[s] += a[c + s] * b[c + s];
  }
  for (; c < n; ++c) sums[0] += a[c] * b[c];
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

}  // namespace tilewright::reference
