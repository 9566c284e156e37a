// Where the rows of pages lie (kv_page.h), for the host: kernels have the page at hand.
#pragma once

#include "formats/kv_page.h"

#include <cstdint>

namespace tilewright {

/// Bytes of a page, without what separates it from the next.
constexpr std::int64_t kv_page_bytes(KvFormat format, std::int64_t page_size) {
  return page_size * kv_row_bytes(format);
}
/// What page addresses and strides are a multiple of.
inline constexpr int kKvPageAlignment = 16;
/// FlashMLA's stride for fp8, whole data rows; else the page's bytes, which are aligned.
constexpr std::int64_t kv_default_page_stride(KvFormat format, std::int64_t page_size) {
  const std::int64_t bytes = kv_page_bytes(format, page_size);
  const std::int64_t row = kv_data_bytes(format);
  return format == KvFormat::kFp8 ? (bytes + row - 1) / row * row : bytes;
}

/// Where things stand, in bytes from the first page.
struct KvPageLayout {
  KvFormat format;
  std::int32_t page_size;
  std::int64_t page_stride_bytes;  ///< a multiple of kKvPageAlignment

  constexpr std::int64_t data_offset(std::int64_t page, std::int64_t slot) const {
    return page * page_stride_bytes + slot * kv_data_bytes(format);
  }
  constexpr std::int64_t rope_offset(std::int64_t page, std::int64_t slot) const {
    return data_offset(page, slot) + kv_plain_bytes(format);
  }
  constexpr std::int64_t scale_offset(std::int64_t page, std::int64_t slot) const {
    if (format == KvFormat::kFp8Mla) return data_offset(page, slot) + kKvFp8MlaScales;
    return page * page_stride_bytes + std::int64_t{page_size} * kv_data_bytes(format) +
           slot * kv_scale_bytes(format);
  }
};

}  // namespace tilewright
