#include "cli/generate/trace.h"

#include "base/error.h"
#include "model/float64/stage_check.h"
#include "model/float64/trace.h"
#include "model/text/generate.h"

#include <algorithm>
#include <cmath>
#include <map>
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
  const model::Sampler sampler({});
  while (sure < expected.size() && (sure >= margin.size() || margin[sure] > tolerance)) ++sure;
  for (; same < sure; ++same) {
    const std::int32_t token = sampler.draw(logits.row(0), static_cast<std::int64_t>(same));
    if (token != expected[same]) break;
    if (same + 1 == sure) continue;
    const std::vector<std::int32_t> next = {token};
    logits = runner.forward({&next, 1}, model::LogitRows::kLast);
  }
  return {{"same", same}, {"compared", sure}, {"tokens", expected.size()}};
}

// JSON has no infinity.
json finite(double x) {
  return std::isfinite(x) ? json(x) : json("infinite");
}

json to_json(const model::TraceResult& result, bool is_judged) {
  json entry = {{"stage", result.name},        {"elems", result.elems},
                {"rows", result.rows},         {"different_rows", result.different_rows},
                {"rms", result.reference_rms}, {"relative_rms", result.relative_rms},
                {"is_exact", result.is_exact}, {"is_met", result.is_met || !is_judged}};
  entry["max_difference"] = finite(result.max_difference);
  if (!result.first.empty()) entry["first"] = result.first;
  return entry;
}

// A stage against float64 from its own inputs.
json to_json(const model::StageVerdict& verdict) {
  json entry = {{"rows", verdict.rows},
                {"elems", verdict.elems},
                {"beyond_rows", verdict.beyond_rows},
                {"is_met", verdict.is_met()}};
  if (verdict.is_code) {
    entry["undecided"] = verdict.undecided;
    entry["different"] = verdict.different;
  } else {
    entry["of_bound"] = finite(verdict.worst);
    entry["max_difference"] = finite(verdict.max_difference);
  }
  if (!verdict.first.empty()) entry["first"] = verdict.first;
  return entry;
}

// What is wanted of bf16 arithmetic with FP8 rows and experts as they are stored: twice what the
// rounding of rows and of every projection costs by itself (1.7e-4 on a prompt of 700 tokens).
constexpr double kMostKl = 3e-4;

json compare_logits(const model::Trace& trace, const ModelArgs& args, const model::Logits& logits) {
  const model::Logits exact = trace.logits_of("exact", logits.rows());
  if (exact.rows() != logits.rows()) return nullptr;
  json report = {{"nats", model::mean_kl(exact, logits)}, {"rows", logits.rows()}};
  if ((args.kv == "fp8" || args.kv == "bf16") && args.experts == "stored") {
    report["most"] = kMostKl;
    report["is_met"] = report["nats"].get<double>() <= kMostKl;
  }
  return report;
}

std::vector<std::int32_t> traced_tokens(const TraceArgs& args, const model::Trace& trace) {
  std::vector<std::int32_t> ids = trace.input_ids();
  if (args.tokens > 0 && args.tokens < static_cast<std::int64_t>(ids.size()))
    ids.resize(static_cast<std::size_t>(args.tokens));
  return ids;
}

// All logits of a prompt that goes in in chunks.
model::Logits feed(model::Runner& runner, const std::vector<std::int32_t>& ids,
                   std::int64_t chunk_tokens) {
  model::Logits all;
  const auto chunk = static_cast<std::size_t>(chunk_tokens);
  for (std::size_t first = 0; first < ids.size(); first += chunk) {
    const std::size_t last = std::min(first + chunk, ids.size());
    const std::vector<std::int32_t> part(ids.begin() + static_cast<std::ptrdiff_t>(first),
                                         ids.begin() + static_cast<std::ptrdiff_t>(last));
    const model::Logits logits = runner.forward({&part, 1}, model::LogitRows::kAll);
    all.vocab = logits.vocab;
    all.values.insert(all.values.end(), logits.values.begin(), logits.values.end());
  }
  return all;
}

