// targets: sm_90a
//
// Attention of a head_dim that no kernel has runs on the next wider one: tensor maps deliver zeros
// for the columns that do not exist. Where a kernel writes results by tensor copies, the map keeps
// those columns back, too; where it writes rows itself, it writes them to the workspace, whole, and
// this takes the columns that exist.
//
// Limit: memory, or L2 if the results are still there: (width + head_dim) * 2 bytes a row.
#include "kernels/attention/results/trim.h"
#include "kernels/attention/rows.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

__device__ void trim(const AttentionTrimParams& params) {
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  const std::int32_t batch = block / params.row_tiles;
  const std::int32_t first = block % params.row_tiles * kTrimRows;
  std::int32_t begin = 0, length = params.q_len;
  if (params.cu_q != nullptr) {
    begin = params.cu_q[batch];
    length = params.cu_q[batch + 1] - begin;
  }
  const std::int32_t of_batch = params.cu_q == nullptr ? batch : 0;
  const std::int32_t chunks = params.head_dim / tile::kChunkElems;
  const std::int32_t count = min(length - first, kTrimRows) * params.heads * chunks;
  const AttentionStrides padded = {std::int64_t{params.q_len} * params.heads * params.width,
                                   std::int64_t{params.heads} * params.width, params.width};
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < count; i += kTrimThreads) {
    const std::int32_t line = i / chunks, chunk = i % chunks;
    const std::int32_t row = begin + first + line / params.heads, head = line % params.heads;
    tile::store_chunk(
        tile::find_row(params.out, params.strides, of_batch, row, head), chunk,
        tile::load_chunk(tile::find_row(params.padded, padded, of_batch, row, head), chunk));
  }
}

}  // namespace

TILEWRIGHT_KERNEL(attention_trim, AttentionTrimParams, __launch_bounds__(kTrimThreads), trim)

}  // namespace tilewright::kernels
