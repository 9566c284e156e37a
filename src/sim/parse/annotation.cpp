// Directives that say nothing about what a program does.
#include "sim/parse/constant.h"
#include "sim/parse/function_parser.h"

#include <limits>

namespace tilewright::sim {
namespace {

constexpr std::uint64_t kMaxNumber = std::numeric_limits<std::uint32_t>::max();

std::uint32_t take_number(TokenStream& tokens, std::string_view what) {
  const Token number = tokens.expect(TokenKind::kNumber, what);
  const Constant value = parse_literal(tokens, number);
  if (value.is_float() || value.bits > kMaxNumber) {
    tokens.fail(number.pos, "expected an integer of 32 bits");
  }
  return static_cast<std::uint32_t>(value.bits);
}

/// .pragma "nounroll", "...";
void parse_pragma(TokenStream& tokens) {
  do {
    tokens.expect(TokenKind::kString, "a string");
  } while (tokens.accept(','));
  tokens.expect(';', "after .pragma");
}

/// .file 1 "path" and perhaps , timestamp, size
void parse_file(ParseContext& context) {
  TokenStream& tokens = context.tokens;
  const std::uint32_t number = take_number(tokens, "the number of the file");
  const Token path = tokens.expect(TokenKind::kString, "the path of the file");
  context.module.files.emplace_back(number, path.text.substr(1, path.text.size() - 2));
  while (tokens.accept(',')) tokens.expect(TokenKind::kNumber, "a timestamp or size");
}

/// .loc file line column, and perhaps , function_name label + offset, inlined_at file line column
void parse_loc(ParseContext& context) {
  TokenStream& tokens = context.tokens;
  context.loc.file = take_number(tokens, "the number of a file");
  context.loc.line = take_number(tokens, "a line");
  take_number(tokens, "a column");
  while (tokens.accept(',')) {
    const Token key = tokens.expect(TokenKind::kName, "function_name or inlined_at");
    if (key.text == "function_name") {
      tokens.expect(TokenKind::kName, "a label");
      parse_addend(tokens);
    } else if (key.text == "inlined_at") {
      take_number(tokens, "the number of a file");
      take_number(tokens, "a line");
      take_number(tokens, "a column");
    } else {
      tokens.fail(key.pos, "expected function_name or inlined_at");
    }
  }
}

}  // namespace

bool parse_annotation(ParseContext& context) {
  if (context.tokens.accept(".pragma")) {
    parse_pragma(context.tokens);
  } else if (context.tokens.accept(".loc")) {
    parse_loc(context);
  } else if (context.tokens.accept(".file")) {
    parse_file(context);
  } else {
    return false;
  }
  return true;
}

}  // namespace tilewright::sim
