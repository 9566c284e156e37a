// Bytes of a page of a DeepSeek-V4 cache.
//
//   bf16    [page_size x 1024]                       448 + 64 bf16
//   fp8     [page_size x 576][page_size x 8]         448 e4m3, 64 bf16 | 7 ue8m0, a zero byte
//   nvfp4   [page_size x 352][page_size x 32]        224 B of e2m1 (element 2i in the low half of
//                                                    byte i), 64 bf16 | 28 e4m3, 4 zero bytes
//
// Pages lie page_stride_bytes apart; what is between them is ignored. A row of the cache is
// named by one number, page * page_size + slot; -1 and all that is not below
// num_pages * page_size name none. Byte offsets have 64 bits: pools are larger than 4 GiB.
//
// Source   FlashMLA's "MODEL1" cache (fp8), FlashInfer's NVFP4 cache for DeepSeek-V4
#pragma once

#include "base/fast_divisor.h"

#include <cstdint>

namespace tilewright {

/// The number format of the 448 plain values of a row of 512; the 64 that follow, with rotary
/// positions, are bf16 in every format. A row is key and value in one. The public name is
/// NumberFormat (tilewright/format.h).
enum class KvFormat {
  kBf16,   ///< 1024 bytes a row
  kFp8,    ///< 448 e4m3 and a power of two (ue8m0) for each 64: 584 bytes a row
  kNvfp4,  ///< 448 e2m1 and an e4m3 scale for each 16: 384 bytes a row
};

inline constexpr int kKvDims = 512;
inline constexpr int kKvPlainDims = 448;
inline constexpr int kKvRopeDims = 64;

inline constexpr int kKvFp8Block = 64;    ///< plain numbers that share a scale
inline constexpr int kKvNvfp4Block = 16;  ///< likewise
inline constexpr int kKvRopeBytes = kKvRopeDims * 2;

/// Bytes of the plain numbers of a row; the rotated ones follow them.
constexpr int kv_plain_bytes(KvFormat format) {
  return format == KvFormat::kBf16  ? kKvPlainDims * 2
         : format == KvFormat::kFp8 ? kKvPlainDims
                                    : kKvPlainDims / 2;
}
/// From the data of a slot to that of the next: 1024, 576, 352.
constexpr int kv_data_bytes(KvFormat format) {
  return kv_plain_bytes(format) + kKvRopeBytes;
}
/// From the scales of a slot to those of the next, zero bytes included: 0, 8, 32.
constexpr int kv_scale_bytes(KvFormat format) {
  return format == KvFormat::kBf16 ? 0 : format == KvFormat::kFp8 ? 8 : 32;
}
/// Scales of a slot that count: 0, 7, 28.
constexpr int kv_scales(KvFormat format) {
  return format == KvFormat::kBf16  ? 0
         : format == KvFormat::kFp8 ? kKvPlainDims / kKvFp8Block
                                    : kKvPlainDims / kKvNvfp4Block;
}
/// All bytes of a row: 1024, 584, 384.
constexpr int kv_row_bytes(KvFormat format) {
  return kv_data_bytes(format) + kv_scale_bytes(format);
}

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
    return page * page_stride_bytes + std::int64_t{page_size} * kv_data_bytes(format) +
           slot * kv_scale_bytes(format);
  }
};

}  // namespace tilewright
