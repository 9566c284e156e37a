// What atomic instructions do to one value.
#pragma once

#include "sim/parse/types.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <immintrin.h>

namespace tilewright::sim {

enum class AtomicOp : std::uint8_t {
  kAdd,
  kMin,
  kMax,
  kInc,
  kDec,
  kAnd,
  kOr,
  kXor,
  kExchange,
  kCompareExchange,
};

namespace atomic_ops {

inline float half_to_float(std::uint16_t bits) {
  return _cvtsh_ss(bits);
}
inline std::uint16_t float_to_half(float value) {
  return std::isnan(value)
             ? std::uint16_t{0x7fff}
             : static_cast<std::uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT));
}
inline float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
inline std::uint16_t float_to_bf16(float value) {
  if (std::isnan(value)) return 0x7fff;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Of two 16-bit floats: the number if one is NaN, -0 < +0.
inline float pick(AtomicOp op, float a, float b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  const bool a_is_less = a < b || (a == b && std::signbit(a));
  return (op == AtomicOp::kMin) == a_is_less ? a : b;
}

inline std::uint16_t half(AtomicOp op, bool is_bf16, std::uint16_t old, std::uint16_t value) {
  const float a = is_bf16 ? bf16_to_float(old) : half_to_float(old);
  const float b = is_bf16 ? bf16_to_float(value) : half_to_float(value);
  // A float has more than twice the bits plus two: rounding the sum twice does not show.
  const float result = op == AtomicOp::kAdd ? a + b : pick(op, a, b);
  return is_bf16 ? float_to_bf16(result) : float_to_half(result);
}

inline float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

inline std::uint32_t add_f32(std::uint32_t old, std::uint32_t value, bool is_flushing) {
  float a = std::bit_cast<float>(old), b = std::bit_cast<float>(value);
  if (is_flushing) a = flushed(a), b = flushed(b);
  float sum = a + b;
  if (is_flushing) sum = flushed(sum);
  return std::isnan(sum) ? 0x7fffffffu : std::bit_cast<std::uint32_t>(sum);
}

template <class Unsigned, class Signed>
Unsigned integer(AtomicOp op, bool has_sign, Unsigned old, Unsigned value, Unsigned swap) {
  const auto less = [has_sign](Unsigned a, Unsigned b) {
    return has_sign ? static_cast<Signed>(a) < static_cast<Signed>(b) : a < b;
  };
  switch (op) {
    case AtomicOp::kAdd:
      return static_cast<Unsigned>(old + value);
    case AtomicOp::kMin:
      return less(value, old) ? value : old;
    case AtomicOp::kMax:
      return less(old, value) ? value : old;
    case AtomicOp::kInc:
      return old >= value ? Unsigned{0} : static_cast<Unsigned>(old + 1);
    case AtomicOp::kDec:
      return old == 0 || old > value ? value : static_cast<Unsigned>(old - 1);
    case AtomicOp::kAnd:
      return old & value;
    case AtomicOp::kOr:
      return old | value;
    case AtomicOp::kXor:
      return old ^ value;
    case AtomicOp::kExchange:
      return value;
    case AtomicOp::kCompareExchange:
      return old == value ? swap : old;
  }
  return old;
}

/// The new value. `value` is b of the manual, `swap` c of cas. Global memory flushes subnormals of
/// f32 additions, shared memory does not.
inline std::uint16_t apply(AtomicOp op, Type type, std::uint16_t old, std::uint16_t value,
                           std::uint16_t swap, bool /*is_global*/) {
  if (type == Type::kF16 || type == Type::kBf16) return half(op, type == Type::kBf16, old, value);
  return integer<std::uint16_t, std::int16_t>(op, false, old, value, swap);
}

inline std::uint32_t apply(AtomicOp op, Type type, std::uint32_t old, std::uint32_t value,
                           std::uint32_t swap, bool is_global) {
  if (type == Type::kF32 && op == AtomicOp::kAdd) return add_f32(old, value, is_global);
  if (type == Type::kF16x2 || type == Type::kBf16x2) {
    const bool is_bf16 = type == Type::kBf16x2;
    const auto part = [&](int shift) {
      return std::uint32_t{half(op, is_bf16, static_cast<std::uint16_t>(old >> shift),
                                static_cast<std::uint16_t>(value >> shift))}
             << shift;
    };
    return part(0) | part(16);
  }
  return integer<std::uint32_t, std::int32_t>(op, type == Type::kS32, old, value, swap);
}

inline std::uint64_t apply(AtomicOp op, Type type, std::uint64_t old, std::uint64_t value,
                           std::uint64_t swap, bool /*is_global*/) {
  if (type == Type::kF64 && op == AtomicOp::kAdd) {
    return std::bit_cast<std::uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(value));
  }
  return integer<std::uint64_t, std::int64_t>(op, type == Type::kS64, old, value, swap);
}

}  // namespace atomic_ops
}  // namespace tilewright::sim
