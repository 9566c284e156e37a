#include "ops/c_api/handles.h"

#include <algorithm>

namespace c_api = tilewright::c_api;

tw_status tw_rope_table(const tw_rope_options* options, int64_t positions, int64_t first,
                        float* table) {
  const char* const function = "tw_rope_table";
  return c_api::guarded([&] {
    const tilewright::RopeOptions given = c_api::to_cpp(options, {function, "options"});
    c_api::require_address(table, function, "table");
    std::ranges::copy(tilewright::rope_table(given, positions, first), table);
  });
}

size_t tw_kv_cache_bytes(const tw_kv_cache* cache) {
  return cache == nullptr ? 0 : tilewright::kv_cache_bytes(cache->op.layout());
}

namespace {

template <class Handle>
size_t workspace_bytes_of(const Handle* handle, int64_t tokens, int64_t batch) {
  if (handle == nullptr || tokens < 0 || batch < 0) return 0;
  std::size_t bytes = 0;
  (void)c_api::guarded([&] { bytes = handle->op.workspace_bytes(tokens, batch); });
  return bytes;
}

}  // namespace

size_t tw_indexer_workspace_bytes(const tw_indexer* indexer, int64_t tokens, int64_t batch) {
  return workspace_bytes_of(indexer, tokens, batch);
}

size_t tw_indexer_logits_workspace_bytes(const tw_indexer_logits* logits, int64_t tokens,
                                         int64_t batch) {
  return workspace_bytes_of(logits, tokens, batch);
}
