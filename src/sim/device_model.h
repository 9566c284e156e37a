// What a simulated device has, as data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tilewright::sim {

struct DeviceModel {
  std::string_view key;        ///< "h200", as in TILEWRIGHT_SIM_DEVICE and --device sim:h200
  std::string_view name;       ///< "NVIDIA H200 (simulated)"
  int compute_capability = 0;  ///< 90
  std::uint32_t num_sms = 0;
  std::uint32_t max_threads_per_sm = 0;
  std::uint32_t max_ctas_per_sm = 0;
  std::uint32_t registers_per_sm = 0;  ///< 32-bit
  std::uint32_t shared_bytes_per_sm = 0;
  std::uint32_t shared_bytes_per_cta = 0;  ///< without opting in
  std::uint32_t shared_bytes_per_cta_optin = 0;
  std::uint32_t reserved_shared_bytes_per_cta = 0;
  std::uint32_t max_cluster = 0;  ///< CTAs, portable
  std::uint32_t max_cluster_optin = 0;
  std::uint64_t global_bytes = 0;
  std::uint64_t l2_bytes = 0;
  std::uint32_t clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0;
};

/// All models; the first is the default.
std::span<const DeviceModel> device_models() noexcept;

/// nullptr if there is no such model.
const DeviceModel* find_device_model(std::string_view key) noexcept;

}  // namespace tilewright::sim
