#include "ops/operator/operator.h"

#include "device/kernel_registry.h"
#include "ops/operator/problem_checks.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

// What a kernel may have without allow_dynamic_shared_bytes().
constexpr std::uint32_t kDefaultDynamicSharedBytes = 48 * 1024;

bool is_embedded(std::string_view entry, std::string_view target) {
  return std::ranges::any_of(device::kernel_images(), [&](const device::KernelImage& image) {
    return image.name == entry && image.target == target;
  });
}

// "sm_90a, sm_100f"; empty if there is no such kernel.
std::string targets_of(const std::string& entry) {
  std::string targets;
  for (const device::KernelImage& image : device::kernel_images())
    if (image.name == entry) targets += (targets.empty() ? "" : ", ") + std::string(image.target);
  return targets;
}

}  // namespace

device::Stream lent_stream(const device::Device& device, void* stream) {
  return device::Stream::lent(device, reinterpret_cast<device::abi::CUstream>(stream));
}

void clear_words(const device::Device& device, const device::Stream& stream, const void* address,
                 std::size_t words) {
  if (words == 0 || address == nullptr) return;
  const device::CurrentContext current = device.make_current();
  const auto at = reinterpret_cast<device::abi::CUdeviceptr>(address);
  device.check(device.cu().memset_d32_async(at, 0, words, stream.handle()), "cuMemsetD32Async");
}

std::vector<device::Kernel> load_entries(const device::Device& device,
                                         const std::vector<Launch>& launches) {
  std::vector<device::Kernel> entries;
  for (const Launch& launch : launches) {
    entries.push_back(device::load_kernel(device, launch.entry));
    if (launch.shared_bytes > kDefaultDynamicSharedBytes)
      entries.back().allow_dynamic_shared_bytes(launch.shared_bytes);
    if (launch.cluster > device::kMaxPortableCluster) entries.back().allow_nonportable_cluster();
  }
  return entries;
}

Launch planned_launch(const char* step, std::string entry, const device::LaunchConfig& config) {
  return {.step = step,
          .entry = std::move(entry),
          .grid = {config.grid.x, config.grid.y, config.grid.z},
          .block = {config.block.x, config.block.y, config.block.z},
          .cluster = config.cluster ? config.cluster->x : 1,
          .shared_bytes = config.dynamic_shared_bytes};
}

device::LaunchConfig plain_launch(const Launch& l) {
  return {.grid = {l.grid[0], l.grid[1], l.grid[2]},
          .block = {l.block[0], l.block[1], l.block[2]},
          .cluster = l.cluster > 1 ? std::optional(device::Dim3{l.cluster}) : std::nullopt,
          .dynamic_shared_bytes = l.shared_bytes};
}

device::LaunchConfig dependent_launch(const Launch& launch) {
  device::LaunchConfig config = plain_launch(launch);
  config.is_dependent_launch = true;
  return config;
}

bool is_blackwell(const device::DeviceInfo& device) noexcept {
  return device::kernel_target(device.compute_capability) == device::kernel_target(100);
}

PlanNote blackwell_costs_note() {
  return {"costs", "estimates by count: no Blackwell GPU was measured"};
}

std::string capability_obstacle(int capability, const device::DeviceInfo& device) {
  const std::string_view target = device::kernel_target(capability);
  if (device::kernel_target(device.compute_capability) == target) return {};
  return fmt::format("is for {}; {} has compute capability {}.{}", target, device.name,
                     device.compute_capability / 10, device.compute_capability % 10);
}

std::string chip_obstacle(const device::DeviceInfo& device) {
  if (!device::kernel_target(device.compute_capability).empty()) return {};
  return fmt::format("is for {} and {}; {} has compute capability {}.{}", device::kernel_target(90),
                     device::kernel_target(100), device.name, device.compute_capability / 10,
                     device.compute_capability % 10);
}

void require_built(const char* op, const device::DeviceInfo& device,
                   const std::vector<Launch>& launches) {
  const std::string_view target = device::kernel_target(device.compute_capability);
  std::vector<Reason> reasons;
  for (const Launch& launch : launches) {
    if (is_embedded(launch.entry, target)) continue;
    const std::string targets = targets_of(launch.entry);
    reasons.push_back({"device", device.name,
                       targets.empty()
                           ? fmt::format("finds no kernel {} in this library", launch.entry)
                           : fmt::format("needs {} for {}, and it is built for {}", launch.entry,
                                         target, targets),
                       targets.empty()       ? "Build the library with its kernels."
                       : targets == "sm_90a" ? "Take a Hopper device (sim:h200)."
                                             : "Take a Blackwell device (sim:b200)."});
  }
  if (!reasons.empty()) refuse(ErrorKind::kUnsupported, op, std::move(reasons));
}

std::string launch_obstacle(int capability, const device::DeviceInfo& device,
                            const Launch& launch) {
  if (!is_embedded(launch.entry, device::kernel_target(capability)))
    return fmt::format("needs {}, which is not among the embedded kernels", launch.entry);
  if (static_cast<int>(launch.shared_bytes) > device.shared_per_block_optin_bytes)
    return fmt::format("needs {} bytes of shared memory; {} gives {}", launch.shared_bytes,
                       device.name, device.shared_per_block_optin_bytes);
  return {};
}

}  // namespace tilewright::ops
