#include "sim/parse/operand.h"

#include "base/quote.h"
#include "sim/parse/constant.h"
#include "sim/parse/limits.h"
#include "sim/parse/special_register.h"

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

/// The number that Operand::component has for a selector such as ".x", -1 if it is none.
int component_of(std::string_view selector) {
  if (selector.size() == 2) {
    const std::size_t vector = std::string_view("xyzw").find(selector[1]);
    const std::size_t colour = std::string_view("rgba").find(selector[1]);
    if (vector != std::string_view::npos) return static_cast<int>(vector);
    if (colour != std::string_view::npos) return static_cast<int>(colour);
  }
  if (selector.size() == 3 && selector[1] == 'b' && selector[2] >= '0' && selector[2] <= '3') {
    return kByteSelector + selector[2] - '0';
  }
  if (selector.size() == 3 && selector[1] == 'h' && (selector[2] == '0' || selector[2] == '1')) {
    return kHalfSelector + selector[2] - '0';
  }
  return -1;
}

Operand make(OperandKind kind, SourcePos pos) {
  Operand operand;
  operand.kind = kind;
  operand.pos = pos;
  return operand;
}

}  // namespace

void OperandParser::parse(Instruction& instruction, std::vector<ForwardName>& forward_names) {
  is_call_ = instruction.opcode == "call";
  const bool is_indexed_branch = instruction.opcode == "brx";
  if (tokens_.peek().is_symbol(';')) return;
  do {
    forward_name_ = {};
    is_target_ =
        instruction.opcode == "bra" || (is_indexed_branch && !instruction.operands.empty());
    Operand parsed = operand();
    if (parsed.kind == OperandKind::kLabel) {
      const auto operand_idx = static_cast<std::uint32_t>(instruction.operands.size());
      forward_names.push_back({operand_idx, forward_name_});
    }
    // ld [a].unified: a modifier that stands behind its operand.
    while (parsed.kind == OperandKind::kMemory && tokens_.peek().kind == TokenKind::kDirective) {
      instruction.modifiers.push_back(tokens_.take().text.substr(1));
    }
    instruction.operands.push_back(std::move(parsed));
  } while (tokens_.accept(','));
}

Operand OperandParser::operand() {
  if (++depth_ > kMaxOperandDepth) {
    tokens_.fail(tokens_.peek().pos,
                 fmt::format("operands are nested more than {} deep", kMaxOperandDepth));
  }
  Operand first = operand_without_pair();
  if (tokens_.peek().is_symbol('|')) {
    Operand pair = make(OperandKind::kPair, first.pos);
    tokens_.take();
    pair.parts.push_back(std::move(first));
    pair.parts.push_back(operand_without_pair());
    first = std::move(pair);
  }
  --depth_;
  return first;
}

Operand OperandParser::operand_without_pair() {
  const Token& token = tokens_.peek();
  if (token.kind == TokenKind::kName && token.text != "WARP_SZ") return name();
  if (token.kind == TokenKind::kNumber) return constant();
  if (token.is_symbol('{')) return list('}', OperandKind::kVector);
  if (token.is_symbol('[')) return memory();
  if (token.is_symbol('(') && is_list_in_parentheses()) {
    return list(')', OperandKind::kParenthesis);
  }
  if (token.is_symbol('!') || token.is_symbol('-')) return sign_or_not();
  if (begins_constant(token)) return constant();
  const bool is_missing = token.is_symbol(';') || token.kind == TokenKind::kEnd;
  tokens_.fail(is_missing ? tokens_.end_of_last() : token.pos,
               fmt::format("expected an operand, found {}", TokenStream::describe(token)));
}

/// (%r1, 2) is a list, (1 + 2) * 3 and (.s64)1 are constants.
bool OperandParser::is_list_in_parentheses() const noexcept {
  if (is_call_) return true;
  const Token& second = tokens_.peek_second();
  return second.kind != TokenKind::kDirective && !begins_constant(second);
}

Operand OperandParser::list(char close, OperandKind kind) {
  Operand operands = make(kind, tokens_.take().pos);
  if (tokens_.accept(close)) return operands;
  do {
    operands.parts.push_back(operand());
  } while (tokens_.accept(','));
  tokens_.expect(close,
                 fmt::format("to close the list that begins in column {}", operands.pos.column));
  return operands;
}

