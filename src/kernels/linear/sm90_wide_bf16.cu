// targets: sm_90a
//
// Linear layers for many tokens: packed weights are decoded into registers and multiplied from
// there, tokens come from shared memory.
//
// Decoded weights that go through shared memory would be written and read once more there, and the
// tensor core reads half of its operands from it already. A warpgroup MMA takes A from registers as
// well, so the weights are A (rows of w on the MMA's rows, tokens on its columns), and the result
// is turned over on its way out (stmatrix with .trans).
//
//   producer     a thread: bricks by bulk copies (no tensor map), tokens by tensor copies, which
//                the CTAs of a cluster share by multicast; a ring as deep as shared memory allows
//   consumers    64 rows each, all tokens of the tile: m64nNk16, N = 32 .. 256 as the tile needs
//   a step       64 of k: 4 products, each after the fragment for the next one has been decoded
//                while this one runs
//   results      alpha, bias, SwiGLU (gate and up of a column are rows g and g + 8: one thread)
//
// Why a fragment per product: an HGMMA with A from registers holds its warps back until the one
// before it is through. Decoding two fragments and issuing two products costs the decoding, for
// every half step, on top of the products (what it did at 128 tokens: docs/notes).
//
// Budgets, per step and multiprocessor, with 256 tokens: 1024 clocks of tensor core (4 x 2
// products of 128); 2 x 135 of 1024 issue slots of each quarter; copies of 32 KB of tokens and 4.6
// of NVFP4, 36 bytes a clock: more than the 24 or so that L2 gives to each multiprocessor, 20 with
// clusters of two rows. With 128 tokens 512 clocks, and the same 270 issue slots; with 32 or 64
// decoding is what limits, and the `tall` entries have four consumers to hide its latencies.
//
// FP8: sums are kept in units of the block scale that is being multiplied, scaled by the quotient
// when the next block of 128 along k begins; the other warpgroup's products run meanwhile.
//
// Small grids: the CTAs of a cluster may split k. Each sends the sums of the others' tokens into
// their shared memory, and adds up its own in the order of the splits: the same bits every time.
//
// Floors (H200, bf16): 790 TFLOP/s, or the packed weights at 4.3 TB/s. Predicted: 85 % of the
// plain bf16 GEMM at 1024 tokens and more. Measured, and what was tried: docs/notes.
// Sources: PTX ISA, "wgmma.mma_async"; CUTLASS's mixed-input GEMM for the idea of decoding between
// products.
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

constexpr int kStepsOfBlock = kFp8BlockK / kWideBf16Step;

template <WeightFormat WeightsFormat, bool IsTall>
struct Config {
  static constexpr WeightFormat kFormat = WeightsFormat;
  static constexpr int kRows = IsTall ? kWideBf16TallRows : kWideBf16Rows;
  static constexpr int kMaxTokens = IsTall ? kWideBf16TallMaxTokens : kWideBf16MaxTokens;
  static constexpr int kThreads = IsTall ? kWideBf16TallThreads : kWideBf16Threads;
  static constexpr int kConsumers = kThreads - 128;
  static constexpr int kProducerRegisters = IsTall ? 32 : 40;
  static constexpr int kConsumerRegisters = IsTall ? 112 : 232;
  static constexpr int kAccumulators = kMaxTokens / 2;
  static constexpr int kRowBricks = kRows / kBrickRows;
  static constexpr int kBrickBytes = brick_bytes(WeightsFormat);
  static constexpr int kWeightBytes = kRowBricks * kBrickBytes;  // of a stage
};

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
  // The CTAs that share tokens.
  __device__ std::uint16_t mask() const {
    return static_cast<std::uint16_t>(((1 << rows) - 1) << (split * rows));
  }
};

// Shared memory, and the stages of the ring.
template <class C>
struct Memory {
  std::uint32_t x, weights, staging, full, empty;
  std::int32_t* table;
  std::uint32_t x_bytes, stages;

