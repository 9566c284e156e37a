// A multiplying warpgroup of the linear layer for many FP8 tokens: folds its rows of weights into
// e4m3 operands of the next step while the products of this one run.
#pragma once

#include "kernels/linear/wide/e4m3_weights.h"
#include "kernels/linear/wide/epilogue.h"

namespace tilewright::tile {

/// Those that a warpgroup has brought to shared memory: scales, then row weights.
template <int Tokens>
struct SharedFactors {
  static constexpr bool kHasScales = true;
  std::uint32_t factors;  ///< shared address

  __device__ float2 scales(std::int32_t token) const {
    const uint2 pair = ptx::ld_shared_v2_u32(factors + token * 4);
    return make_float2(__uint_as_float(pair.x), __uint_as_float(pair.y));
  }
  __device__ float2 row_weights(std::int32_t token) const { return scales(Tokens + token); }
};

// A operands of a step: four products of k = 32.
using WideE4m3Fragments = std::uint32_t[4][4];

template <class C>
struct WideE4m3Consumer {
  const WideE4m3Problem<C>& problem;
  WideE4m3Shared<C>& shared;
  Ring<C::kStages> ring;
  WideE4m3Weights<C> weights;
  using Position = RingPosition<C::kStages>;
  using Offsets = typename WideE4m3Weights<C>::Offsets;
  using Raw = typename WideE4m3Weights<C>::Raw;

  Position ahead, behind;  ///< next to be decoded, next to be released
  std::uint32_t stages, staging;
  std::uint32_t index;  ///< of the warpgroup
  std::uint32_t lane;

  /// Of a tile of N tokens.
  template <int N>
  using Sums = float[N / 2];

  __device__ void release() {
    ring.release(behind);
    behind.advance();
  }

  // Of a step's weights; prefetched, used when its products are there.
  struct BlockScales {
    float low, high;
  };
  __device__ BlockScales load_block_scales(const float* scales, std::int32_t up) const {
    if constexpr (C::kIsFp4) return {1.0f, 1.0f};
    return {__ldg(scales), __ldg(scales + up)};
  }

  // Sums of the tensor core go over to f32, with the scales of their 128 of k.
  template <int N>
  __device__ void promote(Sums<N>& total, const Sums<N>& part, const BlockScales& block) const {
    const std::uint32_t scales =
        stages + behind.stage * C::kVariant.stage_bytes() + C::kVariant.scales_at() + lane % 4 * 8;
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
      float low[2] = {block.low, block.low}, high[2] = {block.high, block.high};
      if constexpr (C::kHasKScales) {
        const float2 s = *static_cast<const float2*>(__cvta_shared_to_generic(scales + j * 32));
        low[0] *= s.x, low[1] *= s.y, high[0] *= s.x, high[1] *= s.y;
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if constexpr (C::kIsFp4 && !C::kHasKScales) {
          total[4 * j + i] += part[4 * j + i];
          total[4 * j + 2 + i] += part[4 * j + 2 + i];
        } else {
          total[4 * j + i] += part[4 * j + i] * low[i];
          total[4 * j + 2 + i] += part[4 * j + 2 + i] * high[i];
        }
      }
    }
  }

  // Left alone, both warpgroups issue together, share the tensor core, and add together while it
  // idles.
  __device__ void await_turn() const {
    if constexpr (C::kVariant.turns) ptx::bar_sync<256>(kWideTurnBarrier + index);
  }
  __device__ void pass_turn() const {
    if constexpr (C::kVariant.turns) ptx::bar_arrive<256>(kWideTurnBarrier + (index ^ 1));
  }

  // Where a tile's next step stands.
  struct Cursor {
    std::int32_t step = 0;
    Position at;                   ///< its stage
    const float* scales;           ///< of its blocks of weights
    std::int32_t scale_pitch, up;  ///< from step to step; from gate to up
  };

