#include "sim/state/warp.h"

namespace tilewright::sim {

void fault(FaultKind kind, std::uint32_t lanes, const std::string& message) {
  throw FaultError(kind, message, lanes);
}

}  // namespace tilewright::sim
