#include "sim/parse/body.h"

#include "base/quote.h"
#include "sim/parse/function_parser.h"
#include "sim/parse/limits.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::sim {

void BodyParser::parse() {
  open_scope();
  while (!open_braces_.empty()) statement();
}

void BodyParser::statement() {
  const Token& token = tokens_.peek();
  if (token.kind == TokenKind::kName) {
    return tokens_.peek_second().is_symbol(':') ? label() : instruction();
  }
  if (token.kind == TokenKind::kDirective) return directive();
  if (token.is_symbol('@')) return instruction();
  if (token.is_symbol('{')) return open_scope();
  if (token.is_symbol('}')) return close_scope();
  if (tokens_.accept(';')) return;
  if (token.kind == TokenKind::kEnd) {
    tokens_.fail(open_braces_.back(),
                 fmt::format("this brace is never closed; the text ends inside {}",
                             quote(function_.name, 200)));
  }
  tokens_.fail(token.pos,
               fmt::format("expected a statement, found {}", TokenStream::describe(token)));
}

void BodyParser::directive() {
  if (parse_annotation(context_)) return;
  Linkage linkage = Linkage::kInternal;
  if (tokens_.accept(".extern")) linkage = Linkage::kExtern;
  if (!begins_declaration(tokens_.peek())) {
    const Token& token = tokens_.peek();
    const auto close = suggestion(token.text, {".reg", ".param", ".shared", ".local", ".global",
                                               ".const", ".pragma", ".loc", ".file", ".extern"});
    tokens_.fail(token.pos,
                 fmt::format("{} cannot stand in a function{}{}", TokenStream::describe(token),
                             close, context_.module.version_note()));
  }
  parse_declaration(context_, linkage, &open_);
}

void BodyParser::open_scope() {
  const Token brace = tokens_.expect('{', "to begin the function");
  if (open_braces_.size() == static_cast<std::size_t>(kMaxScopeDepth)) {
    tokens_.fail(brace.pos, fmt::format("scopes are nested more than {} deep", kMaxScopeDepth));
  }
  // The outermost braces are the scope of the parameters too.
  if (!open_braces_.empty()) context_.names.open();
  labels_.open();
  open_braces_.push_back(brace.pos);
  first_pending_.push_back(pending_.size());
}

void BodyParser::close_scope() {
  tokens_.take();
  // What this scope does not know may still be declared in one around it.
  const auto begin = pending_.begin() + static_cast<std::ptrdiff_t>(first_pending_.back());
  const auto end = std::remove_if(begin, pending_.end(), [this](const Pending& pending) {
    const auto* entry = labels_.find(pending.name.text);
    const bool is_known = entry != nullptr && entry->depth == labels_.depth();
    if (is_known) resolve(pending, entry->value);
    return is_known;
  });
  pending_.erase(end, pending_.end());
  first_pending_.pop_back();
  open_braces_.pop_back();
  if (open_braces_.empty() && !pending_.empty()) fail_unresolved(pending_.front());
  labels_.close();
  if (!open_braces_.empty()) context_.names.close();
}

void BodyParser::resolve(const Pending& pending, const LabelSymbol& symbol) {
  if (pending.place == Place::kTable) {
    if (symbol.is_table) {
      tokens_.fail(pending.name.pos, fmt::format("{} is no label", quote(pending.name.text)));
    }
    function_.tables[pending.owner_idx].targets[pending.part_idx] = symbol.index;
    return;
  }
  Operand& operand = function_.body[pending.owner_idx].operands[pending.part_idx];
  operand.kind = symbol.is_table ? OperandKind::kTable : OperandKind::kLabel;
  operand.index = symbol.index;
}

void BodyParser::fail_unresolved(const Pending& pending) {
  std::vector<std::string_view> candidates;
  for (const auto& entry : labels_.entries()) candidates.push_back(entry.name);
  const bool is_call =
      pending.place == Place::kOperand && function_.body[pending.owner_idx].opcode == "call";
  if (is_call) {
    for (const Function& function : context_.module.functions) candidates.push_back(function.name);
  }
  tokens_.fail(pending.name.pos,
               fmt::format("unknown {} {}{}", is_call ? "function" : "label",
                           quote(pending.name.text), suggestion(pending.name.text, candidates)));
}

void BodyParser::declare_label(const Token& name, LabelSymbol symbol) {
  if (const auto* entry = labels_.declare(name.text, symbol)) {
    context_.fail_declared(name.text, name.pos, entry->value.pos);
  }
  // Registers and variables share their scope's names with the labels.
  const auto* other = context_.names.find(name.text);
  if (other != nullptr && other->depth == context_.names.depth()) {
    context_.fail_declared(name.text, name.pos, other->value.pos);
  }
}