  // One step, four products; the next step is decoded between them: a product that takes its A
  // operand from registers holds up the next one's issue until it has read them. Step `Place` of a
  // round of `Count` that add up in the tensor core.
  template <int N, int Place, int Count>
  __device__ void step(Sums<N>& total, Sums<N>& part, WideE4m3Fragments& now,
                       WideE4m3Fragments& next, const Offsets& at, Cursor& cursor) {
    const std::uint64_t x =
        Box<N, 128>::k_major(ptx::uniform(stages + cursor.at.stage * C::kVariant.stage_bytes()));
    const auto multiply = [&](int i) {
      if (C::kVariant.interleaved || i == 0) ptx::wgmma_fence_sync_aligned();
      ptx::wgmma_mma_async<N>::k32_f32_e4m3_e4m3(part, now[i], advance_descriptor(x, 2 * i),
                                                 i > 0 || Place > 0);
      if (C::kVariant.interleaved || i == 3) ptx::wgmma_commit_group_sync_aligned();
    };
    const BlockScales block = load_block_scales(cursor.scales, cursor.up);
    cursor.scales += cursor.scale_pitch;
    ++cursor.step;
    await_turn();
    ptx::wgmma_fence_operand(part);
    multiply(0);
    if constexpr (!C::kVariant.interleaved) {
      multiply(1), multiply(2), multiply(3);
      pass_turn();
    }
    if constexpr (Place > 0) {
      ptx::wgmma_wait_group_sync_aligned<1>();  // `next` is free, and the stage before
      release();
    }
    Raw raw;
    // The last step decodes itself once more, for nothing: a branch around it would cost more.
    const bool has_next = cursor.step < problem.end_step;
    if (has_next) {
      cursor.at = ahead;
      ahead.advance();
    }
    weights.load(raw, at, cursor.at, 2 * cursor.step + 1 < problem.k_blocks);
    if constexpr (C::kVariant.interleaved) multiply(1);
    weights.look_up(raw);
    weights.decode(next[0], raw, 0);
    if constexpr (C::kVariant.interleaved) multiply(2);
    weights.decode(next[1], raw, 1);
    if constexpr (C::kVariant.interleaved) {
      multiply(3);
      pass_turn();
    }
    weights.decode(next[2], raw, 2);
    weights.decode(next[3], raw, 3);
    if constexpr (Place == Count - 1) {
      ptx::wgmma_wait_group_sync_aligned<0>();
      ptx::wgmma_fence_operand(part);
      promote<N>(total, part, block);
      release();
    }
  }
  template <int N, int Count, int Place = 0>
  __device__ void round(Sums<N>& total, Sums<N>& part, WideE4m3Fragments& now,
                        WideE4m3Fragments& next, const Offsets& at, Cursor& cursor) {
    step<N, Place, Count>(total, part, now, next, at, cursor);
    if constexpr (Place + 1 < Count) round<N, Count, Place + 1>(total, part, next, now, at, cursor);
  }

  // All steps in the tensor core.
  template <int N>
  __device__ void run_one_level(Sums<N>& total, WideE4m3Fragments& a, WideE4m3Fragments& b,
                                const Offsets& at, Cursor& cursor) {
    step<N, 0, 3>(total, total, a, b, at, cursor);
    while (cursor.step < problem.end_step) {
      step<N, 1, 3>(total, total, b, a, at, cursor);
      if (cursor.step == problem.end_step) break;
      step<N, 1, 3>(total, total, a, b, at, cursor);
    }
    ptx::wgmma_wait_group_sync_aligned<0>();
    ptx::wgmma_fence_operand(total);
    release();
  }
  // Rounds of steps in the tensor core, promoted; the last few steps one by one.
  template <int N>
  __device__ void run_two_levels(Sums<N>& total, WideE4m3Fragments& a, WideE4m3Fragments& b,
                                 const Offsets& at, Cursor& cursor) {
    constexpr int kPromote = C::kVariant.promote;
    Sums<N> part;
    if constexpr (kPromote > 1) {
      static_assert(kPromote % 2 == 0, "a round must leave the next fragments in the first set");
      while (problem.end_step - cursor.step >= kPromote)
        round<N, kPromote>(total, part, a, b, at, cursor);
    }
    while (cursor.step < problem.end_step) {
      step<N, 0, 1>(total, part, a, b, at, cursor);
      if (cursor.step == problem.end_step) break;
      step<N, 0, 1>(total, part, b, a, at, cursor);
    }
  }

  __device__ Cursor start(const WideTile& tile) const {
    Cursor cursor = {problem.first_step, ahead, nullptr, 0, 0};
    if constexpr (!C::kIsFp4) {
      const kernels::WideE4m3Params& params = problem.params;
      const std::int32_t blocks = (params.n + 127) / 128, half = (params.n / 2 + 127) / 128;
      cursor.scale_pitch = params.is_swiglu ? 2 * half : blocks;
      cursor.up = params.is_swiglu ? half : 0;
      cursor.scales =
          params.block_scales +
          (std::int64_t{tile.matrix} * problem.steps + problem.first_step) * cursor.scale_pitch +
          (params.is_swiglu ? tile.row_tile / 2 : tile.row_tile);
    }
    return cursor;
  }

  template <int N>
  __device__ void multiply(Sums<N>& total, const WideTile& tile) {
    const Offsets at = weights.offsets(problem.bricks_of(tile.row_tile));
    Cursor cursor = start(tile);
    WideE4m3Fragments a, b;
    Raw raw;
    weights.load(raw, at, ahead, 2 * cursor.step + 1 < problem.k_blocks);
    ahead.advance();
    weights.look_up(raw);
#pragma unroll
    for (int i = 0; i < 4; ++i) weights.decode(a[i], raw, i);
#pragma unroll
    for (int i = 0; i < N / 2; ++i) total[i] = 0.0f;
    if constexpr (C::kVariant.promote == 0) {
      run_one_level<N>(total, a, b, at, cursor);
    } else {
      run_two_levels<N>(total, a, b, at, cursor);
    }
  }

