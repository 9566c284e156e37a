// Elements of buffers as numbers.
#include "cli/sim/buffer.h"
#include "formats/minifloat.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>

namespace tilewright::cli {

namespace {

const FormatSpec* float_format(DType dtype) {
  switch (dtype) {
    case DType::kF4:
      return &kE2m1;
    case DType::kF6_E2M3:
      return &kE2m3;
    case DType::kF6_E3M2:
      return &kE3m2;
    case DType::kF8_E5M2:
      return &kE5m2;
    case DType::kF8_E4M3:
      return &kE4m3;
    case DType::kF8_E8M0:
      return &kUe8m0;
    case DType::kF16:
      return &kFp16;
    case DType::kBF16:
      return &kBf16;
    case DType::kF32:
      return &kFp32;
    default:
      return nullptr;
  }
}

bool is_signed_dtype(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kI16 || dtype == DType::kI32 ||
         dtype == DType::kI64;
}

/// PTX's names and short ones, beside safetensors' own.
constexpr std::array<std::pair<std::string_view, DType>, 14> kOtherNames = {
    {{"E2M1", DType::kF4},
     {"E2M3", DType::kF6_E2M3},
     {"E3M2", DType::kF6_E3M2},
     {"E4M3", DType::kF8_E4M3},
     {"E5M2", DType::kF8_E5M2},
     {"UE8M0", DType::kF8_E8M0},
     {"S8", DType::kI8},
     {"S16", DType::kI16},
     {"S32", DType::kI32},
     {"S64", DType::kI64},
     {"B8", DType::kU8},
     {"B16", DType::kU16},
     {"B32", DType::kU32},
     {"B64", DType::kU64}}};

}  // namespace

DType parse_dtype(const std::string& name, const JsonNode& node) {
  std::string upper = name;
  std::ranges::transform(upper, upper.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (const auto dtype = dtype_from_string(upper)) return *dtype;
  for (const auto& [other, dtype] : kOtherNames) {
    if (upper == other) return dtype;
  }
  node.fail(
      "there is no type \"{}\"; expected one of f64 f32 f16 bf16 e4m3 e5m2 e8m0 e2m1 e2m3 "
      "e3m2 u8 u16 u32 u64 s8 s16 s32 s64 bool",
      name.substr(0, 40));
}

std::uint64_t encode_elem(DType dtype, double value) {
  if (dtype == DType::kF64) return std::bit_cast<std::uint64_t>(value);
  if (const FormatSpec* format = float_format(dtype)) return encode(*format, value);
  const int bits = bits_per_elem(dtype);
  // Saturates: a conversion out of range is undefined in C++.
  if (is_signed_dtype(dtype)) {
    const double limit = std::ldexp(1.0, bits - 1);
    const auto whole = static_cast<std::int64_t>(
        std::clamp(std::isnan(value) ? 0.0 : value, -limit, std::nextafter(limit, 0.0)));
    return static_cast<std::uint64_t>(whole);
  }
  const double limit = std::nextafter(std::ldexp(1.0, bits), 0.0);
  return static_cast<std::uint64_t>(std::clamp(std::isnan(value) ? 0.0 : value, 0.0, limit));
}

double decode_elem(DType dtype, std::uint64_t bits) {
  if (dtype == DType::kF64) return std::bit_cast<double>(bits);
  if (const FormatSpec* format = float_format(dtype)) {
    return decode(*format, static_cast<std::uint32_t>(bits));
  }
  if (!is_signed_dtype(dtype)) return static_cast<double>(bits);
  const int unused = 64 - bits_per_elem(dtype);
  return static_cast<double>(static_cast<std::int64_t>(bits << unused) >> unused);
}

}  // namespace tilewright::cli