/// [base + offset, {coordinates}]
Operand OperandParser::memory() {
  Operand address = make(OperandKind::kMemory, tokens_.take().pos);
  Operand base = operand();
  if (base.kind == OperandKind::kRegister && !base.is_minus) {
    address.value = parse_addend(tokens_);
  } else if (base.kind == OperandKind::kVariable) {
    address.value = base.value;
    base.value = 0;
  }
  address.parts.push_back(std::move(base));
  while (tokens_.accept(',')) address.parts.push_back(operand());
  tokens_.expect(']', "to close the address");
  return address;
}

Operand OperandParser::constant() {
  const SourcePos pos = tokens_.peek().pos;
  const Constant value = parse_constant(tokens_);
  Operand operand = make(value.is_float() ? OperandKind::kFloat : OperandKind::kInteger, pos);
  operand.value = static_cast<std::int64_t>(value.bits);
  operand.is_f32_bits = value.is_f32_bits;
  return operand;
}

/// !%p, -%r, or a constant
Operand OperandParser::sign_or_not() {
  const bool is_constant = begins_constant(tokens_.peek_second());
  if (is_constant) return constant();
  const Token sign = tokens_.take();
  if (tokens_.peek().kind != TokenKind::kName) {
    tokens_.fail(tokens_.peek().pos, fmt::format("expected a register after '{}', found {}",
                                                 sign.text, TokenStream::describe(tokens_.peek())));
  }
  Operand operand = name();
  if (operand.kind != OperandKind::kRegister) {
    tokens_.fail(operand.pos, fmt::format("'{}' can stand before registers only", sign.text));
  }
  operand.is_negated = sign.is_symbol('!');
  operand.is_minus = !operand.is_negated;
  operand.pos = sign.pos;
  return operand;
}

Operand OperandParser::name() {
  const Token token = tokens_.take();
  Operand operand = make(OperandKind::kSink, token.pos);
  if (token.text == "_") return operand;
  // Where a label can stand, whether a name is one is known at the end of its scope only.
  const auto* entry = context_.names.find(token.text);
  const bool is_forward = is_target_ || (is_call_ && entry == nullptr);
  if (is_forward && depth_ == 1) {
    operand.kind = OperandKind::kLabel;
    forward_name_ = token;
    return operand;
  }
  if (entry == nullptr && token.text[0] == '%') return special_register(token);
  if (entry == nullptr) {
    context_.fail_unknown(token, "name",
                          {Symbol::Kind::kRegister, Symbol::Kind::kLocalVariable,
                           Symbol::Kind::kModuleVariable, Symbol::Kind::kFunction});
  }
  operand.index = entry->value.index;
  switch (entry->value.kind) {
    case Symbol::Kind::kRegister:
      operand.kind = OperandKind::kRegister;
      parse_component(operand, function_.registers[operand.index].num_components);
      return operand;
    case Symbol::Kind::kFunction:
      operand.kind = OperandKind::kFunction;
      return operand;
    default:
      operand.kind = OperandKind::kVariable;
      operand.is_local = entry->value.kind == Symbol::Kind::kLocalVariable;
      operand.value = parse_addend(tokens_);
      return operand;
  }
}

Operand OperandParser::special_register(const Token& token) {
  const auto special = find_special_register(token.text);
  if (!special) context_.fail_unknown_register(token);
  Operand operand = make(OperandKind::kSpecial, token.pos);
  operand.index = static_cast<std::uint32_t>(special->which);
  operand.component = special->number.value_or(0);
  parse_component(operand, special->has_components ? 4 : 1);
  return operand;
}

void OperandParser::parse_component(Operand& operand, int num_components) {
  if (tokens_.peek().kind != TokenKind::kDirective) return;
  const Token selector = tokens_.take();
  const int component = component_of(selector.text);
  if (component < 0) {
    tokens_.fail(selector.pos,
                 fmt::format("{} is no component; expected .x .y .z .w", quote(selector.text, 30)));
  }
  const bool is_selector = component >= kByteSelector;
  if (!is_selector && num_components == 1) {
    tokens_.fail(selector.pos, fmt::format("{} after what is no vector register", selector.text));
  }
  if (!is_selector && component >= num_components) {
    tokens_.fail(selector.pos, fmt::format("the register has {} components; {} is none of them",
                                           num_components, selector.text));
  }
  operand.component = static_cast<std::uint8_t>(component);
  operand.has_component = true;
}

}  // namespace tilewright::sim
