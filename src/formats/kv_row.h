// Rows of a cache of DeepSeek-V4 or V3 in host memory: to the bytes of their slots, and back.
#pragma once

#include "tilewright/cache.h"

#include "formats/kv_layout.h"

#include <cstdint>
#include <span>

namespace tilewright {

/// The kernels' name of a cache's format. One that caches cannot have counts as kBf16; complete()
/// refuses it.
constexpr KvFormat kv_format(NumberFormat format) noexcept {
  switch (format) {
    case NumberFormat::kFp8:
      return KvFormat::kFp8;
    case NumberFormat::kNvfp4:
      return KvFormat::kNvfp4;
    default:
      return KvFormat::kBf16;
  }
}
/// Likewise of rows of 512 or 576; kNvfp4 has no rows of 576.
constexpr KvFormat kv_format(NumberFormat format, std::int64_t head_dim) noexcept {
  if (head_dim != kKvMlaDims) return kv_format(format);
  return format == NumberFormat::kFp8 ? KvFormat::kFp8Mla : KvFormat::kBf16Mla;
}
/// Where the bytes of a complete() layout stand.
constexpr KvPageLayout kv_page_layout(const KvCacheLayout& cache) noexcept {
  return {kv_format(cache.format), static_cast<std::int32_t>(cache.page_size),
          cache.page_stride_bytes};
}

/// Writes all bytes of a row's slot, zero bytes of the scales included. The plain numbers are
/// quantised as block_format.h says of fp8_64_pow2, of nvfp4 with a tensor scale of 1, and of
/// fp8_1x128 (V3.2). `row` = page * page_size + slot.
/// Errors   InvalidArgument if there are not kv_dims() numbers
void encode_kv_row(const KvPageLayout& layout, std::span<const float> numbers, std::int64_t row,
                   std::uint8_t* pages);

/// The numbers that a row's bytes stand for, as kernels read them: bf16(code * scale).
/// Errors   InvalidArgument if there is not room for kv_dims() numbers
void decode_kv_row(const KvPageLayout& layout, const std::uint8_t* pages, std::int64_t row,
                   std::span<double> numbers);

}  // namespace tilewright
