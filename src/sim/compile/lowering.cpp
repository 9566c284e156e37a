#include "sim/compile/lowering.h"

#include "sim/compile/code_builder.h"
#include "sim/parse/diagnostic.h"
#include "sim/state/warp.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

Type element_type(const RegisterDecl& decl) {
  return decl.type;
}

/// The bits of an immediate as a value of this type.
std::uint64_t immediate_bits(const Operand& operand, Type type) {
  if (operand.kind == OperandKind::kInteger) {
    const auto value = static_cast<std::uint64_t>(operand.value);
    if (type == Type::kF32) {
      return std::bit_cast<std::uint32_t>(static_cast<float>(operand.value));
    }
    if (type == Type::kF64) {
      return std::bit_cast<std::uint64_t>(static_cast<double>(operand.value));
    }
    return value;
  }
  if (bits_of(type) == 64) return static_cast<std::uint64_t>(operand.value);
  return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(operand.value)));
}

Step is_nonzero(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto* values = warp.row<std::uint32_t>(insn.op[1]);
  std::uint32_t mask = 0;
  for (int lane = 0; lane < kLanes; ++lane) mask |= std::uint32_t{values[lane] != 0} << lane;
  warp.set_predicate(insn.op[0], active, mask);
  return Step::kNext;
}

}  // namespace

Lowering::Lowering(CodeBuilder& builder, const Function& function, const Instruction& syntax)
    : builder_(builder), function_(function), syntax_(syntax), modifiers_(syntax.modifiers) {}

const Module& Lowering::module() const noexcept {
  return builder_.module_;
}

bool Lowering::take(std::string_view modifier) {
  const auto at = std::ranges::find(modifiers_, modifier);
  if (at == modifiers_.end()) return false;
  modifiers_.erase(at);
  return true;
}

int Lowering::take_one_of(std::initializer_list<std::string_view> modifiers) {
  int index = 0;
  for (const std::string_view modifier : modifiers) {
    if (take(modifier)) return index;
    ++index;
  }
  return -1;
}

Type Lowering::optional_type() {
  for (auto at = modifiers_.begin(); at != modifiers_.end(); ++at) {
    const Type type = parse_type(*at);
    if (type == Type::kNone) continue;
    modifiers_.erase(at);
    return type;
  }
  return Type::kNone;
}

Type Lowering::type() {
  const Type type = optional_type();
  if (type == Type::kNone) fail("a type such as .u32 is missing");
  return type;
}

std::string_view Lowering::take_prefix(std::string_view prefix) {
  const auto at = std::ranges::find_if(
      modifiers_, [&](std::string_view modifier) { return modifier.starts_with(prefix); });
  if (at == modifiers_.end()) return {};
  const std::string_view modifier = *at;
  modifiers_.erase(at);
  return modifier;
}

void Lowering::finish_modifiers() {
  if (modifiers_.empty()) return;
  fail(fmt::format("unknown modifier .{}", modifiers_.front()));
}

int Lowering::num_operands() const noexcept {
  return static_cast<int>(syntax_.operands.size());
}

const Operand& Lowering::operand(int index) const {
  if (!has_operand(index)) {
    fail(fmt::format("operand {} is missing; {} given", index + 1, num_operands()));
  }
  return syntax_.operands[static_cast<std::size_t>(index)];
}

Row Lowering::source(int index, Type type) {
  return source(operand(index), type);
}

Row Lowering::source(const Operand& operand, Type type) {
  const TypedRow typed = source_any(operand, type);
  if (row_bytes(typed.type) != row_bytes(type) ||
      (typed.type == Type::kPred) != (type == Type::kPred)) {
    fail_at(operand, fmt::format("a register of type .{} cannot be read as .{}",
                                 name_of(typed.type), name_of(type)));
  }
  return typed.row;
}

TypedRow Lowering::source_any(int index, Type type) {
  return source_any(operand(index), type);
}

TypedRow Lowering::source_any(const Operand& operand, Type type) {
  switch (operand.kind) {
    case OperandKind::kRegister: {
      if (operand.is_negated || operand.is_minus) fail_at(operand, "cannot be negated here");
      const Type actual = element_type(builder_.register_decl(operand.index));
      const Row row = builder_.register_row(operand.index, operand.component);
      return {row, actual};
    }
    case OperandKind::kInteger:
    case OperandKind::kFloat:
      return {constant(type, immediate_bits(operand, type)), type};
    case OperandKind::kSpecial: {
      const bool is_wide = bits_of(type) == 64;
      const Row row =
          builder_.special(static_cast<SpecialRegister>(operand.index), operand.component, is_wide);
      return {row, is_wide ? Type::kU64 : Type::kU32};
    }
    case OperandKind::kVariable: {
      const Address address = builder_.address_of(operand, operand.value);
      if (address.space == Space::kShared) {
        return {
            builder_.shared_address(builder_.variable(operand), operand.value, bits_of(type) == 64),
            type};
      }
      if (address.base != kNoRow) return {builder_.frame_address(address, type), type};
      return {constant(type, static_cast<std::uint64_t>(address.offset)), type};
    }
    case OperandKind::kFunction:
      return {constant(type, function_address(operand.index)), type};
    default:
      fail_at(operand, "a register or a constant is expected here");
  }
}

std::pair<Row, bool> Lowering::source_predicate(int index) {
  return source_predicate(operand(index));
}

