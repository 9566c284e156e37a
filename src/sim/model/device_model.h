// What a simulated device has, as data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tilewright::sim {

/// Operations of the tensor cores per cycle and SM, dense; a multiply-add is two.
/// 0: not known or not there.
struct TensorRates {
  std::uint32_t f16 = 0;  ///< f16 and bf16
  std::uint32_t tf32 = 0;
  std::uint32_t f8 = 0;  ///< e4m3, e5m2 and the 6-bit types
  std::uint32_t f4 = 0;
  std::uint32_t i8 = 0;
  std::uint32_t f64 = 0;
};

/// What an SM can do per cycle at most, for the bounds of the report.
struct UnitRates {
  std::uint32_t issued_warps = 4;    ///< warp instructions
  std::uint32_t fma_lanes = 128;     ///< float and half (packed counts once): lanes
  std::uint32_t double_lanes = 64;   ///< f64
  std::uint32_t special_lanes = 16;  ///< ex2, rcp, sin, ...
  std::uint32_t shared_bytes = 128;  ///< one wavefront
  std::uint32_t l2_bytes = 64;       ///< between the SM and the L2 cache
  TensorRates tensor;
};

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
  UnitRates rates;

  double memory_bytes_per_second() const noexcept {
    return 2e3 * memory_clock_khz * (memory_bus_bits / 8.0);
  }
};

/// The model with another number of SMs; 0 leaves it.
inline DeviceModel with_sms(DeviceModel model, std::uint32_t num_sms) noexcept {
  if (num_sms != 0) model.num_sms = num_sms;
  return model;
}

/// All models; the first is the default.
std::span<const DeviceModel> device_models() noexcept;

/// nullptr if there is no such model.
const DeviceModel* find_device_model(std::string_view key) noexcept;

}  // namespace tilewright::sim
