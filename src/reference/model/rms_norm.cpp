#include "reference/model/rms_norm.h"

#include "base/error.h"
#include "reference/shape.h"

#include <cmath>

namespace tilewright::reference {

std::vector<double> rms_norm(const RmsNormParams& params, std::span<const double> x,
                             std::span<const double> weight) {
  const int64_t dim = params.dim;
  require_shape("rms_norm", "x", x.size(), "[rows, dim]", {params.rows, dim});
  if (!weight.empty()) require_shape("rms_norm", "weight", weight.size(), "[dim]", {dim});
  require(params.eps >= 0 && std::isfinite(params.eps), ErrorKind::kInvalidArgument,
          "rms_norm: eps = {}; expected a finite value >= 0. DeepSeek-V4 uses 1e-6.", params.eps);
  std::vector<double> out;
  for (int64_t r = 0; r < params.rows; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < dim; ++c) sum += x[r * dim + c] * x[r * dim + c];
    const double rms = std::sqrt(sum / static_cast<double>(dim) + params.eps);
    for (int64_t c = 0; c < dim; ++c) {
      out.push_back(x[r * dim + c] / rms * (weight.empty() ? 1.0 : weight[c]));
    }
  }
  return out;
}

}  // namespace tilewright::reference
