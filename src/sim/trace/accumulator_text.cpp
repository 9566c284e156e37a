// Accumulators as matrices, by the index formulas of the manual.
#include "sim/tensor/fragments.h"
#include "sim/trace/register_text.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr int kRows = 16;  // of a warp
constexpr int kMostColumns = 16;

/// Columns of the accumulator, 0 if it is not shown: m16n8kK and m64nNkK.
int columns_of(const Instruction& instruction) {
  const bool is_mma = instruction.opcode == "mma";
  const bool is_wgmma = instruction.opcode == "wgmma";
  for (const std::string_view modifier : instruction.modifiers) {
    if (is_mma && modifier.starts_with("m16n8k")) return 8;
    if (!is_wgmma || !modifier.starts_with("m64n")) continue;
    int n = 0;
    std::from_chars(modifier.data() + 4, modifier.data() + modifier.size(), n);
    return n;
  }
  return 0;
}

/// The first type of the modifiers.
Type type_of_d(const Instruction& instruction) {
  for (const std::string_view modifier : instruction.modifiers) {
    const Type type = parse_type(modifier);
    if (type != Type::kNone && modifier[0] != 'm') return type;
  }
  return Type::kF32;
}

}  // namespace

std::string accumulator_text(Warp& warp, const Insn& insn) {
  const KernelCode& code = *warp.grid->code;
  const Instruction* instruction = code.place(insn).syntax;
  if (instruction == nullptr || instruction->operands.empty()) return {};
  const int columns = columns_of(*instruction);
  const Type type = type_of_d(*instruction);
  if (columns == 0 || (type != Type::kF32 && type != Type::kF16 && type != Type::kS32)) return {};
  std::vector<NamedRow> rows;
  for (NamedRow& named : named_rows(code, insn)) {
    if (named.is_destination) rows.push_back(std::move(named));
  }
  const bool is_half = type == Type::kF16;
  const int elements = kRows * columns / kLanes;
  if (static_cast<int>(rows.size()) != (is_half ? elements / 2 : elements)) return {};
  const int shown = std::min(columns, kMostColumns);
  std::vector<std::string> cells(static_cast<std::size_t>(kRows * columns));
  std::size_t width = 1;
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < elements; ++i) {
      const FragmentElement at = wgmma_d_element(lane, i);  // of the first warp; mma's are the same
      if (at.col >= shown) continue;
      NamedRow named = rows[static_cast<std::size_t>(is_half ? i / 2 : i)];
      named.type = is_half ? Type::kF16x2 : type;
      std::string text = value_text(warp, named, lane);
      if (is_half) {
        const std::size_t bar = text.find('|');
        text = i % 2 == 0 ? text.substr(0, bar) : text.substr(bar + 1);
      }
      width = std::max(width, text.size());
      cells[static_cast<std::size_t>(at.row * columns + at.col)] = std::move(text);
    }
  }
  std::string out = fmt::format("    D, the {} rows of this warp", kRows);
  out += shown < columns ? fmt::format(", columns 0 to {} of {}\n", shown - 1, columns) : "\n";
  for (int row = 0; row < kRows; ++row) {
    out += fmt::format("    {:>3}:", row);
    for (int col = 0; col < shown; ++col) {
      out += fmt::format(" {:>{}}", cells[static_cast<std::size_t>(row * columns + col)], width);
    }
    out += "\n";
  }
  return out;
}

}  // namespace tilewright::sim
