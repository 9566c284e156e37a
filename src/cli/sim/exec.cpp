// tilewright sim exec: any program of the CUDA driver API on the simulator, unchanged.

#include "base/env.h"
#include "base/error.h"
#include "cli/sim/options.h"
#include "cli/tool/command.h"
#include "device/driver_libraries.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include <unistd.h>

namespace tilewright::cli {

namespace {

struct ExecArguments {
  SimFlags flags;
  std::vector<std::string> replacements;
  std::vector<std::string> program;
  bool is_plain = false;
};

/// The folder of the simulator's libcuda.so.1.
std::string simulator_folder() {
  const std::vector<std::string> paths = device::DriverLibraries::standard().sim;
  for (const std::string& path : paths) {
    std::error_code ignored;
    const std::filesystem::path file = std::filesystem::absolute(path, ignored);
    if (!std::filesystem::exists(file, ignored)) continue;
    require(file.filename() == device::kDriverName, ErrorKind::kInvalidArgument,
            "{} = {}: programs load the driver by the name {}, so the file must have it",
            device::kSimLibraryVariable, path, device::kDriverName);
    return file.parent_path().string();
  }
  fail(ErrorKind::kUnsupported,
       "the simulator's driver is not there: no file {}. Build the target tilewright_simulator, or "
       "name the library in {}",
       paths.empty() ? std::string("lib/sim/libcuda.so.1") : paths.front(),
       device::kSimLibraryVariable);
}

void set_variable(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);
}

// `value` and then what the variable had: lists of paths are searched in order.
void put_first(const char* name, const std::string& value) {
  const std::string old = env_text(name);
  set_variable(name, old.empty() ? value : value + ":" + old);
}

// What programs need that the loader's path alone does not reach: PyTorch's libraries have a path
// of their own to a CUDA runtime, and compilers in Python hand over machine code.
void reach_program(const std::filesystem::path& folder) {
  const std::filesystem::path runtime = folder / "libcudart.so.13", python = folder / "python";
  std::error_code ignored;
  if (std::filesystem::exists(runtime, ignored)) put_first("LD_PRELOAD", runtime.string());
  if (std::filesystem::exists(python, ignored)) put_first("PYTHONPATH", python.string());
}

std::string async_name(sim::AsyncTiming timing) {
  switch (timing) {
    case sim::AsyncTiming::kLate:
      return "late";
    case sim::AsyncTiming::kRandom:
      return "random";
    default:
      return "eager";
  }
}

/// With absolute paths: the program may change its folder. Errors   InvalidArgument
std::string replacement_list(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) {
    for (const sim::Replacement& each : sim::parse_replacements(word)) {
      const std::string path = std::filesystem::absolute(each.path).string();
      require(std::filesystem::exists(path), ErrorKind::kInvalidArgument,
              "--replace {}: there is no file {}", word, path);
      list += (list.empty() ? "" : ",") + each.entry + "=" + path;
    }
  }
  return list;
}

void run_exec(const ExecArguments& args, const Context& context) {
  const std::string folder = simulator_folder();
  const sim::Options options = sim_options(args.flags);
  put_first("LD_LIBRARY_PATH", folder);
  if (!args.is_plain) reach_program(folder);
  set_variable("TILEWRIGHT_SIM_DEVICE", std::string(sim_device(context).key));
  set_variable("TILEWRIGHT_SIM_CHECK", sim::to_string(options.checks));
  if (!options.report_path.empty()) {
    // The program may change its folder before the report is written.
    set_variable("TILEWRIGHT_SIM_REPORT",
                 options.report_path == "-"
                     ? options.report_path
                     : std::filesystem::absolute(options.report_path).string());
  }
  set_variable("TILEWRIGHT_SIM_REPORT_ONLY", options.report_only ? "1" : "0");
  set_variable("TILEWRIGHT_SIM_SEED", std::to_string(options.seed));
  set_variable("TILEWRIGHT_SIM_ASYNC", async_name(options.async_timing));
  set_variable("TILEWRIGHT_SIM_EXACT_MMA", options.is_exact_mma ? "1" : "0");
  set_variable("TILEWRIGHT_SIM_SMS", std::to_string(options.num_sms));
  if (!args.replacements.empty())
    set_variable("TILEWRIGHT_SIM_REPLACE", replacement_list(args.replacements));
  std::vector<char*> words;
  for (const std::string& word : args.program) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::signal(SIGXFSZ, SIG_DFL);  // what the tool ignores the program need not
  ::execvp(words[0], words.data());
  fail(ErrorKind::kInvalidArgument, "cannot run {}: {}", args.program[0], std::strerror(errno));
}

}  // namespace

void add_sim_exec(CLI::App& sim, Context& context) {
  CLI::App* command = sim.add_subcommand(
      "exec", "run any program with the simulator as its CUDA driver: sim exec -- PROGRAM ARGS");
  auto args = std::make_shared<ExecArguments>();
  add_sim_flags(*command, args->flags);
  command
      ->add_option("--replace", args->replacements,
                   "the module that has this kernel becomes the PTX text of a file")
      ->option_text("ENTRY=FILE")
      ->allow_extra_args(false);
  command->add_option("program", args->program, "the program and its arguments, after --")
      ->required()
      ->option_text("-- PROGRAM ARGS");
  command->add_flag("--plain", args->is_plain,
                    "the driver alone: no CUDA runtime before the program's own, no hooks for "
                    "Python");
  command->footer(
      "The program sees one GPU, the one of --device (h200 by default). The same can be had "
      "without\n"
      "this command: LD_LIBRARY_PATH=lib/sim, for PyTorch LD_PRELOAD=lib/sim/libcudart.so.13, for\n"
      "Triton and numba-cuda PYTHONPATH=lib/sim/python, and the variables TILEWRIGHT_SIM_DEVICE,\n"
      "_CHECK, _REPORT, _REPORT_ONLY, _SEED, _ASYNC, _EXACT_MMA, _SMS, _REPLACE. See\n"
      "docs/03-simulator.md.");
  command->callback([args, &context] { run_exec(*args, context); });
}

}  // namespace tilewright::cli
