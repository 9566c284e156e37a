// Operations on bit patterns, one value at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tilewright::sim::bitwise {

template <class T>
T bit_and(T a, T b) {
  return static_cast<T>(a & b);
}
template <class T>
T bit_or(T a, T b) {
  return static_cast<T>(a | b);
}
template <class T>
T bit_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <class T>
T bit_not(T a) {
  return static_cast<T>(~a);
}
/// 1 for zero, else 0.
template <class T>
T logical_not(T a) {
  return static_cast<T>(a == 0 ? 1 : 0);
}

/// Amounts of the width and more give 0.
template <class T>
T shl(T a, std::uint32_t amount) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  const T shifted = static_cast<T>(a << (amount & (kBits - 1)));
  return amount < kBits ? shifted : T{0};
}
/// Amounts of the width and more give 0 or the sign.
template <class T>
T shr(T a, std::uint32_t amount) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(a >> (amount < kBits ? amount : kBits - 1));
  } else {
    const T shifted = static_cast<T>(a >> (amount & (kBits - 1)));
    return amount < kBits ? shifted : T{0};
  }
}
/// Of the 64 bits b:a; to the left the upper half is taken, to the right the lower one.
template <bool kLeft, bool kWrap>
std::uint32_t funnel(std::uint32_t a, std::uint32_t b, std::uint32_t amount) {
  const std::uint32_t n = kWrap ? amount & 31 : amount < 32 ? amount : 32;
  const std::uint64_t both = a | static_cast<std::uint64_t>(b) << 32;
  return static_cast<std::uint32_t>(kLeft ? (both << n) >> 32 : both >> n);
}

template <class T>
std::uint32_t popc(T a) {
  return static_cast<std::uint32_t>(std::popcount(a));
}
template <class T>
std::uint32_t clz(T a) {
  return static_cast<std::uint32_t>(std::countl_zero(a));
}
/// Position of the highest bit that differs from the sign, all ones if there is none; kShift: how
/// far to shift left to bring it to the top.
template <class T, bool kShift>
std::uint32_t bfind(T a) {
  using U = std::make_unsigned_t<T>;
  const U word = static_cast<U>(a < 0 ? ~a : a);
  const auto zeros = static_cast<std::uint32_t>(std::countl_zero(word));
  const std::uint32_t position = kShift ? zeros : 8 * sizeof(T) - 1 - zeros;
  return word == 0 ? ~std::uint32_t{0} : position;
}
/// The position of the offset-th set bit from `base` on, itself included; a negative offset
/// searches downwards; offset 0 asks whether bit `base` is set.
inline std::uint32_t find_nth_set(std::uint32_t mask, std::uint32_t base, std::int32_t offset) {
  if (offset == std::numeric_limits<std::int32_t>::min()) return 0;  // as on an H200
  constexpr std::uint32_t kNone = 0xffffffff;
  if (base > 31) return kNone;
  if (offset == 0) return ((mask >> base) & 1) != 0 ? base : kNone;
  const int step = offset > 0 ? 1 : -1;
  std::int64_t left = offset > 0 ? std::int64_t{offset} : -std::int64_t{offset};
  for (int position = static_cast<int>(base); position >= 0 && position < 32; position += step) {
    if (((mask >> position) & 1) != 0 && --left == 0) return static_cast<std::uint32_t>(position);
  }
  return kNone;
}
template <class T>
T brev(T a) {
  constexpr std::uint64_t kMasks[] = {0x5555555555555555, 0x3333333333333333, 0x0f0f0f0f0f0f0f0f,
                                      0x00ff00ff00ff00ff, 0x0000ffff0000ffff, 0x00000000ffffffff};
  constexpr int kSteps = sizeof(T) == 8 ? 6 : 5;
  for (int i = 0; i < kSteps; ++i) {
    const T mask = static_cast<T>(kMasks[i]);
    a = static_cast<T>(((a >> (1 << i)) & mask) | ((a & mask) << (1 << i)));
  }
  return a;
}
/// A position or length of bfe and bfi: the lowest byte, but for 64 bits all of it, as ptxas makes
/// them of 32-bit shifts. (Measured on an H200; the manual allows 0 to 255.)
template <class T>
std::uint32_t bit_count(std::uint32_t operand) {
  return sizeof(T) == 8 ? std::min(operand, 255U) : operand & 0xff;
}
/// `length` bits from `position` on; a signed type repeats the highest of them, or the sign of a
/// where the field reaches beyond it.
template <class T>
T bfe(T a, std::uint32_t position, std::uint32_t length) {
  using U = std::make_unsigned_t<T>;
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  const std::uint32_t start = bit_count<T>(position);
  const std::uint32_t count = bit_count<T>(length);
  const U shifted =
      start < kBits ? static_cast<U>(static_cast<U>(a) >> (start & (kBits - 1))) : U{0};
  const U mask = count < kBits ? static_cast<U>((U{1} << (count & (kBits - 1))) - 1) : ~U{0};
  if constexpr (std::is_signed_v<T>) {
    const std::uint32_t end = start + count;
    const std::uint32_t sign_position = end == 0 ? 0 : end - 1 < kBits ? end - 1 : kBits - 1;
    const bool is_negative = count != 0 && ((static_cast<U>(a) >> sign_position) & 1) != 0;
    const U valid = start >= kBits ? U{0} : static_cast<U>(~U{0} >> (start & (kBits - 1))) & mask;
    return static_cast<T>((shifted & valid) | (is_negative ? static_cast<U>(~valid) : U{0}));
  } else {
    return static_cast<T>(shifted & mask);
  }
}
/// b with `length` bits from `position` on replaced by the lowest bits of a.
template <class T>
T bfi(T a, T b, std::uint32_t position, std::uint32_t length) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  const std::uint32_t start = bit_count<T>(position);
  const std::uint32_t count = bit_count<T>(length);
  const T ones = count < kBits ? static_cast<T>((T{1} << (count & (kBits - 1))) - 1) : ~T{0};
  const T mask = start < kBits ? static_cast<T>(ones << (start & (kBits - 1))) : T{0};
  const T moved = start < kBits ? static_cast<T>(a << (start & (kBits - 1))) : T{0};
  return static_cast<T>((b & ~mask) | (moved & mask));
}
/// b ones from bit a on; amounts above 32 count as 32, or modulo 32 if kWrap.
template <bool kWrap>
std::uint32_t bit_mask(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t start = kWrap ? a & 31 : std::min(a, 32u);
  const std::uint32_t count = kWrap ? b & 31 : std::min(b, 32u);
  const std::uint64_t ones = (std::uint64_t{1} << count) - 1;
  return static_cast<std::uint32_t>(ones << start);
}
/// The low b bits of a, extended by sign or zero.
template <class T, bool kWrap>
T extend(T a, std::uint32_t b) {
  const std::uint32_t count = kWrap ? b & 31 : std::min(b, 32u);
  if (count == 0) return T{0};
  const std::uint32_t shift = 32 - count;
  return static_cast<T>(static_cast<T>(static_cast<std::uint32_t>(a) << shift) >> shift);
}

