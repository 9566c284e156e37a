// The device of a test suite: opened once, with modules that stay loaded from test to test.
#pragma once

#include "tilewright/device.h"

#include "device/internal.h"
#include "device/kernel.h"
#include "device/kernel_registry.h"

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace tilewright {

/// `Suite` is the class that derives from this: every suite has a device of its own.
template <class Suite>
class SuiteDevice {
 protected:
  /// Findings of all the simulator's checks are failures, not of the usual ones only.
  static void have_all_checks() { ::setenv("TILEWRIGHT_SIM_CHECK", "all", 0); }
  static void open(const std::string& spec) {
    if (!device_) device_ = Device::open(spec);
  }
  static void close() {
    held_.clear();
    device_.reset();
  }
  static void hold(const std::vector<std::string>& entries) {
    if (!held_.empty()) return;
    for (const std::string& entry : entries)
      held_.push_back(device::load_kernel(opened(*device_), entry));
  }

  static inline std::optional<Device> device_;

 private:
  static inline std::vector<device::Kernel> held_;
};

}  // namespace tilewright
