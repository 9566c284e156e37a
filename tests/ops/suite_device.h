// The device of a test suite: opened once, with modules that stay loaded from test to test.
#pragma once

#include "tilewright/device.h"

#include "device/kernel_registry.h"

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

namespace tilewright {

/// `Suite` is the class that derives from this: every suite has a device of its own.
template <class Suite>
class SuiteDevice {
 protected:
  /// Findings of all the simulator's checks are failures, not of the usual ones only.
  static void have_all_checks() { ::setenv("TILEWRIGHT_SIM_CHECK", "all", 0); }
  /// The device of the next tests. Others that were opened stay open.
  static void open(const std::string& spec) {
    if (!opened_.contains(spec)) opened_.emplace(spec, Device::open(spec));
    device_ = opened_.at(spec);
    if (!kept_) kept_.emplace();
  }
  static void close() {
    kept_.reset();
    device_.reset();
    opened_.clear();
  }

  static inline std::optional<Device> device_;

 private:
  static inline std::map<std::string, Device> opened_;
  static inline std::optional<device::KeptModules> kept_;
};

}  // namespace tilewright
