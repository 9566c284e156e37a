// --time of commands that launch kernels of many operators: what a simulated device predicts for
// all of them together.
#pragma once

#include "tilewright/device.h"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace tilewright::cli {

/// Sums up what is predicted of kernels between begin() and add_to(). Without --time it does
/// nothing: to count all that kernels do costs time.
class KernelTimes {
 public:
  /// Before the command opens its device, which reads then what it is to count.
  KernelTimes();
  /// From here on kernels count, not those that prepared weights. No device, or a GPU: there is
  /// nothing to predict. `ranks`: simulated ones that share the device.
  void begin(const std::optional<Device>& device, int ranks = 1);
  /// The member "counted" of operators' reports, with "predicted" in it (docs/03-simulator.md); of
  /// several ranks also "ranks", whose sum it is. Nothing, if no kernel has run.
  void add_to(nlohmann::json& report) const;

 private:
  bool is_wanted_ = false;
  std::optional<Device> device_;
  int ranks_ = 1;
};

/// A line of what add_to() has added; "" if that is nothing.
std::string kernel_times_text(const nlohmann::json& report);

/// The device of a command that takes `spec` as --device, if it is a simulated one of this process.
std::optional<Device> simulated_device(const std::string& spec);

}  // namespace tilewright::cli
