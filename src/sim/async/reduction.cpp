#include "sim/async/reduction.h"

#include "base/error.h"
#include "formats/minifloat.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace tilewright::sim {

namespace {

template <class T>
T integer_result(ReduceOp op, T memory, T value) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
    case ReduceOp::kAdd:
      return static_cast<T>(static_cast<U>(memory) + static_cast<U>(value));
    case ReduceOp::kMin:
      return std::min(memory, value);
    case ReduceOp::kMax:
      return std::max(memory, value);
    case ReduceOp::kInc:
      return memory >= value ? T{0} : static_cast<T>(memory + 1);
    case ReduceOp::kDec:
      return memory == 0 || memory > value ? value : static_cast<T>(memory - 1);
    case ReduceOp::kAnd:
      return memory & value;
    case ReduceOp::kOr:
      return memory | value;
    case ReduceOp::kXor:
      return memory ^ value;
  }
  return memory;
}

float flushed(float x) {
  return std::abs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
}

std::uint32_t f32_sum(std::uint32_t memory, std::uint32_t value) {
  const float sum =
      flushed(flushed(std::bit_cast<float>(memory)) + flushed(std::bit_cast<float>(value)));
  return sum != sum ? nan_code(kFp32) : std::bit_cast<std::uint32_t>(sum);
}

std::uint64_t f64_sum(std::uint64_t memory, std::uint64_t value) {
  return std::bit_cast<std::uint64_t>(std::bit_cast<double>(memory) + std::bit_cast<double>(value));
}

/// Orders the codes of numbers as the numbers, with -0 before +0.
std::int32_t order_of(std::uint16_t code) {
  return (code & 0x8000) != 0 ? -static_cast<std::int32_t>(code & 0x7fff) - 1 : code;
}

std::uint16_t half_result(ReduceOp op, const FormatSpec& format, std::uint16_t memory,
                          std::uint16_t value) {
  if (op == ReduceOp::kAdd) {
    // Rounding twice, to double and then to the format, cannot differ from rounding once: a double
    // has more than twice the bits plus two.
    const double sum = decode(format, memory) + decode(format, value);
    return static_cast<std::uint16_t>(encode(format, sum, {.saturation = Saturation::kNone}));
  }
  if (is_nan(format, memory)) {
    return is_nan(format, value) ? static_cast<std::uint16_t>(nan_code(format)) : value;
  }
  if (is_nan(format, value)) return memory;
  const bool is_memory_less = order_of(memory) < order_of(value);
  return is_memory_less == (op == ReduceOp::kMin) ? memory : value;
}

template <class Word, class Result>
void update_all(std::byte* memory, const std::byte* values, std::size_t size_bytes,
                Result&& result) {
  for (std::size_t at = 0; at + sizeof(Word) <= size_bytes; at += sizeof(Word)) {
    Word value;
    std::memcpy(&value, values + at, sizeof value);
    std::atomic_ref<Word> target(*reinterpret_cast<Word*>(memory + at));
    Word old = target.load(std::memory_order_relaxed);
    while (!target.compare_exchange_weak(old, result(old, value), std::memory_order_relaxed)) {
    }
  }
}

template <class T>
void update_integers(ReduceOp op, std::byte* memory, const std::byte* values,
                     std::size_t size_bytes) {
  using U = std::make_unsigned_t<T>;
  update_all<U>(memory, values, size_bytes, [op](U old, U value) {
    return static_cast<U>(integer_result(op, static_cast<T>(old), static_cast<T>(value)));
  });
}

bool is_integer(ReduceType type) {
  return type <= ReduceType::kS64;
}

}  // namespace

std::string check_reduction(ReduceOp op, ReduceType type) {
  bool exists = false;
  switch (op) {
    case ReduceOp::kAdd:
      exists = true;
      break;
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      exists = is_integer(type) || type == ReduceType::kF16 || type == ReduceType::kBf16;
      break;
    case ReduceOp::kInc:
    case ReduceOp::kDec:
      exists = type == ReduceType::kU32;
      break;
    default:
      exists = is_integer(type);
      break;
  }
  if (exists) return {};
  return fmt::format("reduction: there is no .{} for {} elements", name_of(op), name_of(type));
}

std::uint32_t size_of(ReduceType type) noexcept {
  constexpr std::uint8_t kSizes[] = {4, 4, 8, 8, 2, 2, 4, 8};
  return kSizes[static_cast<std::size_t>(type)];
}

void reduce_into(ReduceOp op, ReduceType type, std::byte* memory, const std::byte* values,
                 std::size_t size_bytes) {
  const auto halves = [op](const FormatSpec& format) {
    return [op, &format](std::uint16_t old, std::uint16_t value) {
      return half_result(op, format, old, value);
    };
  };
  switch (type) {
    case ReduceType::kU32:
      return update_integers<std::uint32_t>(op, memory, values, size_bytes);
    case ReduceType::kS32:
      return update_integers<std::int32_t>(op, memory, values, size_bytes);
    case ReduceType::kU64:
      return update_integers<std::uint64_t>(op, memory, values, size_bytes);
    case ReduceType::kS64:
      return update_integers<std::int64_t>(op, memory, values, size_bytes);
    case ReduceType::kF16:
      return update_all<std::uint16_t>(memory, values, size_bytes, halves(kFp16));
    case ReduceType::kBf16:
      return update_all<std::uint16_t>(memory, values, size_bytes, halves(kBf16));
    case ReduceType::kF32:
      return update_all<std::uint32_t>(memory, values, size_bytes, f32_sum);
    case ReduceType::kF64:
      return update_all<std::uint64_t>(memory, values, size_bytes, f64_sum);
  }
}

const char* name_of(ReduceOp op) noexcept {
  constexpr const char* kNames[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  return kNames[static_cast<std::size_t>(op)];
}

const char* name_of(ReduceType type) noexcept {
  constexpr const char* kNames[] = {"u32", "s32", "u64", "s64", "f16", "bf16", "f32", "f64"};
  return kNames[static_cast<std::size_t>(type)];
}

}  // namespace tilewright::sim
