#include "sim/insn/tensor/tensor_operands.h"

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
    for (std::size_t g = 0; g < kGroups; g += 2) {
      const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(even + 4 * g));
      const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(odd + 4 * g));
      const __m256i low = _mm256_unpacklo_epi32(a, b), high = _mm256_unpackhi_epi32(a, b);
      auto* to = d + (g + 8 * half) * static_cast<std::size_t>(n) + column;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                          _mm256_permute2x128_si256(low, high, 0x20));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + n),
                          _mm256_permute2x128_si256(low, high, 0x31));
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
    for (std::size_t g = 0; g < kGroups; g += 2) {
      const auto* from =
          reinterpret_cast<const float*>(d + (g + 8 * half) * static_cast<std::size_t>(n) + column);
      const __m256 first = _mm256_loadu_ps(from), second = _mm256_loadu_ps(from + n);
      const __m256 low = _mm256_permute2f128_ps(first, second, 0x20);
      const __m256 high = _mm256_permute2f128_ps(first, second, 0x31);
      const __m256 a = _mm256_shuffle_ps(low, high, 0x88), b = _mm256_shuffle_ps(low, high, 0xdd);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(even + 4 * g), _mm256_castps_si256(a));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(odd + 4 * g), _mm256_castps_si256(b));
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