  __device__ Memory(std::uint8_t* dynamic, const WideBf16Params& params) {
    x_bytes = static_cast<std::uint32_t>(params.tile_tokens * kWideBf16Step * 2);
    stages = static_cast<std::uint32_t>(params.stages);
    x = ptx::shared_address(dynamic);
    weights = x + stages * x_bytes;
    staging = weights + stages * C::kWeightBytes;
    full = staging + C::kRows / 64 * tile::WideEpilogue<C::kMaxTokens>::kRoundBytes;
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

// One thread. Loads what a CTA needs of its tiles, in turn.
template <class C>
struct Loader {
  const WideBf16Params& params;
  const Memory<C>& memory;
  const Cluster& cluster;
  Steps steps;
  Position at;

  // Where a tile's weights of a step begin, and how many bytes of a stage come.
  struct Source {
    const std::uint8_t* weights;
    std::int64_t step_bytes;
    std::uint32_t weight_bytes;
    std::int32_t boxes, first_token;
  };
  __device__ Source source_of(const tile::WideTile& tile) const {
    const std::int32_t bricks = tile::ceil_div(params.n, kBrickRows);
    const std::int32_t last_tile = tile::ceil_div(bricks, C::kRowBricks) - 1;
    const std::int32_t first_brick = min(tile.row_tile, last_tile) * C::kRowBricks;
    const std::int32_t granules = tile::ceil_div(tile.tokens, kWideBf16Granule);
    Source source;
    source.step_bytes = std::int64_t{bricks} * C::kBrickBytes;
    source.weight_bytes = min(C::kRowBricks, bricks - first_brick) * C::kBrickBytes;
    source.weights = params.weights + tile.matrix * params.matrix_bytes +
                     steps.begin * source.step_bytes + first_brick * C::kBrickBytes;
    source.boxes = tile::ceil_div(granules * kWideBf16Granule, params.box_tokens);
    source.first_token = tile.first_token;
    return source;
  }

  __device__ void load_weights(Source& source) const {
    const std::uint32_t full = memory.full + at.stage * 8;
    const std::uint32_t box_bytes = params.box_tokens * kWideBf16Step * 2;
    ptx::mbarrier_wait_parity_cluster(memory.empty + at.stage * 8, at.parity ^ 1);
    ptx::mbarrier_arrive_expect_tx(full, source.boxes * box_bytes + source.weight_bytes);
    ptx::cp_async_bulk_shared_global(memory.weights + at.stage * C::kWeightBytes, source.weights,
                                     source.weight_bytes, full);
    source.weights += source.step_bytes;
  }
  __device__ void load_tokens(const Source& source, std::int32_t step) const {
    const std::uint32_t full = memory.full + at.stage * 8;
    const std::uint32_t box_bytes = params.box_tokens * kWideBf16Step * 2;
    const std::uint32_t x = memory.x + at.stage * memory.x_bytes;
    for (std::int32_t box = cluster.row; box < source.boxes; box += cluster.rows) {
      const std::int32_t token = source.first_token + box * params.box_tokens;
      if (cluster.rows == 1) {
        ptx::cp_async_bulk_tensor_2d_shared_global(x + box * box_bytes, params.x_map,
                                                   step * kWideBf16Step, token, full);
      } else {
        ptx::cp_async_bulk_tensor_2d_shared_global_multicast(
            x + box * box_bytes, params.x_map, step * kWideBf16Step, token, full, cluster.mask());
      }
    }
  }

  // The first tile: weights do not depend on the kernel before this one.
  __device__ void load_first(const tile::WideTile& tile) {
    Source source = source_of(tile);
    const std::int32_t early =
        min(steps.end, steps.begin + static_cast<std::int32_t>(memory.stages));
    const Position first = at;
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
    load_rest(source, early);
  }
  __device__ void load(const tile::WideTile& tile) {
    Source source = source_of(tile);
    load_rest(source, steps.begin);
  }
  __device__ void load_rest(Source& source, std::int32_t step) {
    for (; step < steps.end; ++step) {
      load_weights(source);
      load_tokens(source, step);
      at.advance(memory.stages);
    }
  }
};

// The warpgroup that loads. Its other threads are needed at the cluster's barriers only.
template <class C>
__device__ void produce(const WideBf16Params& params, const Memory<C>& memory,
                        const tile::WideSchedule& schedule, const Cluster& cluster) {
  if (cluster.splits == 1 && threadIdx.x >= 32) return;
  const bool loads = threadIdx.x < 32 && ptx::elect_sync();
  Loader<C> loader{params, memory, cluster, Steps(params, cluster), {}};
  const auto count = static_cast<std::int32_t>(ptx::nclusterid_x());
  const auto first = static_cast<std::int32_t>(ptx::clusterid_x());
  const std::int32_t units = schedule.units();
  for (std::int32_t unit = first; unit < units; unit += count) {
    if (loads) {
      const tile::WideTile tile = schedule.find(unit, cluster.row);
      unit == first ? loader.load_first(tile) : loader.load(tile);
    }
    // The next kernel begins to load when this one's CTAs have room for it.
    if (unit == first) ptx::griddepcontrol_launch_dependents();
    if (cluster.splits == 1) continue;
    __syncwarp();
    sync_reduction();
    sync_reduction();
    sync_reduction();
  }
  __syncwarp();
}

// A consumer warpgroup: 64 rows of the tile.
template <class C>
struct Consumer {
  using Words = tile::WideWords<C::kFormat>;
  using Epilogue = tile::WideEpilogue<C::kMaxTokens>;
  using Accumulators = float (&)[C::kAccumulators];
  static constexpr bool kHasBlockScales = C::kFormat == WeightFormat::kFp8;

  const WideBf16Params& params;
  const Memory<C>& memory;
  const Cluster& cluster;
  std::uint32_t index;  // of the warpgroup
  Steps steps;
  typename Words::Places places;
  Position at;

  __device__ Consumer(const WideBf16Params& of, const Memory<C>& shared, const Cluster& in_cluster,
                      std::uint32_t warpgroup)
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
    return memory.weights + at.stage * C::kWeightBytes + brick * C::kBrickBytes;
  }
  __device__ std::uint32_t brick_of(const tile::WideTile& tile) const {
    const std::int32_t bricks = tile::ceil_div(params.n, kBrickRows);
    const std::int32_t last_tile = tile::ceil_div(bricks, C::kRowBricks) - 1;
    const std::int32_t there = bricks - min(tile.row_tile, last_tile) * C::kRowBricks;
    return min(static_cast<std::int32_t>(index * 4 + threadIdx.x / 32 % 4), there - 1);
  }

  // FP8: blocks of rows; with SwiGLU those of gate, then those of up.
  __device__ std::int32_t scale_blocks() const {
    return params.is_swiglu ? 2 * tile::ceil_div(params.n / 2, kFp8BlockRows)
                            : tile::ceil_div(params.n, kFp8BlockRows);
  }
  // Scales of the blocks along k, of rows g and of rows g + 8.
  __device__ const float* block_scales_of(const tile::WideTile& tile, int half) const {
    const std::int32_t blocks = scale_blocks();
    const std::int32_t blocks_k = tile::ceil_div(params.k, kFp8BlockK);
    const std::int32_t row =
        min(tile.row_tile * C::kRows + static_cast<std::int32_t>(index) * 64, params.n - 1);
    const std::int32_t block =
        params.is_swiglu ? half * (blocks / 2) + row / 2 / kFp8BlockRows : row / kFp8BlockRows;
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
        stride = consumer.scale_blocks();
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

  // One product of 16 along k.
  template <int N>
  static __device__ __forceinline__ void issue(Accumulators all, const std::uint32_t (&a)[4],
                                               std::uint64_t x) {
    auto& d = reinterpret_cast<float(&)[N / 2]>(all);
    ptx::wgmma_fence_sync_aligned();
    tile::multiply_k16<tile::Bf16, N, 0>(d, a, x, true);
    ptx::wgmma_commit_group_sync_aligned();
  }

  __device__ __forceinline__ void fetch(Words& words, std::uint32_t brick) const {
    ptx::mbarrier_wait_parity(memory.full + at.stage * 8, at.parity);
    words.load(brick_at(brick), places);
  }

  // d = the sums of this CTA's steps. A product with A from registers keeps its warps from issuing
  // another one until it runs: so the next fragment is decoded after each product, not after a
  // row of them. One product stays in flight; the one before it has let go of its fragment.
  template <int N>
  __device__ __forceinline__ void multiply(Accumulators d, const tile::WideTile& tile) {
    if (steps.begin == steps.end) return;
    const std::uint32_t brick = brick_of(tile);
    [[maybe_unused]] BlockScales scales(*this, tile);
    Words words;
    std::uint32_t a[2][4], last = 0;
    fetch(words, brick);
    words.template decode<0>(a[0], places);
    for (std::int32_t step = steps.begin;;) {
      const std::uint64_t x =
          tile::describe_k_major<N, kWideBf16Step>(memory.x + at.stage * memory.x_bytes);
      if constexpr (kHasBlockScales) {
        if (step > steps.begin && step % kStepsOfBlock == 0) scales.change(d, params, step);
      }
      issue<N>(d, a[0], x);
      ptx::wgmma_wait_group_sync_aligned<1>();
      if (step > steps.begin) release(last);
      words.template decode<1>(a[1], places);
      issue<N>(d, a[1], tile::advance_descriptor(x, 2));
      ptx::wgmma_wait_group_sync_aligned<1>();
      words.template decode<2>(a[0], places);
      issue<N>(d, a[0], tile::advance_descriptor(x, 4));
      ptx::wgmma_wait_group_sync_aligned<1>();
      words.template decode<3>(a[1], places);
      last = at.stage;
      at.advance(memory.stages);
      const bool is_last = ++step == steps.end;
      if (!is_last) fetch(words, brick);
      issue<N>(d, a[1], tile::advance_descriptor(x, 6));
      if (is_last) break;
      ptx::wgmma_wait_group_sync_aligned<1>();
      words.template decode<0>(a[0], places);
    }
    ptx::wgmma_wait_group_sync_aligned<0>();
    ptx::wgmma_fence_operand(d);
    release(last);
    if constexpr (kHasBlockScales) scales.finish(d);
  }

  // By products as wide as the tile needs, each in a loop of its own: a choice inside of the loop
  // costs as much as a product.
  __device__ __forceinline__ void multiply_any(Accumulators d, const tile::WideTile& tile) {
    const std::int32_t granules = tile::ceil_div(tile.tokens, kWideBf16Granule);
    if constexpr (C::kMaxTokens == 64) {
      return granules == 1 ? multiply<32>(d, tile) : multiply<64>(d, tile);
    } else {
      switch (granules) {
        case 1:
          return multiply<32>(d, tile);
        case 2:
          return multiply<64>(d, tile);
        case 3:
          return multiply<96>(d, tile);
        case 4:
          return multiply<128>(d, tile);
        case 5:
          return multiply<160>(d, tile);
        case 6:
          return multiply<192>(d, tile);
        case 7:
          return multiply<224>(d, tile);
        default:
          return multiply<256>(d, tile);
      }
    }
  }

  __device__ __forceinline__ void work(const tile::WideTile& tile) {
    float d[C::kAccumulators] = {};
    multiply_any(d, tile);
    tile::TokenRange range = {0, tile.tokens};
    if (cluster.splits > 1) {
      const std::int32_t share = tile::reduction_share(tile.tokens, cluster.splits);
      range = {cluster.split * share, min((cluster.split + 1) * share, tile.tokens)};
      sync_reduction();
      tile::reduce_over_cluster<C::kConsumers>(d, memory.x, threadIdx.x - 128, share, tile.tokens,
                                               cluster.split, cluster.splits, cluster.rows,
                                               cluster.row, [] { sync_reduction(); });
      sync_reduction();
    }
    const std::int32_t first_row = tile.row_tile * C::kRows + static_cast<std::int32_t>(index) * 64;
    if (first_row >= params.n) return;
    Epilogue{params,   tile, range, first_row, memory.staging + index * Epilogue::kRoundBytes,
             1 + index}
        .store(d);
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

template <class C>
__device__ void linear_wide_bf16(const WideBf16Params& params) {
  extern __shared__ __align__(1024) std::uint8_t dynamic[];
  const Memory<C> memory(dynamic, params);
  const Cluster cluster(params);
  if (threadIdx.x == 0) {
    ptx::prefetch_tensormap(params.x_map);
    for (std::uint32_t i = 0; i < memory.stages; ++i) {
      ptx::mbarrier_init(memory.full + i * 8, 1);
      ptx::mbarrier_init(memory.empty + i * 8, C::kConsumers / 32 * cluster.rows);
    }
    ptx::fence_mbarrier_init_release_cluster();
  }
  tile::WideSchedule schedule(params, memory.table, C::kRows);
  if (params.segments != nullptr) {
    ptx::griddepcontrol_wait();  // else the producer waits, when it has begun to load weights
    schedule.initialise();
  }
  __syncthreads();
  if (!cluster.is_alone()) ptx::cluster_sync();
  if (threadIdx.x < 128) {
    ptx::setmaxnreg_dec_sync_aligned<C::kProducerRegisters>();
    produce(params, memory, schedule, cluster);
  } else {
    ptx::setmaxnreg_inc_sync_aligned<C::kConsumerRegisters>();
    const std::uint32_t index = ptx::uniform(threadIdx.x / 128 - 1);
    Consumer<C>(params, memory, cluster, index).run(schedule);
  }
  if (!cluster.is_alone()) ptx::cluster_sync();  // nobody leaves while others send
}

}  // namespace
}  // namespace tilewright::kernels

#define TILEWRIGHT_LINEAR_WIDE_BF16(NAME, FORMAT, IS_TALL)                                        \
  extern "C" __global__ void __launch_bounds__(                                                   \
      tilewright::kernels::Config<tilewright::kernels::WeightFormat::FORMAT, IS_TALL>::kThreads,  \
      1) linear_wide_bf16_##NAME(const __grid_constant__ tilewright::kernels::WideBf16Params p) { \
    tilewright::kernels::linear_wide_bf16<                                                        \
        tilewright::kernels::Config<tilewright::kernels::WeightFormat::FORMAT, IS_TALL>>(p);      \
  }

TILEWRIGHT_LINEAR_WIDE_BF16(nvfp4, kNvfp4, false)
TILEWRIGHT_LINEAR_WIDE_BF16(mxfp4, kMxfp4, false)
TILEWRIGHT_LINEAR_WIDE_BF16(fp8, kFp8, false)
TILEWRIGHT_LINEAR_WIDE_BF16(bf16, kBf16, false)
TILEWRIGHT_LINEAR_WIDE_BF16(tall_nvfp4, kNvfp4, true)
TILEWRIGHT_LINEAR_WIDE_BF16(tall_mxfp4, kMxfp4, true)
TILEWRIGHT_LINEAR_WIDE_BF16(tall_fp8, kFp8, true)
TILEWRIGHT_LINEAR_WIDE_BF16(tall_bf16, kBf16, true)
