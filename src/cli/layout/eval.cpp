// tilewright layout eval: a layout's properties, or the result of an operation of the algebra.

#include "cli/layout/layout.h"
#include "cli/tool/command.h"
#include "layout/operations.h"
#include "layout/print.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright::cli {

namespace {

struct EvalArguments {
  std::vector<std::string> words;
  int limit = 64;
};

std::string operations_help() {
  std::string out = "Operations:\n";
  for (const LayoutOperation& operation : layout_operations()) {
    out += fmt::format("  {:18} {:20} {}\n", operation.name, operation.operands, operation.summary);
  }
  return out +
         "\nExamples:\n"
         "  tilewright layout eval '(4,8):(8,1)'\n"
         "  tilewright layout eval composition '(8,8):(8,1)' '<4:2,2:1>'\n"
         "  tilewright layout eval local_tile smem.K.128B.16bit '<8,16>' '(0,2)'";
}

OperationResult evaluate_words(const EvalArguments& args) {
  const std::string& first = args.words.front();
  if (args.words.size() > 1 || find_layout_operation(first) != nullptr) {
    const std::vector<std::string> operands =
        arch::resolve_names({args.words.begin() + 1, args.words.end()});
    return run_layout_operation(first, operands);
  }
  return read_layout(first).layout;
}

// What the layout maps its first linear indices to.
std::vector<std::string> first_values(const ComposedLayout& layout, int limit) {
  std::vector<std::string> out;
  const std::int64_t count = std::min<std::int64_t>(size(layout), limit);
  for (std::int64_t i = 0; i < count; ++i) out.push_back(to_string(coordinate(layout, i)));
  return out;
}

std::string describe_layout(const ComposedLayout& layout, int limit, const Style& style) {
  std::string out = style.bold(to_string(layout)) + "\n";
  const auto line = [&](const char* name, const std::string& value) {
    out += fmt::format("  {:10}{}\n", name, value);
  };
  line("rank", fmt::format("{}, depth {}", rank(layout), depth(layout.layout)));
  if (layout.layout.is_coordinate()) {
    line("size", fmt::format("{}, maps to coordinates", size(layout)));
  } else {
    line("size", fmt::format("{}, cosize {}", size(layout), cosize(layout.layout)));
  }
  line("coalesced", to_string(coalesce(layout)));
  const std::vector<std::string> values = first_values(layout, limit);
  const bool is_cut = static_cast<std::int64_t>(values.size()) < size(layout);
  line("values", fmt::format("{}{}", fmt::join(values, " "), is_cut ? " ..." : ""));
  return out;
}

void run_eval(const EvalArguments& args, const Context& context) {
  const OperationResult result = evaluate_words(args);
  if (const auto* number = std::get_if<std::int64_t>(&result)) {
    if (context.json) {
      print_json({{"value", *number}});
    } else {
      print(fmt::format("{}\n", *number));
    }
    return;
  }
  const ComposedLayout& layout = std::get<ComposedLayout>(result);
  if (context.json) {
    print_json(arch::describe_layout(layout, args.limit));
  } else {
    print(describe_layout(layout, args.limit, context.style()));
  }
}

}  // namespace

void add_layout_eval(CLI::App& layout, Context& context) {
  CLI::App* command = layout.add_subcommand("eval", "evaluate a layout or an operation on layouts");
  auto args = std::make_shared<EvalArguments>();
  command->add_option("words", args->words, "a layout, or an operation and its operands")
      ->required()
      ->type_name("[OPERATION] OPERAND...");
  command->add_option("--limit", args->limit, "how many values to print")
      ->capture_default_str()
      ->type_name("N")
      ->check(quiet(CLI::Range(0, 1 << 20)));
  command->footer(operations_help());
  command->callback([args, &context] { run_eval(*args, context); });
}

}  // namespace tilewright::cli
