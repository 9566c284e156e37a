// Calls of our kernels for sm_100a whose time is predicted.
#pragma once

#include "bench/timing/timing.h"

#include <string>
#include <vector>

namespace tilewright::cli {

struct BlackwellPoint {
  TimingPoint timing;
  std::string part;            ///< "attention", "linear": what the point is chosen by
  double flop = 0, bytes = 0;  ///< of the problem; bytes 0: not what binds
};

/// Kernels that "auto" may take on a B200, at one shape at least; attention and linear layers at
/// those of published figures.
std::vector<BlackwellPoint> blackwell_points();

/// "attention", "pages", ...: each once, in their order.
std::vector<std::string> blackwell_parts();

}  // namespace tilewright::cli
