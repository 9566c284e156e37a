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
#include "kernels/sparse_attention/cache_row.h"
#include "kernels/sparse_attention/index_row.h"
#include "kernels/sparse_attention/indexer/indexer_query.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

struct Query {
  std::int32_t token, head;
  bool is_there;  // a row of the call
};

__device__ float load_weight(const IndexerQueryParams& params, const Query& query) {
  const std::int64_t at = query.token * params.weights_stride + query.head;
  if (params.is_weights_f32 != 0) return static_cast<const float*>(params.weights)[at];
  const std::uint32_t half = static_cast<const std::uint16_t*>(params.weights)[at];
  return __uint_as_float(half << 16);
}

// The query, rotated and rounded; zeros where there is none.
__device__ tile::IndexChunk load_query(const IndexerQueryParams& params, const Query& query,
                                       std::int32_t position, int lane) {
  tile::IndexChunk chunk = {};
  if (position < 0) return chunk;
  chunk = tile::load_row_chunk(params.q + query.token * params.q_token_stride +
                               query.head * params.q_head_stride + lane * tile::kRowElems);
  const int pair = lane * (tile::kRowElems / 2) - (kIndexDims - kIndexRopeDims) / 2;
  if (pair < 0) return chunk;
  float x[tile::kRowElems];
  tile::to_f32(x, chunk);
  tile::rotate_pairs(x, params.rope + std::int64_t{position} * kIndexRopeDims, pair);
  return tile::to_bf16(x);
}

// Stores this lane's codes; what the query's weight is multiplied by.
__device__ float store_codes(const IndexerQueryParams& params, const tile::IndexChunk& chunk,
                             std::int64_t row, int lane, bool is_stored) {
  if (params.format == IndexFormat::kFp8) {
    const tile::IndexFp8Row codes(chunk);
    if (is_stored) reinterpret_cast<uint4*>(params.codes + row * kIndexDims)[lane] = codes.codes;
    return codes.scale;
  }
  const tile::IndexMxfp4Row codes(chunk);
  if (is_stored) {
    reinterpret_cast<uint2*>(params.codes + row * (kIndexDims / 2))[lane] = codes.codes;
    if (lane % 2 == 0)
      params.scales[row * kIndexScaleBytes + lane / 2] = static_cast<std::uint8_t>(codes.scale);
  }
  return 1;
}

__device__ void quantize_queries(const IndexerQueryParams& params) {
  const auto lane = static_cast<int>(threadIdx.x % 8);
  const std::int64_t row = std::int64_t{blockIdx.x} * kIndexerQueryRows + threadIdx.x / 8;
  Query query = {};
  query.token = static_cast<std::int32_t>(row / params.heads);
  query.head = static_cast<std::int32_t>(row) - query.token * params.heads;
  query.is_there = query.token < params.tokens;
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  std::int32_t position = query.is_there ? params.positions[query.token] : -1;
  if (position >= params.num_positions) position = -1;
  const tile::IndexChunk chunk =
      tile::transform_index_row(load_query(params, query, position, lane));
  const float scale = store_codes(params, chunk, row, lane, query.is_there);
  if (lane != 0 || !query.is_there) return;
  const float weight = __fmul_rn(load_weight(params, query), params.factor);
  params.weights_out[row] = position < 0 ? 0.0f : __fmul_rn(weight, scale);
}

}  // namespace

TILEWRIGHT_KERNEL(indexer_query, IndexerQueryParams, __launch_bounds__(kIndexerQueryThreads),
                  quantize_queries)

}  // namespace tilewright::kernels
