// targets: sm_90a sm_100f
//
// Rows of a cache back to bf16, and the lists of rows that tokens may look at.
//
//   cache_read    warp = row: its number | page and slot | codes, scales | times, bf16
//                 | 32 B a lane
//   cache_lists   warp = token: its sequence (bisection) | 32 logical rows at a time
//                 | block table
//
// Limit: memory; 584 (fp8) bytes are read and 1024 written a row. A window list writes 512 bytes a
// token, a list of HCA entries 4 bytes for each 128 tokens of context.
// Measured on an H200: 65536 fp8 rows in any order 29 us, 84 % of a copy; docs/06-deepseek-v4.md.
#include "kernels/sparse_attention/cache/cache_write.h"
#include "kernels/sparse_attention/cache_row.h"
#include "kernels/sparse_attention/sequence_tokens.h"
#include "ptx/grid_dependency.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

__device__ void read_row(const CacheReadParams& params, std::int32_t i, int lane) {
  const std::int32_t row = params.rows[i];
  tile::RowChunk chunk = {};
  if (tile::has_row(params.cache, row)) {
    chunk = tile::load_kv_row(params.cache.format, tile::KvAddress(params.cache, row), lane);
  }
  tile::store_row_chunk(params.out + i * params.out_stride + lane * tile::kRowElems, chunk);
}

// First logical row of the list of the token at `position`, and how many it has. Unsigned: there
// may be 2^31.
struct Range {
  std::int32_t first;
  std::uint32_t count;
  __device__ Range(const CacheListsParams& params, std::int32_t position) {
    first = params.window > 0 ? max(position - params.window + 1, 0) : 0;
    count = static_cast<std::uint32_t>(position - first) + 1;
    if (params.window == 0) count /= static_cast<std::uint32_t>(params.ratio);
  }
};

__device__ void list_token(const CacheListsParams& params, std::int32_t token, int lane,
                           int lanes) {
  const tile::TokenPlace place(params.sequences, token);
  const bool takes_part = place.position >= 0;
  if (lane == 0 && params.positions != nullptr)
    params.positions[token] = takes_part ? place.position : -1;
  const Range range(params, place.position);
  const std::int32_t count =
      takes_part
          ? static_cast<std::int32_t>(min(range.count, static_cast<std::uint32_t>(params.list_len)))
          : 0;
  if (lane == 0 && params.lengths != nullptr) params.lengths[token] = count;
  if (params.lists == nullptr) return;
  std::int32_t* const list = params.lists + token * params.list_stride;
  for (std::int32_t i = lane; i < params.list_len; i += lanes) {
    std::int32_t row = -1;
    if (i < count) {
      const std::int32_t at = range.first + i;
      // Rows from here to the sequence's end, which may lie at 2^31.
      const std::uint32_t behind =
          static_cast<std::uint32_t>(place.end) - static_cast<std::uint32_t>(at);
      const bool is_kept = params.ring == 0 || behind <= static_cast<std::uint32_t>(params.ring);
      const std::int32_t logical = params.ring == 0 ? at : at % params.ring;
      if (is_kept) {
        row = tile::physical_row(params.table, place.sequence, logical, params.page_size,
                                 params.num_rows);
      }
    }
    list[i] = row;
  }
}

__device__ void read_rows(const CacheReadParams& params) {
  const auto i = static_cast<std::int32_t>(blockIdx.x * kCacheReadWarps + threadIdx.x / 32);
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  if (i < params.count) read_row(params, i, static_cast<int>(threadIdx.x % 32));
}

__device__ void list_tokens(const CacheListsParams& params) {
  const int lanes = cache_list_lanes(params.tokens, params.list_len);
  const auto thread = static_cast<int>(threadIdx.x);
  const auto i = static_cast<std::int32_t>(blockIdx.x * blockDim.x + threadIdx.x) / lanes;
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  if (i < params.tokens) list_token(params, i, thread % lanes, lanes);
}

}  // namespace

TILEWRIGHT_KERNEL(cache_read, CacheReadParams, __launch_bounds__(kCacheReadThreads), read_rows)
TILEWRIGHT_KERNEL(cache_lists, CacheListsParams, __launch_bounds__(kCacheListThreads), list_tokens)

}  // namespace tilewright::kernels
