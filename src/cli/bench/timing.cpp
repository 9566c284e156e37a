// tilewright bench timing: what the simulator predicts, beside what was measured on an H200.
#include "bench/timing/timing.h"

#include "base/error.h"
#include "base/json.h"
#include "bench/timing/blackwell.h"
#include "bench/timing/blackwell_points.h"
#include "cli/tool/command.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/ranges.h>

namespace tilewright::cli {

namespace {

struct BenchTimingArgs {
  std::vector<std::string> logs;
  bool is_b200 = false;
  std::vector<std::string> parts;
  TimingChoice choice;
};

std::vector<TimingPoint> points_of_file(const std::string& log, const TimingChoice& choice) {
  const nlohmann::json read = read_json(log);
  try {
    return timing_points(read, choice);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", log, error.what()));
  }
}

/// Of several logs with the same kernel at the same problem the first one counts.
std::vector<TimingPoint> points_of(const std::vector<std::string>& logs,
                                   const TimingChoice& choice) {
  std::vector<TimingPoint> points;
  for (const std::string& log : logs) {
    for (TimingPoint& point : points_of_file(log, choice)) {
      const bool is_known = std::ranges::any_of(points, [&](const TimingPoint& known) {
        return known.shape == point.shape && known.kernel == point.kernel &&
               known.problem == point.problem && known.is_for_fp8 == point.is_for_fp8;
      });
      if (!is_known) points.push_back(std::move(point));
    }
  }
  return points;
}

void run_bench_timing(const BenchTimingArgs& args, const Context& context) {
  require(args.is_b200 == args.logs.empty(), ErrorKind::kInvalidArgument,
          "bench timing: a log of an H200 or --b200 is expected, one of the two");
  if (args.is_b200) {
    const nlohmann::json result =
        predict_blackwell(args.choice.sample, args.choice.kernels, args.parts);
    return context.json ? print_json(result) : print(blackwell_table(result, context.style()));
  }
  const std::vector<TimingPoint> points = points_of(args.logs, args.choice);
  require(!points.empty(), ErrorKind::kInvalidArgument,
          "bench timing: {} has no measured row of that choice; leave some of it out",
          fmt::join(args.logs, ", "));
  const nlohmann::json result = run_timing(points, args.choice);
  context.json ? print_json(result) : print(timing_table(result, context.style()));
}

}  // namespace

void add_bench_timing(CLI::App& bench, Context& context) {
  CLI::App* command = bench.add_subcommand(
      "timing", "times that the simulator predicts, beside those that an H200 took");
  auto args = std::make_shared<BenchTimingArgs>();
  TimingChoice& choice = args->choice;
  command
      ->add_option("log", args->logs,
                   "logs of an H200, of bench/results; kernels of all of them at one shape are "
                   "compared")
      ->check(quiet(CLI::ExistingFile))
      ->option_text("FILE ...");
  CLI::Option* const b200 = command->add_flag(
      "--b200", args->is_b200,
      "instead: what is predicted of our kernels on a B200; there is no log of one");
  command->add_option("--kernels", choice.kernels, "only these")
      ->delimiter(',')
      ->option_text("NAME ...");
  command
      ->add_option("--parts", args->parts,
                   "of --b200 only these: " + fmt::format("{}", fmt::join(blackwell_parts(), ", ")))
      ->delimiter(',')
      ->option_text("PART ...")
      ->needs(b200);
  command->add_option("--lengths", choice.lengths, "only these")
      ->delimiter(',')
      ->option_text("N ...");
  command->add_option("--head-dims", choice.head_dims, "only these")
      ->delimiter(',')
      ->option_text("N ...");
  command
      ->add_option("--rows", choice.rows, "of linear layers only these m, else only these batches")
      ->delimiter(',')
      ->option_text("M ...");
  command->add_option("--features", choice.features, "of linear layers only these n")
      ->delimiter(',')
      ->option_text("N ...");
  command->add_option("--mask", choice.mask, "only this mask")
      ->option_text("full|causal|both=both")
      ->check(quiet(CLI::IsMember({"full", "causal", "both"})));
  command->add_option("--most-us", choice.most_us, "leaves out what took longer")
      ->option_text("T=3000")
      ->check(positive());
  command->add_option("--sample", choice.sample, "clusters of CTAs of a launch that are run")
      ->option_text("N=12")
      ->check(quiet(CLI::Range(1, 1024)));
  command->footer(
      "For example:\n"
      "  tilewright bench timing bench/results/2026-11-23-attention-ladder-all-lengths.json \\\n"
      "    --kernels k5,k6 --lengths 512,1024");
  command->callback([args, &context] { run_bench_timing(*args, context); });
}

}  // namespace tilewright::cli
