#include "cli/sim/options.h"

#include "base/env.h"
#include "base/error.h"
#include "base/quote.h"
#include "cli/tool/report_file.h"

namespace tilewright::cli {

namespace {

std::string model_names() {
  std::string out;
  for (const sim::DeviceModel& model : sim::device_models()) {
    if (!out.empty()) out += ", ";
    out += model.key;
  }
  return out;
}

}  // namespace

void add_sim_flags(CLI::App& command, SimFlags& flags) {
  command
      .add_option(
          "--check", flags.check,
          "what is checked: mem, init, sync, race, proxy, mma, tmem, strict, all, none; -NAME "
          "takes one away")
      ->option_text("LIST [mem,init,sync]");
  command.add_option("--report", flags.report, "counts and bounds: JSON to FILE, or - for a table")
      ->option_text("FILE");
  command.add_flag("--report-only", flags.report_only, "findings are printed but fail nothing");
  flags.seed_option =
      command
          .add_option("--seed", flags.seed, "another order of warps and CTAs; 0 is the fixed one")
          ->option_text("N")
          ->check(CLI::Validator(
              [](const std::string& text) {
                const bool is_number = text.find_first_not_of("0123456789") == std::string::npos;
                return is_number ? std::string() : "expected a whole number, found " + quote(text);
              },
              ""));
  command.add_option("--async", flags.async, "when bulk copies and wgmma take effect")
      ->option_text("eager|late|random")
      ->check(CLI::IsMember({"eager", "late", "random"}));
  command.add_option("--sms", flags.num_sms, "SMs that the device has, to try small grids")
      ->option_text("N")
      ->check(CLI::Range(1, 1024));
  command.add_flag("--exact-mma", flags.is_exact_mma,
                   "accumulate exactly in tensor cores, not as the hardware does");
}

sim::Options sim_options(const SimFlags& flags) {
  sim::Options options = sim::Options::from_environment();
  if (!flags.check.empty()) options.checks = sim::parse_checks(flags.check);
  if (!flags.report.empty()) {
    require_report_file(flags.report);
    options.report_path = flags.report;
  }
  if (flags.report_only) options.report_only = true;
  if (flags.seed_option != nullptr && flags.seed_option->count() != 0) options.seed = flags.seed;
  if (flags.async == "eager") options.async_timing = sim::AsyncTiming::kEager;
  if (flags.async == "late") options.async_timing = sim::AsyncTiming::kLate;
  if (flags.async == "random") options.async_timing = sim::AsyncTiming::kRandom;
  if (flags.num_sms != 0) options.num_sms = flags.num_sms;
  if (flags.is_exact_mma) options.is_exact_mma = true;
  return options;
}

const sim::DeviceModel& sim_device(const Context& context) {
  std::string key = context.device;
  if (key.starts_with("sim:")) key = key.substr(4);
  if (key.empty()) key = env_text("TILEWRIGHT_SIM_DEVICE");
  if (key.empty() || key == "sim") return sim::device_models().front();
  const sim::DeviceModel* model = sim::find_device_model(key);
  require(model != nullptr, ErrorKind::kInvalidArgument,
          "there is no simulated device {}; expected one of {}", quote(key), model_names());
  return *model;
}

}  // namespace tilewright::cli
