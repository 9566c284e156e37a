// The slab kernel's parts, and the macro that makes an entry of it. What it is: slab_fp8.cu.
#pragma once

#include "kernels/linear/slab/slab.h"
#include "kernels/linear/unpack_fp4.h"
#include "ptx/address.h"
#include "ptx/bulk_copy.h"
#include "ptx/cache_policy.h"
#include "ptx/cp_async.h"
#include "ptx/fence.h"
#include "ptx/grid_dependency.h"
#include "ptx/load_store.h"
#include "ptx/mbarrier.h"
#include "ptx/mma_sync.h"
#include "tile/deep_position.h"
#include "tile/element.h"
#include "tile/entry.h"

namespace tilewright::tile {

using kernels::SlabInput;
using kernels::SlabPairParams;
using kernels::SlabParams;
using kernels::SlabTile;

extern __shared__ __align__(128) std::uint8_t slab_shared[];

/// A team's units, one after the other, and this warp's blocks of K of each.
struct SlabCursor {
  std::int32_t unit, block;
};

template <WeightFormat Format, int Bricks>
struct Slab {
  static constexpr int kBrickBytes = kernels::brick_bytes(Format);
  static constexpr int kStageBytes = Bricks * kBrickBytes;
  static constexpr bool kHasScales = Format == WeightFormat::kFp8;

  const SlabParams& p;
  std::uint32_t base, ring, barriers;
  std::int32_t cta, lane, team, part;  // of those that have this weight; of the warp in its team
  std::int32_t stride;                 // from one unit of a team to the next

  __device__ Slab(const SlabParams& params, std::uint32_t cta_here, std::uint32_t ctas)
      : p(params), cta(static_cast<std::int32_t>(cta_here)) {
    const auto warp = static_cast<std::int32_t>(threadIdx.x / 32);
    lane = static_cast<std::int32_t>(threadIdx.x % 32);
    team = warp / p.k_warps;
    part = warp - team * p.k_warps;
    base = ptx::shared_address(slab_shared);
    ring = base + static_cast<std::uint32_t>(warp * p.stages * kStageBytes);
    barriers = base + p.barriers_at + static_cast<std::uint32_t>(warp * p.stages) * 8;
    stride = static_cast<std::int32_t>(ctas) * p.teams;
  }
  __device__ std::int32_t first_unit() const { return cta * p.teams + team; }

  // --- Weights: one thread of each warp.

  __device__ void load(const SlabCursor& at, std::uint32_t stage, std::uint64_t policy) const {
    const std::int32_t matrix = at.unit / p.row_tiles;
    const std::int32_t first = (at.unit - matrix * p.row_tiles) * Bricks;
    const auto bytes = static_cast<std::uint32_t>(min(Bricks, p.all_bricks - first) * kBrickBytes);
    const std::uint8_t* from = p.weights + matrix * p.matrix_bytes +
                               (std::int64_t{at.block} * p.all_bricks + first) * kBrickBytes;
    const std::uint32_t barrier = barriers + stage * 8;
    ptx::mbarrier_arrive_expect_tx(barrier, bytes);
    ptx::cp_async_bulk_shared_global(ring + stage * kStageBytes, from, bytes, barrier, policy);
  }
  __device__ void advance(SlabCursor& at) const {
    at.block += p.k_warps;
    if (at.block < p.all_blocks) return;
    at.block = part;
    at.unit += stride;
  }

  // --- Tokens and scales: all threads of the CTA.

  /// Scales, and the norm if there is one: they belong to the weight. Before its bulk copies are
  /// asked for, or they come behind those.
  __device__ void ask_for_scales() const {
    if constexpr (kHasScales) {
      const std::int32_t blocks = SlabTile::scale_blocks(p), all = p.teams * p.slots * blocks;
      for (auto i = static_cast<std::int32_t>(threadIdx.x); i < all;
           i += static_cast<std::int32_t>(blockDim.x)) {
        const std::int32_t here = i / blocks, block = i - here * blocks, unit = unit_of(here);
        if (unit >= p.units) continue;
        const std::int32_t matrix = unit / p.row_tiles;
        const std::int32_t row = (unit - matrix * p.row_tiles) * Bricks * kernels::kBrickRows;
        ptx::cp_async_ca_shared_global_4(
            base + p.scales_at + static_cast<std::uint32_t>(i) * 4,
            p.block_scales + (std::int64_t{matrix} * blocks + block) * p.scale_rows +
                row / kernels::kFp8BlockRows,
            4);
      }
    }
  }
  /// The unit of a place in shared memory: slots of a team side by side.
  __device__ std::int32_t unit_of(std::int32_t here) const {
    const std::int32_t of_team = here / p.slots;
    return cta * p.teams + of_team + (here - of_team * p.slots) * stride;
  }

