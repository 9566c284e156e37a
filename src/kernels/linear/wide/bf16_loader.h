// The producer of the linear layer for many bf16 tokens: bricks by bulk copies, tokens by tensor
// copies that the CTAs of a cluster share.
#pragma once

#include "kernels/linear/wide/bf16.h"
#include "ptx/bulk_copy.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/grid_dependency.h"
#include "ptx/mbarrier.h"

namespace tilewright::tile {

// The cluster's barriers around the sums of a tile: all CTAs have done their products; parts
// are written; sums are read, and the ring may be filled again.
__device__ void sync_reduction() {
  ptx::cluster_sync();
}

// One thread. Loads what a CTA needs of its tiles, in turn.
template <class C>
struct WideBf16Loader {
  const kernels::WideBf16Params& params;
  const WideBf16Memory<C>& memory;
  const WideCluster& cluster;
  DeepPosition at;

  // Where a tile's weights of a step begin, and how many bytes of a stage come.
  struct Source {
    const std::uint8_t* weights;
    std::int64_t step_bytes;
    std::uint32_t weight_bytes;
    std::int32_t boxes, first_token, first_column;
  };
  __device__ Source source_of(const WideTile& tile, const WideSteps& steps) const {
    const std::int32_t bricks = ceil_div(params.n, kernels::kBrickRows);
    const std::int32_t last_tile = ceil_div(bricks, C::kRowBricks) - 1;
    const std::int32_t first_brick = min(tile.row_tile, last_tile) * C::kRowBricks;
    const std::int32_t granules = ceil_div(tile.tokens, kernels::kWideGranule);
    Source source;
    source.step_bytes = std::int64_t{bricks} * C::kBrickBytes;
    source.weight_bytes = min(C::kRowBricks, bricks - first_brick) * C::kBrickBytes;
    source.weights = params.weights + tile.matrix * params.matrix_bytes +
                     steps.begin * source.step_bytes + first_brick * C::kBrickBytes;
    source.boxes = ceil_div(granules * kernels::kWideGranule, params.box_tokens);
    source.first_token = tile.first_token;
    source.first_column = tile.x_column;
    return source;
  }

  __device__ void load_weights(Source& source) const {
    const std::uint32_t full = memory.full + at.stage * 8;
    const std::uint32_t box_bytes = params.box_tokens * kernels::kWideBf16Step * 2;
    ptx::mbarrier_wait_parity_cluster(memory.empty + at.stage * 8, at.parity ^ 1);
    ptx::mbarrier_arrive_expect_tx(full, source.boxes * box_bytes + source.weight_bytes);
    ptx::cp_async_bulk_shared_global(memory.weights + at.stage * C::kWeightBytes, source.weights,
                                     source.weight_bytes, full);
    source.weights += source.step_bytes;
  }
  __device__ void load_tokens(const Source& source, std::int32_t step) const {
    const std::uint32_t full = memory.full + at.stage * 8;
    const std::uint32_t box_bytes = params.box_tokens * kernels::kWideBf16Step * 2;
    const std::uint32_t x = memory.x + at.stage * memory.x_bytes;
    const std::int32_t column = source.first_column + step * kernels::kWideBf16Step;
    for (std::int32_t box = cluster.row; box < source.boxes; box += cluster.rows) {
      const std::int32_t token = source.first_token + box * params.box_tokens;
      if (cluster.rows == 1) {
        ptx::cp_async_bulk_tensor_2d_shared_global(x + box * box_bytes, params.x_map, column, token,
                                                   full);
      } else {
        ptx::cp_async_bulk_tensor_2d_shared_global_multicast(x + box * box_bytes, params.x_map,
                                                             column, token, full, cluster.mask());
      }
    }
  }

  // The first tile: weights do not depend on the preceding kernel.
  __device__ void load_first(const WideTile& tile, const WideSteps& steps) {
    Source source = source_of(tile, steps);
    const std::int32_t early =
        min(steps.end, steps.begin + static_cast<std::int32_t>(memory.stages));
    const DeepPosition first = at;
    for (std::int32_t step = steps.begin; step < early; ++step) {
      load_weights(source);
      at.advance(memory.stages);
    }
    at = first;
    ptx::griddepcontrol_wait();
    for (std::int32_t step = steps.begin; step < early; ++step) {
      load_tokens(source, step);
      at.advance(memory.stages);
    }
    load_rest(source, early, steps.end);
  }
  __device__ void load(const WideTile& tile, const WideSteps& steps) {
    Source source = source_of(tile, steps);
    load_rest(source, steps.begin, steps.end);
  }
  __device__ void load_rest(Source& source, std::int32_t step, std::int32_t end) {
    for (; step < end; ++step) {
      load_weights(source);
      load_tokens(source, step);
      at.advance(memory.stages);
    }
  }
};

// The warpgroup that loads. Its other threads are needed at the cluster's barriers only.
template <class C>
__device__ void produce_wide_bf16(const kernels::WideBf16Params& params,
                                  const WideBf16Memory<C>& memory, const WideSchedule<1>& schedule,
                                  const WideCluster& cluster) {
  if (cluster.splits == 1 && threadIdx.x >= 32) return;
  const bool loads = threadIdx.x < 32 && ptx::elect_sync();
  WideBf16Loader<C> loader{params, memory, cluster, {}};
  const WideDeal& deal = *memory.deal;
  for (std::int32_t i = 0; i < deal.pieces; ++i) {
    const WidePiece piece = deal.piece(i);
    if (loads) {
      const WideTile tile = schedule.find(piece.unit, cluster.row);
      const WideSteps steps(piece, cluster);
      i == 0 ? loader.load_first(tile, steps) : loader.load(tile, steps);
    }
    // The next kernel begins to load when this one's CTAs have room for it.
    if (i == 0) ptx::griddepcontrol_launch_dependents();
    if (cluster.splits == 1) continue;
    __syncwarp();
    sync_reduction();
    sync_reduction();
    sync_reduction();
  }
  __syncwarp();
}

}  // namespace tilewright::tile
