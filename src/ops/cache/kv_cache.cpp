#include "ops/cache/kv_cache.h"

#include "base/error.h"

#include <limits>

namespace tilewright {

namespace {

constexpr std::int64_t kMaxPageSize = std::int64_t{1} << 20;

}  // namespace

std::int64_t kv_row_bytes(NumberFormat format) noexcept {
  return kv_row_bytes(kv_format(format));
}

std::int64_t kv_page_stride(NumberFormat format, std::int64_t page_size) noexcept {
  return kv_default_page_stride(kv_format(format), page_size);
}

namespace {

// Sizes and offsets are counted in 64 bits with a sign.
void check_cache_bytes(const KvCacheLayout& c) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  require(c.num_pages == 0 || c.page_stride_bytes <= kMost / c.num_pages,
          ErrorKind::kInvalidArgument,
          "cache: {} pages with page_stride_bytes = {}; expected fewer than 2^63 bytes in all",
          c.num_pages, c.page_stride_bytes);
}

}  // namespace

KvCacheLayout complete(const KvCacheLayout& layout) {
  KvCacheLayout c = layout;
  require(c.format != NumberFormat::kMxfp4, ErrorKind::kInvalidArgument,
          "cache: format = {}; expected bf16, fp8 or nvfp4", to_string(c.format));
  require(c.page_size >= 1 && c.page_size <= kMaxPageSize, ErrorKind::kInvalidArgument,
          "cache: page_size = {}; expected 1 to {}", c.page_size, kMaxPageSize);
  require(c.num_pages >= 0 && c.num_pages <= std::numeric_limits<std::int32_t>::max() / c.page_size,
          ErrorKind::kInvalidArgument,
          "cache: {} pages of {} rows; expected fewer than 2^31 rows in all, which int32 indices "
          "name. Use several pools.",
          c.num_pages, c.page_size);
  const std::int64_t least = kv_page_bytes(kv_format(c.format), c.page_size);
  if (c.page_stride_bytes == 0) c.page_stride_bytes = kv_page_stride(c.format, c.page_size);
  require(
      c.page_stride_bytes >= least && c.page_stride_bytes % kKvPageAlignment == 0,
      ErrorKind::kInvalidArgument,
      "cache: page_stride_bytes = {}; expected a multiple of {} from {} on for {} {} rows of {} "
      "bytes, or 0 for {}",
      c.page_stride_bytes, kKvPageAlignment, least, c.page_size, to_string(c.format),
      kv_row_bytes(c.format), kv_page_stride(c.format, c.page_size));
  check_cache_bytes(c);
  return c;
}

KvCacheLayout ops::complete_index(const ArgumentChecks& checks, const char* field,
                                  IndexFormat format, KvCacheLayout layout) {
  const std::int64_t given = layout.page_stride_bytes;
  layout.format = NumberFormat::kBf16;
  layout.page_stride_bytes = 0;
  layout = complete(layout);  // checks sizes
  const std::int64_t least = index_page_bytes(format, layout.page_size);
  layout.page_stride_bytes =
      given != 0 ? given : index_default_page_stride(format, layout.page_size);
  checks.check(
      layout.page_stride_bytes >= least && layout.page_stride_bytes % kIndexPageAlignment == 0,
      "{}.page_stride_bytes = {}; expected a multiple of {} from {} on, or 0", field, given,
      kIndexPageAlignment, least);
  check_cache_bytes(layout);
  return layout;
}

std::size_t kv_cache_bytes(const KvCacheLayout& layout) {
  const KvCacheLayout c = complete(layout);
  return static_cast<std::size_t>(c.num_pages) * static_cast<std::size_t>(c.page_stride_bytes);
}

}  // namespace tilewright
