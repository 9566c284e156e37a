#include "cli/generate_trace.h"

#include "base/error.h"
#include "model/generate.h"
#include "model/trace.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

struct Run {
  std::string prompt, mode;
};

// "p200.quant" in two; without --trace-run those of the mode that --kv stands for.
std::vector<Run> find_runs(const TraceArgs& args, const ModelArgs& model) {
  const std::string mode = model.kv == "exact" ? "exact" : "quant";
  std::vector<Run> runs;
  for (const std::string& name : args.runs.empty() ? model::trace_runs(args.file) : args.runs) {
    const std::size_t dot = name.find('.');
    require(dot != name.npos, ErrorKind::kInvalidArgument,
            "generate: --trace-run {}; expected PROMPT.MODE, like p200.quant", name);
    const Run run = {name.substr(0, dot), name.substr(dot + 1)};
    if (!args.runs.empty() || run.mode == mode) runs.push_back(run);
  }
  require(!runs.empty(), ErrorKind::kInvalidArgument,
          "generate: {} has no run of mode {}, which belongs to --kv {}; name one with --trace-run",
          args.file, mode, model.kv);
  return runs;
}

// Greedy, up to the first step at which the reference itself was not sure.
json compare_continuation(const model::Trace& trace, model::Runner& runner, model::Logits logits,
                          double tolerance) {
  const auto& expected = trace.continuation();
  const auto& margin = trace.continuation_margin();
  std::size_t same = 0, sure = 0;
  model::Sampler sampler({});
  while (sure < expected.size() && (sure >= margin.size() || margin[sure] > tolerance)) ++sure;
  for (; same < sure; ++same) {
    const std::int32_t token = sampler.next(logits.row(0));
    if (token != expected[same]) break;
    if (same + 1 == sure) continue;
    const std::vector<std::int32_t> next = {token};
    logits = runner.forward({&next, 1}, model::LogitRows::kLast);
  }
  return {{"same", same}, {"compared", sure}, {"tokens", expected.size()}};
}

json to_json(const model::TraceResult& result) {
  json entry = {{"stage", result.name},        {"elems", result.elems},
                {"rows", result.rows},         {"different_rows", result.different_rows},
                {"rms", result.reference_rms}, {"relative_rms", result.relative_rms},
                {"is_exact", result.is_exact}, {"is_met", result.is_met}};
  // JSON has no infinity.
  entry["max_difference"] =
      std::isfinite(result.max_difference) ? json(result.max_difference) : json("infinite");
  if (!result.first.empty()) entry["first"] = result.first;
  return entry;
}

json trace_run(const TraceArgs& args, const Run& run, const ModelArgs& model_args,
               model::Runner& runner) {
  model::Trace trace(args.file, run.prompt, run.mode, {args.tolerance, args.relative});
  runner.set_stage_sink([&](const model::Stage& stage) { trace.receive(stage); });
  runner.start(1);
  const auto& ids = trace.input_ids();
  model::Logits logits;
  const auto chunk = static_cast<std::size_t>(model_args.prefill_chunk);
  for (std::size_t first = 0; first < ids.size(); first += chunk) {
    const std::size_t last = std::min(first + chunk, ids.size());
    const std::vector<std::int32_t> part(ids.begin() + static_cast<std::ptrdiff_t>(first),
                                         ids.begin() + static_cast<std::ptrdiff_t>(last));
    logits = runner.forward({&part, 1}, model::LogitRows::kLast);
  }
  runner.set_stage_sink({});
  json report = {{"run", run.prompt + "." + run.mode}, {"stages", json::array()}};
  std::int64_t met = 0;
  for (const model::TraceResult& result : trace.results()) {
    met += result.is_met;
    if (!result.is_met && !report.contains("first"))
      report["first"] = {{"stage", result.name}, {"where", result.first}};
    report["stages"].push_back(to_json(result));
  }
  report["met"] = met;
  report["missing"] = trace.missing();
  if (!trace.continuation().empty())
    report["continuation"] = compare_continuation(trace, runner, std::move(logits), args.tolerance);
  return report;
}

