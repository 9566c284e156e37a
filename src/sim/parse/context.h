// What all parts of the parser share while one module is read.
#pragma once

#include "sim/parse/lexer.h"
#include "sim/parse/scoped_names.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::sim {

/// What a name stands for.
struct Symbol {
  enum class Kind : std::uint8_t { kRegister, kLocalVariable, kModuleVariable, kFunction };
  Kind kind = Kind::kRegister;
  std::uint32_t index = 0;
  SourcePos pos;
};

/// A relocation whose target may be declared further down.
struct PendingRelocation {
  std::optional<std::uint32_t> function_idx;  ///< of the function that holds the variable
  std::uint32_t variable_idx = 0;
  std::uint32_t relocation_idx = 0;
  Token target;
};

class ParseContext {
 public:
  explicit ParseContext(Module& module_to_fill) : module(module_to_fill), tokens(module_to_fill) {}

  Module& module;
  TokenStream tokens;
  ScopedNames<Symbol> names;
  SourceLoc loc;                              ///< of the last .loc
  std::optional<std::uint32_t> function_idx;  ///< the function that is being read
  std::vector<PendingRelocation> relocations;
  std::uint64_t num_range_names = 0;
  std::uint64_t num_initial_bytes = 0;

  /// Enters a name into the current scope; an error if it is there already.
  void declare(std::string_view name, Symbol symbol);

  [[noreturn]] void fail_declared(std::string_view name, SourcePos pos, SourcePos first) const;

  /// "unknown register "%r1x"; similar names: ...", from the visible names of those kinds.
  [[noreturn]] void fail_unknown(const Token& name, std::string_view what,
                                 std::initializer_list<Symbol::Kind> kinds) const;
  /// The same for a register, also a special one.
  [[noreturn]] void fail_unknown_register(const Token& name) const;

 private:
  std::vector<std::string_view> names_of(std::initializer_list<Symbol::Kind> kinds) const;
};

/// "; similar names: "a", "b"" for the candidates that share at least half of the name; "" if none.
std::string suggestion(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace tilewright::sim
