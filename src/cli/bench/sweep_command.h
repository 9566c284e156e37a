// What the benchmarks of operators do alike: a sweep, or the log of one, becomes log, page, table.
#pragma once

#include "tilewright/device.h"

#include "cli/tool/command.h"

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace tilewright::cli {

/// As given on the command line.
struct SweepArgs {
  std::string out;
  std::vector<std::string> from;
  int samples = 15;
};
/// --samples, --from and --out, by default build/NAME. `most_logs`: of --from.
void add_sweep_options(CLI::App& command, SweepArgs& args, const std::string& name,
                       int most_logs = 1);
/// The folder of --out, made if there is none: before a run, which costs time.
/// Errors   InvalidArgument if it cannot be made or written to
std::filesystem::path open_out(const std::string& out);

/// NAME.json and NAME.html are written.
struct SweepCommand {
  std::string name;
  std::function<nlohmann::json(const Device&)> run;
  bool (*is_correct)(const nlohmann::json& log);
  std::string (*page)(const nlohmann::json& log);
  std::string (*table)(const nlohmann::json& log, const Style& style);
};
/// A log that `tilewright bench NAME` has written.
/// Errors   InvalidArgument naming kind and tool of another log; as read_json
nlohmann::json read_sweep_log(const std::string& path, const std::string& name);
/// Runs it unless there is a log to read, and says what is in the log.
void run_sweep(const SweepCommand& sweep, const SweepArgs& args, Context& context);

/// " --option value" for each of them.
template <class Values>
std::string repeated_option(const char* option, const Values& values) {
  std::string text;
  for (const auto& value : values) text += fmt::format(" {} {}", option, value);
  return text;
}

}  // namespace tilewright::cli
