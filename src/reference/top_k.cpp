#include "reference/top_k.h"

#include "base/error.h"
#include "reference/shape.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tilewright::reference {

std::vector<int32_t> top_k(std::span<const double> values, int64_t k) {
  require_at_least("top_k", "k", k, 0);
  require(
      values.size() <= static_cast<size_t>(std::numeric_limits<int32_t>::max()),
      ErrorKind::kInvalidArgument,
      "top_k: {} values; expected at most 2^31 - 1, because indices are int32_t. Split the row.",
      values.size());
  const auto key = [&](int32_t i) {
    return std::isnan(values[i]) ? -std::numeric_limits<double>::infinity() : values[i];
  };
  std::vector<int32_t> indices(values.size());
  std::iota(indices.begin(), indices.end(), 0);
  std::stable_sort(indices.begin(), indices.end(),
                   [&](int32_t a, int32_t b) { return key(a) > key(b); });
  indices.resize(k, -1);
  return indices;
}

}  // namespace tilewright::reference