void print_run(const json& run, const TraceArgs& args, const Style& style) {
  Table table({"stage", "rows", "max difference", "relative rms", "rows beyond"});
  for (const json& stage : run["stages"]) {
    if (!args.shows_all && stage["is_met"].get<bool>()) continue;
    const json& most = stage["max_difference"];
    table.add(
        {stage["stage"].get<std::string>(), std::to_string(stage["rows"].get<std::int64_t>()),
         most.is_string() ? most.get<std::string>() : fmt::format("{:.3g}", most.get<double>()),
         fmt::format("{:.3g}", stage["relative_rms"].get<double>()),
         std::to_string(stage["different_rows"].get<std::int64_t>())});
  }
  const std::size_t total = run["stages"].size();
  const bool is_met = run["met"].get<std::size_t>() == total;
  print(fmt::format("{}  {} of {} tensors met\n", style.bold(run["run"].get<std::string>()),
                    is_met ? style.good(std::to_string(total)) : style.bad(run["met"].dump()),
                    total));
  if (args.shows_all || !is_met) print(table.text(style));
  if (run.contains("first"))
    print(fmt::format("first difference: {}, {}\n",
                      style.bad(run["first"]["stage"].get<std::string>()),
                      run["first"]["where"].get<std::string>()));
  if (!run["missing"].empty()) print(fmt::format("not compared: {}\n", run["missing"].dump()));
  if (run.contains("continuation"))
    print(fmt::format("continuation: {} of {} bytes the same{}\n",
                      run["continuation"]["same"].dump(), run["continuation"]["compared"].dump(),
                      run["continuation"]["compared"] == run["continuation"]["tokens"]
                          ? ""
                          : "; from there on the reference is closer than the tolerance"));
}

std::int64_t longest_prompt(const TraceArgs& args, const std::vector<Run>& runs) {
  std::int64_t longest = 0;
  for (const Run& run : runs) {
    const model::Trace trace(args.file, run.prompt, run.mode);
    longest = std::max(
        longest, static_cast<std::int64_t>(trace.input_ids().size() + trace.continuation().size()));
  }
  return longest;
}

}  // namespace

void add_trace_options(CLI::App& command, TraceArgs& args) {
  command
      .add_option("--trace", args.file,
                  "compare every stage with this reference file instead of writing text")
      ->type_name("FILE");
  command
      .add_option("--trace-run", args.runs,
                  "PROMPT.MODE of the file; default: all of the mode exact (--kv exact) or quant")
      ->type_name("RUN")
      ->allow_extra_args(false);
  command.add_option("--tolerance", args.tolerance, "--trace: largest difference of an element")
      ->type_name("X")
      ->capture_default_str();
  command
      .add_option("--relative", args.relative,
                  "--trace: or rms of the differences by rms of the stage, for kernels")
      ->type_name("X");
  command.add_flag("--all-stages", args.shows_all, "--trace: show what is met, too");
}

void run_trace(const TraceArgs& args, const ModelArgs& model, Context& context) {
  const auto runs = find_runs(args, model);
  const auto weights = open_weights(model);
  const auto runner =
      make_runner(context.device, weights, runner_options(model, longest_prompt(args, runs)));
  json report = {{"runner", runner->description()}, {"runs", json::array()}};
  if (!context.json) print(runner->description() + "\n");
  for (const Run& run : runs) {
    json result = trace_run(args, run, model, *runner);
    if (result["met"].get<std::size_t>() != result["stages"].size()) context.exit_status = 1;
    if (!context.json) print_run(result, args, context.style());
    report["runs"].push_back(std::move(result));
  }
  if (context.json) print_json(report);
}

}  // namespace tilewright::cli
