#include "sim/parse/constant.h"

#include "base/quote.h"
#include "sim/parse/limits.h"

#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

using Kind = Constant::Kind;

constexpr int kWarpSize = 32;
constexpr int kLowestPrecedence = 1;
constexpr int kProductPrecedence = 10;

/// How tightly a binary operator binds; 0 if the token is none.
int precedence_of(const Token& token) {
  if (token.kind != TokenKind::kSymbol) return 0;
  static constexpr std::pair<std::string_view, int> kTable[] = {
      {"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4},  {"&", 5},  {"==", 6},
      {"!=", 6}, {"<", 7},  {"<=", 7}, {">", 7},  {">=", 7}, {"<<", 8},
      {">>", 8}, {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};
  for (const auto& [symbol, precedence] : kTable) {
    if (token.text == symbol) return precedence;
  }
  return 0;
}

template <class T>
bool compare(std::string_view op, T a, T b) {
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  return op == ">" ? a > b : a >= b;
}

std::uint64_t shift(std::string_view op, Constant a, std::uint64_t count) {
  const bool is_negative = a.kind == Kind::kSigned && a.bits >> 63 != 0;
  if (count >= 64) return op == ">>" && is_negative ? ~std::uint64_t{0} : 0;
  if (op == "<<") return a.bits << count;
  if (a.kind == Kind::kSigned) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(a.bits) >> count);
  }
  return a.bits >> count;
}

/// Recursive descent with a bound on the depth.
class Expression {
 public:
  explicit Expression(TokenStream& tokens) : tokens_(tokens) {}

  Constant conditional() {
    const Depth depth(*this);
    const Constant condition = binary(kLowestPrecedence);
    if (!tokens_.accept('?')) return condition;
    const Constant first = conditional();
    tokens_.expect(':', "in the constant expression");
    const Constant second = conditional();
    return condition.is_zero() ? second : first;
  }

  Constant binary(int min_precedence) {
    Constant left = unary();
    while (true) {
      const int precedence = precedence_of(tokens_.peek());
      if (precedence < min_precedence || precedence == 0) return left;
      const Token op = tokens_.take();
      const Constant right = precedence == kProductPrecedence ? unary() : binary(precedence + 1);
      left = apply(op, left, right);
    }
  }

 private:
  struct Depth {
    explicit Depth(Expression& expression) : depth(expression.depth_) {
      if (++depth <= kMaxExpressionDepth) return;
      expression.tokens_.fail(
          expression.tokens_.peek().pos,
          fmt::format("the constant expression is nested more than {} deep", kMaxExpressionDepth));
    }
    ~Depth() { --depth; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    int& depth;
  };

  Constant unary() {
    const Depth depth(*this);
    const Token& token = tokens_.peek();
    if (token.kind == TokenKind::kSymbol && token.text.size() == 1) {
      switch (token.text[0]) {
        case '+':
          tokens_.take();
          return unary();
        case '-':
        case '~':
        case '!':
          return apply_unary(tokens_.take());
        case '(':
          return parenthesis();
        default:
          break;
      }
    }
    return primary();
  }

  Constant apply_unary(const Token& op) {
    Constant value = unary();
    if (op.is_symbol('!')) return Constant::of_int(value.is_zero());
    if (op.is_symbol('~')) {
      require_integer(op, value);
      value.bits = ~value.bits;
    } else if (value.is_float()) {
      value.bits ^= std::uint64_t{1} << 63;
    } else {
      value.bits = 0 - value.bits;
    }
    return value;
  }

  /// ( expression ), or a cast and what it applies to
  Constant parenthesis() {
    tokens_.take();
    const Token cast = tokens_.peek();
    const bool is_signed_cast = cast.is_directive(".s64");
    if (!is_signed_cast && !cast.is_directive(".u64")) {
      const Constant value = conditional();
      tokens_.expect(')', "in the constant expression");
      return value;
    }
    tokens_.take();
    tokens_.expect(')', "after the type of a cast");
    return convert(cast, unary(), is_signed_cast ? Kind::kSigned : Kind::kUnsigned);
  }

  Constant convert(const Token& cast, Constant value, Kind kind) {
    if (value.is_float()) {
      const double whole = std::trunc(value.as_double());
      const double low = kind == Kind::kSigned ? -0x1p63 : 0.0;
      const double high = kind == Kind::kSigned ? 0x1p63 : 0x1p64;
      if (!(whole >= low && whole < high)) {
        tokens_.fail(cast.pos, fmt::format("{} does not fit in {}", value.as_double(), cast.text));
      }
      value.bits = kind == Kind::kSigned
                       ? static_cast<std::uint64_t>(static_cast<std::int64_t>(whole))
                       : static_cast<std::uint64_t>(whole);
    }
    value.is_f32_bits = false;
    value.kind = kind;
    return value;
  }

  Constant primary() {
    const Token& token = tokens_.peek();
    if (token.kind == TokenKind::kNumber) return parse_literal(tokens_, tokens_.take());
    if (token.kind == TokenKind::kName && token.text == "WARP_SZ") {
      tokens_.take();
      return Constant::of_int(kWarpSize);
    }
    tokens_.fail(token.pos,
                 fmt::format("expected a constant, found {}", TokenStream::describe(token)));
  }

  void require_integer(const Token& op, Constant value) {
    if (!value.is_float()) return;
    tokens_.fail(op.pos, fmt::format("'{}' needs integers, not floating-point numbers", op.text));
  }

