// Rows of a DeepSeek-V4 cache in host memory: to the bytes of their slots, and back.
#pragma once

#include "tilewright/cache.h"

#include "formats/kv_page.h"

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
/// Where the bytes of a complete() layout stand.
constexpr KvPageLayout kv_page_layout(const KvCacheLayout& cache) noexcept {
  return {kv_format(cache.format), static_cast<std::int32_t>(cache.page_size),
          cache.page_stride_bytes};
}

/// Writes all bytes of a row's slot, zero bytes of the scales included. The plain numbers are
/// quantised as block_format.h says of fp8_64_pow2, and of nvfp4 with a tensor scale of 1.
/// `row` = page * page_size + slot.
/// Errors   InvalidArgument if there are not 512 numbers
void encode_kv_row(const KvPageLayout& layout, std::span<const float> numbers, std::int64_t row,
                   std::uint8_t* pages);

/// The 512 numbers that a row's bytes stand for, as kernels read them: bf16(code * scale).
/// Errors   InvalidArgument if there is not room for 512 numbers
void decode_kv_row(const KvPageLayout& layout, const std::uint8_t* pages, std::int64_t row,
                   std::span<double> numbers);

}  // namespace tilewright
