#include "sim/state/occupancy.h"

#include <algorithm>

namespace tilewright::sim {

std::uint32_t max_active_ctas_per_sm(const DeviceModel& device, const KernelInfo& kernel,
                                     std::uint32_t threads, std::uint32_t dynamic_shared_bytes) {
  const std::uint32_t warps = std::max(1U, (threads + 31) / 32);
  // Warps take registers of one of four parts of the SM, 256 at a time.
  constexpr std::uint32_t kParts = 4, kUnit = 256;
  const std::uint32_t registers = (kernel.num_registers * 32 + kUnit - 1) / kUnit * kUnit;
  const std::uint32_t fitting_warps =
      device.registers_per_sm / kParts / std::max(1U, registers) * kParts;
  const std::uint32_t shared =
      kernel.static_shared_bytes + dynamic_shared_bytes + device.reserved_shared_bytes_per_cta;
  std::uint32_t most = std::min(device.max_ctas_per_sm, device.max_threads_per_sm / (32 * warps));
  most = std::min(most, fitting_warps / warps);
  return std::min(most, device.shared_bytes_per_sm / std::max(1U, shared));
}

}  // namespace tilewright::sim
