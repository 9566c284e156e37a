// tilewright layout atoms: every hardware layout by name.

#include "base/error.h"
#include "cli/layout/layout.h"
#include "cli/tool/command.h"
#include "layout/print.h"

#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

void run_atoms(const std::string& filter, const Context& context) {
  Table table({"name", "layout", "what it is"});
  nlohmann::json list = nlohmann::json::array();
  for (const arch::NamedAtom& atom : arch::named_atoms()) {
    if (atom.name.find(filter) == std::string::npos &&
        atom.summary.find(filter) == std::string::npos)
      continue;
    table.add({atom.name, to_string(atom.layout), atom.summary});
    list.push_back(arch::describe_atom(atom));
  }
  require(!list.empty(), ErrorKind::kInvalidArgument,
          "no atom has \"{}\" in its name or description; without it, all {} are listed", filter,
          arch::named_atoms().size());
  if (context.json) {
    print_json(list);
    return;
  }
  print(table.text(context.style()));
  print(context.style().faint(
      fmt::format("\n{} atoms; `tilewright layout draw NAME` draws one\n", list.size())));
}

}  // namespace

void add_layout_atoms(CLI::App& layout, Context& context) {
  CLI::App* command = layout.add_subcommand("atoms", "list the named layouts of the hardware");
  auto filter = std::make_shared<std::string>();
  command->add_option("filter", *filter, "only names and descriptions with this text");
  command->callback([filter, &context] { run_atoms(*filter, context); });
}

}  // namespace tilewright::cli
