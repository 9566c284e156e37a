// targets: sm_90a
//
// Linear layers of many FP8 tokens. Weights are the A operand of m64nNk32 and come from registers,
// since decoded tiles in shared memory would have to be written, fenced and read once more. Tokens
// are the B operand, from the ring.
//
//   producer     per step of 128 of k: bricks by one or two bulk copies, tokens by tensor copies of
//                64, scales of the tokens for this step by a bulk copy
//   consumer     two warpgroups of 64 rows. While the products of a step run, the next step's
//                codes are read (LDS.128: one group of 16 of two rows per thread), its scale bytes
//                looked up in a table of e4m3 octets (16 copies side by side: no bank conflicts),
//                and the codes turned into operands by two byte permutations for eight
//   epilogue     token scale, alpha, bias; SwiGLU inside a thread; transposed through shared memory
//   k in two     for small grids: a cluster of two CTAs a tile; the second one sends its sums to
//                the idle ring of the first
//
// Sums. The tensor core adds e4m3 products with 13 fraction bits. Two levels: every `promote`
// steps its sums are added to f32 registers, with the scales of 128 of k where there are any.
// One level leaves them there: twice the tokens per tile (registers: N / 2 instead of N), and an
// error that grows with k; measured relative rms 1.8e-3 at k = 7168, as much as rounding to bf16.
//
// Budgets. A step of 128 tokens is 512 clocks of tensor core for both warpgroups. Issue: 2 warps a
// scheduler x (77 decode + 64 promotion + 30) = 342 slots; the permutations' pipe 224 clocks.
// Shared memory, 128 B/clock: tokens 2 x 16 KB for the products, 25 KB filled, 9 KB of codes and 8
// KB of look-ups: 132 B/clock at full rate, and that is the limit; 256 tokens need 114.
// Registers of a consumer, 232: two levels of 128 tokens 64 + 64 + 32 (operands of two steps) +
// 16 (codes, look-ups) + 30; one level of 256 tokens 128 + 32 + 16 + 30.
// Predicted for 128 tokens 1000 TFLOP/s, for 256 1150; measured 950 to 1130, and 1200 to 1300, of
// cuBLASLt's 1290 to 1440. What was tried: docs/notes.
#include "kernels/linear/sm90_wide_e4m3.h"
#include "ptx/bulk_copy.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/cluster.h"
#include "ptx/fence.h"
#include "ptx/grid_dependency.h"
#include "tile/fold_e4m3.h"
#include "tile/linear_epilogue.h"
#include "tile/linear_schedule.h"
#include "tile/ring.h"
#include "tile/warpgroup_mma.h"

namespace tilewright::kernels {
namespace {

using tile::LinearTile;

template <int Index>
struct Config {
  static constexpr WideE4m3Variant kVariant = kWideE4m3Variants[Index];
  static constexpr int kTokens = kVariant.tokens, kStages = kVariant.stages;
  static constexpr bool kIsFp4 = kVariant.is_fp4, kHasKScales = kVariant.has_k_scales;
  static constexpr int kWeightsAt = kVariant.x_bytes();
  static constexpr int kFactors = (kTokens + 127) / 128;  ///< tokens of a thread
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
  static constexpr int kConsumerWarps = 8;
};

template <class C>
struct Shared {
  tile::RingBarriers<C::kStages> ring;
  tile::LinearTileTable tiles;
  std::uint64_t ring_idle, sums_sent;           ///< two parts of k: see combine()
  alignas(16) float factors[2][2][C::kTokens];  ///< of a warpgroup's tokens: scales, row weights
};

// What follows from the parameters, for all roles.
template <class C>
struct Problem {
  const WideE4m3Params& params;
  tile::LinearGroups groups;
  std::int32_t brick_rows, k_blocks, brick;
  std::int32_t steps, first_step, end_step;  ///< of k; those of this CTA
  std::int32_t splits;
  std::uint32_t rank;

