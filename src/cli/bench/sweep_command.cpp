#include "cli/bench/sweep_command.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

#include <unistd.h>

namespace tilewright::cli {

void add_sweep_options(CLI::App& command, SweepArgs& args, const std::string& name, int most_logs) {
  if (args.out.empty()) args.out = "build/" + name;
  command.add_option("--samples", args.samples, "times of each")
      ->check(quiet(CLI::Range(3, 1000)))
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option("--from", args.from,
                  most_logs == 1 ? "table and page of a log; nothing is run"
                                 : "tables and a page of logs, several times; nothing is run")
      ->expected(1, most_logs)
      ->check(quiet(CLI::ExistingFile))
      ->type_name("LOG");
  command.add_option("--out", args.out, fmt::format("folder of {0}.json and {0}.html", name))
      ->capture_default_str()
      ->type_name("FOLDER");
}

std::filesystem::path open_out(const std::string& out) {
  const std::filesystem::path folder = out;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && ::access(folder.c_str(), W_OK | X_OK) != 0)
    error = std::error_code(errno, std::generic_category());
  require(!error, ErrorKind::kInvalidArgument,
          "--out {}: {}; expected a folder that can be made and written to", out, error.message());
  return folder;
}

nlohmann::json read_sweep_log(const std::string& path, const std::string& name) {
  nlohmann::json log = read_json(path);
  const auto word = [&](const char* key) {
    return log.is_object() && log.contains(key) && log[key].is_string()
               ? log[key].get<std::string>()
               : "unknown";
  };
  require(word("kind") == name && word("tool").starts_with("tilewright bench "),
          ErrorKind::kInvalidArgument,
          "{}: a log of kind = {} by {}; expected one that `tilewright bench {}` has written", path,
          word("kind"), word("tool"), name);
  return log;
}

void run_sweep(const SweepCommand& sweep, const SweepArgs& args, Context& context) {
  const std::filesystem::path folder = open_out(args.out), path = folder / (sweep.name + ".json");
  const nlohmann::json log = args.from.empty() ? sweep.run(Device::open(context.device))
                                               : read_sweep_log(args.from[0], sweep.name);
  write_json(path, log);
  write_file(folder / (sweep.name + ".html"), sweep.page(log));
  context.exit_status = sweep.is_correct(log) ? 0 : 1;
  if (context.json) return print_json(log);
  print(sweep.table(log, context.style()));
  print(fmt::format("log and page: {}\n", path.string()));
}

}  // namespace tilewright::cli