// What the stages are held to.
class StageJudge {
 public:
  StageJudge(const TraceArgs& args, const Run& run, const model::RunnerOptions& options,
             std::shared_ptr<const model::Weights> weights, bool is_reference)
      : trace_(args.file, run.prompt, run.mode,
               {args.tolerance.value_or(1e-4), args.relative.value_or(0)}),
        is_file_judge_(is_reference || args.tolerance || args.relative) {
    if (!is_reference) check_.emplace(std::move(weights), options, traced_tokens(args, trace_));
  }

  const model::Trace& trace() const { return trace_; }
  bool has_bounds() const { return check_.has_value(); }
  void receive(const model::Stage& stage) {
    trace_.receive(stage);
    if (check_) check_->receive(stage);
  }
  // A stage an entry, in the order in which they are made; "bound" is what the second judge says.
  json stages() const {
    json stages = json::array();
    std::map<std::string, std::size_t> places;
    if (check_) {
      for (const model::StageVerdict& verdict : check_->verdicts()) {
        places[verdict.name] = stages.size();
        stages.push_back({{"stage", verdict.name},
                          {"bound", to_json(verdict)},
                          {"rows", verdict.rows},
                          {"is_met", verdict.is_met()}});
        if (!verdict.first.empty()) stages.back()["first"] = verdict.first;
      }
    }
    for (const model::TraceResult& result : trace_.results()) {
      json entry = to_json(result, is_file_judge_);
      const auto place = places.find(result.name);
      if (place == places.end()) {
        stages.push_back(std::move(entry));
        continue;
      }
      json& both = stages[place->second];
      const bool is_met = both["is_met"].get<bool>() && entry["is_met"].get<bool>();
      const json first = both.value("first", entry.value("first", json("")));
      both.update(entry);
      both["is_met"] = is_met;
      both["first"] = first;
    }
    return stages;
  }

 private:
  model::Trace trace_;
  std::optional<model::StageCheck> check_;
  bool is_file_judge_;
};

json trace_run(const TraceArgs& args, const Run& run, const ModelArgs& model_args,
               StageJudge& judge, model::Runner& runner) {
  const auto ids = traced_tokens(args, judge.trace());
  runner.set_stage_sink([&](const model::Stage& stage) { judge.receive(stage); });
  runner.start(1);
  model::Logits logits = feed(runner, ids, model_args.prefill_chunk);
  runner.set_stage_sink({});
  json report = {{"run", run.prompt + "." + run.mode},
                 {"tokens", ids.size()},
                 {"has_bounds", judge.has_bounds()},
                 {"stages", judge.stages()}};
  std::int64_t met = 0;
  for (const json& stage : report["stages"]) {
    met += stage["is_met"].get<bool>();
    if (!stage["is_met"].get<bool>() && !report.contains("first"))
      report["first"] = {{"stage", stage["stage"]}, {"where", stage["first"]}};
  }
  report["met"] = met;
  report["missing"] = judge.trace().missing();
  if (judge.has_bounds())
    if (json kl = compare_logits(judge.trace(), model_args, logits); !kl.is_null())
      report["kl"] = std::move(kl);
  if (!judge.trace().continuation().empty() && ids.size() == judge.trace().input_ids().size()) {
    logits.values.erase(logits.values.begin(), logits.values.end() - logits.vocab);
    report["continuation"] = compare_continuation(judge.trace(), runner, std::move(logits),
                                                  args.tolerance.value_or(1e-4));
  }
  return report;
}

std::string number_text(const json& number) {
  if (number.is_null()) return "-";
  return number.is_string() ? number.get<std::string>()
                            : fmt::format("{:.3g}", number.get<double>());
}

std::string count_text(const json& count) {
  return count.is_null() ? "-" : std::to_string(count.get<std::int64_t>());
}

// Numbers: the largest difference in parts of the bound; codes and choices: how many are not what
// exact arithmetic gives, and how many may be.
std::string bound_text(const json& stage) {
  if (!stage.contains("bound")) return "-";
  const json& bound = stage["bound"];
  if (bound.contains("of_bound")) return number_text(bound["of_bound"]);
  return fmt::format("{} of {}", count_text(bound["different"]), count_text(bound["undecided"]));
}

