// Checks of attention over caches: groups of heads, room in pages or without them, strides.
#pragma once

#include "tilewright/tensor.h"

#include "ops/operator/problem_checks.h"

#include <cstdint>
#include <limits>
#include <utility>

namespace tilewright::ops {

inline constexpr std::int64_t kMaxCacheKeys = std::int64_t{1} << 30;  ///< of a sequence
inline constexpr std::int64_t kMaxCacheHeads = 65536;

/// Of heads and kv_heads that are in range.
inline void check_head_groups(ProblemChecks& checks, std::int64_t heads, std::int64_t kv_heads) {
  checks
      .expect(heads % kv_heads == 0, "heads", heads,
              "a multiple of kv_heads = {}; every key head serves equally many query heads",
              kv_heads)
      .remedy("Repeat or drop heads.");
}

/// Of a problem with page_size 0.
template <class Problem>
void check_no_pages(ProblemChecks& checks, const Problem& p) {
  for (const auto& [field, value] :
       {std::pair{"num_pages", p.num_pages}, std::pair{"max_pages", p.max_pages},
        std::pair{"table_stride", p.table_stride}})
    checks.expect(value == 0, field, value, "0 without pages").remedy("Set page_size?");
  checks.range("max_len", p.max_len, 0, kMaxCacheKeys).remedy("Drop the oldest keys.");
}

/// Of a problem with pages; whether their size may be that was checked before. A stride of 0
/// becomes that of a table without gaps.
template <class Problem>
void complete_pages(ProblemChecks& checks, Problem& p, bool has_page_size,
                    std::int64_t max_stride) {
  checks.range("num_pages", p.num_pages, 0, std::numeric_limits<std::int32_t>::max())
      .remedy("Larger pages need fewer.");
  if (has_page_size)
    checks.range("max_pages", p.max_pages, 0, kMaxCacheKeys / p.page_size)
        .remedy("Drop the oldest keys.");
  checks
      .expect(p.max_len == 0, "max_len", p.max_len,
              "0 with pages of {}: max_pages says how many keys a sequence has room for",
              p.page_size)
      .remedy("Leave it out.");
  if (p.table_stride == 0) p.table_stride = p.max_pages;
  checks.range("table_stride", p.table_stride, 0, max_stride).remedy("0 stands for max_pages.");
}

/// Strides are multiples of `granule` from 0 to `most`, which `bounds` says.
struct StrideRule {
  std::int64_t granule, most;
  const char* bounds;
};

/// Strides of [batch, rows, heads, dims] without gaps; of numbers that were found wrong, none.
inline Strides without_gaps(const ProblemChecks& checks, std::int64_t rows, std::int64_t heads,
                            std::int64_t dims) {
  if (!checks.is_fine()) return {};
  return {rows * heads * dims, heads * dims, dims};
}

/// Strides that are all 0 become `contiguous`; others are checked.
inline void complete_strides(ProblemChecks& checks, const char* field, const StrideRule& rule,
                             const Strides& contiguous, Strides& s) {
  if (s.batch == 0 && s.row == 0 && s.head == 0) {
    s = contiguous;
    return;
  }
  const auto is_right = [&](std::int64_t stride) {
    return stride >= 0 && stride <= rule.most && stride % rule.granule == 0;
  };
  checks
      .expect(is_right(s.batch) && is_right(s.row) && is_right(s.head), field,
              fmt::format("{}, {}, {}", s.batch, s.row, s.head), "multiples of {} {}", rule.granule,
              rule.bounds)
      .remedy("Pad them.");
}

}  // namespace tilewright::ops
