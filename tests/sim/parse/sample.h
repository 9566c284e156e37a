// PTX for the tests of the parser.
#pragma once

#include "base/file.h"
#include "sim/parse/parser.h"
#include "tests/base/expect_error.h"

#include <algorithm>
#include <string>

namespace tilewright::sim {

inline const std::string kHeader = ".version 9.0\n.target sm_90a\n.address_size 64\n";

inline Module parse_sample(const std::string& name) {
  const std::string path = std::string(TILEWRIGHT_TEST_DATA) + "/ptx/" + name;
  return parse_module(std::string(MappedFile(path).text()), name);
}

/// The header and that text; the first line of the text is line 4.
inline Module parse(const std::string& text) {
  return parse_module(kHeader + text, "input");
}

/// A kernel with some registers whose statements are the text.
inline std::string kernel(const std::string& text) {
  return ".global .b32 counter;\n"
         ".visible .entry k(.param .b64 pointer) {\n"
         ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;\n" +
         text + "\nret;\n}\n";
}
inline constexpr int kFirstLineOfKernel = 7;

/// Keeps the module too, whose text the function's instructions view.
struct ParsedKernel {
  Module module;
  const Function& function() const { return module.functions.at(0); }
};
inline ParsedKernel parse_statements(const std::string& text) {
  return {parse(kernel(text))};
}

/// What parsing the header and the text is refused with.
inline std::string error_in(const std::string& text) {
  return error_of(ErrorKind::kParseError, [&] { parse(text); });
}

inline const Function& function_named(const Module& module, std::string_view name) {
  return *std::ranges::find(module.functions, name, &Function::name);
}

inline const Variable& variable_named(const Module& module, std::string_view name) {
  return *std::ranges::find(module.variables, name, &Variable::name);
}

}  // namespace tilewright::sim
