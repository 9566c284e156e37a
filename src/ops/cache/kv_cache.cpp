#include "ops/cache/kv_cache.h"

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
void check_cache_bytes(ops::ProblemChecks& checks, const KvCacheLayout& c) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  checks.expect(c.num_pages <= 0 || c.page_stride_bytes <= kMost / c.num_pages, "page_stride_bytes",
                c.page_stride_bytes, "fewer than 2^63 bytes in all {} pages", c.num_pages);
}

// Whether a page has a size.
bool check_sizes(ops::ProblemChecks& checks, const KvCacheLayout& c) {
  if (!checks.range("page_size", c.page_size, 1, kMaxPageSize)) return false;
  checks
      .expect(
          c.num_pages >= 0 && c.num_pages <= std::numeric_limits<std::int32_t>::max() / c.page_size,
          "num_pages", c.num_pages,
          "fewer than 2^31 rows in all, with page_size = {}, which int32 indices name", c.page_size)
      .remedy("Use several pools.");
  return true;
}

}  // namespace

KvCacheLayout ops::complete_layout(ProblemChecks& checks, const KvCacheLayout& layout,
                                   std::int64_t head_dim) {
  KvCacheLayout c = layout;
  const bool is_mla = head_dim == kKvMlaDims;
  const bool is_possible =
      c.format != NumberFormat::kMxfp4 && (c.format != NumberFormat::kNvfp4 || !is_mla);
  const bool has_format =
      bool(checks.expect(is_possible, "format", c.format, "{}",
                         is_mla ? "bf16 or fp8 for rows of 576" : "bf16, fp8 or nvfp4"));
  if (!check_sizes(checks, c) || !has_format) return c;
  const KvFormat format = kv_format(c.format, head_dim);
  const std::int64_t least = kv_page_bytes(format, c.page_size);
  const std::int64_t usual = kv_default_page_stride(format, c.page_size);
  if (c.page_stride_bytes == 0) c.page_stride_bytes = usual;
  if (checks.expect(c.page_stride_bytes >= least && c.page_stride_bytes % kKvPageAlignment == 0,
                    "page_stride_bytes", c.page_stride_bytes,
                    "a multiple of {} from {} on for {} {} rows of {} bytes, or 0 for {}",
                    kKvPageAlignment, least, c.page_size, to_string(c.format), kv_row_bytes(format),
                    usual))
    check_cache_bytes(checks, c);
  return c;
}

KvCacheLayout ops::complete_index(ProblemChecks& checks, IndexFormat format, KvCacheLayout layout) {
  layout.format = NumberFormat::kBf16;  // not one of rows
  if (!check_sizes(checks, layout)) return layout;
  const std::int64_t least = index_page_bytes(format, layout.page_size);
  if (layout.page_stride_bytes == 0)
    layout.page_stride_bytes = index_default_page_stride(format, layout.page_size);
  if (checks.expect(
          layout.page_stride_bytes >= least && layout.page_stride_bytes % kIndexPageAlignment == 0,
          "page_stride_bytes", layout.page_stride_bytes, "a multiple of {} from {} on, or 0",
          kIndexPageAlignment, least))
    check_cache_bytes(checks, layout);
  return layout;
}

KvCacheLayout complete(const KvCacheLayout& layout) {
  ops::ProblemChecks checks("cache");
  const KvCacheLayout c = ops::complete_layout(checks, layout);
  checks.finish();
  return c;
}

std::size_t kv_cache_bytes(const KvCacheLayout& layout) {
  const KvCacheLayout c = complete(layout);
  return static_cast<std::size_t>(c.num_pages) * static_cast<std::size_t>(c.page_stride_bytes);
}

}  // namespace tilewright
