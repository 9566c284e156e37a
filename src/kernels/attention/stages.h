// Tiles of queries, keys and values by tensor copies, for CTAs in which a thread that computes also
// loads: it fills all stages of a ring at the start, and each of them again when the CTA has let go
// of it.
#pragma once

#include "kernels/attention/attention.h"
#include "ptx/address.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/fence.h"
#include "tile/ring.h"

#include <cstdint>

namespace tilewright::tile {

/// Copies a tile of rows as boxes of BoxColumns columns, one after another in shared memory.
template <int Rows, int HeadDim, int BoxColumns>
__device__ void load_boxes(std::uint8_t* to, const void* map, std::int32_t row, std::int32_t head,
                           std::int32_t batch, std::uint32_t barrier) {
#pragma unroll
  for (int column = 0; column < HeadDim; column += BoxColumns) {
    ptx::cp_async_bulk_tensor_4d_shared_global(ptx::shared_address(to) + column * Rows * 2, map,
                                               column, row, head, batch, barrier);
  }
}

/// A tile in shared memory, element by element.
__device__ inline const std::uint16_t* elements(const std::uint8_t* tile) {
  return reinterpret_cast<const std::uint16_t*>(tile);
}

/// Where the tiles lie: the keys and values of a step share a stage.
template <int HeadDim, int Stages>
struct AttentionStages {
  static constexpr int kRows = 64, kTileBytes = kRows * HeadDim * 2;
  std::uint8_t q[kTileBytes];
  std::uint8_t k[Stages][kTileBytes], v[Stages][kTileBytes];
  RingBarriers<1> q_ring;
  RingBarriers<Stages> kv_ring;
};

/// The loading side: one thread of warp 0.
template <int HeadDim, int BoxColumns, int Stages>
struct StageLoader {
  using Shared = AttentionStages<HeadDim, Stages>;
  static constexpr int kRows = Shared::kRows, kTileBytes = Shared::kTileBytes;

  const kernels::AttentionParams& params;
  Shared& shared;
  std::int32_t num_tiles;
  std::int32_t next_tile = 0;
  RingPosition<Stages> at;

  /// All threads: prepares the barriers, then loads the queries and as many tiles as there are
  /// stages. Nothing is loaded if there are no keys: the maps need not exist then.
  __device__ void start(std::uint32_t num_warps) {
    if (threadIdx.x == 0) {
      shared.q_ring.initialise(num_warps);
      shared.kv_ring.initialise(num_warps);
      ptx::fence_mbarrier_init_release_cluster();
      if (num_tiles > 0) load_q();
      for (int i = 0; i < Stages; ++i) load_next();
    }
    __syncthreads();
  }

  /// Warp 0 after it released a stage: waits until all others have, and fills it again.
  __device__ void refill() {
    if (threadIdx.x == 0) load_next();
    __syncwarp();
  }

 private:
  __device__ void load_q() {
    const Ring<1> ring(shared.q_ring);
    ring.start_filling({}, kTileBytes);
    load_boxes<kRows, HeadDim, BoxColumns>(shared.q, params.q_map,
                                           static_cast<std::int32_t>(blockIdx.x * kRows),
                                           blockIdx.y, blockIdx.z, ring.full({}));
  }
  __device__ void load_next() {
    if (next_tile == num_tiles) return;
    const Ring<Stages> ring(shared.kv_ring);
    const auto kv_head = static_cast<std::int32_t>(blockIdx.y) / (params.heads / params.kv_heads);
    ring.start_filling(at, 2 * kTileBytes);
    load_boxes<kRows, HeadDim, BoxColumns>(shared.k[at.stage], params.k_map, next_tile * kRows,
                                           kv_head, blockIdx.z, ring.full(at));
    load_boxes<kRows, HeadDim, BoxColumns>(shared.v[at.stage], params.v_map, next_tile * kRows,
                                           kv_head, blockIdx.z, ring.full(at));
    at.advance();
    ++next_tile;
  }
};

}  // namespace tilewright::tile
