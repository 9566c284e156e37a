// tilewright decode: attention of a few new tokens over a cache, on drawn tensors.
#include "bench/decode.h"

#include "base/error.h"
#include "cli/tool/command.h"
#include "cli/tool/plan_options.h"
#include "cli/tool/time_sample.h"
#include "report/operator_report.h"
#include "verify/decode_device.h"
#include "verify/device_facts.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

struct DecodeArgs {
  AttentionDecodeProblem problem = {
      .batch = 2, .q_len = 1, .heads = 8, .kv_heads = 2, .head_dim = 128, .has_lse = true};
  std::string dtype = "bf16", kv, lengths = "full", rotary = "none";
  std::int64_t keys = 500, page_size = 0, check_sequences = 2;
  std::optional<double> scale;
  bool check = false;
  PlanArgs plan;
  int runs = 20;
};

DecodeData make_decode_data(const DecodeArgs& args) {
  AttentionDecodeProblem p = args.problem;
  p.dtype = args.dtype == "f16" ? DType::kF16 : DType::kBF16;
  p.kv_dtype = args.kv.empty() ? p.dtype : decode_dtype(args.kv);
  p.scale = args.scale;
  if (args.rotary != "none") {
    p.append.is_wanted = true;
    p.append.rotary = args.rotary == "halves" ? RotaryPairs::kHalves : RotaryPairs::kInterleaved;
    if (p.append.rotary_dim == 0) p.append.rotary_dim = p.head_dim;
  }
  return draw_decode(p, args.keys,
                     args.lengths == "random" ? DecodeLengths::kRandom : DecodeLengths::kFull,
                     args.page_size);
}

void print_decode(const json& report, const Style& style) {
  print_operator_report(report, style);
  if (report.contains("rate"))
    print(fmt::format("rate       {:.0f} GB/s of keys and values, q and out\n",
                      report["rate"]["gbytes_per_s"].get<double>()));
  if (!report.contains("error")) return;
  const json& e = report["error"];
  print(fmt::format("check      {}: {}; out off by {:.2g} at most, lse by {:.2g}, against {}\n",
                    verdict_text(e, style), bound_text(e["worst_of_bound"].get<double>()),
                    e["max_out_error"].get<double>(), e["max_lse_error"].get<double>(),
                    e["reference"].get<std::string>()));
}

void run_decode(const DecodeArgs& args, Context& context) {
  request_counts();
  const Device device = Device::open(context.device);
  const DecodeData data = make_decode_data(args);
  json report = {{"device", device.description()}};
  if (args.plan.only) {
    report["plan"] = plan_json(plan_attention_decode(device, data.problem), args.plan, context);
    return context.json ? print_json(report) : print_decode(report, context.style());
  }
  const AttentionDecode decode(device, data.problem);
  report["plan"] = plan_json(decode.plan(), args.plan, context);
  DecodeOperands operands(device, data, args.runs > 0 ? decode_cold_sets(device, data) : 1);
  operands.prepare(decode.plan());
  sample_if_large(device, report["plan"], args.check ? "--check" : "");
  operands.run(decode, 0);
  operands.synchronize();
  if (const json counts = take_counts(device); !counts.is_null()) report["counted"] = counts;
  if (args.check) {
    report["error"] = operands.check(args.check_sequences);
    context.exit_status = report["error"]["ok"].get<bool>() ? 0 : 1;
  }
  if (!device.is_simulated() && args.runs > 0) {
    report["time"] = time_summary(operands.measure(decode, args.runs).us);
    report["rate"] = {
        {"gbytes_per_s", data.bytes() * 1e-3 / report["time"]["median_us"].get<double>()}};
  }
  context.json ? print_json(report) : print_decode(report, context.style());
}

void add_decode_shape_options(CLI::App& command, DecodeArgs& args) {
  AttentionDecodeProblem& p = args.problem;
  const auto count = [&](const char* name, std::int64_t& value, std::int64_t least,
                         const char* what) {
    command.add_option(name, value, what)
        ->check(quiet(CLI::Range(least, std::int64_t{1} << 24)))
        ->capture_default_str()
        ->type_name("N");
  };
  count("--batch", p.batch, 0, "sequences");
  count("--q-len", p.q_len, 0, "queries of each, up to 16");
  count("--heads", p.heads, 1, "of q");
  count("--kv-heads", p.kv_heads, 1, "of keys and values");
  count("--head-dim", p.head_dim, 8, "a multiple of 8 up to 256");
  count("--keys", args.keys, 0, "in the cache, of the longest sequence");
  count("--page", args.page_size, 0, "keys of a page; 0: no pages");
  count("--window", p.window_left, -1, "keys that a query sees before its own; -1: all");
  count("--splits", p.splits, 0, "splits of each sequence; 0: chosen by the lengths");
  count("--rotary-dim", p.append.rotary_dim, 0, "dimensions that are rotated; 0: all");
  command.add_option("--lengths", args.lengths, "all as long, or any length up to that")
      ->check(quiet(CLI::IsMember({"full", "random"})))
      ->capture_default_str()
      ->type_name("full|random");
}

}  // namespace

void add_decode(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("decode", "decode attention: a few queries over long caches");
  auto args = std::make_shared<DecodeArgs>();
  add_decode_shape_options(*command, *args);
  command->add_option("--dtype", args->dtype, "element type of q and out")
      ->check(quiet(CLI::IsMember({"bf16", "f16"})))
      ->capture_default_str()
      ->type_name("bf16|f16");
  command
      ->add_option("--kv", args->kv, "element type of the caches: that of q, the default, or e4m3")
      ->check(quiet(CLI::IsMember({"bf16", "f16", "e4m3"})))
      ->type_name("bf16|f16|e4m3");
  command->add_option("--scale", args->scale, "default head_dim^-0.5")->type_name("X");
  command->add_option("--softcap", args->problem.softcap, "0: none")->type_name("X");
  command->add_flag("--sink", args->problem.has_sink, "a sink for each head");
  command->add_flag_callback(
      "--not-causal", [args] { args->problem.causal = false; },
      "a query sees the keys of later queries, too");
  command->add_flag("--append", args->problem.append.is_wanted,
                    "write the keys and values of the queries into the cache first");
  command->add_option("--rotary", args->rotary, "rotate them and the queries; appends")
      ->check(quiet(CLI::IsMember({"none", "interleaved", "halves"})))
      ->capture_default_str()
      ->type_name("none|interleaved|halves");
  command->add_option("--kernel", args->problem.kernel, "auto, or one that --plan lists")
      ->capture_default_str()
      ->type_name("NAME");
  command->add_flag("--check", args->check, "compare with the float64 reference");
  command->add_option("--check-sequences", args->check_sequences, "sequences to compare")
      ->check(quiet(CLI::Range(1, 1 << 20)))
      ->capture_default_str()
      ->type_name("N");
  add_plan_options(*command, args->plan);
  add_runs_option(*command, args->runs, ", with cold caches");
  command->footer("For example:\n  tilewright decode --kv e4m3 --page 16 --rotary halves --check");
  command->callback([args, &context] { run_decode(*args, context); });
}

}  // namespace tilewright::cli
