// targets: sm_90a sm_100f
//
// What a layer stores between its projections and its attention, in one launch: of few tokens each
// of the kernels compress_pair or compress_hca, indexer_query and cache_write is a chain of 2 to 3
// us by itself, and none of them waits for another.
//
//   layer_rows_csa   CTA of 128 threads: entries and state | keys, their state | 16 queries of the
//                    indexer | 4 rows of queries or of the window
//   layer_rows_hca   clusters of 8 CTAs of 256: entries and state | 8 rows of queries or the window
//
// Entries come first, since their chain is the longest.
//
// Limit: latency, the longest of the chains.
#include "kernels/sparse_attention/cache/compress_entry.h"
#include "kernels/sparse_attention/cache/layer_rows.h"
#include "kernels/sparse_attention/cache/write_row.h"
#include "kernels/sparse_attention/indexer/query_row.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

template <CompressShape S>
__device__ void write_rows(const CacheWriteParams& params, std::int32_t cta) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const auto warp = static_cast<std::int32_t>(threadIdx.x / 32);
  write_row(params, cta * layer_rows_writes(S) + warp, static_cast<int>(threadIdx.x % 32));
}

template <CompressShape S>
__device__ void quantize_queries(const IndexerQueryParams& params, std::int32_t cta) {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const auto row = static_cast<std::int64_t>(cta * layer_rows_queries(S)) + threadIdx.x / 8;
  quantize_query(params, index_query(params, row), row, static_cast<int>(threadIdx.x % 8));
}

__device__ void store_csa(const LayerRowsParams& params) {
  constexpr CompressShape kShape = kCompressCsa;
  auto cta = static_cast<std::int32_t>(blockIdx.x);
  if (cta < params.row_ctas) return run<kShape>(params.rows, cta, params.row_ctas);
  cta -= params.row_ctas;
  if (cta < params.key_ctas) return run<kCompressIndex>(params.keys, cta, params.key_ctas);
  cta -= params.key_ctas;
  if (cta < params.query_ctas) return quantize_queries<kShape>(params.queries, cta);
  write_rows<kShape>(params.write, cta - params.query_ctas);
}

__device__ void store_hca(const LayerRowsParams& params) {
  const auto cta = static_cast<std::int32_t>(blockIdx.x);
  if (cta < params.row_ctas) return run<kCompressHca>(params.rows, cta, params.row_ctas);
  write_rows<kCompressHca>(params.write, cta - params.row_ctas);
}

}  // namespace

TILEWRIGHT_KERNEL(layer_rows_csa, LayerRowsParams,
                  __launch_bounds__(kCompressCsa.threads(), kCompressCsa.ctas_per_sm), store_csa)
TILEWRIGHT_KERNEL(layer_rows_hca, LayerRowsParams,
                  __launch_bounds__(kCompressHca.threads(), kCompressHca.ctas_per_sm), store_hca)

}  // namespace tilewright::kernels
