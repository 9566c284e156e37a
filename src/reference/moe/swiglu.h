// Float64 reference of the clamped SwiGLU activation.
#pragma once

#include <limits>
#include <span>
#include <vector>

namespace tilewright::reference {

/// Defaults: plain SwiGLU. DeepSeek-V4: limit = 10. gpt-oss: {7, 1.702, 1}.
struct SwigluParams {
  double limit = std::numeric_limits<double>::infinity();  ///< > 0
  double alpha = 1.0;                                      ///< slope inside the sigmoid
  double up_offset = 0.0;                                  ///< added to the clamped up value
};

/// out[i] = g * sigmoid(alpha * g) * (u + up_offset),  g = min(gate[i], limit),
/// u = clamp(up[i], -limit, limit): the gate is clamped above only
/// Shapes   gate, up, out: any, all the same
/// Errors   InvalidArgument if gate and up differ in size or limit is not > 0
/// Thread   safe
/// Source   DeepSeek-V4 reference model (clamp); gpt-oss reference model (alpha, offset)
std::vector<double> swiglu(std::span<const double> gate, std::span<const double> up,
                           const SwigluParams& params = {});

}  // namespace tilewright::reference
