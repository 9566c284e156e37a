// Paged caches of DeepSeek-V4: rows that are key and value in one, and where their bytes lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright {

// Enumerators are named like the number formats in src/formats; GCC takes that for shadowing.
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/// In which numbers a cache keeps its rows of 512: 448 plain numbers, then 64 with rotary
/// positions, which are bf16 in every format.
enum class KvCacheFormat {
  kBf16,   ///< 1024 bytes a row
  kFp8,    ///< e4m3, a power of two for each 64: 584 bytes a row (FlashMLA's "MODEL1" pages)
  kNvfp4,  ///< e2m1, an e4m3 scale for each 16, no global scale: 384 bytes a row
};
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
/// "bf16", "fp8", "nvfp4".
const char* to_string(KvCacheFormat format) noexcept;
/// The inverse of to_string; nothing if no format has that name.
std::optional<KvCacheFormat> kv_cache_format_from_string(std::string_view name) noexcept;

/// A row of a cache is named by page * page_size + slot.
///
/// Bytes of a page of n slots (source: FlashMLA; FlashInfer for nvfp4):
///   bf16    n x (448 + 64 bf16)
///   fp8     n x (448 e4m3, 64 bf16), then n x (7 ue8m0, a zero byte)
///   nvfp4   n x (224 bytes of e2m1, even elements in the low halves; 64 bf16), then
///           n x (28 e4m3, 4 zero bytes)
struct KvCacheLayout {
  KvCacheFormat format = KvCacheFormat::kFp8;
  std::int64_t page_size = 64;  ///< slots: 1 to 2^20
  std::int64_t num_pages = 0;   ///< num_pages * page_size < 2^31
  /// From page to page in bytes, a multiple of 16; 0: kv_page_stride(format, page_size).
  std::int64_t page_stride_bytes = 0;
};

/// 1024, 584, 384.
std::int64_t kv_row_bytes(KvCacheFormat format) noexcept;
/// The stride unless another is given: the page's bytes; for fp8 rounded up to whole 576, as
/// FlashMLA has it.
std::int64_t kv_page_stride(KvCacheFormat format, std::int64_t page_size) noexcept;
/// The layout with its stride filled in.
/// Errors   InvalidArgument naming field, value and rule
KvCacheLayout complete(const KvCacheLayout& layout);
/// Of all pages. Errors as complete().
std::size_t kv_cache_bytes(const KvCacheLayout& layout);

}  // namespace tilewright
