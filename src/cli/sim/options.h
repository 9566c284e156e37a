// The options that `sim exec`, `sim run` and `bench sim` share.
#pragma once

#include "cli/tool/command.h"
#include "sim/model/device_model.h"
#include "sim/model/options.h"

#include <string>

namespace tilewright::cli {

/// As they stand on the command line; empty means: as the environment says.
struct SimFlags {
  std::string check, report, async;
  std::uint64_t seed = 0;
  std::uint32_t num_sms = 0;
  bool report_only = false, is_exact_mma = false;
  CLI::Option* seed_option = nullptr;
};

void add_sim_flags(CLI::App& command, SimFlags& flags);

/// The environment's options, changed by the flags.
/// Errors   InvalidArgument
sim::Options sim_options(const SimFlags& flags);

/// Of --device (h200 or sim:h200), TILEWRIGHT_SIM_DEVICE, else the first.
/// Errors   InvalidArgument; the message lists the models
const sim::DeviceModel& sim_device(const Context& context);

}  // namespace tilewright::cli
