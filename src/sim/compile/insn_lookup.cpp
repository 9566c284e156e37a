#include "sim/compile/insn_lookup.h"

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

/// What the manual has and this machine does not, by the beginning of the name, and why.
struct Refusal {
  std::string_view beginning, reason;
};

constexpr std::string_view kTextures =
    "textures and surfaces are not simulated; read global memory instead";
constexpr std::string_view kMulticast =
    "multimem works on multicast memory of several devices; the simulated machine is one device";
constexpr std::string_view kVideo =
    "video instructions are not simulated; use dp4a, min, max, add of .s16x2, or plain arithmetic";
constexpr std::string_view kDynamicStack =
    "dynamic local memory is not simulated; give the array a fixed size";

constexpr Refusal kRefusals[] = {
    {"tex", kTextures},
    {"tld4", kTextures},
    {"txq", kTextures},
    {"suld", kTextures},
    {"sust", kTextures},
    {"sured", kTextures},
    {"suq", kTextures},
    {"istypep", kTextures},
    {"multimem", kMulticast},
    {"alloca", kDynamicStack},
    {"stacksave", kDynamicStack},
    {"stackrestore", kDynamicStack},
    {"vadd", kVideo},
    {"vsub", kVideo},
    {"vabsdiff", kVideo},
    {"vmin", kVideo},
    {"vmax", kVideo},
    {"vavrg", kVideo},
    {"vshl", kVideo},
    {"vshr", kVideo},
    {"vmad", kVideo},
    {"vset", kVideo},
};

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

std::string unknown_instruction(const Instruction& syntax, const Module& module) {
  std::string name(syntax.opcode);
  for (const std::string_view modifier : syntax.modifiers) {
    name += '.';
    name += modifier;
  }
  for (const Refusal& refusal : kRefusals) {
    if (name.starts_with(refusal.beginning)) return fmt::format("{}: {}", name, refusal.reason);
  }
  std::vector<std::string_view> names;
  for (const auto& [known, row] : rows_by_name()) names.push_back(known);
  std::ranges::sort(names);
  return fmt::format("unknown instruction {}; {}{}", name, similar_names(syntax.opcode, names),
                     module.version_note());
}

}  // namespace tilewright::sim
