// targets: sm_90a
//
// Linear layers for many tokens: packed weights decoded into registers, tokens from shared memory.
#include "kernels/linear/packed_weight.h"
#include "kernels/linear/sm90_wide_bf16.h"
#include "ptx/bulk_copy.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/fence.h"
#include "ptx/grid_dependency.h"
#include "tile/ring.h"
#include "tile/warpgroup_mma.h"
#include "tile/wide_epilogue.h"
#include "tile/wide_schedule.h"
#include "tile/wide_weights.h"

namespace tilewright::kernels {
namespace {

constexpr int kConsumerWarps = 8;
constexpr int kAccumulators = kWideBf16MaxTokens / 2;
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
constexpr int kRowBricks = kWideBf16Rows / kBrickRows;
constexpr int kStepsOfBlock = kFp8BlockK / kWideBf16Step;

// Place of the CTA in its cluster.
struct Cluster {
  std::int32_t row, rows;      // among those that share tokens
  std::int32_t split, splits;  // among those that share results

  __device__ explicit Cluster(const WideBf16Params& params)
      : rows(params.cluster_rows), splits(params.splits) {
    const auto rank = static_cast<std::int32_t>(ptx::cluster_ctarank());
    row = rank % rows;
    split = rank / rows;
  }
  __device__ bool is_alone() const { return rows * splits == 1; }
};

// Shared memory, and the stages of the ring.
template <WeightFormat Format>
struct Memory {
  std::uint32_t x, weights, staging, full, empty;
  std::int32_t* table;
  std::uint32_t x_bytes, stages;
  static constexpr std::uint32_t kWeightBytes = kRowBricks * brick_bytes(Format);

  __device__ Memory(std::uint8_t* dynamic, const WideBf16Params& params) {
    x_bytes = static_cast<std::uint32_t>(params.tile_tokens * kWideBf16Step * 2);
    stages = static_cast<std::uint32_t>(params.stages);
    x = ptx::shared_address(dynamic);
    weights = x + stages * x_bytes;
    staging = weights + stages * kWeightBytes;
    full = staging + WideBf16Layout::kStagingBytes;
    empty = full + WideBf16Layout::kMaxStages * 8;
    table = reinterpret_cast<std::int32_t*>(dynamic + (full - x) + WideBf16Layout::kBarrierBytes);
  }
};

// A place in a ring whose length is known at the launch.
struct Position {
  std::uint32_t stage = 0, parity = 0;

  __device__ void advance(std::uint32_t stages) {
    stage = stage + 1 == stages ? 0 : stage + 1;
    parity ^= stage == 0 ? 1 : 0;
  }
};

// Steps of k of a CTA.
struct Steps {
  std::int32_t begin, end;

