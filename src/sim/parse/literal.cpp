// Numbers as they stand in the text.
#include "base/quote.h"
#include "sim/parse/constant.h"

#include <bit>
#include <charconv>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

constexpr std::uint32_t kFloatExponent = 0x7f800000;

std::optional<std::uint64_t> parse_digits(std::string_view digits, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value, base);
  if (error != std::errc() || end != digits.end()) return std::nullopt;
  return value;
}

[[noreturn]] void fail_literal(const TokenStream& tokens, const Token& token,
                               std::string_view expected) {
  tokens.fail(token.pos, fmt::format("bad number {}: {}", quote(token.text, 60), expected));
}

/// 0f and 0d: the bits of the number in hexadecimal.
Constant parse_float_bits(const TokenStream& tokens, const Token& token, std::size_t num_digits) {
  const auto digits = token.text.substr(2);
  const auto bits = parse_digits(digits, 16);
  if (digits.size() != num_digits || !bits) {
    fail_literal(tokens, token,
                 fmt::format("expected {} hexadecimal digits after \"{}\"", num_digits,
                             token.text.substr(0, 2)));
  }
  Constant value;
  value.kind = Constant::Kind::kFloat;
  value.is_f32_bits = num_digits == 8;
  value.bits = value.is_f32_bits ? double_bits_of_float(static_cast<std::uint32_t>(*bits)) : *bits;
  return value;
}

Constant parse_decimal_float(const TokenStream& tokens, const Token& token) {
  double value = 0;
  const auto [end, error] = std::from_chars(token.text.begin(), token.text.end(), value);
  if (error == std::errc::result_out_of_range) {
    fail_literal(tokens, token, "it does not fit in a double");
  }
  if (error != std::errc() || end != token.text.end()) {
    fail_literal(tokens, token, "expected an integer, 1.5, 1e-3, 0fXXXXXXXX or 0dXXXXXXXXXXXXXXXX");
  }
  return Constant::of_double(value);
}

Constant parse_integer(const TokenStream& tokens, const Token& token, std::string_view digits,
                       int base) {
  const bool has_suffix = digits.ends_with('U');
  if (has_suffix) digits.remove_suffix(1);
  const auto value = parse_digits(digits, base);
  if (!value) {
    constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
    const bool is_digits = !digits.empty() && digits.find_first_not_of(kDigits) == digits.npos;
    fail_literal(tokens, token,
                 fmt::format("expected a number of base {} that fits in 64 bits{}", base,
                             is_digits ? "" : ", with no suffix but U"));
  }
  constexpr auto kMaxSigned = std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  const bool is_unsigned = has_suffix || *value > kMaxSigned;
  return is_unsigned ? Constant::of_unsigned(*value)
                     : Constant::of_int(static_cast<std::int64_t>(*value));
}

}  // namespace

std::uint64_t double_bits_of_float(std::uint32_t bits) noexcept {
  if ((bits & kFloatExponent) != kFloatExponent) {
    return std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(bits)));
  }
  return std::uint64_t{bits >> 31} << 63 | std::uint64_t{0x7ff} << 52 |
         std::uint64_t{bits & 0x7fffff} << 29;
}

std::uint32_t float_bits_of_double(std::uint64_t bits) noexcept {
  const std::uint64_t magnitude = bits << 1 >> 1;
  if (magnitude <= std::uint64_t{0x7ff} << 52) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  }
  const auto payload = static_cast<std::uint32_t>(bits >> 29 & 0x7fffff);
  const auto sign = static_cast<std::uint32_t>(bits >> 63) << 31;
  return sign | kFloatExponent | (payload == 0 ? 0x400000 : payload);
}

Constant parse_literal(const TokenStream& tokens, const Token& token) {
  const std::string_view text = token.text;
  if (text[0] == '0' && text.size() > 1) {
    switch (text[1]) {
      case 'f':
      case 'F':
        return parse_float_bits(tokens, token, 8);
      case 'd':
      case 'D':
        return parse_float_bits(tokens, token, 16);
      case 'x':
      case 'X':
        return parse_integer(tokens, token, text.substr(2), 16);
      case 'b':
      case 'B':
        return parse_integer(tokens, token, text.substr(2), 2);
      default:
        break;
    }
  }
  if (text.find_first_of(".eE") != text.npos) return parse_decimal_float(tokens, token);
  const bool is_octal = text[0] == '0' && text.size() > 1 && text[1] != 'U';
  return parse_integer(tokens, token, text, is_octal ? 8 : 10);
}

}  // namespace tilewright::sim
