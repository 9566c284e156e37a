// tilewright bench sim: how fast the simulator is on this machine, one core.

#include "base/env.h"
#include "base/error.h"
#include "base/json.h"
#include "bench/sim_kernels.h"
#include "cli/sim/options.h"
#include "cli/tool/command.h"
#include "cli/tool/processor_time.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

struct BenchSimArguments {
  std::string filter;
  double seconds = 0.1;  ///< of one run
};

/// What the simulator does beside running a kernel.
struct Level {
  const char *checks, *title;
  bool is_timed = false;  ///< times are predicted
};

constexpr std::uint32_t kBenchCtas = 2;
constexpr std::array<Level, 4> kLevels = {{{"none", "no checks"},
                                           {"default", "default"},
                                           {"all", "all checks"},
                                           {"none", "times predicted", true}}};

struct Speed {
  double instructions_per_second = 0;  ///< of threads
  double gflops = 0;
};

/// A machine with one kernel, ready to be launched again and again.
class BenchRun {
 public:
  BenchRun(const BenchKernel& kernel, const Level& level, const sim::DeviceModel& model)
      : kernel_(kernel), machine_(model, options_for(level)) {
    launch_.module = machine_.load(sim::parse_module(kernel.ptx, "bench " + kernel.name + ".ptx"));
    launch_.kernel = "bench";
    launch_.grid.x = kBenchCtas;
    launch_.block.x = kBenchThreads;
    constexpr std::size_t kBytes = std::size_t{kBenchCtas} * kBenchBytesPerCta;
    data_ = machine_.memory().allocate(kBytes, "bench data");
    std::memset(reinterpret_cast<void*>(data_), 0, kBytes);
    machine_.mark_defined(data_, kBytes);
    machine_.set_output([](std::string_view) {},
                        [this](std::string_view text) { complaints_ += text; });
  }

  /// Median of several runs, each of about so many seconds.
  Speed measure(double seconds) {
    constexpr int kRuns = 5;
    constexpr double kTried = 0.25;  ///< part of a run from which the number of iterations follows
    std::uint32_t iterations = 1;
    double tried = run(iterations);
    while (tried < kTried * seconds && iterations < (1U << 28)) tried = run(iterations *= 2);
    iterations = std::max(1U, static_cast<std::uint32_t>(iterations * seconds / tried));
    std::array<double, kRuns> times;
    for (double& time : times) time = run(iterations);
    std::ranges::sort(times);
    const double per_second = iterations * double{kBenchCtas} / times[kRuns / 2];
    return {per_second * kBenchThreads * kernel_.instructions_per_iteration,
            per_second * kernel_.flop_per_iteration * 1e-9};
  }

 private:
  static sim::Options options_for(const Level& level) {
    sim::Options options;
    options.checks = sim::parse_checks(level.checks);
    options.has_time = level.is_timed;
    if (level.is_timed) options.report_path = "memory";
    options.num_threads = 1;
    return options;
  }

  double run(std::uint32_t iterations) {
    launch_.params.resize(12);
    std::memcpy(launch_.params.data(), &data_, 8);
    std::memcpy(launch_.params.data() + 8, &iterations, 4);
    const double begin = processor_seconds();
    const auto fault = machine_.launch(launch_);
    const double end = processor_seconds();
    require(!fault && complaints_.empty(), ErrorKind::kInternal, "bench sim: {}: {}{}",
            kernel_.name, fault ? fault->message : "", complaints_);
    require_prediction();
    return end - begin;
  }

  /// Where times are predicted there is one of this launch.
  void require_prediction() {
    if (!machine_.options().has_time) return;
    const nlohmann::json report = parse_json(machine_.take_report(), "the simulator's report");
    const nlohmann::json& predicted = report["kernels"][0]["predicted"];
    require(predicted.contains("us"), ErrorKind::kInternal, "bench sim: {}: no time: {}",
            kernel_.name, predicted.dump());
  }

  const BenchKernel& kernel_;
  sim::Machine machine_;
  sim::Launch launch_;
  std::uint64_t data_ = 0;
  std::string complaints_;
};

std::string speed_text(const Speed& speed) {
  if (speed.gflops != 0) return fmt::format("{:.1f} GFLOP/s", speed.gflops);
  return fmt::format("{:.3f} G/s", speed.instructions_per_second * 1e-9);
}

void run_bench_sim(const BenchSimArguments& args, const Context& context) {
  const sim::DeviceModel& model = sim_device(context);
  nlohmann::json cases = nlohmann::json::array();
  const bool is_timed = env_text("TILEWRIGHT_SIM_TIME") == "1";
  const auto levels = std::span(kLevels).first(kLevels.size() - (is_timed ? 0 : 1));
  std::vector<std::string> header = {"case"};
  for (const Level& level : levels) {
    header.emplace_back(level.title);
    if (header.size() > 2) header.emplace_back("slower");
  }
  Table table(header);
  for (const BenchKernel& kernel : bench_kernels()) {
    if (kernel.name.find(args.filter) == std::string::npos) continue;
    std::vector<std::string> row = {kernel.name};
    double fastest = 0;
    for (const Level& level : levels) {
      const sim::DeviceModel* const own = sim::find_device_model(kernel.device);
      const Speed speed =
          BenchRun(kernel, level, own == nullptr ? model : *own).measure(args.seconds);
      if (fastest == 0) fastest = speed.instructions_per_second;
      const double slowdown = fastest / speed.instructions_per_second;
      nlohmann::json entry = {{"case", kernel.name},
                              {"checks", level.checks},
                              {"is_timed", level.is_timed},
                              {"thread_instructions_per_second", speed.instructions_per_second},
                              {"slowdown", slowdown}};
      if (speed.gflops != 0) entry["gflops"] = speed.gflops;
      cases.push_back(std::move(entry));
      row.push_back(speed_text(speed));
      if (row.size() > 2) row.push_back(fmt::format("{:.1f}x", slowdown));
    }
    table.add(std::move(row));
  }
  require(!cases.empty(), ErrorKind::kInvalidArgument, "no case has \"{}\" in its name",
          args.filter);
  if (context.json) {
    return print_json({{"device", model.key}, {"host_threads", 1}, {"cases", std::move(cases)}});
  }
  const Style style = context.style();
  print(table.text(style) +
        style.faint(
            "\non one core of this machine, in processor time: thread instructions a "
            "second, for tensor cores FLOP;\nmedian of 5 runs; it says nothing about a GPU\n"));
}

}  // namespace

void add_bench_sim(CLI::App& bench, Context& context) {
  CLI::App* command = bench.add_subcommand(
      "sim", "the simulator's speed on one core, without checks and with them");
  auto args = std::make_shared<BenchSimArguments>();
  command->add_option("filter", args->filter, "only cases with this text in their name")
      ->option_text("[TEXT]");
  command->add_option("--seconds", args->seconds, "about so long for each of the runs")
      ->option_text("S [0.1]")
      ->check(CLI::Range(0.001, 60.0));
  command->footer(
      "All cases take half a minute of a core's time. With --time each also runs with its time "
      "predicted,\nas --time of other commands has it: ten seconds more.");
  command->callback([args, &context] { run_bench_sim(*args, context); });
}

}  // namespace tilewright::cli
