// tilewright eval: how well a model predicts a text, in bits per byte.
#include "base/error.h"
#include "base/file.h"
#include "base/progress.h"
#include "cli/generate/ranks.h"
#include "cli/tool/kernel_times.h"
#include "cli/tool/model_options.h"
#include "cli/tool/time_sample.h"
#include "model/text/generate.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

struct EvalArgs {
  ModelArgs model;
  RankArgs ranks;
  std::string file;
  std::int64_t chunks = 0, chunk_tokens = 1024, first_chunk = 0, batch = 1;
  bool has_kl = false;
};

struct Texts {
  std::vector<std::vector<std::int32_t>>
      chunks;  // one token more than is read: what to predict last
  std::int64_t in_file = 0;
};

// Chunk i reads the tokens n i .. n i + n - 1 and predicts n i + 1 .. n i + n.
Texts read_texts(const EvalArgs& args, const Tokenizer& tokenizer) {
  const MappedFile file(args.file);
  const std::vector<std::int32_t> tokens = tokenizer.encode(file.text());
  Texts texts;
  texts.in_file = (static_cast<std::int64_t>(tokens.size()) - 1) / args.chunk_tokens;
  require(args.first_chunk < texts.in_file, ErrorKind::kInvalidArgument,
          "eval: {} has {} tokens, {} whole chunks of {} and a token to predict; expected more "
          "than {}. Take a longer text, or a smaller --chunk",
          args.file, tokens.size(), texts.in_file, args.chunk_tokens, args.first_chunk);
  std::int64_t count = texts.in_file - args.first_chunk;
  if (args.chunks > 0) count = std::min(count, args.chunks);
  for (std::int64_t i = args.first_chunk; i < args.first_chunk + count; ++i) {
    const auto first = tokens.begin() + i * args.chunk_tokens;
    texts.chunks.emplace_back(first, first + args.chunk_tokens + 1);
  }
  return texts;
}

// The same weights as they are stored, nothing rounded.
std::unique_ptr<model::Runner> make_base(const EvalArgs& args) {
  ModelArgs base = args.model;
  base.kv = "exact";
  base.experts = "stored";
  return make_runner("reference", open_weights(base), runner_options(base, args.chunk_tokens + 1));
}

// Of the tokens that are predicted.
std::size_t num_bytes(const Tokenizer& tokenizer, std::span<const std::int32_t> chunk) {
  std::size_t bytes = 0;
  for (const std::int32_t token : chunk.subspan(1)) bytes += tokenizer.token_bytes(token).size();
  return bytes;
}

json score(const EvalArgs& args, const Texts& texts, const Tokenizer& tokenizer,
           model::Runner& runner, model::Runner* base) {
  json chunks = json::array();
  const auto count = static_cast<std::int64_t>(texts.chunks.size());
  Progress progress(stderr, "eval", count, "chunks");
  for (std::int64_t first = 0; first < count; first += args.batch) {
    const std::int64_t last = std::min(first + args.batch, count);
    const auto part =
        std::span(texts.chunks)
            .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
    const auto logits = model::text_logits(runner, part, args.model.prefill_chunk);
    std::vector<model::Logits> base_logits;
    if (base != nullptr) base_logits = model::text_logits(*base, part, args.model.prefill_chunk);
    for (std::size_t i = 0; i < part.size(); ++i) {
      const auto result =
          model::score_text(logits[i], part[i], base != nullptr ? &base_logits[i] : nullptr);
      const std::size_t bytes = num_bytes(tokenizer, part[i]);
      json entry = {{"chunk", args.first_chunk + first + static_cast<std::int64_t>(i)},
                    {"tokens", result.tokens},
                    {"bytes", bytes},
                    {"bits_per_byte", result.bits_per_token * static_cast<double>(result.tokens) /
                                          static_cast<double>(bytes)}};
      if (base != nullptr) entry["kl_nats"] = result.kl_nats;
      if (base != nullptr) entry["same_best"] = result.same_best;
      chunks.push_back(std::move(entry));
      progress.add(1);
    }
  }
  return chunks;
}

// Over all chunks; `unit`: what the numbers are means over, "tokens" or "bytes".
double mean(const json& chunks, const char* key, const char* unit) {
  double sum = 0, count = 0;
  for (const json& chunk : chunks) {
    sum += chunk[key].get<double>() * chunk[unit].get<double>();
    count += chunk[unit].get<double>();
  }
  return count > 0 ? sum / count : 0;
}

