// From the launches of a plan to kernels and the caller's stream.
#pragma once

#include "device/kernel.h"
#include "device/kernel_registry.h"
#include "device/stream.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tilewright::ops {

/// What a kernel may have without allow_dynamic_shared_bytes().
inline constexpr std::uint32_t kSharedBytesWithoutAsking = 48 * 1024;

/// A cudaStream_t of the caller, null for the default stream.
inline device::Stream lent_stream(const device::Device& device, void* stream) {
  return device::Stream::lent(device, reinterpret_cast<device::abi::CUstream>(stream));
}

/// The kernels of a plan's launches, allowed the shared memory that they are planned with.
template <class Launch>
std::vector<device::Kernel> load_entries(const device::Device& device,
                                         const std::vector<Launch>& launches) {
  std::vector<device::Kernel> entries;
  for (const Launch& launch : launches) {
    entries.push_back(device::load_kernel(device, launch.entry));
    if (launch.shared_bytes > kSharedBytesWithoutAsking)
      entries.back().allow_dynamic_shared_bytes(launch.shared_bytes);
  }
  return entries;
}

/// A launch of a plan whose kernel waits for the one before it by itself.
template <class Launch>
device::LaunchConfig dependent_launch(const Launch& l) {
  return {.grid = {l.grid[0], l.grid[1], l.grid[2]},
          .block = {l.block[0], l.block[1], l.block[2]},
          .cluster = l.cluster > 1 ? std::optional(device::Dim3{l.cluster}) : std::nullopt,
          .dynamic_shared_bytes = l.shared_bytes,
          .is_dependent_launch = true};
}

}  // namespace tilewright::ops
