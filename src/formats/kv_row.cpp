#include "formats/kv_row.h"

#include "base/error.h"
#include "formats/block_scale.h"

#include <algorithm>

namespace tilewright {

namespace {

const BlockFormat& block_format(KvFormat format) {
  return *find_block_format(format == KvFormat::kFp8 ? "fp8_64_pow2" : "nvfp4");
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
  return format == KvFormat::kFp8 ? data[i] : data[i / 2] >> i % 2 * 4 & 15u;
}

}  // namespace

void encode_kv_row(const KvPageLayout& layout, std::span<const float> numbers, std::int64_t row,
                   std::uint8_t* pages) {
  require(numbers.size() == kKvDims, ErrorKind::kInvalidArgument,
          "encode_kv_row: {} numbers; expected {}", numbers.size(), kKvDims);
  const std::int64_t page = row / layout.page_size, slot = row % layout.page_size;
  std::uint8_t* const data = pages + layout.data_offset(page, slot);
  const bool is_bf16 = layout.format == KvFormat::kBf16;
  const int first = is_bf16 ? 0 : kKvPlainDims;
  for (int i = first; i < kKvDims; ++i)
    store_bf16(numbers[static_cast<std::size_t>(i)],
               data + (is_bf16 ? 0 : kv_plain_bytes(layout.format)) + 2 * (i - first));
  if (is_bf16) return;
  const QuantizedTensor q =
      quantize(block_format(layout.format), numbers.first(kKvPlainDims), 1, kKvPlainDims,
               layout.format == KvFormat::kNvfp4 ? QuantizeOptions{.encode_scale = 1.0f}
                                                 : QuantizeOptions{});
  std::copy_n(q.codes.begin(), kv_plain_bytes(layout.format), data);  // packed as in the page
  std::uint8_t* const scales = pages + layout.scale_offset(page, slot);
  std::fill_n(scales, kv_scale_bytes(layout.format), std::uint8_t{0});
  std::copy_n(q.scales.begin(), kv_scales(layout.format), scales);
}

void decode_kv_row(const KvPageLayout& layout, const std::uint8_t* pages, std::int64_t row,
                   std::span<double> numbers) {
  require(numbers.size() == kKvDims, ErrorKind::kInvalidArgument,
          "decode_kv_row: room for {} numbers; expected {}", numbers.size(), kKvDims);
  const std::int64_t page = row / layout.page_size, slot = row % layout.page_size;
  const std::uint8_t* const data = pages + layout.data_offset(page, slot);
  const std::uint8_t* const scales = pages + layout.scale_offset(page, slot);
  const bool is_bf16 = layout.format == KvFormat::kBf16;
  const int plain = is_bf16 ? 0 : kKvPlainDims;
  for (int i = 0; i < plain; ++i) {
    const BlockFormat& format = block_format(layout.format);
    const double scale = decode(format.scale, scales[i / format.block_cols]);
    const double code = decode(format.element, load_code(layout.format, data, i));
    numbers[static_cast<std::size_t>(i)] = round_to(kBf16, code * scale);
  }
  const std::uint8_t* const wide = data + (is_bf16 ? 0 : kv_plain_bytes(layout.format));
  for (int i = plain; i < kKvDims; ++i)
    numbers[static_cast<std::size_t>(i)] = load_bf16(wide + 2 * (i - plain));
}

}  // namespace tilewright
