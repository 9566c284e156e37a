#include "cli/bench/sweep_command.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

#include <filesystem>
#include <nlohmann/json.hpp>

namespace tilewright::cli {

void add_sweep_options(CLI::App& command, SweepArgs& args, const std::string& name) {
  if (args.out.empty()) args.out = "build/" + name;
  command.add_option("--samples", args.samples, "times of each")
      ->check(quiet(CLI::Range(3, 1000)))
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--from", args.from, "table and page of a log; nothing is run")
      ->check(quiet(CLI::ExistingFile))
      ->type_name("LOG");
  command.add_option("--out", args.out, fmt::format("folder of {0}.json and {0}.html", name))
      ->capture_default_str()
      ->type_name("FOLDER");
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
  const nlohmann::json log = args.from.empty() ? sweep.run(Device::open(context.device))
                                               : read_sweep_log(args.from, sweep.name);
  const std::filesystem::path folder = args.out, path = folder / (sweep.name + ".json");
  std::filesystem::create_directories(folder);
  write_json(path, log);
  write_file(folder / (sweep.name + ".html"), sweep.page(log));
  context.exit_status = sweep.is_correct(log) ? 0 : 1;
  if (context.json) return print_json(log);
  print(sweep.table(log, context.style()));
  print(fmt::format("log and page: {}\n", path.string()));
}

}  // namespace tilewright::cli