void print_stages(const json& run, bool shows_all, const Style& style) {
  const bool has_bounds = run["has_bounds"].get<bool>();
  std::vector<std::string> head = {"stage", "rows"};
  if (has_bounds) head.insert(head.end(), {"of its bound", "rows beyond"});
  head.insert(head.end(), {has_bounds ? "from the file" : "max difference", "relative rms"});
  if (!has_bounds) head.push_back("rows beyond");
  Table table(head);
  for (const json& stage : run["stages"]) {
    if (!shows_all && stage["is_met"].get<bool>()) continue;
    std::vector<std::string> row = {stage["stage"].get<std::string>(), count_text(stage["rows"])};
    if (has_bounds) {
      const json bound = stage.value("bound", json::object());
      row.insert(row.end(), {bound_text(stage), count_text(bound.value("beyond_rows", json()))});
    }
    row.insert(row.end(), {number_text(stage.value("max_difference", json())),
                           number_text(stage.value("relative_rms", json()))});
    if (!has_bounds) row.push_back(count_text(stage["different_rows"]));
    table.add(row);
  }
  print(table.text(style));
}

void print_run(const json& run, const TraceArgs& args, const Style& style) {
  const std::size_t total = run["stages"].size();
  const bool is_met = run["met"].get<std::size_t>() == total;
  print(fmt::format("{}  {} of {} tensors {}\n", style.bold(run["run"].get<std::string>()),
                    is_met ? style.good(std::to_string(total)) : style.bad(run["met"].dump()),
                    total, run["has_bounds"].get<bool>() ? "within their bounds" : "met"));
  if (args.shows_all || !is_met) print_stages(run, args.shows_all, style);
  if (run.contains("first"))
    print(fmt::format("first difference: {}, {}\n",
                      style.bad(run["first"]["stage"].get<std::string>()),
                      run["first"]["where"].get<std::string>()));
  if (!run["missing"].empty()) print(fmt::format("not compared: {}\n", run["missing"].dump()));
  if (run.contains("kl")) {
    const json& kl = run["kl"];
    const std::string nats = fmt::format("{:.3g}", kl["nats"].get<double>());
    print(fmt::format("mean KL to the logits without rounding: {} nats a token{}\n",
                      kl.value("is_met", true) ? nats : style.bad(nats),
                      kl.contains("most")
                          ? fmt::format(", expected at most {:.3g}", kl["most"].get<double>())
                          : ""));
  }
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
  command
      .add_option("--tolerance", args.tolerance,
                  "--trace: largest difference of an element from the file; default: 1e-4 for the "
                  "float64 model, and for kernels what their arithmetic may lose at each stage")
      ->type_name("X");
  command
      .add_option("--relative", args.relative,
                  "--trace: or rms of the differences by rms of the stage")
      ->type_name("X");
  command
      .add_option("--trace-tokens", args.tokens,
                  "--trace: the first tokens of each prompt alone; for a simulator")
      ->check(not_negative())
      ->type_name("N");
  command.add_flag("--all-stages", args.shows_all, "--trace: show stages that agree, too");
}

void run_trace(const TraceArgs& args, const ModelArgs& model, Context& context) {
  const auto runs = find_runs(args, model);
  const auto weights = open_weights(model);
  const auto runner =
      make_runner(context.device, weights, runner_options(model, longest_prompt(args, runs)));
  json report = {{"runner", runner->description()}, {"runs", json::array()}};
  if (!context.json) print(runner->description() + "\n");
  for (const Run& run : runs) {
    StageJudge judge(args, run, runner_options(model, 0), weights, is_reference(context.device));
    json result = trace_run(args, run, model, judge, *runner);
    const bool is_close = !result.contains("kl") || result["kl"].value("is_met", true);
    if (!is_close || result["met"].get<std::size_t>() != result["stages"].size())
      context.exit_status = 1;
    if (!context.json) print_run(result, args, context.style());
    report["runs"].push_back(std::move(result));
  }
  if (context.json) print_json(report);
}

}  // namespace tilewright::cli
