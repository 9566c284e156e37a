#include "sim/program/insn_lookup.h"

#include "base/similar.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

using Table = std::unordered_map<std::string_view, const InsnRow*>;

const Table& rows_by_name() {
  static const Table table = [] {
    Table out;
    for (const InsnSection& section : insn_table()) {
      for (const InsnRow& row : section.rows) out.emplace(row.opcode, &row);
    }
    return out;
  }();
  return table;
}

std::size_t longest_name() {
  static const std::size_t longest = [] {
    std::ptrdiff_t dots = 0;
    for (const auto& [name, row] : rows_by_name()) {
      dots = std::max(dots, std::ranges::count(name, '.'));
    }
    return static_cast<std::size_t>(dots);
  }();
  return longest;
}

}  // namespace

const InsnRow* find_row(const Instruction& syntax, std::size_t& num_leading) {
  std::string name(syntax.opcode);
  const InsnRow* found = nullptr;
  for (std::size_t used = 0;; ++used) {
    const auto at = rows_by_name().find(name);
    if (at != rows_by_name().end()) {
      found = at->second;
      num_leading = used;
    }
    if (used == longest_name() || used == syntax.modifiers.size()) return found;
    name += '.';
    name += syntax.modifiers[used];
  }
}

std::string unknown_instruction(const Instruction& syntax) {
  std::string name(syntax.opcode);
  for (const std::string_view modifier : syntax.modifiers) {
    name += '.';
    name += modifier;
  }
  std::vector<std::string_view> names;
  for (const auto& [known, row] : rows_by_name()) names.push_back(known);
  std::ranges::sort(names);
  return fmt::format("unknown instruction {}; {}", name, similar_names(syntax.opcode, names));
}

}  // namespace tilewright::sim
