// Between the public names of caches and those that kernels know.
#pragma once

#include "tilewright/cache_writer.h"

#include "formats/index_page.h"
#include "formats/kv_row.h"
#include "kernels/sparse_attention/cache/cache_write.h"
#include "kernels/sparse_attention/kv_pages.h"
#include "ops/operator/make_fast_divisor.h"
#include "ops/operator/problem_checks.h"

namespace tilewright::ops {

/// The layout with its stride filled in, if it is right; what is wrong is noted. Of rows of so many
/// numbers: 512, or 576 for DeepSeek-V3's.
KvCacheLayout complete_layout(ProblemChecks& checks, const KvCacheLayout& layout,
                              std::int64_t head_dim = kKvDims);
/// Likewise of pages of keys; their format is not one of rows.
KvCacheLayout complete_index(ProblemChecks& checks, IndexFormat format, KvCacheLayout layout);

/// Of a completed layout. `pages` may be memory that a kernel only reads.
inline kernels::KvPages to_kernel(const KvCacheLayout& layout, const void* pages) {
  const auto page_size = static_cast<std::uint32_t>(layout.page_size);
  return {static_cast<std::uint8_t*>(const_cast<void*>(pages)),
          layout.page_stride_bytes,
          make_fast_divisor(page_size),
          static_cast<std::int32_t>(page_size),
          static_cast<std::int32_t>(layout.num_pages * layout.page_size),
          kv_format(layout.format)};
}
inline kernels::SequenceTokens to_kernel(const SequenceBatch& s) {
  return {s.offsets, s.starts, static_cast<std::int32_t>(s.batch),
          static_cast<std::int32_t>(s.q_len)};
}
inline kernels::BlockTable to_kernel(const SequencePages& t) {
  return {t.pages, t.stride != 0 ? t.stride : t.blocks, static_cast<std::int32_t>(t.blocks)};
}

/// Of KvCache::write() into a cache of a completed layout, checked; zeros if there is nothing to
/// do.
kernels::CacheWriteParams cache_write_params(const KvCacheLayout& layout,
                                             const KvWriteArguments& arguments);

}  // namespace tilewright::ops
