// targets: sm_90a sm_100f
//
// Queries of the lightning indexer: rotation, Hadamard, codes.
//
//   eight lanes = a query of 128, lane = 16 neighbours (lanes 4..7 hold what is rotated)
//     position | load 32 B | 8 cosines, 8 sines | bf16 | four butterflies in registers, three over
//     lanes | bf16 | amax of eight lanes or two | codes: store 16 or 8 B | weight
//
// Limit: memory. A query is read as 256 bytes and written as 132 or 72; 256 tokens of 64 heads are
// 6.4 MB, 1.5 us at the 4.3 TB/s of a copy. About 300 instructions a lane: 16,384 queries are
// 4,096 warps, 31 an SM, 2,400 cycles of a quarter, 1.4 us: launch and latency decide.
// Measured: H200, 64 heads, e4m3: 128 tokens in 2.9 us, 8192 in 92 us (2.2 TB/s, warm).
// Sources: the official DeepSeek-V4 inference code.
#include "kernels/sparse_attention/indexer/indexer_query.h"
#include "kernels/sparse_attention/indexer/query_row.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

__device__ void quantize_queries(const IndexerQueryParams& params) {
  const auto lane = static_cast<int>(threadIdx.x % 8);
  const std::int64_t row = std::int64_t{blockIdx.x} * kIndexerQueryRows + threadIdx.x / 8;
  const IndexQuery query = index_query(params, row);
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  quantize_query(params, query, row, lane);
}

}  // namespace

TILEWRIGHT_KERNEL(indexer_query, IndexerQueryParams, __launch_bounds__(kIndexerQueryThreads),
                  quantize_queries)

}  // namespace tilewright::kernels
