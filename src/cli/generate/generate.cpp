// tilewright generate: prompts to text.
#include "model/text/generate.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/generate/ranks.h"
#include "cli/generate/trace.h"
#include "cli/tool/kernel_times.h"
#include "cli/tool/model_options.h"
#include "cli/tool/terminal_text.h"
#include "cli/tool/time_sample.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

struct GenerateArgs {
  ModelArgs model;
  RankArgs ranks;
  std::vector<std::string> prompts, prompt_files;
  std::string list_file;
  std::string chat, system;
  std::int64_t cache_tokens = 0, step_tokens = 256;
  model::GenerateOptions options;
  TraceArgs trace;
  bool is_quiet = false, ignores_end = false;
};

struct Prompt {
  std::string name;
  std::vector<std::int32_t> tokens;
  std::string text;
};

// A prompt as it is shown: what a terminal can take.
std::string shown(const Tokenizer& tokenizer, const std::vector<std::int32_t>& tokens) {
  return for_terminal(tokenizer.decode(tokens));
}

std::vector<std::int32_t> prompt_tokens(const GenerateArgs& args, const Tokenizer& tokenizer,
                                        std::string_view text) {
  if (args.chat.empty()) return tokenizer.encode(text);
  std::vector<ChatMessage> messages;
  if (!args.system.empty()) messages.push_back({ChatRole::kSystem, args.system, {}});
  messages.push_back({ChatRole::kUser, std::string(text), {}});
  return tokenizer.chat(messages, chat_mode(args.chat));
}

// The prompts of --prompts: an array of texts, or the lines of a file.
std::vector<std::string> listed_prompts(const std::string& path) {
  std::vector<std::string> texts;
  if (path.ends_with(".json")) {
    const json list = read_json(path);
    const bool is_list = list.is_array() && std::ranges::all_of(list, [](const json& text) {
                           return text.is_string();
                         });
    require(is_list, ErrorKind::kParseError,
            "{}: expected a JSON array of texts, such as [\"first\", \"second\"]", path);
    for (const json& text : list) texts.push_back(text.get<std::string>());
    return texts;
  }
  const MappedFile file(path);
  std::istringstream lines{std::string(file.text())};
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) texts.push_back(line);
  }
  return texts;
}

std::vector<Prompt> read_prompts(const GenerateArgs& args, const Tokenizer& tokenizer) {
  std::vector<Prompt> prompts;
  for (const std::string& text : args.prompts)
    prompts.push_back(
        {fmt::format("prompt {}", prompts.size() + 1), prompt_tokens(args, tokenizer, text), {}});
  for (const std::string& path : args.prompt_files) {
    const MappedFile file(path);
    prompts.push_back({path, prompt_tokens(args, tokenizer, file.text()), {}});
  }
  if (!args.list_file.empty())
    for (const std::string& text : listed_prompts(args.list_file))
      prompts.push_back(
          {fmt::format("prompt {}", prompts.size() + 1), prompt_tokens(args, tokenizer, text), {}});
  require(!prompts.empty(), ErrorKind::kInvalidArgument,
          "generate: no prompt; expected --prompt TEXT or --prompt-file FILE, each as often as you "
          "like, or --prompts FILE");
  for (Prompt& prompt : prompts) prompt.text = shown(tokenizer, prompt.tokens);
  return prompts;
}

// What the model wrote, without the token that says that it has ended.
std::vector<std::int32_t> written(const model::GenerateResult& result, std::size_t sequence) {
  std::vector<std::int32_t> tokens = result.tokens[sequence];
  if (result.has_ended[sequence]) tokens.pop_back();
  return tokens;
}

