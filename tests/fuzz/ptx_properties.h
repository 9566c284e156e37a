// What holds for whatever text the PTX parser is given (see properties.h).
#pragma once

#include "sim/parse/parser.h"
#include "tests/fuzz/properties.h"

namespace tilewright::fuzz {

inline void check_operand(const sim::Module& module, const sim::Function& function,
                          const sim::Operand& operand) {
  using Kind = sim::OperandKind;
  const auto size_for = [&]() -> std::size_t {
    switch (operand.kind) {
      case Kind::kRegister:
        return function.registers.size();
      case Kind::kVariable:
        return operand.is_local ? function.variables.size() : module.variables.size();
      case Kind::kFunction:
        return module.functions.size();
      case Kind::kLabel:
        return function.labels.size();
      case Kind::kTable:
        return function.tables.size();
      case Kind::kSpecial:
        return static_cast<std::size_t>(sim::SpecialRegister::kCurrentGraphExec) + 1;
      default:
        return std::size_t{operand.index} + 1;
    }
  };
  check(operand.index < size_for(), "an operand's index is out of range");
  check(operand.kind != Kind::kMemory || !operand.parts.empty(), "an address without base");
  for (const sim::Operand& part : operand.parts) check_operand(module, function, part);
}

inline void check_variable(const sim::Module& module, const sim::Variable& variable) {
  check(variable.initial.empty() || variable.initial.size() == variable.size_bytes,
        "an initial value of another size");
  for (const sim::Relocation& relocation : variable.relocations) {
    check(relocation.offset_bytes + relocation.size_bytes <= variable.size_bytes,
          "a relocation outside of its variable");
    const auto count = relocation.is_function ? module.functions.size() : module.variables.size();
    check(relocation.target < count, "a relocation without target");
  }
}

inline void check_function(const sim::Module& module, const sim::Function& function) {
  const std::string_view text = *module.text;
  const auto is_in_text = [&](std::string_view view) {
    return view.data() >= text.data() && view.data() + view.size() <= text.data() + text.size();
  };
  for (const sim::Instruction& instruction : function.body) {
    check(is_in_text(instruction.opcode) && !instruction.opcode.empty(), "an opcode from nowhere");
    check(std::ranges::all_of(instruction.modifiers, is_in_text), "a modifier from nowhere");
    check(instruction.length >= instruction.opcode.size(), "an instruction without length");
    check(!instruction.guard || instruction.guard->register_idx < function.registers.size(),
          "a guard without register");
    for (const auto& operand : instruction.operands) check_operand(module, function, operand);
  }
  for (const sim::Label& label : function.labels) {
    check(label.instruction_idx <= function.body.size(), "a label behind the end");
  }
  for (const sim::TargetTable& table : function.tables) {
    const auto count = table.is_branch ? function.labels.size() : module.functions.size();
    check(std::ranges::all_of(table.targets, [&](auto target) { return target < count; }),
          "a table's target is out of range");
  }
  for (const std::uint32_t idx : function.params) {
    check(idx < function.variables.size(), "a parameter that is no variable");
  }
  for (const auto& variable : function.variables) check_variable(module, variable);
}

/// All indices of the module are in range, all views lie in its text.
inline bool check_ptx(std::span<const std::byte> bytes) {
  std::string message;
  const auto module = parse_or_message(
      [&] { return sim::parse_module(std::string(text_of(bytes)), "input"); }, message);
  if (!module) return false;
  for (const auto& variable : module->variables) check_variable(*module, variable);
  for (const auto& function : module->functions) check_function(*module, function);
  return true;
}

}  // namespace tilewright::fuzz
