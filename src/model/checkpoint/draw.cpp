#include "model/checkpoint/draw.h"

#include "base/error.h"
#include "formats/block_scale.h"
#include "formats/minifloat.h"

#include <cmath>
#include <cstring>

namespace tilewright::model {
namespace {

// FNV-1a.
std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : name) hash = (hash ^ static_cast<std::uint8_t>(c)) * 1099511628211u;
  return hash;
}

// Of codes that are all as likely.
double rms(const FormatSpec& element, std::uint32_t first, std::uint32_t last) {
  double sum = 0;
  for (std::uint32_t code = first; code <= last; ++code) {
    const double value = decode(element, code);
    sum += value * value;
  }
  return std::sqrt(sum / (last - first + 1));
}

constexpr std::uint32_t kLastFp4 = 7;                                        // magnitudes 0 to 6
constexpr std::uint32_t kFirstFp8 = 4 << 3, kLastFp8 = 8 << 3 | 7;           // 2^-3 to 3.75
constexpr std::uint32_t kFirstUe4m3 = 7 << 3, kLastUe4m3 = kFirstUe4m3 | 7;  // 1 to 1.875

std::vector<std::uint8_t> draw_bytes(std::int64_t count, NamedRandom& random) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>((count + 7) / 8 * 8));
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const std::uint64_t word = random.bits();
    std::memcpy(bytes.data() + i, &word, sizeof word);
  }
  bytes.resize(static_cast<std::size_t>(count));
  return bytes;
}

// Codes first to last, which are a multiple of 8, with either sign.
void to_codes(std::vector<std::uint8_t>& bytes, std::uint32_t first, std::uint32_t last) {
  std::uint8_t table[256];
  for (std::uint32_t byte = 0; byte < 256; ++byte)
    table[byte] =
        static_cast<std::uint8_t>((byte & 0x80) | (first + (byte & 0x7f) % (last - first + 1)));
  for (std::uint8_t& byte : bytes) byte = table[byte];
}

// Powers of two whose mean square is that of `scale`.
std::vector<std::uint8_t> draw_powers(std::int64_t count, double scale, NamedRandom& random) {
  const int exponent = static_cast<int>(std::floor(std::log2(scale)));
  const double low = std::ldexp(1.0, 2 * exponent);
  const double share = (scale * scale - low) / (3 * low);  // of the larger one
  std::vector<std::uint8_t> codes;
  codes.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    codes.push_back(static_cast<std::uint8_t>(127 + exponent + (random.uniform() < share ? 1 : 0)));
  return codes;
}

std::vector<std::uint8_t> draw_bf16(std::int64_t count, double deviation, NamedRandom& random) {
  // Of 256 numbers: to encode each of a billion would take minutes.
  std::uint16_t codes[256];
  for (int i = 0; i < 256; ++i)
    codes[i] =
        static_cast<std::uint16_t>(encode(kBf16, deviation * std::sqrt(3.0) * (2 * i - 255) / 255));
  const auto bytes = draw_bytes(count, random);
  std::vector<std::uint8_t> out(2 * bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    std::memcpy(out.data() + 2 * i, &codes[bytes[i]], sizeof codes[0]);
  return out;
}

}  // namespace

NamedRandom::NamedRandom(std::uint64_t seed, std::string_view name) noexcept
    : state_(hash_of(name) + seed * 0x9e3779b97f4a7c15u) {}

std::uint64_t NamedRandom::bits() noexcept {
  state_ += 0x9e3779b97f4a7c15u;
  std::uint64_t x = state_;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

double NamedRandom::uniform() noexcept {
  return static_cast<double>(bits() >> 11) * 0x1p-53;
}

DrawnMatrix draw_matrix(std::string_view format, std::int64_t rows, std::int64_t cols,
                        double deviation, NamedRandom random) {
  if (format.empty()) return {draw_bf16(rows * cols, deviation, random), {}, 1};
  const BlockFormat& blocks = block_format_by_name(format);
  const std::int64_t scales = (rows + blocks.block_rows - 1) / blocks.block_rows *
                              ((cols + blocks.block_cols - 1) / blocks.block_cols);
  if (blocks.element == kE4m3) {
    require(blocks.scale == kUe8m0, ErrorKind::kInternal, "draw: scales of {}", format);
    DrawnMatrix drawn = {draw_bytes(rows * cols, random), {}, 1};
    to_codes(drawn.codes, kFirstFp8, kLastFp8);
    drawn.scales = draw_powers(scales, deviation / rms(kE4m3, kFirstFp8, kLastFp8), random);
    return drawn;
  }
  require(blocks.element == kE2m1, ErrorKind::kInternal, "draw: codes of {}", format);
  DrawnMatrix drawn = {draw_bytes(rows * cols / 2, random), {}, 1};
  const double scale = deviation / rms(kE2m1, 0, kLastFp4);
  if (!blocks.has_tensor_scale) {
    drawn.scales = draw_powers(scales, scale, random);
    return drawn;
  }
  drawn.scales = draw_bytes(scales, random);
  for (std::uint8_t& code : drawn.scales)
    code = static_cast<std::uint8_t>(kFirstUe4m3 | (code & 7));
  drawn.tensor_scale = static_cast<float>(scale / rms(kE4m3, kFirstUe4m3, kLastUe4m3));
  return drawn;
}

double drawn_deviation(TensorRole role, std::int64_t cols) {
  return role == TensorRole::kEmbedding ? 1 : 1 / std::sqrt(static_cast<double>(cols));
}

Vector draw_vector(TensorRole role, std::string_view name, std::int64_t count, NamedRandom random) {
  double middle = 0, width = 0.1;
  if (role == TensorRole::kNorm || name.ends_with("_scale")) middle = 1;
  if (role == TensorRole::kSink || role == TensorRole::kCompressorTable) width = 1;
  // Sums over four streams of a row of fn: small beside the base.
  if (name.ends_with("_fn")) width = 2 / std::sqrt(static_cast<double>(count));
  Vector values;
  values.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = middle + width * (2 * random.uniform() - 1);
    const bool is_bf16 = role == TensorRole::kNorm;
    values.push_back(static_cast<float>(is_bf16 ? decode(kBf16, encode(kBf16, value)) : value));
  }
  return values;
}

std::vector<std::int32_t> draw_table(std::int64_t rows, std::int64_t cols, std::int64_t limit,
                                     NamedRandom random) {
  std::vector<std::int32_t> ids;
  ids.reserve(static_cast<std::size_t>(rows * cols));
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto first = static_cast<std::int64_t>(random.bits() % static_cast<std::uint64_t>(limit));
    for (std::int64_t i = 0; i < cols; ++i)
      ids.push_back(static_cast<std::int32_t>((first + i) % limit));
  }
  return ids;
}

}  // namespace tilewright::model
