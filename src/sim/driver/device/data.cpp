// The simulator's own functions beside the driver's: what it sees, as data, and other checks from
// launch to launch. Texts are JSON, valid until the calling thread's next call of the function.
#include "base/json.h"
#include "base/json_node.h"
#include "sim/driver/objects/state.h"

#include <nlohmann/json.hpp>
#include <string>

extern "C" {

/// What was counted on a device since the last call, if a report is kept; "" otherwise.
const char* tilewright_simulator_take_report(int ordinal);

/// What the checks found on a device since the last call: an array (sim/report/finding_json.h).
/// What is found again after it counts as new.
const char* tilewright_simulator_take_findings(int ordinal);

/// Text for people that was kept instead of printed, "quiet" below, since the last call.
const char* tilewright_simulator_take_messages(void);

/// How launches run on a device from now on: an object with some of
///
///     {"check": "all,-race", "report_only": true, "report": true, "quiet": true, "seed": 0,
///      "async": "late", "exact_mma": false, "max_findings": 16,
///      "time_sample": 12, "samples_products_alone": true}
///
/// `report` counts without a file, `quiet` (of the process) keeps findings and messages instead of
/// printing them. What is left out stays. No other thread may use the device meanwhile.
/// Returns   what held before, complete; {"error": "..."} if that is no such object or device
const char* tilewright_simulator_configure(int ordinal, const char* settings);
}

namespace tilewright::sim {

namespace {

using nlohmann::json;

constexpr const char* kMemory = "memory";  ///< a report that is kept to be taken

json settings_json(const Options& options) {
  return {{"check", to_string(options.checks)},
          {"report_only", options.report_only},
          {"report", !options.report_path.empty()},
          {"quiet", is_quiet()},
          {"seed", options.seed},
          {"async", to_string(options.async_timing)},
          {"exact_mma", options.is_exact_mma},
          {"max_findings", options.max_findings},
          {"time_sample", options.time_sample},
          {"samples_products_alone", options.samples_products_alone}};
}

/// A report to a file or a table goes on whatever is asked.
void keep_report(Options& options, bool is_kept) {
  if (is_kept && options.report_path.empty()) options.report_path = kMemory;
  if (!is_kept && options.report_path == kMemory) options.report_path.clear();
}

void apply(const std::string& name, const JsonNode& value, Options& options, bool& quiet) {
  constexpr std::int64_t kMostFindings = 1'000'000, kMostSampled = 1'000'000;
  if (name == "check") {
    options.checks = parse_checks(value.as_string());
  } else if (name == "report_only") {
    options.report_only = value.as_bool();
  } else if (name == "report") {
    keep_report(options, value.as_bool());
  } else if (name == "quiet") {
    quiet = value.as_bool();
  } else if (name == "seed") {
    options.seed = static_cast<std::uint64_t>(value.as_int(0));
  } else if (name == "async") {
    options.async_timing = parse_async_timing(value.as_string());
  } else if (name == "exact_mma") {
    options.is_exact_mma = value.as_bool();
  } else if (name == "max_findings") {
    options.max_findings = static_cast<std::uint32_t>(value.as_int(1, kMostFindings));
  } else if (name == "time_sample") {
    options.time_sample = static_cast<std::uint32_t>(value.as_int(0, kMostSampled));
  } else if (name == "samples_products_alone") {
    options.samples_products_alone = value.as_bool();
  } else {
    value.fail("there is no such setting; there are {}", settings_json(options).dump());
  }
}

std::string configure(int ordinal, const char* text) {
  Machine& machine = Driver::get().device(ordinal).machine();
  const json before = settings_json(machine.options());
  const json settings = parse_json(text == nullptr ? "{}" : text, "settings");
  Options options = machine.options();
  bool quiet = is_quiet();
  for (const auto& [name, value] : JsonNode(settings, "settings").members()) {
    apply(name, value, options, quiet);
  }
  machine.set_options(options);
  be_quiet(quiet);
  return before.dump();
}

/// Of a device that has run nothing there is nothing to take.
template <class Take>
std::string taken(int ordinal, std::string_view none, Take&& take) {
  try {
    Machine* const machine = Driver::get().device(ordinal).existing_machine();
    return machine == nullptr ? std::string(none) : take(*machine);
  } catch (const Failure&) {
    return std::string(none);  // no such device
  } catch (const std::exception&) {
    return std::string(none);
  }
}

}  // namespace

}  // namespace tilewright::sim

const char* tilewright_simulator_take_report(int ordinal) {
  static thread_local std::string text;
  text = tilewright::sim::taken(ordinal, "", [](auto& machine) { return machine.take_report(); });
  return text.c_str();
}

const char* tilewright_simulator_take_findings(int ordinal) {
  static thread_local std::string text;
  text =
      tilewright::sim::taken(ordinal, "[]", [](auto& machine) { return machine.take_findings(); });
  return text.c_str();
}

const char* tilewright_simulator_take_messages(void) {
  static thread_local std::string text;
  text = tilewright::sim::take_messages();
  return text.c_str();
}

const char* tilewright_simulator_configure(int ordinal, const char* settings) {
  static thread_local std::string text;
  try {
    text = tilewright::sim::configure(ordinal, settings);
  } catch (const tilewright::sim::Failure&) {
    text = nlohmann::json{{"error", fmt::format("there is no device {}", ordinal)}}.dump();
  } catch (const std::exception& error) {
    text = nlohmann::json{{"error", error.what()}}.dump();
  }
  return text.c_str();
}