  __device__ void ask_for_norm() const {
    for (auto i = static_cast<std::int32_t>(threadIdx.x); i < p.k / 8;
         i += static_cast<std::int32_t>(blockDim.x))
      ptx::cp_async_cg_shared_global_16(base + p.norm_at + static_cast<std::uint32_t>(i) * 16,
                                        p.norm + std::int64_t{i} * 8);
  }
  /// A warp for each token.
  __device__ void normalise_tokens() const {
    const auto warps = static_cast<std::int32_t>(blockDim.x / 32);
    const auto* norm = reinterpret_cast<const std::uint16_t*>(slab_shared + p.norm_at);
    for (auto token = static_cast<std::int32_t>(threadIdx.x / 32); token < p.m; token += warps) {
      const float* const row = static_cast<const float*>(p.x) + token * p.x_stride;
      float squares = 0;
#pragma unroll 8
      for (std::int32_t c = lane * 4; c < p.k; c += 128) {
        const float4 x = *reinterpret_cast<const float4*>(row + c);
        squares = fmaf(x.x, x.x, fmaf(x.y, x.y, fmaf(x.z, x.z, fmaf(x.w, x.w, squares))));
      }
#pragma unroll
      for (int step = 16; step > 0; step /= 2) squares += __shfl_xor_sync(~0u, squares, step);
      const float factor = rsqrtf(squares / static_cast<float>(p.k) + p.eps);
      std::uint8_t* const to =
          slab_shared + p.tokens_at + static_cast<std::uint32_t>(token) * p.token_bytes;
#pragma unroll 4
      for (std::int32_t c = lane * 4; c < p.all_blocks * kernels::kBrickK; c += 128) {
        uint2 out = {};
        if (c < p.k) {
          const float4 x = *reinterpret_cast<const float4*>(row + c);
          const uint2 weights = *reinterpret_cast<const uint2*>(norm + c);
          const float2 low = Bf16::unpack(weights.x), high = Bf16::unpack(weights.y);
          out.x = Bf16::pack(low.x * (x.x * factor), low.y * (x.y * factor));
          out.y = Bf16::pack(high.x * (x.z * factor), high.y * (x.w * factor));
        }
        *reinterpret_cast<uint2*>(to + c * 2) = out;
      }
    }
  }
  /// Eight columns from `column` on of a token.
  __device__ uint4 turned_back(const uint4& values, std::int32_t token, std::int32_t column) const {
    const std::int32_t at = column % p.head_dim - (p.head_dim - p.rope_dims);
    if (at < 0) return values;
    const std::int32_t position = p.positions[token];
    if (position < 0) return values;
    constexpr std::uint32_t kNans = 0x7fc07fc0u;
    if (position >= p.num_positions) return {kNans, kNans, kNans, kNans};
    const float* const cosines = p.rope + std::int64_t{position} * p.rope_dims + at / 2;
    const float* const sines = cosines + p.rope_dims / 2;
    std::uint32_t words[4] = {values.x, values.y, values.z, values.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 x = Bf16::unpack(words[i]);
      const float c = cosines[i], s = -sines[i];
      words[i] = Bf16::pack(fmaf(-x.y, s, x.x * c), fmaf(x.y, c, x.x * s));
    }
    return {words[0], words[1], words[2], words[3]};
  }

  /// All of K of all tokens, for every unit that has a matrix of its own. K is padded with zeros.
  template <bool kTurns>
  __device__ void load_tokens() const {
    constexpr int kAtOnce = kTurns ? 1 : 4;  // loads in flight
    const std::int32_t chunks = p.all_blocks * 8;
    const std::int32_t rows = (p.matrices == 1 ? 1 : p.teams * p.slots) * p.m;
    const auto threads = static_cast<std::int32_t>(blockDim.x);
    for (auto first = static_cast<std::int32_t>(threadIdx.x); first < rows * chunks;
         first += threads * kAtOnce) {
      uint4 values[kAtOnce];
      std::uint32_t to[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const std::int32_t at = first + i * threads, row = at / chunks, chunk = at - row * chunks;
        values[i] = uint4{};
        to[i] = static_cast<std::uint32_t>(row) * p.token_bytes +
                static_cast<std::uint32_t>(chunk) * 16;
        if (at >= rows * chunks || chunk * 8 >= p.k) continue;
        const std::int32_t here = row / p.m, token = row - here * p.m;
        const std::int32_t unit = unit_of(here);
        if (unit >= p.units) continue;
        const std::int32_t matrix = p.matrices == 1 ? 0 : unit / p.row_tiles;
        const std::int32_t column = matrix * p.k + chunk * 8;
        values[i] = *reinterpret_cast<const uint4*>(static_cast<const std::uint16_t*>(p.x) +
                                                    token * p.x_stride + column);
        if (kTurns) values[i] = turned_back(values[i], token, column);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (first + i * threads >= rows * chunks) break;
        *reinterpret_cast<uint4*>(slab_shared + p.tokens_at + to[i]) = values[i];
      }
    }
  }

