#include "ops/operator/operator.h"

#include "device/kernel_registry.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

// What a kernel may have without allow_dynamic_shared_bytes().
constexpr std::uint32_t kDefaultDynamicSharedBytes = 48 * 1024;

bool is_embedded(const std::string& entry, const std::string& target) {
  return std::ranges::any_of(device::kernel_images(), [&](const device::KernelImage& image) {
    return image.name == entry && image.target == target;
  });
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
  }
  return entries;
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

std::string capability_obstacle(int capability, const device::DeviceInfo& device) {
  if (device.compute_capability == capability) return {};
  return fmt::format("is for sm_{}a; {} has compute capability {}.{}", capability, device.name,
                     device.compute_capability / 10, device.compute_capability % 10);
}

std::string launch_obstacle(int capability, const device::DeviceInfo& device,
                            const Launch& launch) {
  if (!is_embedded(launch.entry, fmt::format("sm_{}a", capability)))
    return fmt::format("needs {}, which is not among the embedded kernels", launch.entry);
  if (static_cast<int>(launch.shared_bytes) > device.shared_per_block_optin_bytes)
    return fmt::format("needs {} bytes of shared memory; {} gives {}", launch.shared_bytes,
                       device.name, device.shared_per_block_optin_bytes);
  return {};
}

}  // namespace tilewright::ops
