#include "formats/kv_row.h"

#include "base/error.h"
#include "formats/block_scale.h"

#include <algorithm>
#include <cstring>

namespace tilewright {

namespace {

const BlockFormat& block_format(KvFormat format) {
  return *find_block_format(format == KvFormat::kFp8      ? "fp8_64_pow2"
                            : format == KvFormat::kFp8Mla ? "fp8_1x128"
                                                          : "nvfp4");
}

void store_bf16(double x, std::uint8_t* to) {
  const std::uint32_t code = encode(kBf16, x);
  to[0] = static_cast<std::uint8_t>(code);
  to[1] = static_cast<std::uint8_t>(code >> 8);
}

double load_bf16(const std::uint8_t* from) {
  return decode(kBf16, from[0] | std::uint32_t{from[1]} << 8);
}

// Bits of an element in the plain bytes.
std::uint32_t load_code(KvFormat format, const std::uint8_t* data, int i) {
  return format == KvFormat::kNvfp4 ? data[i / 2] >> i % 2 * 4 & 15u : data[i];
}

// A scale of the format: an fp32 in four bytes, others in one.
std::uint32_t load_scale(KvFormat format, const std::uint8_t* scales, int i) {
  if (format != KvFormat::kFp8Mla) return scales[i];
  std::uint32_t bits = 0;
  std::memcpy(&bits, scales + 4 * i, sizeof bits);
  return bits;
}

bool is_wide(KvFormat format) {
  return format == KvFormat::kBf16 || format == KvFormat::kBf16Mla;
}

}  // namespace

void encode_kv_row(const KvPageLayout& layout, std::span<const float> numbers, std::int64_t row,
                   std::uint8_t* pages) {
  const KvFormat format = layout.format;
  const int dims = kv_dims(format);
  require(std::ssize(numbers) == dims, ErrorKind::kInvalidArgument,
          "encode_kv_row: {} numbers; expected {}", numbers.size(), dims);
  const std::int64_t page = row / layout.page_size, slot = row % layout.page_size;
  std::uint8_t* const data = pages + layout.data_offset(page, slot);
  const int plain = is_wide(format) ? 0 : dims - kKvRopeDims;
  std::uint8_t* const wide = is_wide(format) ? data : data + kv_plain_bytes(format);
  for (int i = plain; i < dims; ++i)
    store_bf16(numbers[static_cast<std::size_t>(i)], wide + 2 * (i - plain));
  if (is_wide(format)) return;
  const QuantizedTensor q = quantize(
      block_format(format), numbers.first(static_cast<std::size_t>(plain)), 1, plain,
      format == KvFormat::kNvfp4 ? QuantizeOptions{.encode_scale = 1.0f} : QuantizeOptions{});
  std::ranges::copy(q.codes, data);  // packed as in the page
  std::uint8_t* const scales = pages + layout.scale_offset(page, slot);
  std::fill_n(scales, kv_scale_bytes(format), std::uint8_t{0});
  std::ranges::copy(q.scales, scales);
}

void decode_kv_row(const KvPageLayout& layout, const std::uint8_t* pages, std::int64_t row,
                   std::span<double> numbers) {
  const KvFormat format = layout.format;
  const int dims = kv_dims(format);
  require(std::ssize(numbers) == dims, ErrorKind::kInvalidArgument,
          "decode_kv_row: room for {} numbers; expected {}", numbers.size(), dims);
  const std::int64_t page = row / layout.page_size, slot = row % layout.page_size;
  const std::uint8_t* const data = pages + layout.data_offset(page, slot);
  const std::uint8_t* const scales = pages + layout.scale_offset(page, slot);
  const int plain = is_wide(format) ? 0 : dims - kKvRopeDims;
  for (int i = 0; i < plain; ++i) {
    const BlockFormat& block = block_format(format);
    const double scale = decode(block.scale, load_scale(format, scales, i / block.block_cols));
    const double code = decode(block.element, load_code(format, data, i));
    numbers[static_cast<std::size_t>(i)] = round_to(kBf16, code * scale);
  }
  const std::uint8_t* const wide = is_wide(format) ? data : data + kv_plain_bytes(format);
  for (int i = plain; i < dims; ++i)
    numbers[static_cast<std::size_t>(i)] = load_bf16(wide + 2 * (i - plain));
}

}  // namespace tilewright
