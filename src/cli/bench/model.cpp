// tilewright bench model: steps of a whole model, on one rank or several.
#include "bench/model.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/bench/sweep_command.h"
#include "cli/generate/ranks.h"
#include "cli/tool/model_options.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

struct BenchModelArgs {
  ModelArgs model;
  RankArgs ranks;
  std::vector<std::int64_t> batches, contexts;
  std::int64_t prompt = -1;  // -1: the longest context
  ServeSweep serve;
  SweepArgs sweep;
  std::string plot;
};

ModelSweep to_model_sweep(const BenchModelArgs& args) {
  ModelSweep sweep;
  sweep.name = args.model.synthetic.empty()
                   ? std::filesystem::path(args.model.folder).filename().string()
                   : "synthetic " + args.model.synthetic;
  sweep.batches = args.batches;
  sweep.contexts = args.contexts;
  if (sweep.batches.empty()) sweep.batches = {1};
  if (sweep.contexts.empty()) sweep.contexts = {1024};
  const std::int64_t longest = *std::ranges::max_element(sweep.contexts);
  sweep.prompt = args.prompt < 0 ? longest : args.prompt;
  sweep.chunk = args.model.prefill_chunk;
  sweep.samples = args.sweep.samples;
  sweep.serve = args.serve;
  sweep.options = runner_options(args.model, std::max(longest, sweep.prompt));
  if (args.serve.sequences > 0) {
    sweep.options.max_tokens = args.serve.input + args.serve.output;
    sweep.options.step_tokens = std::min(args.model.prefill_chunk, model::kMostStepTokens);
  }
  sweep.options.on_load = load_report(model_config(args.model).num_layers());
  return sweep;
}

struct Room {
  std::int64_t sequences;
  model::RunnerOptions options;
};

// What takes least of what is timed: without memory for that nothing is. Of what takes more the log
// says that there is none.
Room least_room(const ModelSweep& sweep) {
  if (sweep.serve.sequences > 0) return {sweep.serve.sequences, sweep.options};
  Room room = {*std::ranges::min_element(sweep.batches), sweep.options};
  room.options.max_tokens = *std::ranges::max_element(sweep.contexts);
  if (sweep.prompt > 0 && sweep.prompt < room.sequences * room.options.max_tokens) {
    room.sequences = 1;
    room.options.max_tokens = sweep.prompt;
  }
  return room;
}

std::string model_command_line(const BenchModelArgs& args) {
  std::string text = "tilewright bench model";
  if (!args.model.synthetic.empty()) text += " --synthetic-weights " + args.model.synthetic;
  if (args.model.layers > 0) text += fmt::format(" --layers {}", args.model.layers);
  if (args.ranks.gpus > 0) text += fmt::format(" --gpus {}", args.ranks.gpus);
  if (!args.ranks.parallel.empty()) text += " --parallel " + args.ranks.parallel;
  text += repeated_option("--batch", args.batches) + repeated_option("--context", args.contexts);
  if (args.serve.sequences > 0)
    return text + fmt::format(
                      " --serve {} --input {} --output {} --requests {} --kv {} --index {} "
                      "--prefill-chunk {}",
                      args.serve.sequences, args.serve.input, args.serve.output,
                      args.serve.requests, args.model.kv, args.model.index,
                      args.model.prefill_chunk);
  if (args.prompt >= 0) text += fmt::format(" --prompt {}", args.prompt);
  return text + fmt::format(" --kv {} --index {} --prefill-chunk {} --samples {}", args.model.kv,
                            args.model.index, args.model.prefill_chunk, args.sweep.samples);
}

void write_model_log(const nlohmann::json& log, const BenchModelArgs& args, Context& context) {
  const std::filesystem::path folder = args.sweep.out, path = folder / "model.json";
  write_json(path, log);
  write_file(folder / "model.html", model_report({log}));
  context.exit_status = is_model_log_correct(log) ? 0 : 1;
  if (context.json) return print_json(log);
  print(model_table(log, context.style()));
  print(fmt::format("log and page: {}\n", path.string()));
}

// Tables and one page of several logs.
void write_model_logs(const std::vector<nlohmann::json>& logs, const BenchModelArgs& args,
                      Context& context) {
  const std::filesystem::path page = std::filesystem::path(args.sweep.out) / "model.html";
  write_file(page, model_report(logs));
  const bool is_correct = std::ranges::all_of(logs, is_model_log_correct);
  context.exit_status = is_correct ? 0 : 1;
  if (context.json) return print_json(logs);
  for (const nlohmann::json& log : logs) print(model_table(log, context.style()) + "\n");
  print(fmt::format("page: {}\n", page.string()));
}

