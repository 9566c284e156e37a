// tilewright tokenize: text to tokens and back, and how long that takes.
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_node.h"
#include "cli/tool/model_options.h"
#include "cli/tool/processor_time.h"
#include "cli/tool/terminal_text.h"
#include "report/time_summary.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

struct TokenizeArgs {
  std::string tokenizer = std::string(TILEWRIGHT_SOURCE_DIR) + "/examples/models/tiny-dsv4";
  std::vector<std::string> texts, files;
  std::vector<std::int32_t> ids;
  std::string array, chat;
  bool is_plain = false, is_timed = false;
  int samples = 7;
};

std::vector<std::string> read_texts(const TokenizeArgs& args) {
  std::vector<std::string> texts = args.texts;
  for (const std::string& path : args.files) texts.emplace_back(MappedFile(path).text());
  if (!args.array.empty()) {
    const json array = read_json(args.array);
    for (const JsonNode& text : JsonNode(array, args.array).elems())
      texts.push_back(text.as_string());
  }
  require(!texts.empty() || !args.ids.empty(), ErrorKind::kInvalidArgument,
          "tokenize: no text; expected TEXT, --file FILE, --array FILE{}",
          args.is_timed ? "" : " or --decode IDS");
  return texts;
}

std::vector<std::int32_t> encode(const Tokenizer& tokenizer, const TokenizeArgs& args,
                                 const std::string& text) {
  if (args.chat.empty())
    return tokenizer.encode(text, args.is_plain ? AddedTokens::kAsText : AddedTokens::kMatch);
  return tokenizer.chat(std::vector<ChatMessage>{{ChatRole::kUser, text, {}}},
                        chat_mode(args.chat));
}

// Every token with what it stands for; a character that several tokens make up stands at the last.
void print_tokens(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids,
                  const Style& style) {
  TokenStream stream(tokenizer);
  for (const std::int32_t id : ids)
    print(fmt::format("{:>7} {}\n", id, style.faint(json(for_terminal(stream.add(id))).dump())));
  print(fmt::format("{} tokens\n", ids.size()));
}

template <class Work>
double processor_ms(Work&& work) {
  const double start = processor_seconds();
  work();
  return 1e3 * (processor_seconds() - start);
}

struct Times {
  std::vector<double> load_ms, encode_ms, decode_ms;
  std::size_t bytes = 0, tokens = 0;
};

// The first sample is not counted, for it reads the file from the disk; nor is a tokenizer's first
// time, after which it remembers which pieces are a token as a whole.
Times measure(const TokenizeArgs& args) {
  Times times;
  const std::vector<std::string> texts = read_texts(args);
  for (const std::string& text : texts) times.bytes += text.size();
  for (int sample = 0; sample <= args.samples; ++sample) {
    std::optional<Tokenizer> tokenizer;
    const double load_ms = processor_ms([&] { tokenizer = Tokenizer::open(args.tokenizer); });
    std::vector<std::vector<std::int32_t>> ids;
    const auto encode_all = [&] {
      ids.clear();
      for (const std::string& text : texts) ids.push_back(encode(*tokenizer, args, text));
    };
    encode_all();
    const double encode_ms = processor_ms(encode_all);
    const double decode_ms = processor_ms([&] {
      for (const auto& each : ids) tokenizer->decode(each);
    });
    if (sample == 0) {
      for (const auto& each : ids) times.tokens += each.size();
      continue;
    }
    times.load_ms.push_back(load_ms);
    times.encode_ms.push_back(encode_ms);
    times.decode_ms.push_back(decode_ms);
  }
  return times;
}

double median_ms(const std::vector<double>& samples) {
  return summarize(samples).median_us;  // in the unit of the samples
}

void run_timed(const TokenizeArgs& args, const Context& context) {
  const Times times = measure(args);
  // Bytes in a millisecond are kilobytes in a second.
  const auto rate = [&](const std::vector<double>& samples) {
    return 1e-3 * static_cast<double>(times.bytes) / median_ms(samples);
  };
  if (context.json) {
    print_json(
        {{"tokenizer", args.tokenizer},
         {"bytes", times.bytes},
         {"tokens", times.tokens},
         {"load_ms", median_ms(times.load_ms)},
         {"encode_mb_per_s", rate(times.encode_ms)},
         {"decode_mb_per_s", rate(times.decode_ms)},
         {"samples_ms",
          {{"load", times.load_ms}, {"encode", times.encode_ms}, {"decode", times.decode_ms}}}});
    return;
  }
  Table table({"", "ms", "MB/s"});
  const auto add = [&](const char* name, const std::vector<double>& samples, std::string speed) {
    table.add({name, fmt::format("{:.3f}", median_ms(samples)), std::move(speed)});
  };
  add("load", times.load_ms, "");
  add("encode", times.encode_ms, fmt::format("{:.1f}", rate(times.encode_ms)));
  add("decode", times.decode_ms, fmt::format("{:.1f}", rate(times.decode_ms)));
  print(table.text(context.style()));
  print(fmt::format("{} bytes, {} tokens; processor time of one thread, medians of {}\n",
                    times.bytes, times.tokens, args.samples));
}

void run_tokenize(const TokenizeArgs& args, const Context& context) {
  const Tokenizer tokenizer = Tokenizer::open(args.tokenizer);
  json report = {{"vocab_size", tokenizer.vocab_size()}, {"texts", json::array()}};
  for (const std::string& text : read_texts(args)) {
    const auto ids = encode(tokenizer, args, text);
    if (!context.json) print_tokens(tokenizer, ids, context.style());
    report["texts"].push_back({{"ids", ids}, {"decoded", tokenizer.decode(ids)}});
  }
  if (!args.ids.empty()) report["decoded"] = tokenizer.decode(args.ids);
  if (context.json) {
    print_json(report);
  } else if (!args.ids.empty()) {
    print(for_terminal(report["decoded"].get<std::string>()) + "\n");
  }
}

}  // namespace

void add_tokenize(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("tokenize", "text to tokens of a model and back");
  auto args = std::make_shared<TokenizeArgs>();
  command->add_option("text", args->texts, "texts, each by itself")->type_name("TEXT");
  command->add_option("--file,-f", args->files, "the same from a file")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_option("--array", args->array, "the same from a JSON array of strings")
      ->type_name("FILE");
  command->add_option("--decode", args->ids, "tokens to text")->type_name("ID")->delimiter(',');
  command
      ->add_option("--tokenizer", args->tokenizer,
                   "tokenizer.json, or the folder that has it; default: of the bundled model")
      ->type_name("FILE");
  command->add_flag("--plain", args->is_plain,
                    "names of added tokens in the text, such as <think>, are text");
  add_chat_option(*command, args->chat);
  command
      ->add_flag("--time", args->is_timed,
                 "processor time of loading, encoding and decoding, instead of tokens")
      ->excludes("--decode");
  command->add_option("--samples", args->samples, "--time: times of each")
      ->needs("--time")
      ->check(quiet(CLI::Range(1, 1000)))
      ->capture_default_str()
      ->type_name("N");
  command->footer(
      "For example:\n"
      "  tilewright tokenize --tokenizer V4/ 'Hello!'\n"
      "  tilewright tokenize --tokenizer V4/ --chat thinking 'What is a warp?'\n"
      "  tilewright tokenize --tokenizer V4/ --decode 19923,3\n"
      "  tilewright tokenize --tokenizer V4/ --time --file book.txt");
  command->callback([args, &context] {
    args->is_timed ? run_timed(*args, context) : run_tokenize(*args, context);
  });
}

}  // namespace tilewright::cli
