#include "sim/insn/tensor_operands.h"

#include <immintrin.h>

namespace tilewright::sim {
namespace {

constexpr int kGroups = 8;  // g

}  // namespace

void gather_a(Warp& warp, std::span<const Row> registers, int words_per_row, std::uint32_t* words) {
  for (std::size_t r = 0; r < registers.size(); ++r) {
    const auto* row = warp.row<std::uint32_t>(registers[r]);
    for (std::size_t g = 0; g < kGroups; ++g) {
      const std::size_t at = (g + 8 * (r % 2)) * static_cast<std::size_t>(words_per_row);
      std::memcpy(words + at + 4 * (r / 2), row + 4 * g, 16);
    }
  }
}

void gather_b(Warp& warp, std::span<const Row> registers, int words_per_row, std::uint32_t* words) {
  for (std::size_t r = 0; r < registers.size(); ++r) {
    const auto* row = warp.row<std::uint32_t>(registers[r]);
    for (std::size_t g = 0; g < kGroups; ++g) {
      std::memcpy(words + g * static_cast<std::size_t>(words_per_row) + 4 * r, row + 4 * g, 16);
    }
  }
}

void gather_d32(Warp& warp, std::span<const Row> registers, int n, int rows, std::uint32_t* d) {
  const std::size_t halves = static_cast<std::size_t>(rows) / 8;
  for (std::size_t v = 0; v + 1 < registers.size(); v += 2) {
    const auto* even = warp.row<std::uint32_t>(registers[v]);
    const auto* odd = warp.row<std::uint32_t>(registers[v + 1]);
    const std::size_t half = v / 2 % halves, column = 8 * (v / 2 / halves);
    for (std::size_t g = 0; g < kGroups; ++g) {
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(even + 4 * g));
      const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(odd + 4 * g));
      auto* to = d + (g + 8 * half) * static_cast<std::size_t>(n) + column;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_unpacklo_epi32(a, b));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 4), _mm_unpackhi_epi32(a, b));
    }
  }
}

void scatter_d32(Warp& warp, std::span<const Row> registers, int n, int rows,
                 const std::uint32_t* d) {
  const std::size_t halves = static_cast<std::size_t>(rows) / 8;
  for (std::size_t v = 0; v + 1 < registers.size(); v += 2) {
    auto* even = warp.row<std::uint32_t>(registers[v]);
    auto* odd = warp.row<std::uint32_t>(registers[v + 1]);
    const std::size_t half = v / 2 % halves, column = 8 * (v / 2 / halves);
    for (std::size_t g = 0; g < kGroups; ++g) {
      const auto* from =
          reinterpret_cast<const float*>(d + (g + 8 * half) * static_cast<std::size_t>(n) + column);
      const __m128 low = _mm_loadu_ps(from), high = _mm_loadu_ps(from + 4);
      const __m128 a = _mm_shuffle_ps(low, high, 0x88), b = _mm_shuffle_ps(low, high, 0xdd);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(even + 4 * g), _mm_castps_si128(a));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(odd + 4 * g), _mm_castps_si128(b));
    }
  }
}

void gather_d16(Warp& warp, std::span<const Row> registers, int n, int rows, std::uint32_t* d) {
  const std::size_t halves = static_cast<std::size_t>(rows) / 8;
  for (std::size_t v = 0; v < registers.size(); ++v) {
    const auto* row = warp.row<std::uint32_t>(registers[v]);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      auto* to = d + (lane / 4 + 8 * (v % halves)) * static_cast<std::size_t>(n) +
                 8 * (v / halves) + 2 * (lane % 4);
      to[0] = row[lane] & 0xffff;
      to[1] = row[lane] >> 16;
    }
  }
}

void scatter_d16(Warp& warp, std::span<const Row> registers, int n, int rows,
                 const std::uint32_t* d) {
  const std::size_t halves = static_cast<std::size_t>(rows) / 8;
  for (std::size_t v = 0; v < registers.size(); ++v) {
    auto* row = warp.row<std::uint32_t>(registers[v]);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto* from = d + (lane / 4 + 8 * (v % halves)) * static_cast<std::size_t>(n) +
                         8 * (v / halves) + 2 * (lane % 4);
      row[lane] = (from[0] & 0xffff) | from[1] << 16;
    }
  }
}

const FormatSpec* tensor_format_of(Type type) noexcept {
  switch (type) {
    case Type::kF16:
      return &kFp16;
    case Type::kBf16:
      return &kBf16;
    case Type::kTf32:
      return &kTf32;
    case Type::kE4m3:
      return &kE4m3;
    case Type::kE5m2:
      return &kE5m2;
    default:
      return nullptr;
  }
}

IntegerOperands integer_operands(Type a, Type b) noexcept {
  IntegerOperands operands;
  const auto convert = [&](Type type, IntegerType& integer) {
    switch (type) {
      case Type::kS8:
        integer = IntegerType::kS8;
        return true;
      case Type::kU8:
        integer = IntegerType::kU8;
        return true;
      case Type::kS4:
        integer = IntegerType::kS4;
        return true;
      case Type::kU4:
        integer = IntegerType::kU4;
        return true;
      default:
        return false;
    }
  };
  operands.is_bits = a == Type::kB1 && b == Type::kB1;
  operands.is_integer = operands.is_bits || (convert(a, operands.a) && convert(b, operands.b) &&
                                             bits_of(a) == bits_of(b));
  return operands;
}

}  // namespace tilewright::sim
