// A multiplying warpgroup of the linear layer for many bf16 tokens: decodes its 64 rows of weights
// between the products that take them from registers.
#pragma once

#include "kernels/linear/wide/bf16_loader.h"
#include "kernels/linear/wide/epilogue.h"
#include "kernels/linear/wide/weights.h"
#include "ptx/mbarrier.h"
#include "tile/warpgroup_mma.h"

#include <type_traits>

namespace tilewright::tile {

// Scales of FP8's blocks, of rows g and, with two Halves, rows g + 8. Sums are kept in units of the
// scale of the block that is being added, so that one set of accumulators serves.
template <int Halves>
struct WideSumScales {
  float current[Halves], next[Halves];
  std::uint32_t factors[2] = {kE4m3Bias, kE4m3Bias};  // of weights, in both halves of a word

  // An exact quotient would be a call, across which products are serialised.
  __device__ void find_quotients(float (&quotients)[Halves]) const {
#pragma unroll
    for (int h = 0; h < Halves; ++h) quotients[h] = __fdividef(current[h], next[h]);
  }
  template <int Count>
  static __device__ void scale(float (&d)[Count], const float (&factor)[Halves]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) d[i] *= factor[arch::accumulator_row(i) % Halves];
  }
  template <int Count>
  static __device__ void scale_behind_products(float (&d)[Count], const float (&factor)[Halves]) {
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

template <class C>
struct WideBf16Consumer {
  using Words = WideWords<C::kFormat, C::kOrder>;
  using Epilogue = WideEpilogue<C::kMaxTokens, RowWeights>;
  using Accumulators = float (&)[C::kAccumulators];
  static constexpr bool kHasBlockScales = C::kFormat == WeightFormat::kFp8;

  const kernels::WideBf16Params& params;
  const WideBf16Memory<C>& memory;
  const WideCluster& cluster;
  std::uint32_t index;  // of the warpgroup
  WideSteps steps = {{}, cluster};
  typename Words::Places places;
  DeepPosition at;

  __device__ WideBf16Consumer(const kernels::WideBf16Params& of, const WideBf16Memory<C>& shared,
                              const WideCluster& in_cluster, std::uint32_t warpgroup)
      : params(of),
        memory(shared),
        cluster(in_cluster),
        index(warpgroup),
        places(threadIdx.x % 32) {}

  __device__ std::uint32_t barrier() const { return kWarpgroupBarrier + index; }

  // Every lane of a warp that has read the stage; its producers are all CTAs that share tokens.
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
  __device__ std::uint32_t brick_of(const WideTile& tile) const {
    const std::int32_t bricks = ceil_div(params.n, kernels::kBrickRows);
    const std::int32_t last_tile = ceil_div(bricks, C::kRowBricks) - 1;
    const std::int32_t there = bricks - min(tile.row_tile, last_tile) * C::kRowBricks;
    return min(static_cast<std::int32_t>(index * 4 + threadIdx.x / 32 % 4), there - 1);
  }

  // FP8: blocks of rows; with SwiGLU those of gate, then those of up.
  __device__ std::int32_t scale_blocks() const {
    return params.is_swiglu ? 2 * ceil_div(params.n / 2, kernels::kFp8BlockRows)
                            : ceil_div(params.n, kernels::kFp8BlockRows);
  }
  // Scales of the blocks along k, of rows g and of rows g + 8.
  __device__ const float* block_scales_of(const WideTile& tile, int half) const {
    const std::int32_t blocks = scale_blocks();
    const std::int32_t blocks_k = ceil_div(params.k, kernels::kFp8BlockK);
    const std::int32_t row =
        min(tile.row_tile * C::kRows + static_cast<std::int32_t>(index) * 64, params.n - 1);
    const std::int32_t block = params.is_swiglu
                                   ? half * (blocks / 2) + row / 2 / kernels::kFp8BlockRows
                                   : row / kernels::kFp8BlockRows;
    return params.block_scales + std::int64_t{tile.matrix} * blocks_k * blocks + block;
  }

  // Of sums alone; the next block's are loaded while this one is multiplied.
  struct BlockScales : WideSumScales<2> {
    const float* at[2];
    std::int64_t stride;

    __device__ BlockScales(const WideBf16Consumer& consumer, const WideTile& tile) {
      if constexpr (kHasBlockScales) {
        stride = consumer.scale_blocks();
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          at[h] = consumer.block_scales_of(tile, h);
          current[h] = at[h][consumer.steps.begin / kWideBf16BlockSteps * stride];
        }
        load_next(consumer.params, consumer.steps.begin / kWideBf16BlockSteps);
      }
    }
    __device__ void load_next(const kernels::WideBf16Params& params, std::int32_t block) {
      const bool is_last = block + 1 >= ceil_div(params.k, kernels::kFp8BlockK);
#pragma unroll
      for (int h = 0; h < 2; ++h) next[h] = is_last ? 1.0f : at[h][(block + 1) * stride];
    }
    // Before the first product of another block.
    template <int Count>
    __device__ void change(float (&d)[Count], const kernels::WideBf16Params& params,
                           std::int32_t step) {
      float factor[2];
      find_quotients(factor);
      current[0] = next[0];
      current[1] = next[1];
      load_next(params, step / kWideBf16BlockSteps);
      if (factor[0] != 1.0f || factor[1] != 1.0f) scale_behind_products(d, factor);
    }
  };

  // One product of 16 along k.
  template <int N>
  static __device__ __forceinline__ void issue(Accumulators all, const std::uint32_t (&a)[4],
                                               std::uint64_t x) {
    auto& d = reinterpret_cast<float(&)[N / 2]>(all);
    ptx::wgmma_fence_sync_aligned();
    multiply_k16<Bf16, N, arch::Major::kK>(d, a, x, true);
    ptx::wgmma_commit_group_sync_aligned();
  }

  __device__ __forceinline__ void fetch(Words& words, std::uint32_t brick) const {
    ptx::mbarrier_wait_parity(memory.full + at.stage * 8, at.parity);
    words.load(brick_at(brick), places);
  }

  // d = the sums of this CTA's steps. A product with A from registers keeps its warps from issuing
  // another one until it runs: so the next fragment is decoded after each product, not after a
  // row of them. One product stays in flight; the one before it has released its fragment.
  // Scales: BlockScales, or WideAnyScales (any_scales.h).
  template <int N, class Scales>
  __device__ __forceinline__ void multiply(Accumulators d, const WideTile& tile) {
    constexpr bool kScalesSums = kHasBlockScales && std::is_same_v<Scales, BlockScales>;
    constexpr bool kScalesAny = kHasBlockScales && !kScalesSums;
    if (steps.begin == steps.end) return;
    const std::uint32_t brick = brick_of(tile);
    [[maybe_unused]] Scales scales(*this, tile);
    Words words;
    std::uint32_t a[2][4], last = 0;
    fetch(words, brick);
    words.template decode<0>(a[0], places, scales.factors);
    for (std::int32_t step = steps.begin;;) {
      const std::uint64_t x =
          Box<N, 2 * kernels::kWideBf16Step>::k_major(memory.x + at.stage * memory.x_bytes);
      if constexpr (kScalesSums) {
        if (step > steps.begin && step % kWideBf16BlockSteps == 0) scales.change(d, params, step);
      }
      issue<N>(d, a[0], x);
      ptx::wgmma_wait_group_sync_aligned<1>();
      if (step > steps.begin) release(last);
      words.template decode<1>(a[1], places, scales.factors);
      issue<N>(d, a[1], advance_descriptor(x, 2));
      ptx::wgmma_wait_group_sync_aligned<1>();
      words.template decode<2>(a[0], places, scales.factors);
      issue<N>(d, a[0], advance_descriptor(x, 4));
      ptx::wgmma_wait_group_sync_aligned<1>();
      words.template decode<3>(a[1], places, scales.factors);
      last = at.stage;
      at.advance(memory.stages);
      const bool is_last = ++step == steps.end;
      if (!is_last) fetch(words, brick);
      issue<N>(d, a[1], advance_descriptor(x, 6));
      if (is_last) break;
      ptx::wgmma_wait_group_sync_aligned<1>();
      if constexpr (kScalesAny) scales.advance(d, step);
      words.template decode<0>(a[0], places, scales.factors);
    }
    ptx::wgmma_wait_group_sync_aligned<0>();
    ptx::wgmma_fence_operand(d);
    release(last);
    if constexpr (kHasBlockScales) scales.finish(d);
  }

  // A loop for each width of products: a choice inside of the loop costs as much as a product.
  template <class Scales = BlockScales>
  __device__ __forceinline__ void multiply_any(Accumulators d, const WideTile& tile) {
    const std::int32_t granules = ceil_div(tile.tokens, kernels::kWideGranule);
    if constexpr (C::kMaxTokens == 64) {
      return granules == 1 ? multiply<32, Scales>(d, tile) : multiply<64, Scales>(d, tile);
    } else {
      switch (granules) {
        case 1:
          return multiply<32, Scales>(d, tile);
        case 2:
          return multiply<64, Scales>(d, tile);
        case 3:
          return multiply<96, Scales>(d, tile);
        case 4:
          return multiply<128, Scales>(d, tile);
        case 5:
          return multiply<160, Scales>(d, tile);
        case 6:
          return multiply<192, Scales>(d, tile);
        case 7:
          return multiply<224, Scales>(d, tile);
        default:
          return multiply<256, Scales>(d, tile);
      }
    }
  }

  __device__ __forceinline__ void work(const WidePiece& piece, const WideTile& tile) {
    float d[C::kAccumulators] = {};
    multiply_any(d, tile);
    TokenRange range = {0, tile.tokens};
    if (cluster.splits > 1) {
      const std::int32_t share = reduction_share(tile.tokens, cluster.splits);
      range = {cluster.split * share, min((cluster.split + 1) * share, tile.tokens)};
      sync_reduction();
      reduce_over_cluster<C::kConsumers>(d, memory.x, threadIdx.x - 128, share, tile.tokens,
                                         cluster.split, cluster.splits, cluster.rows, cluster.row,
                                         [] { sync_reduction(); });
      sync_reduction();
    }
    if (ptx::uniform(memory.deal->shared) > 0) {
      const WideExchange exchange = {params, *memory.deal,  cluster.row, cluster.rows,
                                     index,  C::kRows / 64, barrier()};
      if (piece.begin > 0) return exchange.send(d, tile.tokens);
      if (piece.end < ptx::uniform(memory.deal->steps)) exchange.add(d, piece, tile.tokens);
    }
    const std::int32_t first_row = tile.row_tile * C::kRows + static_cast<std::int32_t>(index) * 64;
    if (first_row >= params.n) return;
    const RowWeights factors = {params.row_weights, tile};
    Epilogue{params,   tile,      range,
             factors,  first_row, memory.staging + index * Epilogue::kRoundBytes,
             barrier()}
        .store(d);
  }

  __device__ __forceinline__ void run(const WideSchedule<1>& schedule) {
    const std::int32_t pieces = ptx::uniform(memory.deal->pieces);
    for (std::int32_t i = 0; i < pieces; ++i) {
      const WidePiece piece = memory.deal->piece(i).uniform();
      steps = WideSteps(piece, cluster);
      work(piece, schedule.find(piece.unit, cluster.row).uniform());
    }
  }
};

}  // namespace tilewright::tile