double per_second(std::int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

json to_json(const std::vector<Prompt>& prompts, const model::GenerateResult& result) {
  json sequences = json::array();
  for (std::size_t i = 0; i < prompts.size(); ++i)
    sequences.push_back({{"prompt", prompts[i].text},
                         {"name", prompts[i].name},
                         {"prompt_tokens", prompts[i].tokens.size()},
                         {"tokens", result.tokens[i]},
                         {"has_ended", bool{result.has_ended[i]}}});
  const model::BatchCounts& counts = result.counts;
  const auto rate = [](std::int64_t tokens, double seconds) {
    return json{{"tokens", tokens},
                {"seconds", seconds},
                {"tokens_per_second", per_second(tokens, seconds)}};
  };
  const auto drafted = static_cast<double>(std::max<std::int64_t>(counts.drafted, 1));
  const auto accepted = static_cast<double>(counts.accepted);
  return {{"sequences", sequences},
          {"steps", counts.steps},
          {"drafts",
           {{"drafted", counts.drafted},
            {"accepted", counts.accepted},
            {"acceptance", accepted / drafted},
            {"tokens_per_step", 1 + accepted / drafted}}},
          {"prefill", rate(counts.prompt_tokens, counts.prefill_s)},
          {"decode", rate(counts.decode_tokens, counts.decode_s)},
          {"total",
           rate(counts.prompt_tokens + counts.new_tokens, counts.prefill_s + counts.decode_s)}};
}

// Of one prompt every character as it comes; of several each text when all are done.
class TextOutput {
 public:
  /// `ends`: tokens that are not shown.
  TextOutput(const std::vector<Prompt>& prompts, const Tokenizer& tokenizer,
             std::vector<std::int32_t> ends, const Style& style, bool is_streaming)
      : prompts_(prompts),
        tokenizer_(tokenizer),
        ends_(std::move(ends)),
        style_(style),
        is_streaming_(is_streaming && prompts.size() == 1),
        stream_(tokenizer) {
    if (!is_streaming_) return;
    // By the same stream: the model may complete a character that the prompt begins.
    std::string text;
    for (const std::int32_t token : prompts_[0].tokens) text += stream_.add(token);
    print(style_.faint(for_terminal(text)));
  }
  void add(std::int32_t token) {
    if (!is_streaming_ || std::ranges::count(ends_, token) > 0) return;
    const std::string text = for_terminal(stream_.add(token));
    print(text);
    if (!text.empty()) std::fflush(stdout);
  }
  void finish(const model::GenerateResult& result) {
    if (is_streaming_) {
      print(stream_.finish() + "\n");
      return;
    }
    for (std::size_t i = 0; i < prompts_.size(); ++i)
      print(fmt::format("{}\n{}{}\n\n", style_.bold("--- " + prompts_[i].name),
                        style_.faint(prompts_[i].text), shown(tokenizer_, written(result, i))));
  }

 private:
  const std::vector<Prompt>& prompts_;
  const Tokenizer& tokenizer_;
  std::vector<std::int32_t> ends_;
  Style style_;
  bool is_streaming_;
  TokenStream stream_;
};

void print_rates(const json& report, const Style& style) {
  const auto line = [&](const char* name) {
    const json& part = report[name];
    return fmt::format("{} {} tokens in {:.3g} s, {:.4g} a second", name,
                       part["tokens"].get<std::int64_t>(), part["seconds"].get<double>(),
                       part["tokens_per_second"].get<double>());
  };
  print(kernel_times_text(report));
  const json& drafts = report["drafts"];
  if (drafts["drafted"] > 0)
    print(style.faint(fmt::format("drafts {} of {} right, {:.3g} tokens a step of a sequence\n",
                                  drafts["accepted"].get<std::int64_t>(),
                                  drafts["drafted"].get<std::int64_t>(),
                                  drafts["tokens_per_step"].get<double>())));
  print(style.faint(fmt::format("{}; {}; {}\n{}\n", line("prefill"), line("decode"), line("total"),
                                report["runner"].get<std::string>())));
}

// Room for the longest prompt and its new tokens, as far as the model goes: --max-tokens is the
// most, and a text may end before.
std::int64_t sequence_room(const std::vector<Prompt>& prompts, std::int64_t new_tokens,
                           const model::Config& config) {
  const std::int64_t most = config.max_positions;
  std::int64_t longest = 0;
  for (const Prompt& prompt : prompts) {
    const std::int64_t length = std::ssize(prompt.tokens);
    require(length <= most, ErrorKind::kInvalidArgument,
            "generate: {} has {} tokens; expected at most {}, the model's context "
            "(max_position_embeddings of config.json). Shorten it",
            prompt.name, length, most);
    longest = std::max(longest, length);
  }
  const std::int64_t most_new = most + 1 - longest;  // the last one goes to no step
  if (new_tokens > most_new)
    fmt::print(stderr,
               "generate: --max-tokens {}: the model's context is {} tokens, {} of them a prompt; "
               "that text ends after {} new ones at the latest\n",
               new_tokens, most, longest, most_new);
  return std::min(longest + std::min(new_tokens, most_new), most);
}

// What there is no memory for are tokens that were asked for in two places.
std::unique_ptr<model::Runner> make_prompt_runner(const GenerateArgs& args, Context& context,
                                                  const model::RunnerOptions& room,
                                                  std::int64_t sequences) {
  try {
    return make_rank_runner(args.ranks, args.model, context, room, sequences);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kOutOfMemory) throw;
    throw Error(error.kind(),
                fmt::format("{}. Tokens of a sequence are those of the longest prompt and of "
                            "--max-tokens {}; --sequences {} run at the same time",
                            error.what(), args.options.max_tokens, sequences));
  }
}

