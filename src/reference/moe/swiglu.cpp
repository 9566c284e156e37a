#include "reference/moe/swiglu.h"

#include "base/error.h"
#include "reference/shape.h"

#include <algorithm>
#include <cmath>

namespace tilewright::reference {

std::vector<double> swiglu(std::span<const double> gate, std::span<const double> up,
                           const SwigluParams& params) {
  require_shape("swiglu", "up", up.size(), "the shape of gate",
                {static_cast<int64_t>(gate.size())});
  require(params.limit > 0, ErrorKind::kInvalidArgument,
          "swiglu: limit = {}; expected a value > 0. Use infinity for no clamp.", params.limit);
  std::vector<double> out;
  for (size_t i = 0; i < gate.size(); ++i) {
    const double g = std::min(gate[i], params.limit);
    const double u = std::clamp(up[i], -params.limit, params.limit);
    const double sigmoid = 1 / (1 + std::exp(-params.alpha * g));
    out.push_back(g * sigmoid * (u + params.up_offset));
  }
  return out;
}

}  // namespace tilewright::reference
