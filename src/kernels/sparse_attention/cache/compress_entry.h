// Entries of a compressor and the new rows of its state, by CTAs: what compress.cu and
// layer_rows.cu are made of. compress.cu says how.
#pragma once

#include "kernels/sparse_attention/cache/compress.h"
#include "kernels/sparse_attention/cache/compress_pool.h"
#include "kernels/sparse_attention/cache_row.h"
#include "kernels/sparse_attention/index_row.h"
#include "ptx/address.h"
#include "ptx/cluster.h"
#include "ptx/cp_async.h"
#include "ptx/grid_dependency.h"

#include <cstdint>

namespace tilewright::kernels {
namespace {

// What warp 0 needs besides pooled rows, copied while the others load tokens.
template <CompressShape S>
struct Ahead {
  alignas(16) std::uint16_t norm_weight[S.dim];
  alignas(16) float angles[S.rows][kKvRopeDims];
  std::int32_t pages[S.rows];
};

// From pooled rows in shared memory to the cache: a warp, 16 numbers a lane.
template <CompressShape S>
class Finish {
 public:
  static constexpr int kLanes = S.dim / tile::kRowElems;  // of a row
  static constexpr int kFirstRotated = (S.dim - kKvRopeDims) / tile::kRowElems;

  __device__ explicit Finish(Ahead<S>& ahead)
      : ahead_(ahead),
        lane_(static_cast<int>(threadIdx.x % kLanes)),
        row_(static_cast<int>(threadIdx.x % 32 / kLanes)) {}

  // The norm's weight; angles of entry `index` and on, one for each row, and the pages they go to.
  __device__ void copy_ahead(const CompressParams& params, std::int32_t index) {
    copy_weight(params);
    const tile::PoolTask task(params, index + row_, S.ratio);
    const std::int32_t position = task.entry * S.ratio;
    const std::int32_t block = task.entry / params.cache.page_size;
    has_entry_ = task.has_entry;
    is_stored_ = has_entry_ && position < params.num_positions && block < params.table.blocks;
    slot_ = task.entry - block * params.cache.page_size;
    const std::uint32_t is_valid = is_stored_ ? 1 : 0;
    const float* const angles =
        params.rope + (is_stored_ ? position : 0) * std::int64_t{kKvRopeDims};
    for (int i = lane_ * 4; i < kKvRopeDims; i += kLanes * 4) {
      ptx::cp_async_cg_shared_global_16(ptx::shared_address(ahead_.angles[row_] + i), angles + i,
                                        16 * is_valid);
    }
    if (lane_ == 0) {
      const std::int64_t at = task.sequence * params.table.stride + (is_stored_ ? block : 0);
      ptx::cp_async_ca_shared_global_4(ptx::shared_address(ahead_.pages + row_),
                                       params.table.table + at, 4 * is_valid);
    }
    ptx::cp_async_commit_group();
  }

  __device__ void run(const CompressParams& params, const float* rows) const {
    ptx::cp_async_wait_group<0>();
    __syncwarp();
    float x[tile::kRowElems];
    load(x, rows);
    const float sum = tile::sum_of_squares<kLanes>(x);
    tile::scale_row(x, tile::inverse_rms(sum, S.dim, params.eps));
    tile::scale_row(x, ahead_.norm_weight + lane_ * tile::kRowElems);
    tile::to_f32(x, tile::to_bf16(x));
    if (lane_ >= kFirstRotated && is_stored_)
      tile::rotate_pairs(x, ahead_.angles[row_], (lane_ - kFirstRotated) * (tile::kRowElems / 2));
    store(params, tile::to_bf16(x));
  }

 private:
  __device__ void copy_weight(const CompressParams& params) const {
    constexpr int kVectorElems = 8;
    for (int i = static_cast<int>(threadIdx.x % 32) * kVectorElems; i < S.dim;
         i += 32 * kVectorElems) {
      ptx::cp_async_cg_shared_global_16(ptx::shared_address(ahead_.norm_weight + i),
                                        params.norm_weight + i, 16);
    }
  }

  __device__ void load(float (&x)[tile::kRowElems], const float* rows) const {
    const float* const from = rows + row_ * S.dim + lane_ * tile::kRowElems;
#pragma unroll
    for (int i = 0; i < tile::kRowElems; i += 4) {
      const float4 four = has_entry_ ? tile::load_float4(from + i) : make_float4(0, 0, 0, 0);
      x[i] = four.x, x[i + 1] = four.y, x[i + 2] = four.z, x[i + 3] = four.w;
    }
  }

  __device__ void store(const CompressParams& params, const tile::RowChunk& chunk) const {
    const std::int32_t page = ahead_.pages[row_];
    const bool has_page =
        is_stored_ && page >= 0 && page < params.cache.num_rows / params.cache.page_size;
    const std::int64_t to = has_page ? page : 0;
    if constexpr (S.dim == kKvDims) {
      const tile::EncodedRow row(params.cache.format, chunk);
      if (has_page) row.store(tile::KvAddress(params.cache, page, slot_), lane_);
    } else {
      const IndexPageLayout layout = {params.index_format, params.cache.page_size,
                                      params.cache.page_stride};
      tile::store_index_key(params.index_format, params.cache.pages + layout.data_offset(to, slot_),
                            params.cache.pages + layout.scale_offset(to, slot_),
                            tile::transform_index_row(chunk), has_page);
    }
  }

