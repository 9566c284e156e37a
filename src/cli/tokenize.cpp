// tilewright tokenize: text to tokens and back.
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_node.h"
#include "cli/tool/model_options.h"
#include "cli/tool/terminal_text.h"

#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

using nlohmann::json;

struct TokenizeArgs {
  std::string tokenizer = std::string(TILEWRIGHT_SOURCE_DIR) + "/examples/models/tiny-dsv4";
  std::vector<std::string> texts, files;
  std::vector<std::int32_t> ids;
  std::string array, chat;
  bool is_plain = false;
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
          "tokenize: no text; expected TEXT, --file FILE, --array FILE or --decode IDS");
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
  command->footer(
      "For example:\n"
      "  tilewright tokenize --tokenizer V4/ 'Hello!'\n"
      "  tilewright tokenize --tokenizer V4/ --chat thinking 'What is a warp?'\n"
      "  tilewright tokenize --tokenizer V4/ --decode 19923,3");
  command->callback([args, &context] { run_tokenize(*args, context); });
}

}  // namespace tilewright::cli