  __device__ Steps(const WideBf16Params& params, const Cluster& cluster) {
    const std::int32_t all = tile::ceil_div(params.k, kWideBf16Step);
    begin = cluster.split * all / cluster.splits;
    end = (cluster.split + 1) * all / cluster.splits;
  }
};

// The cluster's barriers around the sums of a tile: everybody has done his products; parts are
// written; sums are read, and the ring may be filled again.
__device__ void sync_reduction() {
  ptx::cluster_sync();
}

// One thread.
template <WeightFormat Format>
__device__ void load_tile(const WideBf16Params& params, const Memory<Format>& memory,
                          const Cluster& cluster, const Steps& steps, const tile::WideTile& tile,
                          Position& at) {
  const std::int32_t bricks = tile::ceil_div(params.n, kBrickRows);
  const std::int32_t last_tile = tile::ceil_div(bricks, kRowBricks) - 1;
  const std::int32_t first_brick = min(tile.row_tile, last_tile) * kRowBricks;
  const std::uint32_t weight_bytes = min(kRowBricks, bricks - first_brick) * brick_bytes(Format);
  const std::int64_t step_bytes = std::int64_t{bricks} * brick_bytes(Format);
  const std::uint8_t* weights = params.weights + tile.matrix * params.matrix_bytes +
                                steps.begin * step_bytes + first_brick * brick_bytes(Format);
  const std::int32_t granules = tile::ceil_div(tile.tokens, kWideBf16Granule);
  const std::int32_t boxes = tile::ceil_div(granules * kWideBf16Granule, params.box_tokens);
  const std::uint32_t box_bytes = params.box_tokens * kWideBf16Step * 2;
  const auto mask =
      static_cast<std::uint16_t>(((1 << cluster.rows) - 1) << (cluster.split * cluster.rows));
  for (std::int32_t step = steps.begin; step < steps.end; ++step) {
    const std::uint32_t full = memory.full + at.stage * 8;
    ptx::mbarrier_wait_parity_cluster(memory.empty + at.stage * 8, at.parity ^ 1);
    ptx::mbarrier_arrive_expect_tx(full, boxes * box_bytes + weight_bytes);
    ptx::cp_async_bulk_shared_global(memory.weights + at.stage * Memory<Format>::kWeightBytes,
                                     weights, weight_bytes, full);
    weights += step_bytes;
    const std::uint32_t x = memory.x + at.stage * memory.x_bytes;
    for (std::int32_t box = cluster.row; box < boxes; box += cluster.rows) {
      const std::int32_t token = tile.first_token + box * params.box_tokens;
      if (cluster.rows == 1) {
        ptx::cp_async_bulk_tensor_2d_shared_global(x + box * box_bytes, params.x_map,
                                                   step * kWideBf16Step, token, full);
      } else {
        ptx::cp_async_bulk_tensor_2d_shared_global_multicast(
            x + box * box_bytes, params.x_map, step * kWideBf16Step, token, full, mask);
      }
    }
    at.advance(memory.stages);
  }
}

// The warpgroup that loads. Its other threads are needed at the cluster's barriers only.
template <WeightFormat Format>
__device__ void produce(const WideBf16Params& params, const Memory<Format>& memory,
                        const tile::WideSchedule& schedule, const Cluster& cluster) {
  if (cluster.splits == 1 && threadIdx.x >= 32) return;
  const bool loads = threadIdx.x < 32 && ptx::elect_sync();
  const Steps steps(params, cluster);
  const auto count = static_cast<std::int32_t>(ptx::nclusterid_x());
  const std::int32_t units = schedule.units();
  Position at;
  for (auto unit = static_cast<std::int32_t>(ptx::clusterid_x()); unit < units; unit += count) {
    if (loads) load_tile(params, memory, cluster, steps, schedule.find(unit, cluster.row), at);
    if (cluster.splits == 1) continue;
    __syncwarp();
    sync_reduction();
    sync_reduction();
    sync_reduction();
  }
  __syncwarp();
}

// A consumer warpgroup: 64 rows of the tile.
template <WeightFormat Format>
struct Consumer {
  using Words = tile::WideWords<Format>;
  static constexpr bool kHasBlockScales = Format == WeightFormat::kFp8;

  const WideBf16Params& params;
  const Memory<Format>& memory;
  const Cluster& cluster;
  std::uint32_t index;  // of the warpgroup
  Steps steps;
  typename Words::Places places;
  Position at;

  __device__ Consumer(const WideBf16Params& of, const Memory<Format>& shared,
                      const Cluster& in_cluster, std::uint32_t warpgroup)
      : params(of),
        memory(shared),
        cluster(in_cluster),
        index(warpgroup),
        steps(of, in_cluster),
        places(threadIdx.x % 32) {}

  // Every lane of a warp that no longer reads the stage; its producers are all CTAs that share
  // tokens.
  __device__ void release(std::uint32_t stage) const {
    const std::uint32_t barrier = memory.empty + stage * 8, lane = threadIdx.x % 32;
    __syncwarp();
    if (cluster.rows == 1) {
      if (lane == 0) ptx::mbarrier_arrive(barrier);
    } else if (lane < cluster.rows) {
      ptx::mbarrier_arrive_remote(
          ptx::mapa_shared_cluster(barrier, cluster.split * cluster.rows + lane));
    }
  }

  // The warp's brick of a stage; rows past the last brick repeat it, and are not stored.
  __device__ std::uint32_t brick_at(std::uint32_t brick) const {
    return memory.weights + at.stage * Memory<Format>::kWeightBytes + brick * brick_bytes(Format);
  }
  __device__ std::uint32_t brick_of(const tile::WideTile& tile) const {
    const std::int32_t bricks = tile::ceil_div(params.n, kBrickRows);
    const std::int32_t last_tile = tile::ceil_div(bricks, kRowBricks) - 1;
    const std::int32_t there = bricks - min(tile.row_tile, last_tile) * kRowBricks;
    return min(static_cast<std::int32_t>(index * 4 + threadIdx.x / 32 % 4), there - 1);
  }

  // FP8: scales of the blocks along k, of rows g and of rows g + 8.
  __device__ const float* block_scales_of(const tile::WideTile& tile, int half) const {
    const std::int32_t blocks = tile::ceil_div(params.n, kFp8BlockRows);
    const std::int32_t blocks_k = tile::ceil_div(params.k, kFp8BlockK);
    std::int32_t block = min(tile.row_tile, blocks - 1);
    if (params.is_swiglu) block = half * (blocks / 2) + block / 2;
    return params.block_scales + std::int64_t{tile.matrix} * blocks_k * blocks + block;
  }