void BodyParser::label() {
  const Token name = tokens_.take();
  tokens_.expect(':', "after the label");
  const Token& next = tokens_.peek();
  if (next.is_directive(".branchtargets") || next.is_directive(".calltargets") ||
      next.is_directive(".callprototype")) {
    return table(name);
  }
  const auto idx = static_cast<std::uint32_t>(function_.labels.size());
  declare_label(name, {false, idx, name.pos});
  function_.labels.push_back(
      {std::string(name.text), static_cast<std::uint32_t>(function_.body.size())});
}

void BodyParser::table(const Token& name) {
  const auto idx = static_cast<std::uint32_t>(function_.tables.size());
  declare_label(name, {true, idx, name.pos});
  TargetTable& table = function_.tables.emplace_back();
  table.name = name.text;
  const Token kind = tokens_.take();
  if (kind.text == ".branchtargets") {
    branch_targets(table);
  } else if (kind.text == ".calltargets") {
    call_targets(table);
  } else {
    prototype(table);
  }
  tokens_.expect(';', fmt::format("at the end of {}", kind.text));
}

void BodyParser::branch_targets(TargetTable& table) {
  table.is_branch = true;
  const auto table_idx = static_cast<std::uint32_t>(function_.tables.size() - 1);
  const auto add = [&](const Token& name) {
    const auto target_idx = static_cast<std::uint32_t>(table.targets.size());
    pending_.push_back({Place::kTable, table_idx, target_idx, name});
    table.targets.push_back(0);
  };
  do {
    Token name = tokens_.expect(TokenKind::kName, "a label");
    if (!tokens_.accept('<')) {
      add(name);
      continue;
    }
    if (name.text.size() > kMaxRangePrefixBytes) {
      tokens_.fail(name.pos, "the name of this range is too long");
    }
    const std::string prefix(name.text);
    const std::uint64_t count = parse_range(context_);
    for (std::uint64_t i = 0; i < count; ++i) {
      name.text = label_names_.emplace_back(prefix + std::to_string(i));
      add(name);
    }
  } while (tokens_.accept(','));
}

void BodyParser::call_targets(TargetTable& table) {
  do {
    const Token name = tokens_.expect(TokenKind::kName, "a function");
    const auto* entry = context_.names.find(name.text);
    if (entry == nullptr || entry->value.kind != Symbol::Kind::kFunction) {
      context_.fail_unknown(name, "function", {Symbol::Kind::kFunction});
    }
    table.targets.push_back(entry->value.index);
  } while (tokens_.accept(','));
}

/// (results) _ (parameters) .noreturn
void BodyParser::prototype(TargetTable& table) {
  table.is_prototype = true;
  if (tokens_.peek().is_symbol('(')) table.returns = parse_parameters(context_);
  tokens_.expect(TokenKind::kName, "_");
  if (tokens_.peek().is_symbol('(')) table.params = parse_parameters(context_);
  while (tokens_.peek().kind == TokenKind::kDirective) {
    const Token property = tokens_.take();
    if (property.text == ".noreturn" || property.text == ".abi_preserve_control" ||
        property.text == ".abi_preserve") {
      if (property.text != ".noreturn") tokens_.expect(TokenKind::kNumber, "a number");
      continue;
    }
    tokens_.fail(property.pos, fmt::format("{} cannot stand in a prototype", quote(property.text)));
  }
}

Guard BodyParser::guard() {
  tokens_.take();
  Guard guard;
  guard.is_negated = tokens_.accept('!');
  const Token name = tokens_.expect(TokenKind::kName, "a predicate after '@'");
  const auto* entry = context_.names.find(name.text);
  if (entry == nullptr || entry->value.kind != Symbol::Kind::kRegister) {
    context_.fail_unknown_register(name);
  }
  guard.register_idx = entry->value.index;
  const Type type = function_.registers[guard.register_idx].type;
  if (type != Type::kPred) {
    tokens_.fail(name.pos, fmt::format("a guard needs a register of type .pred; {} is .{}",
                                       quote(name.text), name_of(type)));
  }
  return guard;
}

void BodyParser::instruction() {
  const auto instruction_idx = static_cast<std::uint32_t>(function_.body.size());
  Instruction parsed;
  if (tokens_.peek().is_symbol('@')) parsed.guard = guard();
  const Token opcode = tokens_.expect(TokenKind::kName, "an instruction");
  parsed.opcode = opcode.text;
  parsed.pos = opcode.pos;
  parsed.loc = context_.loc;
  while (tokens_.peek().kind == TokenKind::kDirective) {
    parsed.modifiers.push_back(tokens_.take().text.substr(1));
  }
  forward_names_.clear();
  operands_.parse(parsed, forward_names_);
  for (const auto& [operand_idx, name] : forward_names_) {
    pending_.push_back({Place::kOperand, instruction_idx, operand_idx, name});
  }
  parsed.length =
      static_cast<std::uint32_t>(tokens_.end_offset_of_last() - tokens_.offset_of(opcode));
  tokens_.expect(';', fmt::format("after the instruction {}", quote(opcode.text, 40)));
  function_.body.push_back(std::move(parsed));
}

}  // namespace tilewright::sim
