// Operands of instructions.
#pragma once

#include "sim/parse/context.h"

#include <vector>

namespace tilewright::sim {

/// Takes the operands of one instruction.
class OperandParser {
 public:
  /// A name in an operand that nothing visible has: it may be a label or table further down.
  struct ForwardName {
    std::uint32_t operand_idx = 0;
    Token name;
  };

  OperandParser(ParseContext& context, const Function& function)
      : context_(context), tokens_(context.tokens), function_(function) {}

  /// Takes operands up to the semicolon, which it leaves. Where the instruction may
  /// go to a label or table (bra, brx, call), names become forward names.
  void parse(Instruction& instruction, std::vector<ForwardName>& forward_names);

 private:
  Operand operand();
  Operand operand_without_pair();
  Operand memory();
  Operand list(char close, OperandKind kind);
  Operand constant();
  Operand name();
  Operand sign_or_not();
  Operand special_register(const Token& token);
  void parse_component(Operand& operand, int num_components);
  bool is_list_in_parentheses() const noexcept;

  ParseContext& context_;
  TokenStream& tokens_;
  const Function& function_;
  bool is_target_ = false;  ///< the operand that is being read is a label or a table
  bool is_call_ = false;
  int depth_ = 0;
  Token forward_name_;  ///< of the operand that was read last, if that is one
};

}  // namespace tilewright::sim