void report_logs(const BenchModelArgs& args, Context& context) {
  std::vector<nlohmann::json> logs;
  for (const std::string& path : args.sweep.from) logs.push_back(read_sweep_log(path, "model"));
  if (!args.plot.empty()) {
    const std::string image = model_image(logs);
    require(!image.empty(), ErrorKind::kInvalidArgument,
            "--plot {}: no log has times of decode steps; expected one of a run on a GPU",
            args.plot);
    write_file(args.plot, image);
  }
  if (logs.size() > 1) return write_model_logs(logs, args, context);
  write_model_log(logs[0], args, context);
}

void run_bench_model(const BenchModelArgs& args, Context& context) {
  open_out(args.sweep.out);
  if (!args.sweep.from.empty()) return report_logs(args, context);
  const ModelSweep sweep = to_model_sweep(args);
  require(sweep.options.kv.has_value(), ErrorKind::kInvalidArgument,
          "--kv exact: is for the float64 model, which has no times; expected bf16, fp8 or nvfp4");
  if (!begin_ranks(args.ranks, context)) return;
  const auto [sequences, room] = least_room(sweep);
  const bool has_runner = sweep.serve.sequences > 0;
  run_ranks(args.ranks, args.model, context, room, sequences, has_runner, [&](OpenRank rank) {
    const bool is_first = rank.comm == nullptr || rank.comm->rank() == 0;
    const auto log = run_model_sweep(rank.device, std::move(rank.weights), rank.comm, sweep,
                                     model_command_line(args));
    if (is_first) write_model_log(log, args, context);
  });
}

}  // namespace

void add_bench_model(CLI::App& bench, Context& context) {
  CLI::App* command =
      bench.add_subcommand("model",
                           "prompts and decode steps of a whole model, by batch, context "
                           "and ranks");
  auto args = std::make_shared<BenchModelArgs>();
  args->model.prefill_chunk = 2048;
  add_model_options(*command, args->model);
  add_rank_options(*command, args->ranks);
  command
      ->add_option("--batch", args->batches,
                   "sequences of each rank (--parallel tensor: of all); default 1")
      ->check(quiet(CLI::Range(1, 65536)))
      ->type_name("N");
  command->add_option("--context", args->contexts, "tokens of each sequence; default 1024")
      ->check(quiet(CLI::Range(1, 1 << 20)))
      ->type_name("N");
  command
      ->add_option("--prompt", args->prompt,
                   "tokens of the prompt that is timed, one a rank; 0: none; default: the longest "
                   "context")
      ->check(quiet(CLI::Range(0, 1 << 20)))
      ->type_name("N");
  command
      ->add_option("--serve", args->serve.sequences,
                   "instead of single steps: so many sequences of each rank (--parallel tensor: of "
                   "all) in a steady state, where each request that ends is followed by another")
      ->check(quiet(CLI::Range(1, 65536)))
      ->excludes("--batch", "--context", "--prompt")
      ->type_name("N");
  const auto add_size = [&](const char* name, std::int64_t& to, const char* help) {
    command->add_option(name, to, help)
        ->check(quiet(CLI::Range(1, 1 << 20)))
        ->needs("--serve")
        ->type_name("N")
        ->capture_default_str();
  };
  add_size("--input", args->serve.input, "--serve: tokens of a prompt");
  add_size("--output", args->serve.output, "--serve: tokens of an answer");
  add_size("--requests", args->serve.requests,
           "--serve: requests of each rank that end while it is timed");
  constexpr int kMostLogs = 32;
  add_sweep_options(*command, args->sweep, "model", kMostLogs);
  command
      ->add_option("--plot", args->plot,
                   "--from: decode steps of all logs in one picture, a line for each number of "
                   "ranks and of layers; of a point that several logs have, the last one's")
      ->needs("--from")
      ->type_name("SVG");
  command->footer(
      "For example:\n"
      "  tilewright bench model --synthetic-weights flash --layers 22 --batch 1 --batch 64\n"
      "  tilewright bench model --synthetic-weights flash --gpus 2 --parallel tensor "
      "--context 1024 --context 8192\n"
      "  tilewright bench model --synthetic-weights flash --gpus 2 --parallel expert --batch 64 "
      "--context 8192\n"
      "  tilewright bench model --from one.json --from two.json --plot steps.svg");
  command->callback([args, &context] { run_bench_model(*args, context); });
}

}  // namespace tilewright::cli