  Ahead<S>& ahead_;
  int lane_, row_;
  std::int32_t slot_ = 0;
  bool has_entry_ = false, is_stored_ = false;
};

__device__ float to_bf16(const tile::Pool& pool) {
  return __bfloat162float(__float2bfloat16_rn(__fdiv_rn(pool.value, pool.sum)));
}

// A CTA has S.rows entries, none of which it shares.
template <CompressShape S>
__device__ void compress(const CompressParams& params, std::int32_t cta) {
  static_assert(S.parts() == 1);
  __shared__ Ahead<S> ahead;
  __shared__ alignas(16) float rows[S.rows * S.dim];
  const auto row_idx = static_cast<int>(threadIdx.x / S.row_threads());
  const int channel = static_cast<int>(threadIdx.x % S.row_threads()) * 4;
  const std::int32_t index = cta * S.rows;
  const bool is_first_warp = threadIdx.x < 32;
  Finish<S> finish(ahead);
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const tile::PoolTask task(params, index + row_idx, S.ratio);
  tile::PoolSlot slots[tile::kPoolSlots];
  if (task.has_entry) tile::load_slots<S>(slots, params, task, channel, 0);
  if (is_first_warp) finish.copy_ahead(params, index);
  if (task.has_entry) {
    tile::Pool pools[4];
    tile::pool_channels(pools, slots);
#pragma unroll
    for (int i = 0; i < 4; ++i) rows[row_idx * S.dim + channel + i] = to_bf16(pools[i]);
  }
  if (__syncthreads_or(task.has_entry ? 1 : 0) != 0 && is_first_warp) finish.run(params, rows);
}

// The channels of the CTA, pooled over all parts, to `row` of the cluster's first CTA.
template <CompressShape S>
__device__ void pool_parts(tile::PartialPools<S>& partial,
                           const tile::PoolSlot (&slots)[tile::kPoolSlots], int channel, int lane,
                           int part, const float* row) {
  tile::Pool pools[4];
  tile::pool_channels(pools, slots);
#pragma unroll
  for (int i = 0; i < 4; ++i) partial.pools[part][4 * lane + i] = pools[i];
  __syncthreads();
  if (part != 0) return;
  float merged[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) merged[i] = to_bf16(partial.merged(4 * lane + i));
  const std::uint32_t to = ptx::shared_address(row + channel);
  ptx::st_shared_cluster_v4_f32(ptx::mapa_shared_cluster(to, 0), merged);
}

// Entries cluster, cluster + clusters, ... of the launch: a warp looks at 32 of them at once, since
// nearly none is complete while tokens come one by one. Two rows take turns: the CTAs write the
// next entry's while the first CTA finishes this one's, and the barrier of the next entry says that
// it has.
template <CompressShape S>
__device__ void compress_in_cluster(const CompressParams& params, std::int32_t cta) {
  __shared__ Ahead<S> ahead;
  __shared__ alignas(16) float rows[2][S.dim];
  __shared__ tile::PartialPools<S> partial;
  const std::uint32_t rank = ptx::cluster_ctarank();
  const auto lane = static_cast<int>(threadIdx.x % S.lanes());
  const auto part = static_cast<int>(threadIdx.x / S.lanes());
  const int channel = static_cast<int>(rank) * S.channels() + 4 * lane;
  const bool is_finisher = rank == 0 && threadIdx.x < 32;
  Finish<S> finish(ahead);
  ptx::barrier_cluster_arrive_aligned();
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  ptx::barrier_cluster_wait_aligned();  // the first CTA has begun
  const std::int32_t clusters = params.entry_ctas / S.ctas;
  const std::int32_t first = cta / S.ctas;
  const std::int32_t entries = params.sequences.batch * params.groups;
  int turn = 0;
  for (std::int32_t base = first; base < entries; base += 32 * clusters) {
    const std::int32_t mine = base + static_cast<std::int32_t>(threadIdx.x % 32) * clusters;
    const bool is_complete = mine < entries && tile::PoolTask(params, mine, S.ratio).has_entry;
    for (std::uint32_t left = __ballot_sync(~0u, is_complete); left != 0; left &= left - 1) {
      const std::int32_t index = base + (__ffs(static_cast<int>(left)) - 1) * clusters;
      const tile::PoolTask task(params, index, S.ratio);
      tile::PoolSlot slots[tile::kPoolSlots];
      tile::load_slots<S>(slots, params, task, channel, part);
      if (is_finisher) finish.copy_ahead(params, index);
      pool_parts<S>(partial, slots, channel, lane, part, rows[turn]);
      ptx::cluster_sync();
      if (is_finisher) finish.run(params, rows[turn]);
      turn ^= 1;
    }
  }
}

template <CompressShape S>
__device__ void run(const CompressParams& params, std::int32_t cta, std::int32_t ctas) {
  if (cta < params.entry_ctas) {
    if constexpr (S.ctas > 1) {
      compress_in_cluster<S>(params, cta);
    } else {
      compress<S>(params, cta);
    }
  } else {
    ptx::griddepcontrol_wait();
    ptx::griddepcontrol_launch_dependents();
    tile::store_state<S>(params, cta - params.entry_ctas, ctas - params.entry_ctas);
  }
}

}  // namespace
}  // namespace tilewright::kernels