std::pair<Row, bool> Lowering::source_predicate(const Operand& operand) {
  if (operand.kind == OperandKind::kSpecial) {
    if (static_cast<SpecialRegister>(operand.index) != SpecialRegister::kIsExplicitCluster) {
      fail_at(operand, "this special register is no predicate");
    }
    const Row number = builder_.special(SpecialRegister::kIsExplicitCluster, 0, false);
    const Row out = scratch(Type::kPred);
    emit(is_nonzero, {out, number});
    return {out, false};
  }
  if (operand.kind == OperandKind::kInteger) {
    return {constant(Type::kPred, operand.value != 0), operand.is_negated};
  }
  if (operand.kind != OperandKind::kRegister ||
      builder_.register_decl(operand.index).type != Type::kPred) {
    fail_at(operand, "a predicate is expected here");
  }
  return {builder_.register_row(operand.index, 0), operand.is_negated};
}

Row Lowering::destination(int index, Type type) {
  return destination(operand(index), type);
}

Row Lowering::destination(const Operand& operand, Type type) {
  const TypedRow typed = destination_any(operand, type);
  if (row_bytes(typed.type) != row_bytes(type) ||
      (typed.type == Type::kPred) != (type == Type::kPred)) {
    fail_at(operand, fmt::format("a result of type .{} cannot go into a register of type .{}",
                                 name_of(type), name_of(typed.type)));
  }
  return typed.row;
}

TypedRow Lowering::destination_any(int index, Type type) {
  return destination_any(operand(index), type);
}

TypedRow Lowering::destination_any(const Operand& operand, Type type) {
  if (operand.kind == OperandKind::kSink) return {scratch(type), type};
  if (operand.kind != OperandKind::kRegister) fail_at(operand, "a register is expected here");
  return {builder_.register_row(operand.index, operand.component),
          element_type(builder_.register_decl(operand.index))};
}

std::pair<Row, Row> Lowering::destination_pair(int index, Type type) {
  const Operand& both = operand(index);
  if (both.kind != OperandKind::kPair) return {destination(both, type), kNoRow};
  return {destination(both.parts.at(0), type), destination(both.parts.at(1), Type::kPred)};
}

Address Lowering::address(int index) {
  const Operand& memory = operand(index);
  if (memory.kind != OperandKind::kMemory || memory.parts.empty()) {
    fail_at(memory, "an address in brackets is expected here");
  }
  const Operand& base = memory.parts[0];
  const bool is_variable = base.kind == OperandKind::kVariable;
  return builder_.address_of(base, memory.value + (is_variable ? base.value : 0));
}

std::span<const Operand> Lowering::elements(int index) const {
  const Operand& whole = operand(index);
  if (whole.kind == OperandKind::kVector) return whole.parts;
  return {&whole, 1};
}

std::int64_t Lowering::immediate(int index) {
  const Operand& value = operand(index);
  if (value.kind != OperandKind::kInteger) fail_at(value, "an integer constant is expected here");
  return value.value;
}

bool Lowering::is_immediate(int index) const {
  return operand(index).kind == OperandKind::kInteger;
}

Row Lowering::constant(Type type, std::uint64_t bits) {
  return builder_.constant(type, bits);
}

Row Lowering::scratch(Type type) {
  return builder_.scratch(type);
}

Row Lowering::carry() {
  if (builder_.carry_ == kNoRow) builder_.carry_ = builder_.new_row(64);
  return builder_.carry_;
}

void Lowering::own(std::shared_ptr<void> value) {
  builder_.code_->owned.push_back(std::move(value));
}

Insn& Lowering::emit(ExecFn exec, std::initializer_list<Row> ops, int num_destinations) {
  builder_.finish_uses();
  Insn insn;
  insn.exec = exec;
  insn.syntax = builder_.place_;
  insn.insn_class = builder_.row_ == nullptr ? InsnClass::kOther : builder_.row_->insn_class;
  if (syntax_.guard) {
    insn.guard = builder_.register_row(syntax_.guard->register_idx, 0);
    insn.guard_flip = syntax_.guard->is_negated ? kAllLanes : 0;
  }
  if (ops.size() > insn.op.size()) fail("too many operands for one instruction");
  std::ranges::copy(ops, insn.op.begin());
  int index = 0;
  for (const Row row : ops) {
    if (row != kNoRow)
      (index < num_destinations ? builder_.written_ : builder_.read_).push_back(row);
    ++index;
  }
  builder_.code_->insns.push_back(insn);
  return builder_.code_->insns.back();
}

void Lowering::also_reads(Row row) {
  builder_.read_.push_back(row);
}

void Lowering::also_writes(Row row) {
  builder_.written_.push_back(row);
}

void Lowering::keeps_old(Row row) {
  builder_.read_.push_back(row);
}

Insn& Lowering::emit_jump(ExecFn exec, std::initializer_list<Row> ops, const Operand& label) {
  if (label.kind != OperandKind::kLabel) fail_at(label, "a label is expected here");
  Insn& insn = emit(exec, ops, 0);
  insn.flags |= kControl;
  builder_.jumps_.emplace_back(builder_.code_->insns.size() - 1,
                               builder_.flat_.copies[builder_.copy_].label_base + label.index);
  return insn;
}

void Lowering::fail(std::string_view message) const {
  const std::string note = modifiers_.empty() ? "" : module().version_note();
  sim::fail_at(builder_.module_, syntax_.pos, std::string(message) + note);
}

void Lowering::refuse(std::string_view reason) const {
  sim::fail_at(builder_.module_, syntax_.pos, reason);
}

void Lowering::fail_at(const Operand& operand, std::string_view message) const {
  const SourcePos pos = operand.pos.line != 0 ? operand.pos : syntax_.pos;
  sim::fail_at(builder_.module_, pos, message);
}

}  // namespace tilewright::sim
