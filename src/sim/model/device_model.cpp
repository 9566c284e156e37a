#include "sim/model/device_model.h"

#include "arch/limits.h"

#include <algorithm>
#include <array>

namespace tilewright::sim {

namespace {

constexpr std::uint32_t kSharedWithoutOptIn = 48 << 10;

// Tensor cores: data sheets of the H100 (989 TFLOP/s in bf16 on 132 SMs at 1.83 GHz,
// 1979 in FP8, 495 in TF32, 67 in FP64) and of the B200 (2.25, 4.5, 1.1 and 9 PFLOP/s in FP4, 40
// TFLOP/s in FP64). The other units: CUDA programming guide, "Throughput of native arithmetic
// instructions", compute capability 9.0 and 10.0; tuning guides for shared memory; 64 bytes per
// clock to the L2 cache as NVIDIA's white paper states for the A100.
constexpr TensorRates kHopperTensor = {4096, 2048, 8192, 0, 8192, 256};
constexpr TensorRates kBlackwellTensor = {8192, 4096, 16384, 32768, 16384, 128};
// The B300's data sheet: 15 PFLOP/s in FP4, 0.165 in 8-bit integers, 1.2 TFLOP/s in FP64; twice the
// B200's exponentials. Its FP64 is a 64th of FP32, as its driver reports.
constexpr TensorRates kUltraTensor = {8192, 4096, 16384, 49152, 512, 4};

/// What follows from the target alone.
constexpr DeviceModel of_target(const arch::Limits& limits) {
  DeviceModel model;
  model.max_threads_per_sm = static_cast<std::uint32_t>(limits.max_threads_per_sm);
  model.max_ctas_per_sm = static_cast<std::uint32_t>(limits.max_ctas_per_sm);
  model.registers_per_sm = static_cast<std::uint32_t>(limits.registers_per_sm);
  model.shared_bytes_per_sm = static_cast<std::uint32_t>(limits.shared_bytes_per_sm);
  model.shared_bytes_per_cta = kSharedWithoutOptIn;
  model.shared_bytes_per_cta_optin = static_cast<std::uint32_t>(limits.shared_bytes_per_cta);
  model.reserved_shared_bytes_per_cta =
      static_cast<std::uint32_t>(limits.shared_bytes_reserved_per_cta);
  model.max_cluster = static_cast<std::uint32_t>(limits.max_cluster_ctas_portable);
  model.max_cluster_optin = static_cast<std::uint32_t>(limits.max_cluster_ctas);
  return model;
}

/// As driver 580 reports an H200 SXM.
constexpr DeviceModel h200() {
  DeviceModel model = of_target(arch::kSm90a);
  model.key = "h200";
  model.name = "NVIDIA H200 (simulated)";
  model.compute_capability = 90;
  model.num_sms = 132;
  model.global_bytes = 150109880320;
  model.l2_bytes = 62914560;
  model.clock_khz = 1980000;
  model.memory_clock_khz = 3201000;
  model.memory_bus_bits = 6016;
  model.rates.tensor = kHopperTensor;
  return model;
}

/// From NVIDIA's data sheet: 148 SMs, 180 GB of HBM3e at 8 TB/s, 126 MB of L2.
constexpr DeviceModel b200() {
  DeviceModel model = of_target(arch::kSm100a);
  model.key = "b200";
  model.name = "NVIDIA B200 (simulated)";
  model.compute_capability = 100;
  model.num_sms = 148;
  model.global_bytes = 180ull << 30;
  model.l2_bytes = 126ull << 20;
  model.clock_khz = 1965000;
  model.memory_clock_khz = 3996000;
  model.memory_bus_bits = 8192;
  model.rates.tensor = kBlackwellTensor;
  return model;
}

/// As public records of a B300 SXM6 have it (driver 580: 275040 MiB, 12 stacks of HBM3e).
constexpr DeviceModel b300() {
  DeviceModel model = of_target(arch::kSm103a);
  model.key = "b300";
  model.name = "NVIDIA B300 (simulated)";
  model.compute_capability = 103;
  model.num_sms = 148;
  model.global_bytes = 275040ull << 20;
  model.l2_bytes = 132644864;
  model.clock_khz = 2032000;
  model.memory_clock_khz = 3996000;
  model.memory_bus_bits = 7680;
  model.rates.tensor = kUltraTensor;
  model.rates.special_lanes = 32;
  model.rates.double_lanes = 2;
  return model;
}

constexpr std::array kModels = {h200(), b200(), b300()};

}  // namespace

std::span<const DeviceModel> device_models() noexcept {
  return kModels;
}

const DeviceModel* find_device_model(std::string_view key) noexcept {
  const auto found = std::find_if(kModels.begin(), kModels.end(),
                                  [key](const DeviceModel& model) { return model.key == key; });
  return found == kModels.end() ? nullptr : &*found;
}

}  // namespace tilewright::sim
