// Functions that a driver exports and this one does not have: programs that look them up find them,
// and learn when they call them. None of them looks at its arguments.
#include "sim/driver/device/unsupported.h"

namespace tilewright::sim::abi {

#define TILEWRIGHT_DEFINE(name, version) \
  CUresult name() {                      \
    return CUresult::kNotSupported;      \
  }
TILEWRIGHT_SIM_UNSUPPORTED_FUNCTIONS(TILEWRIGHT_DEFINE)
#undef TILEWRIGHT_DEFINE

#define TILEWRIGHT_DEFINE(name, target) \
  CUresult name() {                     \
    return CUresult::kNotSupported;     \
  }
TILEWRIGHT_SIM_UNSUPPORTED_PER_THREAD_NAMES(TILEWRIGHT_DEFINE)
#undef TILEWRIGHT_DEFINE

}  // namespace tilewright::sim::abi

/// By this symbol src/device knows the simulator.
extern "C" {
extern const int tilewright_simulator;
const int tilewright_simulator = 1;
}
