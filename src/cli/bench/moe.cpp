// tilewright bench moe: Mixture-of-Experts layers over numbers of tokens, with floors and peers.
#include "bench/moe.h"

#include "base/file.h"
#include "base/json.h"
#include "cli/bench/sweep_command.h"

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

struct BenchMoeArgs {
  std::vector<std::string> shapes, activations = {"bf16", "fp8"}, kernels, peers;
  std::vector<std::int64_t> tokens;
  std::string format = "nvfp4", out = "build/moe", from;
  int samples = 15;
  std::int64_t distinct = 4;
  bool no_steps = false, shared = false;
};

MoeSweep to_moe_sweep(const BenchMoeArgs& args, const Device& device) {
  const bool is_small = device.is_simulated();
  MoeSweep sweep;
  sweep.format = parse_number_format(args.format);
  sweep.kernels = args.kernels;
  sweep.samples = args.samples;
  sweep.distinct = args.distinct;
  sweep.has_steps = !args.no_steps;
  sweep.has_single = args.shared;
  std::vector<std::string> shapes = args.shapes;
  if (shapes.empty())
    shapes =
        is_small ? std::vector<std::string>{"small"} : std::vector<std::string>{"v3", "v4-flash"};
  for (const std::string& name : shapes) sweep.shapes.push_back(find_moe_shape(name));
  for (const std::string& name : args.activations)
    sweep.activations.push_back(name == "fp8" ? LinearActivations::kFp8 : LinearActivations::kBf16);
  sweep.tokens = args.tokens;
  if (sweep.tokens.empty())
    for (std::int64_t t = 1; t <= (is_small ? 4 : 8192); t *= is_small ? 4 : 2)
      sweep.tokens.push_back(t);
  return sweep;
}

std::string moe_command_line(const BenchMoeArgs& args) {
  std::string text = "tilewright bench moe --format " + args.format;
  for (const std::string& shape : args.shapes) text += " --shape " + shape;
  for (const std::int64_t t : args.tokens) text += fmt::format(" --tokens {}", t);
  if (args.shared) text += " --shared";
  return text + fmt::format(" --samples {} --distinct {}", args.samples, args.distinct);
}

void run_bench_moe(const BenchMoeArgs& args, Context& context) {
  const std::filesystem::path folder = open_out(args.out);
  nlohmann::json log;
  if (!args.from.empty()) {
    log = read_json(args.from);
  } else {
    const Device device = Device::open(context.device);
    log = run_moe_sweep(device, to_moe_sweep(args, device), moe_command_line(args));
  }
  for (const std::string& peers : args.peers) merge_moe_peers(log, read_json(peers));
  write_json(folder / "moe.json", log);
  write_file(folder / "moe.html", moe_report(log));
  context.exit_status = is_moe_log_correct(log) ? 0 : 1;
  if (context.json) return print_json(log);
  print(moe_table(log, context.style()));
  print(fmt::format("log and page: {}\n", (folder / "moe.json").string()));
}

}  // namespace

void add_bench_moe(CLI::App& bench, Context& context) {
  CLI::App* command =
      bench.add_subcommand("moe", "Mixture-of-Experts layers over numbers of tokens");
  auto args = std::make_shared<BenchMoeArgs>();
  command
      ->add_option("--shape", args->shapes,
                   "v3, v4-flash, v4-pro, small or EXPERTS/TOPK/HIDDEN/INTER; default v3 and "
                   "v4-flash, small on the simulator")
      ->type_name("SHAPE");
  command->add_option("--tokens", args->tokens, "numbers of tokens; default 1, 2, 4, ... 8192")
      ->check(quiet(CLI::Range(1, 65536)))
      ->type_name("N");
  command->add_option("--format", args->format, "of the weights")
      ->check(quiet(CLI::IsMember({"nvfp4", "mxfp4", "fp8", "bf16"})))
      ->capture_default_str()
      ->type_name("nvfp4|mxfp4|fp8|bf16");
  command->add_option("--activations", args->activations, "what the weights are prepared for")
      ->check(quiet(CLI::IsMember({"bf16", "fp8"})))
      ->type_name("bf16|fp8");
  command->add_option("--kernel", args->kernels, "of direct, band, wide, wide8; default all")
      ->check(quiet(CLI::IsMember({"direct", "band", "wide", "wide8"})))
      ->type_name("NAME");
  command->add_option("--samples", args->samples, "times of each")
      ->check(quiet(CLI::Range(3, 1000)))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--distinct", args->distinct, "experts that differ; the others are copies")
      ->check(quiet(CLI::Range(1, 384)))
      ->capture_default_str()
      ->type_name("N");
  command->add_flag("--shared", args->shared,
                    "with an FP8 expert of all tokens beside, in the same launch where that goes");
  command->add_flag("--no-steps", args->no_steps, "do not time the launches one by one");
  command->add_option("--peers", args->peers, "logs of bench/moe_peers.py to show beside ours")
      ->check(quiet(CLI::ExistingFile))
      ->type_name("FILE");
  command->add_option("--from", args->from, "table and page of a log; nothing is run")
      ->check(quiet(CLI::ExistingFile))
      ->type_name("LOG");
  command->add_option("--out", args->out, "folder of moe.json and moe.html")
      ->capture_default_str()
      ->type_name("FOLDER");
  command->callback([args, &context] { run_bench_moe(*args, context); });
}

}  // namespace tilewright::cli
