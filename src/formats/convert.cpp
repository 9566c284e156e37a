// The conversions that programs outside use; inside, minifloat.h has them element by element.
#include "tilewright/convert.h"

#include "base/error.h"
#include "formats/format_spec.h"
#include "formats/minifloat.h"
#include "formats/pack.h"

#include <cstdint>
#include <utility>

namespace tilewright {

namespace {

constexpr std::pair<DType, const FormatSpec*> kFormatOfType[] = {
    {DType::kF32, &kFp32},     {DType::kF16, &kFp16},     {DType::kBF16, &kBf16},
    {DType::kF8_E4M3, &kE4m3}, {DType::kF8_E5M2, &kE5m2}, {DType::kF8_E8M0, &kUe8m0},
    {DType::kF6_E2M3, &kE2m3}, {DType::kF6_E3M2, &kE3m2}, {DType::kF4, &kE2m1},
};

const FormatSpec& format_of(const char* function, DType dtype) {
  for (const auto& [type, format] : kFormatOfType) {
    if (type == dtype) return *format;
  }
  fail(ErrorKind::kInvalidArgument,
       "{}: {} is no floating-point type of at most 32 bits; expected F32, F16, BF16, F8_E4M3, "
       "F8_E5M2, F8_E8M0, F6_E2M3, F6_E3M2 or F4",
       function, to_string(dtype));
}

std::uint8_t* as_words(std::byte* bytes) {
  return reinterpret_cast<std::uint8_t*>(bytes);
}

/// Code `i` of `bits` bits; those of 16 and 32 take whole bytes, little-endian.
void store_element(std::byte* bytes, int bits, std::size_t i, std::uint32_t code) {
  const std::size_t wide = static_cast<std::size_t>(bits) / 8;
  if (bits <= 8) {
    return store_code(as_words(bytes), Packing::kDense, bits, static_cast<std::int64_t>(i),
                      static_cast<std::uint8_t>(code));
  }
  for (std::size_t b = 0; b < wide; ++b) bytes[i * wide + b] = std::byte(code >> 8 * b);
}

std::uint32_t load_element(const std::byte* bytes, int bits, std::size_t i) {
  const std::size_t wide = static_cast<std::size_t>(bits) / 8;
  if (bits <= 8) {
    return load_code(reinterpret_cast<const std::uint8_t*>(bytes), Packing::kDense, bits,
                     static_cast<std::int64_t>(i));
  }
  std::uint32_t code = 0;
  for (std::size_t b = 0; b < wide; ++b) {
    code |= std::to_integer<std::uint32_t>(bytes[i * wide + b]) << 8 * b;
  }
  return code;
}

}  // namespace

std::vector<std::byte> encode(DType dtype, std::span<const float> numbers) {
  const FormatSpec& format = format_of("encode", dtype);
  const int bits = bits_per_elem(dtype);
  std::vector<std::byte> out((numbers.size() * static_cast<std::size_t>(bits) + 7) / 8);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    store_element(out.data(), bits, i, encode(format, static_cast<double>(numbers[i])));
  }
  return out;
}

std::vector<float> decode(DType dtype, std::span<const std::byte> elements) {
  const FormatSpec& format = format_of("decode", dtype);
  const int bits = bits_per_elem(dtype);
  const std::size_t total = elements.size() * 8;
  const std::size_t count = total / static_cast<std::size_t>(bits);
  require(count * static_cast<std::size_t>(bits) == total, ErrorKind::kInvalidArgument,
          "decode: {} bytes are no whole number of {} elements of {} bits", elements.size(),
          to_string(dtype), bits);
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(decode(format, load_element(elements.data(), bits, i)));
  }
  return out;
}

}  // namespace tilewright
