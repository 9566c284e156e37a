#include "sim/driver/export_table.h"

#include "sim/driver/call.h"

#include <atomic>
#include <cstring>

namespace tilewright::sim {

namespace {

/// The first private table that NVIDIA's runtime library cannot do without.
constexpr unsigned char kRuntimeInterface[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                                 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};

}  // namespace

// NVIDIA's runtime library checks that the driver below it is NVIDIA's own and stops if it is not
// (cudaErrorSoftwareValidityNotEstablished). That check is theirs to make: there are no tables here
// that would answer it, so that the runtime fails early, and this says why.
const void* find_export_table(const abi::CUuuid& id) noexcept {
  static std::atomic<bool> is_said = false;
  const bool is_runtime = std::memcmp(id.bytes, kRuntimeInterface, sizeof id.bytes) == 0;
  if (is_runtime && !is_said.exchange(true)) {
    say("NVIDIA's CUDA runtime library (libcudart, also inside programs that nvcc links) runs on "
        "NVIDIA's driver only. The simulator has a runtime of its own: link with nvcc -cudart "
        "shared");
  }
  return nullptr;
}

}  // namespace tilewright::sim
