// Declarations of registers, variables and parameters.
#pragma once

#include "sim/parse/context.h"

#include <deque>
#include <string>

namespace tilewright::sim {

/// A function while it is read. `names` keeps the spelled-out names of register ranges alive.
struct OpenFunction {
  Function function;
  std::deque<std::string> names;
};

/// .reg, .param, .shared, .local, .global or .const
bool begins_declaration(const Token& token) noexcept;

/// Takes a declaration up to its semicolon. `function` is null outside of functions, where .reg and
/// .param cannot stand.
void parse_declaration(ParseContext& context, Linkage linkage, OpenFunction* function);

/// Takes "(a, b)", the parameters or results of a function or prototype.
std::vector<Variable> parse_parameters(ParseContext& context);

/// Takes "100>", the number of names of a range, behind the <. All ranges of a module together have
/// at most kMaxRange names more than its text has characters.
std::uint64_t parse_range(ParseContext& context);

/// Takes ".attribute(...)"; true if it says .managed.
bool parse_attribute(ParseContext& context);

}  // namespace tilewright::sim
