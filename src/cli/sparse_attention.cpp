// tilewright sparse-attention: DeepSeek-V4's or V3.2's attention on tensors of a file, or drawn.
#include "tilewright/cache.h"

#include "base/error.h"
#include "cli/tool/command.h"
#include "cli/tool/plan_options.h"
#include "cli/tool/time_sample.h"
#include "cli/tool/words.h"
#include "report/operator_report.h"
#include "verify/device_facts.h"
#include "verify/sparse_device.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

struct SparseArgs {
  std::string input, format = "fp8", kernel = "auto", lengths = "full";
  SparseShape shape = {.name = "drawn",
                       .heads = 8,
                       .q_len = 1,
                       .window = 128,
                       .window_page = 64,
                       .compressed = 64,
                       .compressed_page = 64,
                       .invalid = 0.05};
  std::int64_t batch = 2, page_size = 64, check_queries = 8;
  std::optional<double> scale;
  bool check = false;
  PlanArgs plan;
  int runs = 20;
};

SparseData make_sparse_data(const SparseArgs& args) {
  const NumberFormat format = *number_format_from_string(args.format);
  SparseData data;
  if (!args.input.empty()) {
    data = load_sparse(args.input, format, args.page_size);
  } else {
    SparseShape shape = args.shape;
    shape.lengths = args.lengths == "per_batch"   ? SparseLengths::kPerBatch
                    : args.lengths == "per_query" ? SparseLengths::kPerQuery
                                                  : SparseLengths::kFull;
    data = draw_sparse(shape, format, args.batch, 1, 1);
  }
  if (args.scale || !args.input.empty()) data.problem.scale.reset();
  if (args.scale) data.problem.scale = args.scale;
  data.problem.kernel = args.kernel;
  return data;
}

void print_sparse(const json& report, const Style& style) {
  print_operator_report(report, style);
  if (!report.contains("error")) return;
  const json& e = report["error"];
  print(fmt::format(
      "check      {}: difference {:.2g} (at most 5e-6), out off by {:.2g} at most, lse by {:.2g}, "
      "against {}\n",
      verdict_text(e, style), e["difference"].get<double>(), e["max_out_error"].get<double>(),
      e["max_lse_error"].get<double>(), e["reference"].get<std::string>()));
}

json measure_sparse(const SparseAttention& attention, const SparseOperands& operands, int runs) {
  std::vector<double> samples;
  for (int i = 0; i < runs; ++i)
    samples.push_back(operands.time_us([&] { attention.run(operands.arguments(0)); }));
  return time_summary(samples);
}

void run_sparse(const SparseArgs& args, Context& context) {
  request_counts();
  const Device device = Device::open(context.device);
  const SparseData data = make_sparse_data(args);
  json report = {{"device", device.description()}};
  if (args.plan.only) {
    report["plan"] = plan_json(plan_sparse_attention(device, data.problem), args.plan, context);
    return context.json ? print_json(report) : print_sparse(report, context.style());
  }
  const SparseAttention attention(device, data.problem);
  report["plan"] = plan_json(attention.plan(), args.plan, context);
  SparseOperands operands(device, data);
  operands.prepare(attention.plan());
  sample_if_large(device, report["plan"], args.check ? "--check" : "");
  attention.run(operands.arguments(0));
  operands.stream().synchronize();
  if (const json counts = take_counts(device); !counts.is_null()) report["counted"] = counts;
  if (args.check) {
    report["error"] = operands.check(args.check_queries, 0);
    context.exit_status = report["error"]["ok"].get<bool>() ? 0 : 1;
  }
  if (!device.is_simulated() && args.runs > 0)
    report["time"] = measure_sparse(attention, operands, args.runs);
  context.json ? print_json(report) : print_sparse(report, context.style());
}

void add_drawn_sparse_options(CLI::App& command, SparseArgs& args) {
  const auto count = [&](const char* name, std::int64_t& value, std::int64_t least,
                         const char* what) {
    command.add_option(name, value, what)
        ->check(quiet(CLI::Range(least, std::int64_t{1} << 20)))
        ->capture_default_str()
        ->type_name("N");
  };
  count("--batch", args.batch, 0, "sequences, without --input");
  count("--q-len", args.shape.q_len, 1, "queries of each");
  count("--heads", args.shape.heads, 1, "1 to 128");
  command
      .add_option(
          "--head-dim", args.shape.head_dim,
          "numbers of a drawn row: 512, DeepSeek-V4's, or 576, V3's, whose values are the first "
          "512; bf16 or fp8")
      ->check(quiet(CLI::IsMember({kKvDims, kKvMlaDims})))
      ->capture_default_str()
      ->type_name("512|576");
  count("--window", args.shape.window, 0, "entries of the first list; 0: none");
  count("--compressed", args.shape.compressed, 0, "entries of the second list; 0: none");
  count("--window-page", args.shape.window_page, 1, "rows of a page of the first cache");
  count("--compressed-page", args.shape.compressed_page, 1, "rows of a page of the second cache");
  command
      .add_option("--lengths", args.lengths,
                  "valid entries of a list: all, or drawn for each sequence or query")
      ->check(one_of({"full", "per_batch", "per_query"},
                     {{"batch", "per_batch"}, {"query", "per_query"}}))
      ->capture_default_str()
      ->type_name("full|per_batch|per_query");
  command.add_option("--invalid", args.shape.invalid, "share of entries that name no row")
      ->check(quiet(CLI::Range(0.0, 1.0)))
      ->capture_default_str()
      ->type_name("X");
}

}  // namespace

void add_sparse_attention(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "sparse-attention", "DeepSeek-V4's and V3.2's attention over chosen rows of paged caches");
  auto args = std::make_shared<SparseArgs>();
  command
      ->add_option("--input", args->input,
                   "a safetensors file with q, window.rows, window.indices and, optionally, "
                   "window.lengths, compressed.*, sink; default: drawn ones")
      ->check(quiet(CLI::ExistingFile))
      ->type_name("FILE");
  add_drawn_sparse_options(*command, *args);
  command->add_option("--format", args->format, "number format of the caches")
      ->check(quiet(CLI::IsMember({"fp8", "nvfp4", "bf16"})))
      ->capture_default_str()
      ->type_name("fp8|nvfp4|bf16");
  command->add_option("--page", args->page_size, "rows of a page, with --input")
      ->check(quiet(CLI::Range(1, 1 << 20)))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--scale", args->scale, "default head_dim^-0.5; of drawn ones head_dim^-0.55")
      ->type_name("X");
  command->add_option("--kernel", args->kernel, "auto, or one that --plan lists")
      ->capture_default_str()
      ->type_name("NAME");
  command->add_flag("--check", args->check, "compare with the float64 reference");
  command->add_option("--check-queries", args->check_queries, "queries to compare")
      ->check(quiet(CLI::Range(1, 1 << 20)))
      ->capture_default_str()
      ->type_name("N");
  add_plan_options(*command, args->plan);
  add_runs_option(*command, args->runs);
  command->footer("For example:\n  tilewright sparse-attention --heads 64 --format nvfp4 --check");
  command->callback([args, &context] { run_sparse(*args, context); });
}

}  // namespace tilewright::cli
