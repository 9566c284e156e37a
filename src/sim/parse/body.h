// The statements between the braces of a function.
#pragma once

#include "sim/parse/declaration.h"
#include "sim/parse/operand.h"

#include <vector>

namespace tilewright::sim {

/// Fills registers, variables, labels, tables and body of a function.
class BodyParser {
 public:
  BodyParser(ParseContext& context, OpenFunction& open)
      : context_(context),
        tokens_(context.tokens),
        open_(open),
        function_(open.function),
        operands_(context, open.function) {}

  /// Takes the body with its braces. The scope of the parameters must be open.
  void parse();

 private:
  enum class Place : std::uint8_t { kOperand, kTable };

  /// A use of a label, table or function by a name that may be declared further down.
  struct Pending {
    Place place = Place::kOperand;
    std::uint32_t owner_idx = 0;  ///< instruction or table
    std::uint32_t part_idx = 0;   ///< operand or target
    Token name;
  };
  struct LabelSymbol {
    bool is_table = false;
    std::uint32_t index = 0;
    SourcePos pos;
  };

  void statement();
  void directive();
  void open_scope();
  void close_scope();
  void label();
  void declare_label(const Token& name, LabelSymbol symbol);
  void table(const Token& name);
  void branch_targets(TargetTable& table);
  void call_targets(TargetTable& table);
  void prototype(TargetTable& table);
  void instruction();
  Guard guard();
  void resolve(const Pending& pending, const LabelSymbol& symbol);
  [[noreturn]] void fail_unresolved(const Pending& pending);

  ParseContext& context_;
  TokenStream& tokens_;
  OpenFunction& open_;
  Function& function_;
  OperandParser operands_;
  ScopedNames<LabelSymbol> labels_;
  std::vector<Pending> pending_;
  std::vector<std::size_t> first_pending_;  ///< of each open scope
  std::vector<SourcePos> open_braces_;
  std::vector<OperandParser::ForwardName> forward_names_;  ///< of one instruction
  std::deque<std::string> label_names_;
};

}  // namespace tilewright::sim