  __device__ explicit Problem(const WideE4m3Params& p) : params(p) {
    brick_rows = p.n / kBrickRows;
    k_blocks = (p.k + kBrickK - 1) / kBrickK;
    steps = (k_blocks + 1) / 2;
    brick = brick_bytes(p.format);
    splits = max(p.splits, 1);
    rank = splits > 1 ? ptx::cluster_ctarank() : 0;
    first_step = static_cast<std::int32_t>(rank) * steps / splits;
    end_step = (static_cast<std::int32_t>(rank) + 1) * steps / splits;
    groups = {p.segments,
              p.matrices,
              p.tokens,
              (p.n + C::kVariant.kRows - 1) / C::kVariant.kRows,
              p.tile_tokens > 0 ? p.tile_tokens : C::kTokens,
              p.token_group};
  }
  __device__ tile::LinearTileWalk walk(const tile::LinearTileTable& table) const {
    return {table, groups, static_cast<std::int32_t>(blockIdx.x) / splits,
            static_cast<std::int32_t>(gridDim.x) / splits};
  }
  __device__ std::int32_t bricks_of(std::int32_t row_tile) const {
    return min(C::kVariant.kRows / kBrickRows, brick_rows - row_tile * 8);
  }
};

// One thread.
template <class C>
__device__ void produce(const Problem<C>& problem, Shared<C>& shared, std::uint32_t stages) {
  constexpr WideE4m3Variant kVariant = C::kVariant;
  constexpr int kBox = kVariant.box_tokens(), kBoxBytes = kBox * kVariant.kStepK;
  const WideE4m3Params& params = problem.params;
  const tile::Ring<C::kStages> ring(shared.ring);
  tile::RingPosition<C::kStages> at;
  tile::LinearTileWalk walk = problem.walk(shared.tiles);
  const std::int64_t k_pitch = std::int64_t{problem.brick_rows} * problem.brick;
  LinearTile tile;
  while (walk.next(tile)) {
    const std::uint32_t bytes = problem.bricks_of(tile.row_tile) * problem.brick;
    const std::uint8_t* weights = params.weights + tile.expert * params.matrix_bytes +
                                  std::int64_t{tile.row_tile} * 8 * problem.brick +
                                  problem.first_step * 2 * k_pitch;
    const float* scales = params.x_scales + tile.first_token +
                          std::int64_t{problem.first_step} * params.x_scale_pitch;
    const std::uint32_t scale_bytes =
        C::kHasKScales ? min(tile.width, params.x_scale_pitch - tile.first_token) * 4 : 0;
    const std::int32_t boxes = (tile.width + kBox - 1) / kBox;
    for (std::int32_t step = problem.first_step; step < problem.end_step; ++step) {
      const bool has_two = 2 * step + 1 < problem.k_blocks;
      const std::uint32_t stage = stages + at.stage * kVariant.stage_bytes();
      const std::uint32_t full = ring.full(at);
      ring.start_filling(at, boxes * kBoxBytes + (has_two ? 2 * bytes : bytes) + scale_bytes);
      ptx::cp_async_bulk_shared_global(stage + C::kWeightsAt, weights, bytes, full);
      if (has_two) {
        ptx::cp_async_bulk_shared_global(stage + C::kWeightsAt + kVariant.block_bytes(),
                                         weights + k_pitch, bytes, full);
      }
      for (std::int32_t box = 0; box < boxes; ++box) {
        ptx::cp_async_bulk_tensor_2d_shared_global(stage + box * kBoxBytes, params.x_map,
                                                   step * kVariant.kStepK,
                                                   tile.first_token + box * kBox, full);
      }
      if constexpr (C::kHasKScales) {
        ptx::cp_async_bulk_shared_global(stage + C::kVariant.scales_at(), scales, scale_bytes,
                                         full);
        scales += params.x_scale_pitch;
      }
      weights += 2 * k_pitch;
      at.advance();
    }
    if (problem.splits > 1) break;
  }
}

// A operands of a step: four products of k = 32.
using Fragments = std::uint32_t[4][4];

template <class C>
struct Consumer {
  const Problem<C>& problem;
  Shared<C>& shared;
  tile::Ring<C::kStages> ring;
  using Position = tile::RingPosition<C::kStages>;
  static constexpr int kChunk = WideE4m3Variant::kChunkTokens;