  Constant apply(const Token& op, Constant a, Constant b) {
    if (op.text == "&&") return Constant::of_int(!a.is_zero() && !b.is_zero());
    if (op.text == "||") return Constant::of_int(!a.is_zero() || !b.is_zero());
    const int precedence = precedence_of(op);
    const bool is_comparison = precedence == 6 || precedence == 7;
    if (a.is_float() || b.is_float()) return apply_to_doubles(op, is_comparison, a, b);
    const bool is_shift = precedence == 8;
    if (is_shift) return {a.kind, false, shift(op.text, a, b.bits)};
    const bool is_unsigned = a.kind == Kind::kUnsigned || b.kind == Kind::kUnsigned;
    if (is_comparison) {
      const auto signed_a = static_cast<std::int64_t>(a.bits);
      const auto signed_b = static_cast<std::int64_t>(b.bits);
      return Constant::of_int(is_unsigned ? compare(op.text, a.bits, b.bits)
                                          : compare(op.text, signed_a, signed_b));
    }
    const Kind kind = is_unsigned || op.text == "%" ? Kind::kUnsigned : Kind::kSigned;
    return {kind, false, calculate(op, kind, a.bits, b.bits)};
  }

  Constant apply_to_doubles(const Token& op, bool is_comparison, Constant a, Constant b) {
    const double x = a.as_double();
    const double y = b.as_double();
    if (is_comparison) return Constant::of_int(compare(op.text, x, y));
    switch (op.text[0]) {
      case '+':
        return Constant::of_double(x + y);
      case '-':
        return Constant::of_double(x - y);
      case '*':
        return Constant::of_double(x * y);
      case '/':
        if (y == 0) tokens_.fail(op.pos, "division by zero in a constant expression");
        return Constant::of_double(x / y);
      default:
        require_integer(op, Constant::of_double(x));
        return a;
    }
  }

  std::uint64_t calculate(const Token& op, Kind kind, std::uint64_t a, std::uint64_t b) {
    switch (op.text[0]) {
      case '+':
        return a + b;
      case '-':
        return a - b;
      case '*':
        return a * b;
      case '&':
        return a & b;
      case '|':
        return a | b;
      case '^':
        return a ^ b;
      default:
        break;
    }
    if (b == 0) tokens_.fail(op.pos, "division by zero in a constant expression");
    if (op.text == "%") return a % b;
    if (kind == Kind::kUnsigned) return a / b;
    const auto dividend = static_cast<std::int64_t>(a);
    const auto divisor = static_cast<std::int64_t>(b);
    return divisor == -1 ? 0 - a : static_cast<std::uint64_t>(dividend / divisor);
  }

  TokenStream& tokens_;
  int depth_ = 0;
};

}  // namespace

Constant Constant::of_int(std::int64_t value) noexcept {
  return {Kind::kSigned, false, static_cast<std::uint64_t>(value)};
}

Constant Constant::of_unsigned(std::uint64_t value) noexcept {
  return {Kind::kUnsigned, false, value};
}

Constant Constant::of_double(double value) noexcept {
  return {Kind::kFloat, false, std::bit_cast<std::uint64_t>(value)};
}

double Constant::as_double() const noexcept {
  if (kind == Kind::kFloat) return std::bit_cast<double>(bits);
  if (kind == Kind::kUnsigned) return static_cast<double>(bits);
  return static_cast<double>(static_cast<std::int64_t>(bits));
}

bool Constant::is_zero() const noexcept {
  return is_float() ? as_double() == 0 : bits == 0;
}

Constant parse_constant(TokenStream& tokens) {
  return Expression(tokens).conditional();
}

bool begins_constant(const Token& token) noexcept {
  if (token.kind == TokenKind::kNumber) return true;
  if (token.kind == TokenKind::kName) return token.text == "WARP_SZ";
  if (token.kind != TokenKind::kSymbol || token.text.size() != 1) return false;
  return std::string_view("+-~!(").find(token.text[0]) != std::string_view::npos;
}

std::int64_t parse_addend(TokenStream& tokens) {
  std::uint64_t sum = 0;
  while (tokens.peek().is_symbol('+') || tokens.peek().is_symbol('-')) {
    const Token op = tokens.take();
    const Constant term = Expression(tokens).binary(kProductPrecedence);
    if (term.is_float()) tokens.fail(op.pos, "an address needs an integer offset");
    sum += op.is_symbol('+') ? term.bits : 0 - term.bits;
  }
  return static_cast<std::int64_t>(sum);
}

std::uint64_t parse_unsigned(TokenStream& tokens, std::string_view what, std::uint64_t max,
                             std::uint64_t min) {
  const SourcePos pos = tokens.peek().pos;
  const Constant value = parse_constant(tokens);
  const bool is_negative = value.kind == Kind::kSigned && value.bits >> 63 != 0;
  if (!value.is_float() && !is_negative && value.bits >= min && value.bits <= max) {
    return value.bits;
  }
  std::string shown = fmt::format("{}", value.bits);
  if (value.is_float()) shown = fmt::format("{}", value.as_double());
  if (is_negative) shown = fmt::format("{}", static_cast<std::int64_t>(value.bits));
  tokens.fail(pos,
              fmt::format("{} is {}; expected an integer from {} to {}", what, shown, min, max));
}

}  // namespace tilewright::sim
