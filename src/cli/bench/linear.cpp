// tilewright bench linear: linear layers on a GPU, with cold weights, as a log and plots.

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/progress.h"
#include "bench/ladder.h"
#include "bench/linear_report.h"
#include "cli/bench/sweep_command.h"
#include "report/time_summary.h"
#include "verify/device_facts.h"
#include "verify/linear_check.h"
#include "verify/linear_data.h"
#include "verify/linear_device.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

struct LinearSweepArgs {
  std::vector<std::string> shapes = {"7168x7168"};
  std::vector<std::string> formats = {"nvfp4-a16", "nvfp4-a8"};
  std::vector<std::string> kernels = {"auto"};
  std::vector<std::int64_t> tokens = {1,   2,   4,   8,    16,   32,   64,
                                      128, 256, 512, 1024, 2048, 4096, 8192};
  std::vector<std::string> peers;
  std::string out = "build/linear", from;
  double rotate_mb = 170;
  int samples = 15, calls = 24;
  std::int64_t check_rows = 8;
  bool smoke = false;
};

struct Format {
  std::string name;
  NumberFormat format;
  LinearActivations activations;
};

Format parse_format(const std::string& text) {
  const std::size_t dash = text.find('-');
  const std::string kind = dash == std::string::npos ? "" : text.substr(dash + 1);
  require(kind == "a16" || kind == "a8", ErrorKind::kInvalidArgument,
          "bench linear: --formats {}; expected FORMAT-a16 or FORMAT-a8, as nvfp4-a16", text);
  const NumberFormat format = parse_number_format(text.substr(0, dash));
  const char* const short_name = format == NumberFormat::kNvfp4   ? "w4"
                                 : format == NumberFormat::kMxfp4 ? "w4mx"
                                 : format == NumberFormat::kFp8   ? "w8"
                                                                  : "w16";
  return {short_name + kind, format,
          kind == "a8" ? LinearActivations::kFp8 : LinearActivations::kBf16};
}

struct WeightShape {
  std::int64_t n = 0, k = 0, groups = 1;
};

WeightShape parse_shape(const std::string& text) {
  WeightShape shape;
  int end = 0, longer = 0;
  const int sizes = std::sscanf(text.c_str(), "%ldx%ld%nx%ld%n", &shape.n, &shape.k, &end,
                                &shape.groups, &longer);
  const int read = sizes == 3 ? longer : end;
  require(sizes >= 2 && read == static_cast<int>(text.size()) && shape.n > 0 && shape.k > 0 &&
              shape.groups > 0,
          ErrorKind::kInvalidArgument,
          "bench linear: --shapes {}; expected NxK, as 7168x7168, or NxKxGROUPS", text);
  return shape;
}

class Sweep {
 public:
  Sweep(const Device& device, const LinearSweepArgs& args)
      : device_(device),
        args_(args),
        progress_(stderr, "bench linear",
                  static_cast<std::int64_t>(args.shapes.size() * args.formats.size() *
                                            args.kernels.size() * args.tokens.size()),
                  "results") {}

  json run() {
    for (const std::string& shape : args_.shapes) {
      const WeightShape sizes = parse_shape(shape);
      for (const std::string& format : args_.formats) run_format(sizes, parse_format(format));
    }
    progress_.finish();
    return std::move(samples_);
  }

 private:
  void run_format(const WeightShape& shape, const Format& format) {
    const auto& [n, k, groups] = shape;
    LinearWeightData data = quantise_weight(format.format, draw_normal_floats(n * k, 1), n, k);
    data.source.groups = groups;
    std::vector<LinearWeight> weights;
    const bool is_gpu = !device_.is_simulated();
    do {
      weights.push_back(LinearWeight::prepare(device_, data.source, format.activations));
    } while (is_gpu &&
             static_cast<double>(weights.size() * weights[0].bytes()) < args_.rotate_mb * 1e6);
    for (const std::int64_t m : args_.tokens)
      for (const std::string& kernel : args_.kernels) run_case(data, weights, format, m, kernel);
  }

  void run_case(const LinearWeightData& data, const std::vector<LinearWeight>& weights,
                const Format& format, std::int64_t m, const std::string& kernel) {
    const std::int64_t groups = data.source.groups;
    const std::string of_groups = groups > 1 ? fmt::format("x{}", groups) : "";
    json log = {{"case", fmt::format("{}x{}{} m{}", data.n, data.k, of_groups, m)},
                {"inputs", "N(0,1)"},
                {"source", "tilewright"},
                {"kernel", kernel == "auto" ? format.name : format.name + ":" + kernel},
                {"problem", {{"m", m}, {"n", data.n}, {"k", data.k}, {"groups", groups}}}};
    try {
      LinearProblem problem;
      problem.m = m;
      problem.kernel = kernel;
      std::vector<Linear> layers;
      for (const LinearWeight& weight : weights) layers.emplace_back(weight, problem);
      measure(data, layers, log);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUnsupported) throw;
      log["refused"] = error.what();
    }
    samples_.push_back(std::move(log));
    progress_.add();
  }

  void measure(const LinearWeightData& data, const std::vector<Linear>& layers, json& log) {
    const LinearPlan& plan = layers[0].plan();
    const std::int64_t columns = data.k * plan.weight.groups;
    const std::vector<float> x = draw_normal_floats(plan.problem.m * columns, 2);
    LinearBench bench(device_, columns, x, plan);
    bench.enqueue(layers[0]);
    bench.synchronize();
    log["idea"] = "chosen: " + plan.kernel;
    log["plan"] = plan.to_string();
    log["flops"] = plan.flops;
    log["bytes"] = plan.bytes;
    log["floor_us"] = linear_floor_us(plan);
    log["error"] = to_json(check_linear(data, plan, x, bench.read_out(), args_.check_rows));
    if (device_.is_simulated()) return;
    log["clocks_before"] = read_clocks(device_);
    const int calls = std::max(plan.problem.m > 512 ? args_.calls / 4 : args_.calls,
                               static_cast<int>(layers.size()));
    bench.time_rotating(layers, calls, args_.samples).write(log);
    log["clocks_after"] = read_clocks(device_);
  }

  const Device& device_;
  const LinearSweepArgs& args_;
  Progress progress_;
  json samples_ = json::array();
};

