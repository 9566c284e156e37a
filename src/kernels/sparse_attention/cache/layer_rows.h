// Contract of what a layer stores between its projections and its attention, in one launch.
#pragma once

#include "kernels/sparse_attention/cache/cache_write.h"
#include "kernels/sparse_attention/cache/compress.h"
#include "kernels/sparse_attention/indexer/indexer_query.h"

#include <cstdint>

namespace tilewright::kernels {

/// Four launches in one, which neither read nor write what another of them writes: entries and
/// state of a compressor, of a CSA layer also those of its indexer's keys and the indexer's
/// queries, and queries and rows of the window. CTAs in this order; the numbers are those of the
/// single kernels, to the bit.
///
/// Entry layer_rows_csa: CTAs of kCompressCsa.threads(). Entry layer_rows_hca: of kCompressHca, in
/// clusters of its CTAs; key_ctas and query_ctas are 0.
struct LayerRowsParams {
  CompressParams rows, keys;
  IndexerQueryParams queries;
  CacheWriteParams write;
  std::int32_t row_ctas, key_ctas, query_ctas;  ///< the others write
};

/// Queries of the indexer, and rows of queries and of the window, that a CTA does.
constexpr int layer_rows_queries(const CompressShape& shape) {
  return shape.threads() / 8;
}
constexpr int layer_rows_writes(const CompressShape& shape) {
  return shape.threads() / 32;
}

}  // namespace tilewright::kernels
