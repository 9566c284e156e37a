// tilewright layout check: runs a file of layout cases.

#include "base/error.h"
#include "base/json.h"
#include "cli/layout/layout.h"
#include "cli/tool/command.h"
#include "layout/cases.h"

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

struct CheckArguments {
  std::string file;
  int show = 10;
};

struct Tally {
  int passed = 0, failed = 0, outside_laws = 0;
};

struct CheckOutcome {
  Tally all;
  std::map<std::string, Tally> by_operation;
  std::vector<std::string> differences;
};

void count_result(const CaseResult& result, Tally& tally) {
  (result.passed() ? tally.passed : tally.failed) += 1;
  tally.outside_laws += result.is_outside_laws;
}

CheckOutcome run_cases(const nlohmann::json& cases) {
  CheckOutcome out;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const CaseResult result = run_layout_case(cases[i]);
    const std::string op = result.op.empty() ? "(malformed)" : result.op;
    count_result(result, out.all);
    count_result(result, out.by_operation[op]);
    if (!result.passed()) {
      out.differences.push_back(fmt::format("case {}, {}: {}", i, op, result.difference));
    }
  }
  return out;
}

nlohmann::json outcome_to_json(const CheckOutcome& outcome) {
  nlohmann::json operations = nlohmann::json::object();
  for (const auto& [op, tally] : outcome.by_operation) {
    operations[op] = {
        {"passed", tally.passed}, {"failed", tally.failed}, {"outside_laws", tally.outside_laws}};
  }
  return {{"passed", outcome.all.passed},
          {"failed", outcome.all.failed},
          {"outside_laws", outcome.all.outside_laws},
          {"operations", operations},
          {"differences", outcome.differences}};
}

void print_outcome(const CheckOutcome& outcome, const CheckArguments& args, const Style& style) {
  Table table({"operation", "passed", "failed"});
  for (const auto& [op, tally] : outcome.by_operation) {
    table.add({op, std::to_string(tally.passed), std::to_string(tally.failed)});
  }
  print(table.text(style) + "\n");
  const auto shown =
      std::min<std::size_t>(outcome.differences.size(), static_cast<std::size_t>(args.show));
  for (std::size_t i = 0; i < shown; ++i) print(outcome.differences[i] + "\n");
  if (shown < outcome.differences.size()) {
    print(fmt::format("and {} more; --show N prints them\n", outcome.differences.size() - shown));
  }
  if (outcome.all.outside_laws > 0) {
    print(style.faint(fmt::format(
        "{} cases break a law of their operation: the library refuses them, and they were "
        "compared with CuTe's unchecked arithmetic\n",
        outcome.all.outside_laws)));
  }
  const std::string verdict =
      fmt::format("{} passed, {} failed", outcome.all.passed, outcome.all.failed);
  print((outcome.all.failed == 0 ? style.good(verdict) : style.bad(verdict)) + "\n");
}

void run_check(const CheckArguments& args, Context& context) {
  const nlohmann::json cases = read_json(args.file);
  require(cases.is_array() && !cases.empty(), ErrorKind::kParseError,
          "{}: expected an array of layout cases, found {}", args.file,
          cases.is_array() ? "an empty one" : cases.type_name());
  const CheckOutcome outcome = run_cases(cases);
  if (context.json) {
    print_json(outcome_to_json(outcome));
  } else {
    print_outcome(outcome, args, context.style());
  }
  context.exit_status = outcome.all.failed == 0 ? 0 : 1;
}

}  // namespace

void add_layout_check(CLI::App& layout, Context& context) {
  CLI::App* command =
      layout.add_subcommand("check", "run a file of layout cases against the algebra");
  auto args = std::make_shared<CheckArguments>();
  command->add_option("file", args->file, "JSON array of cases")
      ->default_str("tests/golden/layout/layout_algebra.json of the source tree")
      ->check(quiet(CLI::ExistingFile))
      ->type_name("FILE.json");
  command->add_option("--show", args->show, "how many differences to print")
      ->type_name("N")
      ->capture_default_str();
  command->footer(
      "A case names an operation, its operands and the offsets that must come out:\n"
      "  {\"op\": \"composition\", \"a\": {\"shape\": [4,8], \"stride\": [8,1]}, \"b\": "
      "{\"shape\": 4, \"stride\": 2},\n"
      "   \"values\": [0, 16, 1, 17]}\n"
      "Exit status 1 if any case differs. Operations are those of `layout eval`.");
  command->callback([args, &context] {
    if (args->file.empty()) args->file = TILEWRIGHT_GOLDEN_LAYOUTS;
    run_check(*args, context);
  });
}

}  // namespace tilewright::cli