  // Sums are kept in units of the scale of the block that is being added, so that one set of
  // accumulators serves; the next block's scale is loaded while this one is multiplied.
  struct BlockScales {
    const float* at[2];
    std::int64_t stride;
    float current[2], next[2];

    __device__ BlockScales(const Consumer& consumer, const tile::WideTile& tile) {
      if constexpr (kHasBlockScales) {
        stride = tile::ceil_div(consumer.params.n, kFp8BlockRows);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          at[h] = consumer.block_scales_of(tile, h);
          current[h] = at[h][consumer.steps.begin / kStepsOfBlock * stride];
        }
        load_next(consumer.params, consumer.steps.begin / kStepsOfBlock);
      }
    }
    __device__ void load_next(const WideBf16Params& params, std::int32_t block) {
      const bool is_last = block + 1 >= tile::ceil_div(params.k, kFp8BlockK);
#pragma unroll
      for (int h = 0; h < 2; ++h) next[h] = is_last ? 1.0f : at[h][(block + 1) * stride];
    }
    template <int Count>
    __device__ void scale(float (&d)[Count], const float (&factor)[2]) const {
#pragma unroll
      for (int i = 0; i < Count; ++i) d[i] *= factor[i / 2 % 2];
    }
    // Before the first product of another block.
    template <int Count>
    __device__ void change(float (&d)[Count], const WideBf16Params& params, std::int32_t step) {
      const float factor[2] = {current[0] / next[0], current[1] / next[1]};
      current[0] = next[0];
      current[1] = next[1];
      load_next(params, step / kStepsOfBlock);
      if (factor[0] == 1.0f && factor[1] == 1.0f) return;
      ptx::wgmma_wait_group_sync_aligned<0>();
      ptx::wgmma_fence_operand(d);
      scale(d, factor);
      ptx::wgmma_fence_operand(d);
    }
    template <int Count>
    __device__ void finish(float (&d)[Count]) const {
      scale(d, current);
    }
  };

  template <int N>
  static __device__ __forceinline__ void issue_n(float (&all)[kAccumulators],
                                                 const std::uint32_t (&a)[2][4], std::uint64_t x) {
    auto& d = reinterpret_cast<float(&)[N / 2]>(all);
    ptx::wgmma_fence_sync_aligned();
#pragma unroll
    for (int j = 0; j < 2; ++j)
      tile::multiply_k16<tile::Bf16, N, 0>(d, a[j], tile::advance_descriptor(x, j * 2), true);
    ptx::wgmma_commit_group_sync_aligned();
  }

  // Two products, as wide as the tile needs.
  static __device__ __forceinline__ void issue(float (&d)[kAccumulators],
                                               const std::uint32_t (&a)[2][4], std::uint64_t x,
                                               std::int32_t granules) {
    if (granules >= 8) return issue_n<256>(d, a, x);  // mostly: saves it the jump table
    switch (granules) {
      case 1:
        return issue_n<32>(d, a, x);
      case 2:
        return issue_n<64>(d, a, x);
      case 3:
        return issue_n<96>(d, a, x);
      case 4:
        return issue_n<128>(d, a, x);
      case 5:
        return issue_n<160>(d, a, x);
      case 6:
        return issue_n<192>(d, a, x);
      default:
        return issue_n<224>(d, a, x);
    }
  }

  // d = the sums of this CTA's steps. Products of half a step run while the other half is decoded.
  __device__ __forceinline__ void multiply(float (&d)[kAccumulators], const tile::WideTile& tile) {
    const std::int32_t granules = tile::ceil_div(tile.tokens, kWideBf16Granule);
    const std::uint32_t brick = brick_of(tile);
    Words words;
    std::uint32_t first[2][4], second[2][4], last = 0;
    if (steps.begin == steps.end) return;
    [[maybe_unused]] BlockScales scales(*this, tile);
    ptx::mbarrier_wait_parity(memory.full + at.stage * 8, at.parity);
    words.load(brick_at(brick), places);
    words.template decode<0>(first[0], places);
    words.template decode<1>(first[1], places);
    for (std::int32_t step = steps.begin; step < steps.end; ++step) {
      const std::uint64_t x = tile::describe_k_major<kWideBf16MaxTokens, kWideBf16Step>(
          memory.x + at.stage * memory.x_bytes);
      if constexpr (kHasBlockScales) {
        if (step > steps.begin && step % kStepsOfBlock == 0) scales.change(d, params, step);
      }
      issue(d, first, x, granules);
      ptx::wgmma_wait_group_sync_aligned<1>();
      if (step > steps.begin) release(last);
      words.template decode<2>(second[0], places);
      words.template decode<3>(second[1], places);
      issue(d, second, tile::advance_descriptor(x, 4), granules);
      last = at.stage;
      at.advance(memory.stages);
      if (step + 1 == steps.end) break;
      ptx::mbarrier_wait_parity(memory.full + at.stage * 8, at.parity);
      words.load(brick_at(brick), places);
      ptx::wgmma_wait_group_sync_aligned<1>();
      words.template decode<0>(first[0], places);
      words.template decode<1>(first[1], places);
    }
    ptx::wgmma_wait_group_sync_aligned<0>();
    ptx::wgmma_fence_operand(d);
    release(last);
    if constexpr (kHasBlockScales) scales.finish(d);
  }