  Position ahead, behind;  ///< next to be decoded, next to be released
  std::uint32_t stages, staging, table;
  std::uint32_t index;  ///< of the warpgroup
  std::uint32_t warp, lane;

  /// Of a tile of N tokens.
  template <int N>
  using Sums = float[N / 2];

  // Of a thread, from the start of a stage.
  struct Offsets {
    std::uint32_t codes, low_scale, high_scale;
  };
  __device__ Offsets offsets(std::int32_t bricks) const {
    const std::uint32_t brick = min(static_cast<std::int32_t>(index * 4 + warp), bricks - 1);
    const std::uint32_t g = lane / 4, s = lane % 4;
    const std::uint32_t at = C::kWeightsAt + brick * problem.brick;
    const std::uint32_t groups = problem.params.format == WeightFormat::kNvfp4 ? 4 : 2;
    const std::uint32_t scale = at + 512 + g * 2 * groups + s * groups / 4;
    return {at + static_cast<std::uint32_t>(
                     granule_position(static_cast<int>(g), static_cast<int>(s))) *
                     16,
            scale, scale + groups};
  }

  // What the fragments of a step are made of.
  struct Raw {
    uint4 low[2], high[2];       ///< of each half; FP4: low only, both rows
    std::uint32_t scales[2][2];  ///< FP4: of each half and row
    uint2 magnitudes[2][2];
  };

