// Translating one instruction: what the functions in insn/ are given.
//
// A row of the instruction table names an opcode and the function that understands all its forms:
//
//     void lower_popc(Lowering& l) {
//       const Type type = l.type();  // consumes the modifier .b32 or .b64
//       l.finish_modifiers();        // error if one is left
//       const Row d = l.destination(0, Type::kU32);
//       const Row a = l.source(1, type);
//       l.emit(type == Type::kB64 ? popc<std::uint64_t> : popc<std::uint32_t>, {d, a});
//     }
//
//     const InsnRow kRows[] = {
//         {"popc", "popc.{b32,b64} d, a;", 20, InsnClass::kInteger, lower_popc},
//     };
#pragma once

#include "sim/state/insn.h"

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::sim {

class Lowering;
class CodeBuilder;

/// One opcode. Several rows may share a name if their `variant`, the first modifier, differs
/// ("cp" + "async"); the longest match wins: "cp.async.bulk.tensor" before "cp.async.bulk".
struct InsnRow {
  /// With the leading modifiers that choose the row: "cp.async.bulk.tensor"
  std::string_view opcode;
  std::string_view syntax;  ///< the manual's line, for tilewright sim isa
  int min_target = 20;      ///< 90 for sm_90; with is_arch_specific: sm_90a only
  InsnClass insn_class = InsnClass::kOther;
  void (*lower)(Lowering&) = nullptr;
  bool is_arch_specific = false;
};

/// An operand that may be of another width than the instruction's type (ld, st, cvt).
struct TypedRow {
  Row row = kNoRow;
  Type type = Type::kNone;  ///< of the register; for an immediate the type asked for
};

/// [base + offset] or a variable's place.
struct Address {
  Row base = kNoRow;  ///< 64-bit or 32-bit row (see is_wide); kNoRow: absolute
  bool is_wide = true;
  /// Within the space: shared and local offsets, param offsets, global addresses
  std::int64_t offset = 0;
  Space space = Space::kGeneric;  ///< of the variable, if one is named; else kGeneric
  bool is_kernel_param = false;   ///< a parameter of the entry (the same for all threads)
};

class Lowering {
 public:
  Lowering(CodeBuilder& builder, const Function& function, const Instruction& syntax);

  const Instruction& syntax() const noexcept { return syntax_; }
  const Function& function() const noexcept { return function_; }
  const Module& module() const noexcept;

  // Modifiers: each is consumed once. The leading ones that chose the row are gone already.
  bool take(std::string_view modifier);  ///< true and consumed if present, at any place
  /// The index of the one that is present and consumed, or -1.
  int take_one_of(std::initializer_list<std::string_view> modifiers);
  /// The next modifier, in order of the text, that names a type; consumed.
  /// Errors   if there is none
  Type type();
  Type optional_type();  ///< kNone if there is none
  /// The first modifier left that starts with this text, consumed: "L2::cache_hint" for "L2::".
  std::string_view take_prefix(std::string_view prefix);
  /// Errors   if any modifier is left: "unknown modifier .x"
  void finish_modifiers();

  // Operands, numbered as in the text.
  int num_operands() const noexcept;
  const Operand& operand(int index) const;
  bool has_operand(int index) const noexcept { return index < num_operands(); }
  /// The row to read: a register of this width, an immediate or special register as a row of its
  /// own, the address of a variable. kPred: a predicate register or an immediate 0 / 1; `!p` is an
  /// error unless taken with source_predicate.
  Row source(int index, Type type);
  Row source(const Operand& operand, Type type);
  TypedRow source_any(int index, Type type);  ///< a register of any width
  TypedRow source_any(const Operand& operand, Type type);
  /// A predicate and whether it is negated.
  std::pair<Row, bool> source_predicate(int index);
  std::pair<Row, bool> source_predicate(const Operand& operand);
  /// The row to write; for `_` a row that is never read.
  Row destination(int index, Type type);
  Row destination(const Operand& operand, Type type);
  TypedRow destination_any(int index, Type type);
  TypedRow destination_any(const Operand& operand, Type type);
  /// d|p: both; the predicate is kNoRow if there is only d.
  std::pair<Row, Row> destination_pair(int index, Type type);
  Address address(int index);
  /// The elements of {a, b, ...}, or the operand itself.
  std::span<const Operand> elements(int index) const;
  /// An integer that must be known now: an immediate operand.
  std::int64_t immediate(int index);
  bool is_immediate(int index) const;

  // Rows of the translator's own.
  Row constant(Type type, std::uint64_t bits);  ///< 32 times the same
  Row scratch(Type type);                       ///< holds until the next instruction of the text
  Row carry();                                  ///< the condition code of add.cc and its kin
  /// A list that lives as long as the code; for Insn::extra.
  template <class T>
  const T* keep(T value) {
    auto owned = std::make_shared<T>(std::move(value));
    own(owned);
    return owned.get();
  }

  /// Appends an instruction with the guard of the syntax. Destinations come first in `ops`;
  /// `num_destinations` says how many are written (the checkers need it). Flags and class of the
  /// row are filled in; more can be set on the result, which is valid until the next emit().
  Insn& emit(ExecFn exec, std::initializer_list<Row> ops, int num_destinations = 1);
  /// Further rows read or written that are not in op (vector operands in extra): for liveness.
  void also_reads(Row row);
  void also_writes(Row row);
  /// A row that keeps part of its old value (predicated results, sub-word inserts).
  void keeps_old(Row row);

  /// The instruction index of a label, for jumps: put it into Insn::imm with emit_jump.
  Insn& emit_jump(ExecFn exec, std::initializer_list<Row> ops, const Operand& label);

  /// At the opcode. In a module newer than the table its version stands beside the message if there
  /// are modifiers left that may be new.
  [[noreturn]] void fail(std::string_view message) const;
  /// The instruction is known and not simulated.
  [[noreturn]] void refuse(std::string_view reason) const;
  [[noreturn]] void fail_at(const Operand& operand, std::string_view message) const;

 private:
  void own(std::shared_ptr<void> value);

  CodeBuilder& builder_;
  const Function& function_;
  const Instruction& syntax_;
  std::vector<std::string_view> modifiers_;
  friend class CodeBuilder;
};

/// All instructions, in sections of the manual.
struct InsnSection {
  std::string_view name;
  std::span<const InsnRow> rows;
};
std::span<const InsnSection> insn_table();

}  // namespace tilewright::sim