void print_scores(const json& report, const Style& style) {
  const bool has_kl = report.contains("kl_nats");
  std::vector<std::string> header = {"chunk", "bits per byte"};
  if (has_kl) header.insert(header.end(), {"KL (nats)", "same best token"});
  Table table(header);
  const auto row = [&](std::string name, const json& entry) {
    std::vector<std::string> cells = {std::move(name),
                                      fmt::format("{:.6f}", entry["bits_per_byte"].get<double>())};
    if (has_kl) {
      cells.push_back(fmt::format("{:.3e}", entry["kl_nats"].get<double>()));
      cells.push_back(fmt::format("{:.2f} %", 100 * entry["same_best"].get<double>()));
    }
    table.add(std::move(cells));
  };
  for (const json& chunk : report["chunks"]) row(std::to_string(chunk["chunk"].get<int>()), chunk);
  row("mean", report);
  print(table.text(style));
  print(fmt::format("{} of {} chunks of {}; {} in {:.1f} s\n", report["chunks"].size(),
                    report["chunks_in_file"].get<std::int64_t>(), report["file"].get<std::string>(),
                    report["runner"].get<std::string>(), report["seconds"].get<double>()));
  print(kernel_times_text(report));
}

void run_eval(const EvalArgs& args, Context& context) {
  refuse_time_sample("eval needs the results of all CTAs");
  const auto start = std::chrono::steady_clock::now();
  require(!args.has_kl || (args.ranks.gpus <= 1 && args.ranks.parallel.empty()),
          ErrorKind::kInvalidArgument,
          "--kl: the float64 model takes longer than ranks wait for each other; leave out --gpus "
          "and --parallel, or --kl");
  if (!begin_ranks(args.ranks, context)) return;
  KernelTimes times;
  const Tokenizer tokenizer = open_tokenizer(args.model, model_config(args.model));
  const Texts texts = read_texts(args, tokenizer);
  const auto runner =
      make_rank_runner(args.ranks, args.model, context,
                       runner_options(args.model, args.chunk_tokens + 1), args.batch);
  const auto base = args.has_kl ? make_base(args) : nullptr;
  json report = {{"model", args.model.folder},
                 {"file", args.file},
                 {"kv", args.model.kv},
                 {"index", args.model.index},
                 {"experts", open_weights(args.model)->expert_format()},
                 {"runner", runner->description()},
                 {"chunks_in_file", texts.in_file}};
  if (!are_processes(args.ranks)) times.begin(simulated_device(context.device), args.ranks.gpus);
  report["chunks"] = score(args, texts, tokenizer, *runner, base.get());
  times.add_to(report);
  report["bits_per_byte"] = mean(report["chunks"], "bits_per_byte", "bytes");
  if (base) report["kl_nats"] = mean(report["chunks"], "kl_nats", "tokens");
  if (base) report["same_best"] = mean(report["chunks"], "same_best", "tokens");
  report["seconds"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  context.json ? print_json(report) : print_scores(report, context.style());
}

}  // namespace

void add_eval(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("eval", "bits per byte of a model on a text");
  auto args = std::make_shared<EvalArgs>();
  command->add_option("file", args->file, "text; chunk i reads n tokens and predicts one further")
      ->required()
      ->type_name("FILE");
  add_model_options(*command, args->model);
  add_rank_options(*command, args->ranks);
  command->add_option("--chunks", args->chunks, "how many, from the first on; default: all")
      ->check(positive())
      ->type_name("N");
  command->add_option("--first-chunk", args->first_chunk, "number of the first")
      ->check(not_negative())
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--chunk", args->chunk_tokens, "tokens of a chunk, each a fresh context")
      ->check(positive())
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--batch", args->batch, "chunks that run together")
      ->check(positive())
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--kl", args->has_kl,
                    "also the divergence from the float64 model of the stored weights");
  command->footer(
      "For example:\n"
      "  tilewright eval heldout.txt --chunks 16 --device reference --kv exact\n"
      "  tilewright eval heldout.txt --model V4/ --experts nvfp4 --kv nvfp4 --kl\n"
      "  tilewright eval heldout.txt --model V4/ --gpus 2 --parallel expert --batch 8");
  command->callback([args, &context] { run_eval(*args, context); });
}

}  // namespace tilewright::cli