  // --- Products.

  /// A fragments of a brick, in the order of K in which tokens are read: group t, word j.
  __device__ static void read_rows(std::uint32_t (&a)[4][4], std::uint32_t granule) {
    constexpr std::uint32_t kPart = kernels::kGranules * kernels::kGranuleBytes;
    if constexpr (Format == WeightFormat::kFp8) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint4 codes = ptx::ld_shared_v4_u32(granule + half * kPart);
        const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          std::uint32_t pairs[2];
          decode_e4m3_bf16_crossed(pairs, words[j]);
          a[j][half] = pairs[0];
          a[j][2 + half] = pairs[1];
        }
      }
    } else {
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const uint4 pairs = ptx::ld_shared_v4_u32(granule + q * kPart);
        const std::uint32_t words[4] = {pairs.x, pairs.y, pairs.z, pairs.w};
#pragma unroll
        for (int j = 0; j < 4; ++j) a[j][q / 2 + q % 2 * 2] = words[j];
      }
    }
  }
  /// Tokens that are none are zeros.
  __device__ void read_tokens(std::uint32_t (&b)[4][2], std::uint32_t tokens) const {
    uint4 first = {}, second = {};
    if (lane / 4 < p.m) {
      first = ptx::ld_shared_v4_u32(tokens);
      second = ptx::ld_shared_v4_u32(tokens + 16);
    }
    constexpr bool kIsCrossed = is_crossed(Format, kernels::WordOrder::kBf16);
    pair_tokens<kIsCrossed>(b[0], first.x, second.x);
    pair_tokens<kIsCrossed>(b[1], first.y, second.y);
    pair_tokens<kIsCrossed>(b[2], first.z, second.z);
    pair_tokens<kIsCrossed>(b[3], first.w, second.w);
  }

  /// One block of K. A product waits for the last one into the same sum, so there are two.
  __device__ void multiply(float (&sums)[Bricks][4], std::uint32_t stage, std::int32_t last,
                           const std::uint32_t (&b)[4][2], float scale) const {
#pragma unroll
    for (int i = 0; i < Bricks; ++i) {
      std::uint32_t a[4][4];
      read_rows(a, stage + static_cast<std::uint32_t>(min(i, last)) * kBrickBytes);
      float products[2][4] = {};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float(&sum)[4] = products[j % 2];
        ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(sum, a[j], b[j], sum);
      }
#pragma unroll
      for (int c = 0; c < 4; ++c) sums[i][c] += (products[0][c] + products[1][c]) * scale;
    }
  }

  /// [team][slot][part of K][brick][token][row]
  __device__ float* sums_of(std::int32_t here, std::int32_t of_part) const {
    return reinterpret_cast<float*>(slab_shared + p.sums_at) +
           (here * p.k_warps + of_part) * Bricks * p.m * kernels::kBrickRows;
  }
  __device__ void send(const float (&sums)[Bricks][4], std::int32_t slot) const {
    const std::int32_t row = lane / 4, token = lane % 4 * 2;
    float* to = sums_of(team * p.slots + slot, part) + token * kernels::kBrickRows + row;
#pragma unroll
    for (int i = 0; i < Bricks; ++i, to += p.m * kernels::kBrickRows) {
      if (token < p.m) to[0] = sums[i][0], to[8] = sums[i][2];
      if (token + 1 < p.m) to[16] = sums[i][1], to[24] = sums[i][3];
    }
  }

  __device__ void work(SlabCursor& ahead, std::uint64_t policy) const {
    const std::uint32_t granule =
        static_cast<std::uint32_t>(kernels::granule_position(lane / 4, lane % 4)) * 16;
    const float* scales = reinterpret_cast<const float*>(slab_shared + p.scales_at) +
                          team * p.slots * SlabTile::scale_blocks(p);
    DeepPosition at;
    std::int32_t slot = 0;
    for (std::int32_t unit = first_unit(); unit < p.units; unit += stride, ++slot) {
      const std::int32_t here = p.matrices == 1 ? 0 : team * p.slots + slot;
      const std::uint32_t tokens =
          base + p.tokens_at + static_cast<std::uint32_t>(here * p.m + lane / 4) * p.token_bytes +
          static_cast<std::uint32_t>(lane % 4) * 32;
      const std::int32_t last = min(Bricks, p.all_bricks - unit % p.row_tiles * Bricks) - 1;
      float sums[Bricks][4] = {};
      for (std::int32_t block = part; block < p.all_blocks; block += p.k_warps) {
        std::uint32_t b[4][2];
        read_tokens(b, tokens + static_cast<std::uint32_t>(block) * 128);
        const float scale = kHasScales ? scales[block / 2] : 1;
        ptx::mbarrier_wait_parity(barriers + at.stage * 8, at.parity);
        multiply(sums, ring + at.stage * kStageBytes + granule, last, b, scale);
        __syncwarp();
        if (ahead.unit < p.units) {
          if (lane == 0) load(ahead, at.stage, policy);
          advance(ahead);
        }
        at.advance(static_cast<std::uint32_t>(p.stages));
      }
      send(sums, slot);
      scales += SlabTile::scale_blocks(p);
    }
  }

  // --- Results.

  __device__ void store(std::int32_t token, std::int32_t column, float value) const {
    const std::int64_t at = token * p.y_stride + column;
    if (p.is_y_f32) {
      static_cast<float*>(p.y)[at] = value;
    } else {
      static_cast<__nv_bfloat16*>(p.y)[at] = __float2bfloat16_rn(value);
    }
  }
  /// Adds the parts of K in their order. Threads side by side have rows side by side.
  __device__ void finish() const {
    const std::int32_t of_unit = Bricks * p.m * kernels::kBrickRows;
    const std::int32_t all = p.teams * p.slots * of_unit;
    for (auto i = static_cast<std::int32_t>(threadIdx.x); i < all;
         i += static_cast<std::int32_t>(blockDim.x)) {
      const std::int32_t here = i / of_unit, at = i - here * of_unit, unit = unit_of(here);
      const std::int32_t r = at % kernels::kBrickRows, fragment = at / kernels::kBrickRows;
      const std::int32_t brick = fragment / p.m, token = fragment - brick * p.m;
      const std::int32_t matrix = unit / p.row_tiles;
      const std::int32_t row =
          ((unit - matrix * p.row_tiles) * Bricks + brick) * kernels::kBrickRows + r;
      if (unit >= p.units || row >= p.n) continue;
      const float* sums = sums_of(here, 0) + at;
      float value = 0;
      for (std::int32_t other = 0; other < p.k_warps; ++other) value += sums[other * of_unit];
      value *= p.alpha;
      const std::int32_t column = matrix * p.n + row;
      store(token, column, p.bias != nullptr ? value + p.bias[column] : value);
    }
  }

  __device__ void run() const {
    if (lane == 0) {
      for (std::int32_t i = 0; i < p.stages; ++i)
        ptx::mbarrier_init(barriers + static_cast<std::uint32_t>(i) * 8, 1);
      ptx::fence_mbarrier_init_release_cluster();
    }
    __syncwarp();
    ptx::griddepcontrol_launch_dependents();
    ask_for_scales();
    if (p.input == SlabInput::kNormalised) ask_for_norm();
    ptx::cp_async_commit_group();
    const std::uint64_t policy = ptx::createpolicy_fractional_l2_evict_first();
    SlabCursor ahead = {first_unit(), part};
    for (std::int32_t i = 0; i < p.stages && ahead.unit < p.units; ++i) {
      if (lane == 0) load(ahead, static_cast<std::uint32_t>(i), policy);
      advance(ahead);
    }
    ptx::griddepcontrol_wait();  // the preceding kernel wrote x, and may have read y
    ptx::cp_async_wait_group<0>();
    if (p.input == SlabInput::kNormalised) {
      __syncthreads();
      normalise_tokens();
    } else if (p.input == SlabInput::kTurnedBack) {
      load_tokens<true>();
    } else {
      load_tokens<false>();
    }
    __syncthreads();
    work(ahead, policy);
    __syncthreads();
    finish();
  }
};

template <WeightFormat Format, int Bricks>
__device__ void linear_slab(const SlabParams& params) {
  Slab<Format, Bricks>(params, blockIdx.x, gridDim.x).run();
}

__device__ inline void linear_slab_pair(const SlabPairParams& params) {
  const auto fp8_ctas = static_cast<std::uint32_t>(params.fp8_ctas);
  if (blockIdx.x < fp8_ctas) {
    Slab<WeightFormat::kFp8, 2>(params.fp8, blockIdx.x, fp8_ctas).run();
  } else {
    Slab<WeightFormat::kBf16, 1>(params.bf16, blockIdx.x - fp8_ctas, gridDim.x - fp8_ctas).run();
  }
}

}  // namespace tilewright::tile

/// Entry linear_slab_NAME_bBRICKS.
#define TILEWRIGHT_LINEAR_SLAB(NAME, FORMAT, BRICKS)                \
  TILEWRIGHT_KERNEL(linear_slab_##NAME##_b##BRICKS, SlabParams,     \
                    __launch_bounds__(SlabTile::kMaxWarps * 32, 1), \
                    tile::linear_slab<WeightFormat::FORMAT, BRICKS>)
