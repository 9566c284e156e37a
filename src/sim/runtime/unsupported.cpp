#include "sim/runtime/unsupported.h"

#include "sim/runtime/answer.h"

#include <atomic>
#include <string>

namespace tilewright::sim::runtime {

namespace {

cudaError refuse_by_name(const char* name, std::atomic<bool>& is_said) noexcept {
  if (!is_said.exchange(true)) {
    say(std::string(name) + " is not supported by the simulator's CUDA runtime");
  }
  return remember(cudaError::kNotSupported);
}

}  // namespace

extern "C" {

// None of them looks at its arguments.
#define TILEWRIGHT_DEFINE(name)            \
  cudaError name() {                       \
    static std::atomic<bool> is_said;      \
    return refuse_by_name(#name, is_said); \
  }
TILEWRIGHT_SIM_RUNTIME_UNSUPPORTED(TILEWRIGHT_DEFINE)
#undef TILEWRIGHT_DEFINE

}  // extern "C"

}  // namespace tilewright::sim::runtime
