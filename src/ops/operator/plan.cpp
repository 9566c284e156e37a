// What follows from any plan.
#include "tilewright/plan.h"

#include <algorithm>

namespace tilewright {

double Plan::floor_us(double bytes_per_s, double flops_per_s) const noexcept {
  return 1e6 * std::max(bytes / bytes_per_s, flops / flops_per_s);
}

}  // namespace tilewright