/// c + sum of products of four bytes.
template <class A, class B>
std::uint32_t dot4(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  for (int i = 0; i < 32; i += 8) {
    c += static_cast<std::uint32_t>(static_cast<A>(a >> i) * static_cast<B>(b >> i));
  }
  return c;
}
/// c + the two halves of a times two bytes of b: the lower or the upper two.
template <class A, class B, bool kHigh>
std::uint32_t dot2(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const std::uint32_t bytes = kHigh ? b >> 16 : b;
  c += static_cast<std::uint32_t>(static_cast<A>(a) * static_cast<B>(bytes));
  c += static_cast<std::uint32_t>(static_cast<A>(a >> 16) * static_cast<B>(bytes >> 8));
  return c;
}

/// The modes of prmt; kIndex is the plain one with a selector per byte.
enum class PermuteMode : std::uint8_t { kIndex, kF4e, kB4e, kRc8, kEcl, kEcr, kRc16 };

/// Four selectors of four bits, as the plain mode takes them, for the two low bits of c.
constexpr std::uint32_t permute_selectors(PermuteMode mode, std::uint32_t c) {
  constexpr std::uint16_t kTable[6][4] = {
      {0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
      {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
      {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
  return mode == PermuteMode::kIndex ? c : kTable[static_cast<int>(mode) - 1][c & 3];
}

constexpr std::uint32_t permute(std::uint32_t a, std::uint32_t b, std::uint32_t selectors) {
  const std::uint64_t bytes = a | static_cast<std::uint64_t>(b) << 32;
  std::uint32_t d = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t selector = (selectors >> (4 * i)) & 0xf;
    std::uint32_t byte = static_cast<std::uint32_t>(bytes >> (8 * (selector & 7))) & 0xff;
    if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    d |= byte << (8 * i);
  }
  return d;
}

/// Bit a*4 + b*2 + c of the table, at every position.
inline std::uint32_t lop3(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t table) {
  const auto all = [table](int i) { return 0 - ((table >> i) & 1); };
  const auto choose = [](std::uint32_t x, std::uint32_t if_set, std::uint32_t if_clear) {
    return if_clear ^ (x & (if_set ^ if_clear));
  };
  return choose(a, choose(b, choose(c, all(7), all(6)), choose(c, all(5), all(4))),
                choose(b, choose(c, all(3), all(2)), choose(c, all(1), all(0))));
}

}  // namespace tilewright::sim::bitwise
