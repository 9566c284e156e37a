// Paged caches of DeepSeek-V4: rows that are key and value in one, and where their bytes lie.
#pragma once

#include "tilewright/format.h"

#include <cstddef>
#include <cstdint>

namespace tilewright {

/// A row of a cache is named by page * page_size + slot.
///
/// A row has 448 plain numbers in the cache's format, then 64 with rotary positions, which are bf16
/// in every format. Formats are kBf16 (1024 bytes a row), kFp8 (e4m3, a power of two for each 64:
/// 584 bytes) and kNvfp4 (no global scale: 384 bytes).
///
/// Bytes of a page of n slots (source: FlashMLA; FlashInfer for nvfp4):
///   bf16    n x (448 + 64 bf16)
///   fp8     n x (448 e4m3, 64 bf16), then n x (7 ue8m0, a zero byte)
///   nvfp4   n x (224 bytes of e2m1, even elements in the low halves; 64 bf16), then
///           n x (28 e4m3, 4 zero bytes)
///
/// Rows of DeepSeek-V3, which sparse attention with head_dim 576 reads and nothing here writes,
/// have 512 plain numbers and 64 with rotary positions (source: FlashMLA):
///   bf16    n x (512 + 64 bf16), 1152 bytes a row
///   fp8     n x (512 e4m3, 4 fp32 scales of 128 numbers each, 64 bf16), 656 bytes a row
struct KvCacheLayout {
  NumberFormat format = NumberFormat::kFp8;  ///< kBf16, kFp8 or kNvfp4
  std::int64_t page_size = 64;               ///< slots: 1 to 2^20
  std::int64_t num_pages = 0;                ///< num_pages * page_size < 2^31
  /// From page to page in bytes, a multiple of 16; 0: kv_page_stride(format, page_size), or the
  /// bytes of a page of rows of 576.
  std::int64_t page_stride_bytes = 0;
};

/// 1024, 584, 384. A format that caches cannot have counts as kBf16, here and in kv_page_stride().
std::int64_t kv_row_bytes(NumberFormat format) noexcept;
/// The stride unless another is given: the page's bytes; for fp8 rounded up to whole 576, as
/// FlashMLA has it.
std::int64_t kv_page_stride(NumberFormat format, std::int64_t page_size) noexcept;
/// The layout with its stride filled in.
/// Errors   InvalidArgument naming field, value and rule
KvCacheLayout complete(const KvCacheLayout& layout);
/// Of all pages. Errors as complete().
std::size_t kv_cache_bytes(const KvCacheLayout& layout);

}  // namespace tilewright
