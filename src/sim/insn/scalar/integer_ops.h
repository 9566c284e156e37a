// Integer arithmetic on single values, two's complement, without undefined behaviour.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tilewright::sim {

template <class T>
using Unsigned = std::make_unsigned_t<T>;

/// Twice as wide, for products.
template <class T>
struct WiderInteger;
template <>
struct WiderInteger<std::int16_t> {
  using Type = std::int32_t;
};
template <>
struct WiderInteger<std::uint16_t> {
  using Type = std::uint32_t;
};
template <>
struct WiderInteger<std::int32_t> {
  using Type = std::int64_t;
};
template <>
struct WiderInteger<std::uint32_t> {
  using Type = std::uint64_t;
};
template <>
struct WiderInteger<std::int64_t> {
  __extension__ using Type = __int128;
};
template <>
struct WiderInteger<std::uint64_t> {
  __extension__ using Type = unsigned __int128;
};
template <class T>
using Wider = typename WiderInteger<T>::Type;

namespace integer {

template <class T>
T add(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
}
template <class T>
T sub(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
}
inline std::int32_t saturate(std::int64_t x) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(x < kMin ? kMin : x > kMax ? kMax : x);
}
inline std::int32_t add_sat(std::int32_t a, std::int32_t b) {
  return saturate(std::int64_t{a} + b);
}
inline std::int32_t sub_sat(std::int32_t a, std::int32_t b) {
  return saturate(std::int64_t{a} - b);
}
/// Two halves at a time.
template <bool kSubtract>
std::uint32_t add_x2(std::uint32_t a, std::uint32_t b) {
  constexpr std::uint32_t kHigh = 0xffff0000;
  const std::uint32_t sign = kSubtract ? ~std::uint32_t{0} : 0;
  // a - b = ~(~a + b), which keeps the halves apart as easily as a sum
  const std::uint32_t x = a ^ sign;
  return ((((x & kHigh) + (b & kHigh)) & kHigh) | ((x + b) & ~kHigh)) ^ sign;
}

template <class T>
T mul_lo(T a, T b) {
  if constexpr (sizeof(T) == 2) {
    return static_cast<T>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
  } else {
    return static_cast<T>(static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b));
  }
}
template <class T>
Wider<T> mul_wide(T a, T b) {
  return static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b);
}
template <class T>
T mul_hi(T a, T b) {
  return static_cast<T>(mul_wide(a, b) >> (8 * sizeof(T)));
}
template <class T>
T mad_lo(T a, T b, T c) {
  return add(mul_lo(a, b), c);
}
template <class T>
T mad_hi(T a, T b, T c) {
  return add(mul_hi(a, b), c);
}
template <class T>
Wider<T> mad_wide(T a, T b, Wider<T> c) {
  return add(mul_wide(a, b), c);
}
inline std::int32_t mad_hi_sat(std::int32_t a, std::int32_t b, std::int32_t c) {
  return saturate(std::int64_t{mul_hi(a, b)} + c);
}

/// The low 24 bits, extended as the type says.
template <class T>
T low24(T x) {
  return static_cast<T>(static_cast<T>(static_cast<std::uint32_t>(x) << 8) >> 8);
}
template <class T>
T mul24_lo(T a, T b) {
  return mul_lo(low24(a), low24(b));
}
/// Bits 47..16 of the 48-bit product.
template <class T>
T mul24_hi(T a, T b) {
  return static_cast<T>(mul_wide(low24(a), low24(b)) >> 16);
}
template <class T>
T mad24_lo(T a, T b, T c) {
  return add(mul24_lo(a, b), c);
}
template <class T>
T mad24_hi(T a, T b, T c) {
  return add(mul24_hi(a, b), c);
}
inline std::int32_t mad24_hi_sat(std::int32_t a, std::int32_t b, std::int32_t c) {
  return saturate(std::int64_t{mul24_hi(a, b)} + c);
}

template <class T>
T sad(T a, T b, T c) {
  const T difference = a < b ? sub(b, a) : sub(a, b);
  return add(c, difference);
}

/// 0 for b = 0 is avoided by the callers. Exact: for 32 bits the quotient in double cannot reach
/// the next integer by rounding, as |a| < 2^53.
inline std::uint32_t divide(std::uint32_t a, std::uint32_t b) {
  constexpr double kOffset = 2147483648.0;  // vectors convert signed integers only
  const double x = static_cast<double>(static_cast<std::int32_t>(a ^ 0x80000000u)) + kOffset;
  const double y = static_cast<double>(static_cast<std::int32_t>(b ^ 0x80000000u)) + kOffset;
  const double q = std::trunc(x / y) - kOffset;
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(q)) ^ 0x80000000u;
}
inline std::uint64_t divide(std::uint64_t a, std::uint64_t b) {
  return a / b;
}

template <class T>
T magnitude(T x) {
  return x < 0 ? sub(T{0}, x) : x;
}

/// Division by zero gives all ones; the smallest number by -1 wraps.
template <class T>
T div(T a, T b) {
  using Wide = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  if constexpr (std::is_signed_v<T>) {
    const auto divisor = static_cast<Unsigned<T>>(magnitude(b));
    const Wide q = divide(Wide{static_cast<Unsigned<T>>(magnitude(a))},
                          divisor == 0 ? Wide{1} : Wide{divisor});
    const T quotient = static_cast<T>(q);
    const T result = (a < 0) != (b < 0) ? sub(T{0}, quotient) : quotient;
    return b == 0 ? static_cast<T>(-1) : result;
  } else {
    const Wide q = divide(Wide{a}, b == 0 ? Wide{1} : Wide{b});
    return b == 0 ? static_cast<T>(~T{0}) : static_cast<T>(q);
  }
}
/// The remainder by zero is all ones as well, as on an H200.
template <class T>
T rem(T a, T b) {
  return b == 0 ? static_cast<T>(~T{0}) : sub(a, mul_lo(div(a, b), b));
}

template <class T>
T neg(T a) {
  return sub(T{0}, a);
}
template <class T>
T min(T a, T b) {
  return a < b ? a : b;
}
template <class T>
T max(T a, T b) {
  return a < b ? b : a;
}
template <class T, bool kMax>
T min_max(T a, T b) {
  return kMax ? max(a, b) : min(a, b);
}
template <bool kMax>
std::int32_t min_max_relu(std::int32_t a, std::int32_t b) {
  return max(min_max<std::int32_t, kMax>(a, b), 0);
}

}  // namespace integer
}  // namespace tilewright::sim
