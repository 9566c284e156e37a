#include "cli/tool/kernel_times.h"

#include "base/env.h"
#include "cli/tool/model_options.h"
#include "report/operator_report.h"
#include "verify/device_facts.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

KernelTimes::KernelTimes() : is_wanted_(env_text("TILEWRIGHT_SIM_TIME") == "1") {
  if (is_wanted_) request_counts();
}

void KernelTimes::begin(const std::optional<Device>& device, int ranks) {
  if (!is_wanted_ || !device || !device->is_simulated()) return;
  device_ = device;
  ranks_ = ranks;
  take_counts(*device_);
}

void KernelTimes::add_to(nlohmann::json& report) const {
  if (!device_) return;
  nlohmann::json counts = take_counts(*device_);
  if (counts.is_null()) return;
  if (ranks_ > 1) counts["ranks"] = ranks_;
  report["counted"] = std::move(counts);
}

std::string kernel_times_text(const nlohmann::json& report) {
  if (!report.contains("counted")) return {};
  const nlohmann::json& counted = report["counted"];
  std::string text = predicted_line(counted);
  if (counted.contains("ranks") && !text.empty())
    text += fmt::format("           of {} ranks together\n", counted["ranks"].get<int>());
  return text;
}

std::optional<Device> simulated_device(const std::string& spec) {
  if (is_reference(spec)) return std::nullopt;
  Device device = Device::open(spec.empty() ? env_text("TILEWRIGHT_DEVICE") : spec);
  if (!device.is_simulated()) return std::nullopt;
  return device;
}

}  // namespace tilewright::cli