void run_prompts(const GenerateArgs& args, Context& context) {
  refuse_time_sample("generate needs the results of all CTAs");
  if (!begin_ranks(args.ranks, context)) return;
  KernelTimes times;
  require(args.options.max_seconds == 0 || !are_processes(args.ranks), ErrorKind::kInvalidArgument,
          "--max-seconds {:g}: ranks that are processes would each stop by a clock of their own; "
          "use --max-tokens",
          args.options.max_seconds);
  const Tokenizer tokenizer = open_tokenizer(args.model, model_config(args.model));
  const auto prompts = read_prompts(args, tokenizer);
  std::vector<std::vector<std::int32_t>> tokens;
  for (const Prompt& prompt : prompts) tokens.push_back(prompt.tokens);
  const std::int64_t max_tokens =
      sequence_room(prompts, args.options.max_tokens, model_config(args.model));
  model::GenerateOptions options = args.options;
  options.prefill_chunk = args.model.prefill_chunk;
  const std::int64_t count = std::ssize(prompts);
  options.sequences = options.sequences == 0 ? count : std::min(options.sequences, count);
  model::RunnerOptions room = runner_options(args.model, max_tokens);
  room.cache_tokens = args.cache_tokens;
  room.step_tokens = args.step_tokens;
  room.has_draft = args.options.has_draft;
  const auto runner = make_prompt_runner(args, context, room, options.sequences);
  if (!args.ignores_end) options.ends = end_tokens(model_config(args.model), tokenizer);
  // What random weights say is no text.
  const bool has_text = args.model.synthetic.empty();
  if (!are_processes(args.ranks)) times.begin(simulated_device(context.device), args.ranks.gpus);
  TextOutput output(prompts, tokenizer, options.ends, context.style(), !context.json && has_text);
  const auto result = model::generate(*runner, tokens, options,
                                      [&](std::int64_t, int token) { output.add(token); });
  json report = to_json(prompts, result);
  times.add_to(report);
  for (std::size_t i = 0; has_text && i < prompts.size(); ++i)
    report["sequences"][i]["text"] = shown(tokenizer, written(result, i));
  report["runner"] = runner->description();
  report["model"] = has_text ? args.model.folder : "synthetic " + args.model.synthetic;
  if (context.json) {
    print_json(report);
    return;
  }
  if (has_text) output.finish(result);
  if (!args.is_quiet) print_rates(report, context.style());
}