  __device__ __forceinline__ void work(const tile::WideTile& tile) {
    float d[kAccumulators] = {};
    multiply(d, tile);
    tile::TokenRange range = {0, tile.tokens};
    if (cluster.splits > 1) {
      const std::int32_t share = tile::reduction_share(tile.tokens, cluster.splits);
      range = {cluster.split * share, min((cluster.split + 1) * share, tile.tokens)};
      sync_reduction();
      tile::reduce_over_cluster(d, memory.x, threadIdx.x - 128, share, tile.tokens, cluster.split,
                                cluster.splits, cluster.rows, cluster.row,
                                [] { sync_reduction(); });
      sync_reduction();
    }
    const std::int32_t first_row =
        tile.row_tile * kWideBf16Rows + static_cast<std::int32_t>(index) * 64;
    if (first_row >= params.n) return;
    const tile::WideEpilogue epilogue = {
        params,   tile, range, first_row, memory.staging + index * tile::WideEpilogue::kRoundBytes,
        1 + index};
    epilogue.store(d);
  }

  __device__ __forceinline__ void run(const tile::WideSchedule& schedule) {
    const auto count = static_cast<std::int32_t>(ptx::nclusterid_x());
    const std::int32_t units = schedule.units();
    for (auto unit = static_cast<std::int32_t>(ptx::clusterid_x()); unit < units; unit += count) {
      tile::WideTile tile = schedule.find(unit, cluster.row);
      tile = {ptx::uniform(tile.matrix), ptx::uniform(tile.first_token), ptx::uniform(tile.tokens),
              ptx::uniform(tile.row_tile)};
      work(tile);
    }
  }
};

template <WeightFormat Format>
__device__ void linear_wide_bf16(const WideBf16Params& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  const Memory<Format> memory(dynamic, params);
  const Cluster cluster(params);
  if (threadIdx.x == 0) {
    for (std::uint32_t i = 0; i < memory.stages; ++i) {
      ptx::mbarrier_init(memory.full + i * 8, 1);
      ptx::mbarrier_init(memory.empty + i * 8, kConsumerWarps * cluster.rows);
    }
    ptx::fence_mbarrier_init_release_cluster();
  }
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  tile::WideSchedule schedule(params, memory.table);
  schedule.initialise();
  __syncthreads();
  if (!cluster.is_alone()) ptx::cluster_sync();
  if (threadIdx.x < 128) {
    ptx::setmaxnreg_dec_sync_aligned<kProducerRegisters>();
    produce(params, memory, schedule, cluster);
  } else {
    ptx::setmaxnreg_inc_sync_aligned<kConsumerRegisters>();
    const std::uint32_t index = ptx::uniform(threadIdx.x / 128 - 1);
    Consumer<Format>(params, memory, cluster, index).run(schedule);
  }
  if (!cluster.is_alone()) ptx::cluster_sync();  // nobody leaves while others send
}

}  // namespace
}  // namespace tilewright::kernels

#define TILEWRIGHT_LINEAR_WIDE_BF16(NAME, FORMAT)                                              \
  extern "C" __global__ void __launch_bounds__(tilewright::kernels::kWideBf16Threads, 1)       \
      linear_wide_bf16_##NAME(const __grid_constant__ tilewright::kernels::WideBf16Params p) { \
    tilewright::kernels::linear_wide_bf16<tilewright::kernels::WeightFormat::FORMAT>(p);       \
  }

TILEWRIGHT_LINEAR_WIDE_BF16(nvfp4, kNvfp4)
TILEWRIGHT_LINEAR_WIDE_BF16(mxfp4, kMxfp4)
TILEWRIGHT_LINEAR_WIDE_BF16(fp8, kFp8)
TILEWRIGHT_LINEAR_WIDE_BF16(bf16, kBf16)
