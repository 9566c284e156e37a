// Literals and constant expressions.
#pragma once

#include "sim/parse/lexer.h"

#include <cstdint>

namespace tilewright::sim {

/// An integer of 64 bits, signed or not, or a double.
struct Constant {
  enum class Kind : std::uint8_t { kSigned, kUnsigned, kFloat };
  Kind kind = Kind::kSigned;
  bool is_f32_bits = false;  ///< written 0fXXXXXXXX
  std::uint64_t bits = 0;    ///< of the integer or of the double

  static Constant of_int(std::int64_t value) noexcept;
  static Constant of_unsigned(std::uint64_t value) noexcept;
  static Constant of_double(double value) noexcept;

  bool is_float() const noexcept { return kind == Kind::kFloat; }
  double as_double() const noexcept;  ///< converted
  bool is_zero() const noexcept;
};

/// The double whose value is that of the float; the payload of a NaN is kept.
std::uint64_t double_bits_of_float(std::uint32_t bits) noexcept;
/// The reverse, rounded to nearest; exact for what double_bits_of_float() gives.
std::uint32_t float_bits_of_double(std::uint64_t bits) noexcept;

/// The value of a kNumber.
Constant parse_literal(const TokenStream& tokens, const Token& token);

/// Takes a constant expression: C's operators on integers of 64 bits and doubles, the casts (.s64)
/// and (.u64), WARP_SZ. `%` works on unsigned integers.
Constant parse_constant(TokenStream& tokens);

/// Whether parse_constant() can begin with the token.
bool begins_constant(const Token& token) noexcept;

/// Takes "+ 4 - 2*8", as it stands after a name; 0 if there is nothing.
std::int64_t parse_addend(TokenStream& tokens);

/// Takes a constant expression that must be an integer from 0 (`min`) to `max`; `what` names it in
/// errors.
std::uint64_t parse_unsigned(TokenStream& tokens, std::string_view what, std::uint64_t max,
                             std::uint64_t min = 0);

}  // namespace tilewright::sim