  // Two CTAs with a part of k each: the second one's sums go to the first, through its ring, which
  // is idle when all its products are done (a cluster takes one tile). True in the first.
  template <int N>
  __device__ bool combine(Sums<N>& total) const {
    float* sums = static_cast<float*>(__cvta_shared_to_generic(stages)) + index * (N / 2 * 128) +
                  threadIdx.x % 128;
    const std::uint32_t idle = ptx::shared_address(&shared.ring_idle);
    const std::uint32_t sent = ptx::shared_address(&shared.sums_sent);
    if (problem.rank == 0) {
      __syncwarp();
      if (lane == 0) ptx::mbarrier_arrive_remote(ptx::mapa_shared_cluster(idle, 1));
      ptx::mbarrier_wait_parity_cluster(sent, 0);
#pragma unroll
      for (int i = 0; i < N / 2; ++i) total[i] += sums[i * 128];
      return true;
    }
    ptx::mbarrier_wait_parity_cluster(idle, 0);
    float* remote = ptx::mapa(sums, 0);
#pragma unroll
    for (int i = 0; i < N / 2; ++i) remote[i * 128] = total[i];
    ptx::mbarrier_arrive_cluster(ptx::mapa_shared_cluster(sent, 0));
    return false;
  }

  // Factors of a tile's tokens, in registers while the products run: thread i of a warpgroup brings
  // those of token i.
  struct Factors {
    float scales[C::kFactors], row_weights[C::kFactors];

    __device__ Factors(const kernels::WideE4m3Params& params, const WideTile& tile) {
#pragma unroll
      for (int i = 0; i < C::kFactors; ++i) {
        const auto token =
            tile.first_token + static_cast<std::int32_t>(threadIdx.x % 128) + i * 128;
        scales[i] = C::kHasKScales ? 1.0f : factor_of(params.x_scales, token, params.tokens);
        row_weights[i] = factor_of(params.row_weights, token, params.tokens);
      }
    }
    static __device__ float factor_of(const float* factors, std::int32_t token, std::int32_t end) {
      return factors != nullptr && token < end ? __ldg(factors + token) : 1.0f;
    }
  };

  __device__ void finish(Sums<C::kTokens>& total, const WideTile& tile,
                         const Factors& factors) const {
    float* const shown = shared.factors[index];
    const std::uint32_t barrier = kWarpgroupBarrier + index;
#pragma unroll
    for (int i = 0; i < C::kFactors; ++i) {
      shown[threadIdx.x % 128 + i * 128] = factors.scales[i];
      shown[C::kTokens + threadIdx.x % 128 + i * 128] = factors.row_weights[i];
    }
    ptx::bar_sync<128>(barrier);
    const std::int32_t row =
        tile.row_tile * C::kVariant.kRows + static_cast<std::int32_t>(index) * 64;
    constexpr int kPart = 128;  // tokens: more would need registers for as many factors
#pragma unroll
    for (int first = 0; first < C::kTokens; first += kPart) {
      WideTile part = tile;
      part.first_token += first;
      const TokenRange range = {tile.skipped - first, tile.tokens - first};
      const SharedFactors<C::kTokens> of_tokens = {ptx::shared_address(shown + first)};
      WideEpilogue<kPart, SharedFactors<C::kTokens>>{problem.params, part,   range, of_tokens, row,
                                                     staging,        barrier}
          .store(reinterpret_cast<Sums<kPart>&>(total[first / 2]));
    }
    ptx::bar_sync<128>(barrier);  // factors were read
  }

  // The tile's sums, of products of N tokens. False if another CTA has them.
  template <int N>
  __device__ bool add_up(Sums<C::kTokens>& all, const WideTile& tile) {
    auto& total = reinterpret_cast<Sums<N>&>(all);
    multiply<N>(total, tile);
    return problem.splits == 1 || combine<N>(total);
  }
  // Results of all widths in one place: for each of its own the compiler did not come to an end.
  __device__ void work(const WideTile& tile) {
    constexpr int kNarrow = C::kVariant.narrow;
    const Factors factors(problem.params, tile);
    Sums<C::kTokens> total;
    bool is_here;
    if (kNarrow < C::kTokens && tile.tokens > kNarrow) {
      is_here = add_up<C::kTokens>(total, tile);
    } else {
      is_here = add_up<kNarrow>(total, tile);
    }
    if (is_here) finish(total, tile, factors);
  }

  __device__ void run(const WideE4m3Schedule& schedule) {
    if (index == 1) pass_turn();  // the first one is the other's
    const std::int32_t units = ptx::uniform(schedule.units());
    for (std::int32_t unit = problem.first_unit(); unit < units; unit += problem.stride()) {
      work(schedule.find(unit, 0).uniform());
    }
    if (index == 0) await_turn();
  }
};

}  // namespace tilewright::tile