  // Reads a stage; has_two is false where k ends within it.
  __device__ void load(Raw& raw, const Offsets& at, const Position& from, bool has_two) {
    const std::uint32_t stage = stages + from.stage * C::kVariant.stage_bytes();
    ring.wait_full(from);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (half == 1 && !has_two) {
        raw.low[1] = raw.high[1] = make_uint4(0, 0, 0, 0);
        raw.scales[1][0] = raw.scales[1][1] = 0;
        break;
      }
      const std::uint32_t block = stage + half * C::kVariant.block_bytes();
      raw.low[half] = tile::load_shared_u4(block + at.codes);
      if constexpr (C::kIsFp4) {
        raw.scales[half][0] = tile::load_shared_u8(block + at.low_scale);
        raw.scales[half][1] = tile::load_shared_u8(block + at.high_scale);
      } else {
        raw.high[half] = tile::load_shared_u4(block + at.codes + 512);
      }
    }
  }
  __device__ void look_up(Raw& raw) const {
    if constexpr (C::kIsFp4) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        raw.magnitudes[i / 2][i % 2] = tile::look_up_fold(table, raw.scales[i / 2][i % 2]);
    }
  }
  // The operand of product i.
  __device__ void decode(std::uint32_t (&a)[4], const Raw& raw, int i) const {
    const uint4& low = raw.low[i / 2];
    const std::uint32_t words[2] = {i % 2 == 0 ? low.x : low.z, i % 2 == 0 ? low.y : low.w};
    if constexpr (C::kIsFp4) {
#pragma unroll
      for (int d = 0; d < 2; ++d) {
        std::uint32_t rows[2];
        tile::decode_fp4_e4m3(rows, words[d], raw.magnitudes[i / 2]);
        a[2 * d] = rows[0], a[2 * d + 1] = rows[1];
      }
    } else {
      const uint4& high = raw.high[i / 2];
      a[0] = words[0], a[2] = words[1];
      a[1] = i % 2 == 0 ? high.x : high.z, a[3] = i % 2 == 0 ? high.y : high.w;
    }
    ptx::wgmma_fence_operand(a);
  }

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
    if constexpr (C::kVariant.turns) ptx::bar_sync<256>(3 + index);
  }
  __device__ void pass_turn() const {
    if constexpr (C::kVariant.turns) ptx::bar_arrive<256>(3 + (index ^ 1));
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
  __device__ void step(Sums<N>& total, Sums<N>& part, Fragments& now, Fragments& next,
                       const Offsets& at, Cursor& cursor) {
    const std::uint64_t x = tile::describe_k_major<N, 64>(
        ptx::uniform(stages + cursor.at.stage * C::kVariant.stage_bytes()));
    const auto multiply = [&](int i) {
      if (C::kVariant.interleaved || i == 0) ptx::wgmma_fence_sync_aligned();
      ptx::wgmma_mma_async<N>::k32_f32_e4m3_e4m3(part, now[i], tile::advance_descriptor(x, 2 * i),
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
    load(raw, at, cursor.at, 2 * cursor.step + 1 < problem.k_blocks);
    if constexpr (C::kVariant.interleaved) multiply(1);
    look_up(raw);
    decode(next[0], raw, 0);
    if constexpr (C::kVariant.interleaved) multiply(2);
    decode(next[1], raw, 1);
    if constexpr (C::kVariant.interleaved) {
      multiply(3);
      pass_turn();
    }
    decode(next[2], raw, 2);
    decode(next[3], raw, 3);
    if constexpr (Place == Count - 1) {
      ptx::wgmma_wait_group_sync_aligned<0>();
      ptx::wgmma_fence_operand(part);
      promote<N>(total, part, block);
      release();
    }
  }
  template <int N, int Count, int Place = 0>
  __device__ void round(Sums<N>& total, Sums<N>& part, Fragments& now, Fragments& next,
                        const Offsets& at, Cursor& cursor) {
    step<N, Place, Count>(total, part, now, next, at, cursor);
    if constexpr (Place + 1 < Count) round<N, Count, Place + 1>(total, part, next, now, at, cursor);
  }

  // All steps in the tensor core.
  template <int N>
  __device__ void run_one_level(Sums<N>& total, Fragments& a, Fragments& b, const Offsets& at,
                                Cursor& cursor) {
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
  __device__ void run_two_levels(Sums<N>& total, Fragments& a, Fragments& b, const Offsets& at,
                                 Cursor& cursor) {
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

  __device__ Cursor start(const LinearTile& tile) const {
    Cursor cursor = {problem.first_step, ahead, nullptr, 0, 0};
    if constexpr (!C::kIsFp4) {
      const WideE4m3Params& params = problem.params;
      const std::int32_t blocks = (params.n + 127) / 128, half = (params.n / 2 + 127) / 128;
      cursor.scale_pitch = params.is_swiglu ? 2 * half : blocks;
      cursor.up = params.is_swiglu ? half : 0;
      cursor.scales =
          params.block_scales +
          (std::int64_t{tile.expert} * problem.steps + problem.first_step) * cursor.scale_pitch +
          (params.is_swiglu ? tile.row_tile / 2 : tile.row_tile);
    }
    return cursor;
  }

  template <int N>
  __device__ void multiply(Sums<N>& total, const LinearTile& tile) {
    const Offsets at = offsets(problem.bricks_of(tile.row_tile));
    Cursor cursor = start(tile);
    Fragments a, b;
    Raw raw;
    load(raw, at, ahead, 2 * cursor.step + 1 < problem.k_blocks);
    ahead.advance();
    look_up(raw);
#pragma unroll
    for (int i = 0; i < 4; ++i) decode(a[i], raw, i);
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

  // Thread i of a warpgroup brings the factor of token i.
  __device__ float token_factor(const float* factors, std::int32_t token) const {
    return factors != nullptr && token < problem.params.tokens ? __ldg(factors + token) : 1.0f;
  }

  struct Factors {
    float scales[C::kFactors], weights[C::kFactors];
  };
  __device__ Factors load_factors(const LinearTile& tile) const {
    const WideE4m3Params& params = problem.params;
    Factors factors;
#pragma unroll
    for (int i = 0; i < C::kFactors; ++i) {
      const auto token = tile.first_token + static_cast<std::int32_t>(threadIdx.x % 128) + i * 128;
      factors.scales[i] = params.alpha;
      if constexpr (!C::kHasKScales) factors.scales[i] *= token_factor(params.x_scales, token);
      factors.weights[i] = token_factor(params.row_weights, token);
    }
    return factors;
  }

  // Some tokens of the tile to memory.
  __device__ void store(float (&d)[kChunk / 2], std::int32_t first_token, const float* weights,
                        const LinearTile& tile, std::int32_t row) const {
    const WideE4m3Params& params = problem.params;
    const std::uint32_t barrier = 1 + index;
    tile::LinearPlace place = {first_token, tile.token_begin, tile.token_end, row, params.n};
    if (params.is_swiglu) {
      place.first_row /= 2;
      place.rows /= 2;
      tile::store_swiglu_bf16<kChunk>(params.y, params.y_pitch, d, weights, params.swiglu_limit,
                                      staging, barrier, place);
      return;
    }
    if (params.row_weights != nullptr) tile::scale_tokens<kChunk>(d, weights, 0.0f, 0.0f);
    if (params.is_f32) {
      tile::store_transposed_f32<kChunk>(params.y, params.y_pitch, d, place);
    } else {
      tile::store_transposed_bf16<kChunk>(params.y, params.y_pitch, d, staging, barrier, place);
    }
  }

  template <int N>
  __device__ void finish(Sums<N>& total, const LinearTile& tile, const Factors& factors) const {
    const WideE4m3Params& params = problem.params;
    const std::uint32_t barrier = 1 + index;
    const std::int32_t row =
        tile.row_tile * C::kVariant.kRows + static_cast<std::int32_t>(index) * 64;
    const auto local = static_cast<std::int32_t>(warp * 16 + lane / 4);
    float bias[2] = {0.0f, 0.0f};
    if (params.bias != nullptr) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if (row + local + 8 * h < params.n)
          bias[h] = params.bias[std::int64_t{tile.expert} * params.n + row + local + 8 * h];
      }
    }
#pragma unroll
    for (int i = 0; i < C::kFactors; ++i) {
      shared.factors[index][0][threadIdx.x % 128 + i * 128] = factors.scales[i];
      shared.factors[index][1][threadIdx.x % 128 + i * 128] = factors.weights[i];
    }
    ptx::bar_sync<128>(barrier);
    if (params.alphas != nullptr) {
      const float* const alphas = params.alphas + (params.is_swiglu ? 2 : 1) * tile.expert;
      const float low = __ldg(alphas), high = __ldg(alphas + (params.is_swiglu ? 1 : 0));
#pragma unroll
      for (int i = 0; i < N / 2; ++i) total[i] *= i % 4 < 2 ? low : high;
    }
#pragma unroll
    for (int chunk = 0; chunk < N / kChunk; ++chunk) {
      auto& d = reinterpret_cast<float(&)[kChunk / 2]>(total[chunk * kChunk / 2]);
      tile::scale_tokens<kChunk>(d, shared.factors[index][0] + chunk * kChunk, bias[0], bias[1]);
      store(d, tile.first_token + chunk * kChunk, shared.factors[index][1] + chunk * kChunk, tile,
            row);
    }
    ptx::bar_sync<128>(barrier);  // factors were read
  }

  // The same for all threads, and known to be: products in a divergent loop would be serialised.
  static __device__ bool next_tile(tile::LinearTileWalk& walk, LinearTile& tile) {
    const bool has_tile = ptx::uniform(static_cast<int>(walk.next(tile))) != 0;
    tile = {ptx::uniform(tile.expert),      ptx::uniform(tile.row_tile),
            ptx::uniform(tile.first_token), ptx::uniform(tile.width),
            ptx::uniform(tile.token_begin), ptx::uniform(tile.token_end)};
    return has_tile;
  }

  template <int N>
  __device__ void work(const LinearTile& tile) {
    const Factors factors = load_factors(tile);
    Sums<N> total;
    multiply<N>(total, tile);
    if (problem.splits == 1 || combine<N>(total)) finish<N>(total, tile, factors);
  }

  __device__ void run() {
    tile::LinearTileWalk walk = problem.walk(shared.tiles);
    LinearTile tile;
    if (index == 1) pass_turn();  // the first one is the other's
    while (next_tile(walk, tile)) {
      constexpr int kNarrow = C::kVariant.narrow;
      if (tile.width <= kNarrow) {
        work<kNarrow>(tile);
      } else if constexpr (kNarrow < C::kTokens) {
        work<C::kTokens>(tile);
      }
      if (problem.splits > 1) break;
    }
    if (index == 0) await_turn();
  }
};

template <class C>
__device__ void wide_e4m3(const WideE4m3Params& params) {
  extern __shared__ std::uint8_t dynamic[];
  __shared__ Shared<C> shared;
  const std::uint32_t stages = (ptx::shared_address(dynamic) + 1023) / 1024 * 1024;
  const std::uint32_t staging = stages + C::kStages * C::kVariant.stage_bytes();
  const std::uint32_t table = staging + 2 * C::kVariant.kStagingBytes;
  if (threadIdx.x == 0) {
    shared.ring.initialise(C::kConsumerWarps);
    ptx::mbarrier_init(ptx::shared_address(&shared.ring_idle), C::kConsumerWarps);
    ptx::mbarrier_init(ptx::shared_address(&shared.sums_sent), C::kConsumerWarps * 32);
    ptx::fence_mbarrier_init_release_cluster();
  }
  if constexpr (C::kIsFp4) tile::fill_fold_table(table, params.format);
  ptx::griddepcontrol_wait();
  const Problem<C> problem(params);
  tile::fill_tile_table(shared.tiles, problem.groups);
  __syncthreads();
  if (problem.splits > 1) ptx::cluster_sync();
  if (threadIdx.x < 128) {
    ptx::setmaxnreg_dec_sync_aligned<C::kProducerRegisters>();
    if (threadIdx.x < 32 && ptx::elect_sync()) produce<C>(problem, shared, stages);
  } else {
    ptx::setmaxnreg_inc_sync_aligned<C::kConsumerRegisters>();
    const std::uint32_t index = ptx::uniform(threadIdx.x / 128 - 1);
    const std::uint32_t lane = threadIdx.x % 32;
    Consumer<C> consumer{problem,
                         shared,
                         tile::Ring<C::kStages>(shared.ring),
                         {},
                         {},
                         stages,
                         staging + index * C::kVariant.kStagingBytes,
                         table + lane % 16 * 8,
                         index,
                         ptx::uniform(threadIdx.x / 32 % 4),
                         lane};
    consumer.run();
  }
  if (problem.splits > 1) {
    __syncwarp();
    ptx::cluster_sync();
  }
}

}  // namespace
}  // namespace tilewright::kernels

#ifndef TILEWRIGHT_WIDE_E4M3_NO_ENTRIES  // measured variants are compiled elsewhere
#define TILEWRIGHT_WIDE_E4M3(NAME, INDEX)                                                      \
  extern "C" __global__ void __launch_bounds__(384, 1)                                         \
      linear_wide_e4m3_##NAME(const __grid_constant__ tilewright::kernels::WideE4m3Params p) { \
    tilewright::kernels::wide_e4m3<tilewright::kernels::Config<INDEX>>(p);                     \
  }

TILEWRIGHT_WIDE_E4M3(fp4_t256, 0)
TILEWRIGHT_WIDE_E4M3(fp4_t128, 1)
TILEWRIGHT_WIDE_E4M3(fp4_g128, 2)
TILEWRIGHT_WIDE_E4M3(fp8_t128, 3)
TILEWRIGHT_WIDE_E4M3(fp8_g128, 4)
#endif
