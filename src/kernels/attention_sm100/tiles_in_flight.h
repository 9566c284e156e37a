// What kernels with several tiles of rows in flight share, stages E and H: the barriers between
// their roles, columns of Tensor Memory, the keys of all tiles, and the loop of the correction
// warps.
#pragma once

#include "kernels/attention_sm100/tensor_attention.h"

#include <cstdint>

namespace tilewright::tile {

/// For store_results(): one of several stores, by barriers of their own, with registers for all
/// columns of a row. At the end shared memory has been read, and may be given back.
template <int Columns>
struct StoreOfTile {
  int tile;

  static constexpr int kChunks = Columns / 32;
  __device__ void sync() const { ptx::bar_sync<kRowThreads>(kRowBarrier + tile); }
  __device__ void wait() const { ptx::cp_async_bulk_wait_group_read<0>(); }
};

template <int Tiles, int ValueDim>
struct TilesInFlight {
  using Rows = GroupWork<ValueDim, ValueDim>;

  /// In shared memory; of tile t: s_full, its scores are there; factor, factors of its rows;
  /// p_ready, P and O may be used by the next product; o_full, its results are complete.
  struct Barriers {
    std::uint64_t q_full, s_full[Tiles], factor[Tiles], p_ready[Tiles], o_full[Tiles];

    __device__ void initialise() {
      ptx::mbarrier_init(ptx::shared_address(&q_full), 1);
      for (int t = 0; t < Tiles; ++t) {
        ptx::mbarrier_init(ptx::shared_address(&s_full[t]), 1);
        ptx::mbarrier_init(ptx::shared_address(&factor[t]), kRowThreads);
        ptx::mbarrier_init(ptx::shared_address(&p_ready[t]), 2 * kRowThreads);
        ptx::mbarrier_init(ptx::shared_address(&o_full[t]), 1);
      }
    }
  };

  static __device__ std::uint32_t scores(std::uint32_t columns, int t) {
    return columns + t * kKeys;
  }
  static __device__ std::uint32_t results(std::uint32_t columns, int t) {
    return columns + Tiles * kKeys + t * ValueDim;
  }

  /// Tile t of the CTA; it may have no rows.
  static __device__ Rows rows_of(const kernels::AttentionParams& params, int t) {
    const std::int32_t of_cta = params.q_tiles - 1 - static_cast<std::int32_t>(blockIdx.x);
    return {params, params.heads / params.kv_heads, of_cta * Tiles + t};
  }
  /// The keys of all tiles.
  struct KeyRange {
    std::int32_t begin, end;

    __device__ explicit KeyRange(const kernels::AttentionParams& params) {
      const Rows first = rows_of(params, 0), last = rows_of(params, Tiles - 1);
      begin = first.tiles.begin;
      end = last.rows() > 0 ? max(first.tiles.end, last.tiles.end) : first.tiles.end;
      end = max(end, begin);
    }
    __device__ std::int32_t count() const { return end - begin; }
  };

  /// A correction thread: multiplies its row's results with the factors that softmax threads leave.
  template <class Shared>
  static __device__ void correct(Shared& shared, std::uint32_t columns, std::int32_t steps) {
    const std::uint32_t row = threadIdx.x % kRowThreads;
    for (std::int32_t step = 0; step < steps; ++step) {
#pragma unroll 1
      for (int t = 0; t < Tiles; ++t) {
        wait_for_tensor_memory(ptx::shared_address(&shared.barriers.factor[t]), step & 1);
        const float factor = shared.factors[t][row];
        if (step > 0 && __any_sync(0xffffffffu, factor != 1.0f)) {
          scale_row<ValueDim>(own_lanes(results(columns, t)), factor);
          ptx::tcgen05_wait_st_sync_aligned();
        }
        hand_over_tensor_memory(ptx::shared_address(&shared.barriers.p_ready[t]));
      }
    }
  }
};

}  // namespace tilewright::tile