json make_log(LinearSweepArgs& args, Context& context, const std::string& command) {
  if (!args.from.empty()) return read_json(args.from);
  const Device device = Device::open(context.device);
  require(!device.is_simulated() || args.smoke, ErrorKind::kUnsupported,
          "bench linear: {} has no times to measure. Run it on a GPU (--device cuda); --smoke runs "
          "small shapes here and checks their results.",
          device.description());
  if (args.smoke) {
    args.shapes = {"160x192", "256x160x2"};
    args.tokens = {1, 17, 70};
    args.formats = {"nvfp4-a16", "nvfp4-a8", "mxfp4-a16", "fp8-a8", "bf16-a16"};
  }
  json log = ladder_header(device, command);
  log["kind"] = "linear";
  log["cache"] = device.is_simulated()
                     ? "simulated: no times"
                     : fmt::format("cold: weights rotate over more than {:g} MB", args.rotate_mb);
  log["samples"] = Sweep(device, args).run();
  return log;
}

void print_log(const json& log, const Style& style) {
  Table table({"case", "kernel", "chosen", "us", "% of floor", "rms", "check"});
  for (const json& s : log.at("samples")) {
    const std::string text = s.value("kernel", "");
    if (s.contains("refused")) {
      table.add({s.value("case", ""), text, "", "", "", "", "not possible"});
      continue;
    }
    double us = 0;
    if (s.contains("samples_us") && !s["samples_us"].empty())
      us = summarize(s["samples_us"].get<std::vector<double>>()).median_us;
    const json error = s.value("error", json::object());
    std::string chosen = s.value("idea", "");
    if (chosen.starts_with("chosen: ")) chosen = chosen.substr(8);
    table.add({s.value("case", ""), text, chosen, us > 0 ? fmt::format("{:.2f}", us) : "",
               us > 0 ? fmt::format("{:.0f}", 100 * s.value("floor_us", 0.0) / us) : "",
               fmt::format("{:.5f}", error.value("relative_rms", 0.0)),
               error.value("ok", false) ? "correct" : style.bad("WRONG")});
  }
  print(table.text(style));
}

void run_linear_sweep(LinearSweepArgs& args, Context& context, const std::string& command) {
  if (!args.smoke) open_out(args.out);
  json log = make_log(args, context, command);
  for (const std::string& path : args.peers) merge_linear_logs(log, read_json(path));
  for (const json& sample : log.at("samples"))
    if (sample.contains("error") && !sample["error"].value("ok", false)) context.exit_status = 1;
  const std::filesystem::path folder = args.out;
  const std::string page = (folder / "linear.html").string();
  if (!args.smoke) {
    if (args.from.empty()) write_file((folder / "linear.json").string(), format_json(log));
    write_file(page, linear_report(log));
  }
  if (context.json) return print_json(log);
  print_log(log, context.style());
  if (!args.smoke) print(fmt::format("plots in {}\n", page));
}

}  // namespace

void add_bench_linear(CLI::App& bench, Context& context) {
  CLI::App* command = bench.add_subcommand("linear", "linear layers with cold weights, on a GPU");
  auto args = std::make_shared<LinearSweepArgs>();
  const auto list = [&](const char* name, auto& at, const char* what, const char* type) {
    command->add_option(name, at, what)->delimiter(',')->type_name(type);
  };
  list("--shapes", args->shapes, "out by in features, and groups; default 7168x7168",
       "NxK[xGROUPS],...");
  list("--tokens", args->tokens, "rows of x; default 1, 2, 4, ... 8192", "M,...");
  list("--formats", args->formats, "weights and activations; default nvfp4-a16,nvfp4-a8",
       "FORMAT-a16|a8,...");
  list("--kernels", args->kernels, "auto, or names that `tilewright linear --plan` lists",
       "NAME,...");
  list("--peers", args->peers, "logs of bench/linear_peers.py to plot beside ours", "FILE,...");
  command->add_option("--out", args->out, "folder of linear.json and linear.html")
      ->type_name("FOLDER")
      ->capture_default_str();
  command->add_option("--from", args->from, "plot this log; run nothing")
      ->check(quiet(CLI::ExistingFile));
  command->add_option("--rotate", args->rotate_mb, "MB of weights that rotate")
      ->capture_default_str();
  command->add_option("--samples", args->samples, "timed graphs of each")->capture_default_str();
  command->add_option("--calls", args->calls, "calls in a graph; a fourth of it above m = 512")
      ->capture_default_str();
  command->add_flag("--smoke", args->smoke, "small shapes, results checked, no times: anywhere");
  command->callback(
      [args, &context] { run_linear_sweep(*args, context, "tilewright bench linear"); });
}

}  // namespace tilewright::cli
