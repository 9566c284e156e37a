// tilewright indexer: DeepSeek-V4's lightning indexer on drawn operands.
#include "cli/tool/command.h"
#include "cli/tool/plan_options.h"
#include "cli/tool/time_sample.h"
#include "report/operator_report.h"
#include "verify/device_facts.h"
#include "verify/indexer_device.h"

#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

struct IndexerArgs {
  IndexShape shape = {.heads = 16, .topk = 64};
  std::string format = "fp8", lengths = "full";
  std::int64_t check_tokens = 8;
  bool check = false;
  PlanArgs plan;
  int runs = 20;
};

void print_indexer(const json& report, const Style& style) {
  print_operator_report(report, style);
  if (!report.contains("error")) return;
  const json& e = report["error"];
  print(
      fmt::format("check      {}: {} of {} quantised values differ, logits by {:.2g} (at most "
                  "5e-6), {} wrong rows, "
                  "against {}\n",
                  e["ok"].get<bool>() ? style.good("correct") : style.bad("WRONG"),
                  e["wrong_codes"].get<std::int64_t>(), e["codes"].get<std::int64_t>(),
                  e["difference"].get<double>(), e["wrong_rows"].get<std::int64_t>(),
                  e["reference"].get<std::string>()));
}

json plan_indexer(const Indexer& indexer, const IndexData& data) {
  const IndexShape& shape = data.shape;
  return {{"text", indexer.to_string(shape.tokens(), shape.batch)},
          {"workspace_bytes", indexer.workspace_bytes(shape.tokens(), shape.batch)},
          {"flops", data.flops()},
          {"bytes", data.bytes()}};
}

void run_indexer(const IndexerArgs& args, Context& context) {
  request_counts();
  const Device device = Device::open(context.device);
  IndexShape shape = args.shape;
  shape.format = args.format == "fp8" ? NumberFormat::kFp8 : NumberFormat::kMxfp4;
  shape.lengths = index_lengths_from_string(args.lengths);
  const IndexData data = draw_index(shape, 0, 1, 1);
  const Indexer indexer(device, data.problem);
  json report = {{"device", device.description()}, {"plan", plan_indexer(indexer, data)}};
  if (!args.plan.only) {
    const IndexOperands operands(device, data, indexer);
    sample_if_large(device, report["plan"], args.check ? "--check" : "");
    indexer.run(operands.arguments(0));
    operands.stream().synchronize();
    if (const json counts = take_counts(device); !counts.is_null()) report["counted"] = counts;
    if (args.check) {
      report["error"] = operands.check(args.check_tokens, 0);
      context.exit_status = report["error"]["ok"].get<bool>() ? 0 : 1;
    }
    std::vector<double> us;
    if (!device.is_simulated())
      for (int i = 0; i < args.runs; ++i)
        us.push_back(operands.time_us([&] { indexer.run(operands.arguments(0)); }));
    if (!us.empty()) report["time"] = time_summary(us);
  }
  context.json ? print_json(report) : print_indexer(report, context.style());
}

void add_drawn_index_options(CLI::App& command, IndexerArgs& args) {
  const auto count = [&](const char* name, std::int64_t& value, std::int64_t most,
                         const char* what) {
    command.add_option(name, value, what)
        ->check(quiet(CLI::Range(std::int64_t{1}, most)))
        ->capture_default_str()
        ->type_name("N");
  };
  constexpr std::int64_t kMany = 1 << 20;
  count("--batch", args.shape.batch, 65535, "sequences");
  count("--q-len", args.shape.q_len, 65535, "tokens of each");
  count("--heads", args.shape.heads, kMany, "1 to 64");
  count("--keys", args.shape.keys, kMany, "compressed entries of a sequence");
  count("--topk", args.shape.topk, kMany, "entries to select, 1 to 2048");
  count("--page", args.shape.key_page, kMany, "keys of a page");
  count("--row-page", args.shape.row_page, kMany, "rows of a page of attention's cache");
  command.add_option("--lengths", args.lengths, "keys that a token sees")
      ->check(quiet(CLI::IsMember({"full", "drawn", "causal"})))
      ->capture_default_str()
      ->type_name("full|drawn|causal");
  command.add_option("--format", args.format, "number format of queries and keys")
      ->check(quiet(CLI::IsMember({"fp8", "mxfp4"})))
      ->capture_default_str()
      ->type_name("fp8|mxfp4");
}

}  // namespace

void add_indexer(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "indexer", "DeepSeek-V4's lightning indexer: which compressed entries a token attends to");
  auto args = std::make_shared<IndexerArgs>();
  add_drawn_index_options(*command, *args);
  command->add_flag("--check", args->check, "compare with the float64 reference");
  command->add_option("--check-tokens", args->check_tokens, "tokens to compare")
      ->check(quiet(CLI::Range(1, 1 << 20)))
      ->capture_default_str()
      ->type_name("N");
  add_plan_options(*command, args->plan);
  add_runs_option(*command, args->runs);
  command->footer("For example:\n  tilewright indexer --heads 64 --format mxfp4 --q-len 3 --check");
  command->callback([args, &context] { run_indexer(*args, context); });
}

}  // namespace tilewright::cli
