// From a plan to loaded kernels and the caller's stream: what the operators do alike.
#pragma once

#include "tilewright/device.h"
#include "tilewright/plan.h"

#include "device/device.h"
#include "device/internal.h"
#include "device/kernel.h"
#include "device/stream.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tilewright::ops {

/// A cudaStream_t of the caller, null for the default stream.
device::Stream lent_stream(const device::Device& device, void* stream);

/// Enqueues zeros; nothing if there are none.
void clear_words(const device::Device& device, const device::Stream& stream, const void* address,
                 std::size_t words);

/// The kernels of a plan's launches, allowed the shared memory that they are planned with.
std::vector<device::Kernel> load_entries(const device::Device& device,
                                         const std::vector<Launch>& launches);

/// A launch as a plan has it.
Launch planned_launch(const char* step, std::string entry, const device::LaunchConfig& config);

/// A launch of a plan whose kernel waits for the one before it by itself.
device::LaunchConfig dependent_launch(const Launch& launch);
/// One that begins when all before it has ended.
device::LaunchConfig plain_launch(const Launch& launch);

/// Of the family of B200 and B300.
bool is_blackwell(const device::DeviceInfo& device) noexcept;
/// For plans that choose by cost there.
PlanNote blackwell_costs_note();

/// Why kernels for `capability` (90: sm_90a, 100: sm_100f) do not run on a device; empty if they
/// do.
std::string capability_obstacle(int capability, const device::DeviceInfo& device);
/// Why kernels that are built for both chips do not.
std::string chip_obstacle(const device::DeviceInfo& device);
/// Of an operator with one kernel for each step.
/// Errors   Unsupported, with a reason for each launch whose kernel is not built for the device
void require_built(const char* op, const device::DeviceInfo& device,
                   const std::vector<Launch>& launches);
/// Why a launch of such kernels cannot be: its entry is not embedded, or the device lacks the
/// shared memory. Empty if it can.
std::string launch_obstacle(int capability, const device::DeviceInfo& device, const Launch& launch);

/// What an operator keeps: the plan, whatever else binding needs, and the loaded kernels.
template <class Planned>
struct LoadedPlan {
  Device handle;  // keeps the device open
  Planned planned;
  std::vector<device::Kernel> entries;  // one a launch

  LoadedPlan(const Device& device, Planned made)
      : handle(device),
        planned(std::move(made)),
        entries(load_entries(opened(device), plan().launches)) {}

  const auto& plan() const noexcept {
    if constexpr (std::is_base_of_v<Plan, Planned>)
      return planned;
    else
      return planned.plan;
  }

  const device::Device& device() const noexcept { return opened(handle); }
  device::Stream stream(void* lent) const { return lent_stream(device(), lent); }
};

}  // namespace tilewright::ops
