// tilewright sim isa: which instructions the simulator knows, in general or of a file.

#include "base/error.h"
#include "cli/sim/options.h"
#include "cli/tool/command.h"
#include "sim/compile/insn_lookup.h"
#include "sim/compile/lowering.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

struct IsaArguments {
  std::string file, filter;
};

/// Calls are replaced by the functions' bodies before instructions are translated.
constexpr std::string_view kCall = "call";
constexpr sim::InsnRow kCallRow = {
    kCall,
    "call{.uni} {(result), }function{, (arguments)}; call{.uni} {(result), }pointer, "
    "(arguments), targets|prototype;"};

std::vector<sim::InsnSection> isa_sections() {
  const auto table = sim::insn_table();
  std::vector<sim::InsnSection> sections(table.begin(), table.end());
  sections.push_back({"Calls", std::span(&kCallRow, 1)});
  return sections;
}

std::string target_text(const sim::InsnRow& row) {
  return fmt::format("sm_{}{}", row.min_target, row.is_arch_specific ? "a" : "");
}

/// A line of the table for each form of the syntax.
void add_forms(Table& table, const sim::InsnRow& row) {
  std::string_view rest = row.syntax;
  bool is_first = true;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(';'), rest.size() - 1) + 1;
    table.add({is_first ? std::string(row.opcode) : "", is_first ? target_text(row) : "",
               std::string(rest.substr(0, end))});
    rest.remove_prefix(end);
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    is_first = false;
  }
}

void print_isa_table(const IsaArguments& args, const Context& context) {
  nlohmann::json sections = nlohmann::json::array();
  const Style style = context.style();
  std::string text;
  std::size_t num_rows = 0;
  for (const sim::InsnSection& section : isa_sections()) {
    nlohmann::json rows = nlohmann::json::array();
    Table table({"instruction", "from", "syntax"});
    for (const sim::InsnRow& row : section.rows) {
      if (row.syntax.find(args.filter) == std::string_view::npos) continue;
      rows.push_back(
          {{"opcode", row.opcode}, {"syntax", row.syntax}, {"min_target", target_text(row)}});
      add_forms(table, row);
    }
    if (rows.empty()) continue;
    num_rows += rows.size();
    text += style.bold(section.name) + "\n" + table.text(style) + "\n";
    sections.push_back({{"section", section.name}, {"instructions", std::move(rows)}});
  }
  require(num_rows != 0, ErrorKind::kInvalidArgument,
          "no instruction has \"{}\" in its syntax; `tilewright sim isa` lists all", args.filter);
  if (context.json) return print_json({{"instructions", num_rows}, {"sections", sections}});
  print(text + style.faint(fmt::format("{} instruction{} with all forms; \"from\" is the lowest "
                                       ".target\n",
                                       num_rows, num_rows == 1 ? "" : "s")));
}

/// One opcode of a file: with the modifiers that choose its row, or as it is written if it has
/// none.
struct OpcodeUse {
  bool is_known = false;
  std::vector<std::uint32_t> lines;
};

std::map<std::string, OpcodeUse> opcodes_of(const sim::Module& module) {
  std::map<std::string, OpcodeUse> out;
  for (const sim::Function& function : module.functions) {
    for (const sim::Instruction& instruction : function.body) {
      std::size_t num_leading = 0;
      const sim::InsnRow* row = sim::find_row(instruction, num_leading);
      std::string name(row != nullptr ? row->opcode : instruction.opcode);
      const bool is_known = row != nullptr || name == kCall;
      if (!is_known) {
        for (const auto modifier : instruction.modifiers) name += fmt::format(".{}", modifier);
      }
      OpcodeUse& use = out[name];
      use.is_known = is_known;
      use.lines.push_back(instruction.pos.line);
    }
  }
  return out;
}

std::string lines_text(const std::vector<std::uint32_t>& lines) {
  constexpr std::size_t kShown = 4;
  std::string out;
  for (std::size_t i = 0; i < lines.size() && i < kShown; ++i) {
    out += fmt::format("{}{}", i == 0 ? "" : ", ", lines[i]);
  }
  if (lines.size() > kShown) out += ", ...";
  return out;
}

/// That of --device, else the first that runs the module's target.
const sim::DeviceModel& device_for(const sim::Module& module, const Context& context) {
  if (context.device.empty()) {
    for (const sim::DeviceModel& model : sim::device_models()) {
      if (module.runs_on(model.compute_capability)) return model;
    }
  }
  return sim_device(context);
}

/// Each kernel is translated as at module load: that finds forms that a row does not have, too.
nlohmann::json kernel_problems(sim::Module module, const Context& context) {
  sim::Options options;
  options.checks = sim::parse_checks("none");
  sim::Machine machine(device_for(module, context), options);
  nlohmann::json problems = nlohmann::json::array();
  for (const sim::KernelInfo& kernel : machine.load(std::move(module))->kernels()) {
    if (!kernel.problem.empty()) {
      problems.push_back({{"kernel", kernel.name}, {"problem", kernel.problem}});
    }
  }
  return problems;
}

void print_file_coverage(const IsaArguments& args, Context& context) {
  sim::Module module = sim::parse_module(sim::read_ptx(args.file), args.file);
  const auto uses = opcodes_of(module);
  Table table({"instruction", "uses", "supported", "lines"});
  nlohmann::json list = nlohmann::json::array();
  std::size_t num_unknown = 0;
  for (const bool is_known : {false, true}) {
    for (const auto& [name, use] : uses) {
      if (use.is_known != is_known || name.find(args.filter) == std::string::npos) continue;
      num_unknown += !is_known;
      table.add(
          {name, std::to_string(use.lines.size()), is_known ? "yes" : "no", lines_text(use.lines)});
      list.push_back({{"opcode", name},
                      {"uses", use.lines.size()},
                      {"supported", is_known},
                      {"lines", use.lines}});
    }
  }
  const nlohmann::json problems = kernel_problems(std::move(module), context);
  context.exit_status = num_unknown == 0 && problems.empty() ? 0 : 1;
  if (context.json) {
    return print_json({{"file", args.file},
                       {"instructions", list},
                       {"unsupported", num_unknown},
                       {"problems", problems}});
  }
  const Style style = context.style();
  std::string text = table.text(style) + "\n";
  for (const nlohmann::json& problem : problems) {
    text +=
        fmt::format("{} {}\n{}\n", style.bad("cannot run"), problem["kernel"].get<std::string>(),
                    problem["problem"].get<std::string>());
  }
  text += context.exit_status == 0
              ? style.good(fmt::format("all {} instructions are supported", list.size()))
              : style.bad(fmt::format("{} of {} instructions and {} kernels are not supported",
                                      num_unknown, list.size(), problems.size()));
  print(text + "\n");
}

}  // namespace

void add_sim_isa(CLI::App& sim, Context& context) {
  CLI::App* command = sim.add_subcommand(
      "isa", "list the instructions that the simulator knows, or check those of a PTX file");
  auto args = std::make_shared<IsaArguments>();
  command->add_option("file", args->file, "check the instructions of this PTX file")
      ->check(CLI::ExistingFile)
      ->option_text("[FILE.ptx]");
  command->add_option("--filter", args->filter, "only instructions with this text")
      ->option_text("TEXT");
  command->callback([args, &context] {
    if (args->file.empty()) {
      print_isa_table(*args, context);
    } else {
      print_file_coverage(*args, context);
    }
  });
}

}  // namespace tilewright::cli