void add_batch_options(CLI::App& command, GenerateArgs& args) {
  command
      .add_option(
          "--sequences", args.options.sequences,
          "the most that run at the same time; the others wait for their turn. Default: all")
      ->check(positive())
      ->type_name("N");
  command
      .add_option(
          "--cache-tokens", args.cache_tokens,
          "tokens that the caches hold, of all sequences that run (--parallel expert: on each "
          "GPU); a prompt waits until its own and its new ones have room. Default: the longest "
          "for every sequence")
      ->check(positive())
      ->type_name("N");
  command
      .add_option(
          "--step-tokens", args.step_tokens,
          "the most of a step: one of each sequence that has been read, the rest of prompts")
      ->check(quiet(CLI::Range(std::int64_t{1}, model::kMostStepTokens)))
      ->type_name("N")
      ->capture_default_str();
}

void add_draft_option(CLI::App& command, GenerateArgs& args) {
  command.add_flag(
      "--draft", args.options.has_draft,
      "speculative decoding: the checkpoint's draft layer guesses a token, and the next "
      "step checks it; the text stays the same");
}

void add_sampling_options(CLI::App& command, GenerateArgs& args) {
  command
      .add_option("--max-tokens", args.options.max_tokens,
                  "the most new tokens of each prompt; its text ends earlier with the model's "
                  "context")
      ->check(not_negative())
      ->type_name("N")
      ->capture_default_str();
  command.add_flag("--ignore-eos", args.ignores_end,
                   "go on behind the token that ends a text, up to --max-tokens");
  command
      .add_option("--max-seconds", args.options.max_seconds, "stop after so long; for a simulator")
      ->check(not_negative())
      ->type_name("S");
  command
      .add_option("--temperature", args.options.sampler.temperature,
                  "0 takes the likeliest token; 1 draws as the model predicts")
      ->type_name("T")
      ->capture_default_str();
  command
      .add_option("--top-k", args.options.sampler.top_k,
                  "draws among so many of the likeliest tokens; 0: all")
      ->check(not_negative())
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--top-p", args.options.sampler.top_p,
                  "draws among the likeliest tokens that make up this probability")
      ->type_name("P")
      ->capture_default_str();
  command
      .add_option("--min-p", args.options.sampler.min_p,
                  "draws no token that is so much less likely than the likeliest")
      ->type_name("P")
      ->capture_default_str();
  command.add_option("--seed", args.options.sampler.seed, "of the draws")
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace

void add_generate(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("generate", "text from a DeepSeek-V4 model");
  auto args = std::make_shared<GenerateArgs>();
  command->add_option("--prompt,-p", args->prompts, "text to continue; several make a batch")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command->add_option("--prompt-file,-f", args->prompt_files, "the same from a file")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command
      ->add_option("--prompts", args->list_file, "prompts, one a line; *.json: an array of texts")
      ->type_name("FILE");
  add_chat_option(*command, args->chat);
  command->add_option("--system", args->system, "--chat: what the conversation begins with")
      ->needs("--chat")
      ->type_name("TEXT");
  add_model_options(*command, args->model);
  add_rank_options(*command, args->ranks);
  add_batch_options(*command, *args);
  add_draft_option(*command, *args);
  add_sampling_options(*command, *args);
  command->add_flag("--quiet,-q", args->is_quiet, "the text alone, no rates");
  add_trace_options(*command, args->trace);
  command->footer(
      "Text appears as it is made; several prompts are shown when all are done.\n"
      "For example:\n"
      "  tilewright generate -p 'The kernel ' --max-tokens 100 --temperature 0.7 --seed 1\n"
      "  tilewright generate --model V4/ -f a.txt -f b.txt --kv nvfp4 --device cuda\n"
      "  tilewright --json generate --prompts list.txt --sequences 16 --max-tokens 64\n"
      "  tilewright generate --model V4/ -f a.txt -f b.txt --gpus 2 --parallel expert\n"
      "  tilewright generate --model V4/ --trace reference.safetensors --device reference");
  command->callback([args, &context] {
    if (!args->trace.file.empty()) {
      require(args->ranks.gpus <= 1, ErrorKind::kInvalidArgument,
              "--gpus {}: --trace compares the stages of one rank; leave one of them out",
              args->ranks.gpus);
      run_trace(args->trace, args->model, context);
    } else {
      run_prompts(*args, context);
    }
  });
}

}  // namespace tilewright::cli
