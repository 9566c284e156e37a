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

// Each instruction of a launch behind the wait runs once or a few times, and comes from memory: the
// kernels of a step are more code than caches hold. So there is no division where it can be
// avoided, and where loops run once they are not unrolled.

/// A unit of a team, and where its rows are.
struct SlabUnit {
  std::int32_t index, matrix, tile;  ///< tile: of its matrix
};

/// A team's units, one after the other, and this warp's blocks of K of each.
struct SlabCursor {
  SlabUnit unit;
  std::int32_t block;
  std::uint32_t bytes;       ///< of a block of the unit
  const std::uint8_t* from;  ///< the block
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
    team = p.teams == 1 ? 0 : warp / p.k_warps;
    part = warp - team * p.k_warps;
    base = ptx::shared_address(slab_shared);
    ring = base + static_cast<std::uint32_t>(warp * p.stages * kStageBytes);
    barriers = base + p.barriers_at + static_cast<std::uint32_t>(warp * p.stages) * 8;
    stride = static_cast<std::int32_t>(ctas) * p.teams;
  }
  __device__ SlabUnit first_unit() const { return unit_at(cta * p.teams + team); }
  __device__ SlabUnit unit_at(std::int32_t index) const {
    const std::int32_t matrix = p.matrices == 1 ? 0 : index / p.row_tiles;
    return {index, matrix, index - matrix * p.row_tiles};
  }
  /// This team's next one.
  __device__ void advance(SlabUnit& unit) const {
    unit.index += stride;
    unit.tile += stride;
    if (p.matrices == 1) return;
#pragma unroll 1
    while (unit.tile >= p.row_tiles) {
      unit.tile -= p.row_tiles;
      ++unit.matrix;
    }
  }
  /// Bricks that a unit has.
  __device__ std::int32_t bricks_of(const SlabUnit& unit) const {
    return min(Bricks, p.all_bricks - unit.tile * Bricks);
  }

  // --- Weights: one thread of each warp.

  __device__ SlabCursor first_block() const {
    SlabCursor at;
    at.unit = first_unit();
    aim(at);
    return at;
  }
  /// At this warp's first block of the unit.
  __device__ void aim(SlabCursor& at) const {
    at.block = part;
    at.bytes = static_cast<std::uint32_t>(bricks_of(at.unit) * kBrickBytes);
    at.from = p.weights + at.unit.matrix * p.matrix_bytes +
              (std::int64_t{part} * p.all_bricks + at.unit.tile * Bricks) * kBrickBytes;
  }
  __device__ void load(const SlabCursor& at, std::uint32_t stage, std::uint64_t policy) const {
    const std::uint32_t barrier = barriers + stage * 8;
    ptx::mbarrier_arrive_expect_tx(barrier, at.bytes);
    ptx::cp_async_bulk_shared_global(ring + stage * kStageBytes, at.from, at.bytes, barrier,
                                     policy);
  }
  __device__ void advance(SlabCursor& at) const {
    at.block += p.k_warps;
    at.from += std::int64_t{p.k_warps} * p.all_bricks * kBrickBytes;
    if (at.block < p.all_blocks) return;
    advance(at.unit);
    aim(at);
  }

  // --- Tokens and scales: all threads of the CTA.

  /// Scales, and the norm if there is one: they belong to the weight. Before its bulk copies are
  /// asked for, or they come behind those. A warp for each unit.
  __device__ void ask_for_scales() const {
    if constexpr (kHasScales) {
      const std::int32_t blocks = SlabTile::scale_blocks(p);
#pragma unroll 1
      for (std::int32_t slot = part; slot < p.slots; slot += p.k_warps) {
        const SlabUnit unit = unit_at(cta * p.teams + team + slot * stride);
        if (unit.index >= p.units) return;
        const float* const from = p.block_scales +
                                  std::int64_t{unit.matrix} * blocks * p.scale_rows +
                                  unit.tile * Bricks * kernels::kBrickRows / kernels::kFp8BlockRows;
#pragma unroll 1
        for (std::int32_t block = lane; block < blocks; block += 32)
          ptx::cp_async_ca_shared_global_4(
              base + p.scales_at +
                  static_cast<std::uint32_t>((team * p.slots + slot) * blocks + block) * 4,
              from + std::int64_t{block} * p.scale_rows, 4);
      }
    }
  }

  __device__ void ask_for_norm() const {
#pragma unroll 1
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

  /// All of K of all tokens; where there are several matrices, of every unit's, by its team. K is
  /// padded with zeros.
  template <bool kTurns>
  __device__ void load_tokens() const {
    constexpr int kAtOnce = kTurns ? 1 : 4;  // loads in flight
    const bool is_shared = p.matrices == 1;
    const std::int32_t chunks = p.all_blocks * 8, slots = is_shared ? 1 : p.slots;
    const std::int32_t threads = is_shared ? static_cast<std::int32_t>(blockDim.x) : p.k_warps * 32;
    const std::uint32_t to =
        p.tokens_at +
        static_cast<std::uint32_t>(is_shared ? 0 : team * p.slots * p.m) * p.token_bytes;
    SlabUnit unit = first_unit();
    std::int32_t slot = 0, token = 0,
                 chunk = is_shared ? static_cast<std::int32_t>(threadIdx.x) : part * 32 + lane;
    const auto settle = [&] {
#pragma unroll 1
      while (chunk >= chunks) {
        chunk -= chunks;
        if (++token < p.m) continue;
        token = 0;
        ++slot;
        if (!is_shared) advance(unit);
      }
    };
    settle();
#pragma unroll 1
    while (slot < slots) {
      uint4 values[kAtOnce];
      std::uint8_t* places[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        places[i] = nullptr;
        if (slot >= slots) continue;
        values[i] = uint4{};
        places[i] = slab_shared + to +
                    static_cast<std::uint32_t>(slot * p.m + token) * p.token_bytes +
                    static_cast<std::uint32_t>(chunk) * 16;
        if (chunk * 8 < p.k && (is_shared || unit.index < p.units)) {
          const std::int32_t column = (is_shared ? 0 : unit.matrix) * p.k + chunk * 8;
          values[i] = *reinterpret_cast<const uint4*>(static_cast<const std::uint16_t*>(p.x) +
                                                      token * p.x_stride + column);
          if (kTurns) values[i] = turned_back(values[i], token, column);
        }
        chunk += threads;
        settle();
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (places[i] != nullptr) *reinterpret_cast<uint4*>(places[i]) = values[i];
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
#pragma unroll 1
    for (SlabUnit unit = first_unit(); p.units > unit.index; advance(unit), ++slot) {
      const std::int32_t here = p.matrices == 1 ? 0 : team * p.slots + slot;
      const std::uint32_t tokens =
          base + p.tokens_at + static_cast<std::uint32_t>(here * p.m + lane / 4) * p.token_bytes +
          static_cast<std::uint32_t>(lane % 4) * 32;
      const std::int32_t last = bricks_of(unit) - 1;
      float sums[Bricks][4] = {};
#pragma unroll 1
      for (std::int32_t block = part; block < p.all_blocks; block += p.k_warps) {
        std::uint32_t b[4][2];
        read_tokens(b, tokens + static_cast<std::uint32_t>(block) * 128);
        const float scale = kHasScales ? scales[block / 2] : 1;
        ptx::mbarrier_wait_parity(barriers + at.stage * 8, at.parity);
        multiply(sums, ring + at.stage * kStageBytes + granule, last, b, scale);
        __syncwarp();
        if (p.units > ahead.unit.index) {
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
  /// Adds the parts of K in their order. A team's threads have its units; those side by side rows
  /// side by side.
  __device__ void finish() const {
    const std::int32_t of_unit = Bricks * p.m * kernels::kBrickRows;
    const std::int32_t fragments = p.slots * Bricks * p.m;
    const std::int32_t r = lane % kernels::kBrickRows;
#pragma unroll 1
    for (std::int32_t fragment = part * 2 + lane / kernels::kBrickRows; fragment < fragments;
         fragment += p.k_warps * 2) {
      const std::int32_t all_bricks = p.m == 1 ? fragment : fragment / p.m;  // of the team
      const std::int32_t token = fragment - all_bricks * p.m;
      const std::int32_t slot = all_bricks / Bricks, brick = all_bricks % Bricks;
      const SlabUnit unit = unit_at(cta * p.teams + team + slot * stride);
      const std::int32_t row = (unit.tile * Bricks + brick) * kernels::kBrickRows + r;
      if (unit.index >= p.units || row >= p.n) continue;
      const float* sums =
          sums_of(team * p.slots + slot, 0) + (brick * p.m + token) * kernels::kBrickRows + r;
      float value = 0;
#pragma unroll 1
      for (std::int32_t first = 0; first < p.k_warps; first += 4) {
        float parts[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
          parts[i] = first + i < p.k_warps ? sums[(first + i) * of_unit] : 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) value += parts[i];
      }
      value *= p.alpha;
      const std::int32_t column = unit.matrix * p.n + row;
      store(token, column, p.bias != nullptr ? value + p.bias[column] : value);
    }
  }

  __device__ void run() const {
    if (lane == 0) {
#pragma unroll 1
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
    SlabCursor ahead = first_block();
#pragma unroll 1
    for (std::int32_t i = 0; i < p.stages && p.units > ahead.unit.index; ++i) {
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

/// Registers of a thread, of 512: with 80 a CTA fits beside one of a hyper-connection, which is
/// under way before a projection.
inline constexpr int kSlabRegisters = 80, kSlabMostRegisters = 128;

/// Entry linear_slab_NAME_bBRICKS.
#define TILEWRIGHT_LINEAR_SLAB(NAME, FORMAT, BRICKS, REGISTERS)                         \
  TILEWRIGHT_KERNEL(linear_slab_##NAME##_b##BRICKS, SlabParams, __maxnreg__(REGISTERS), \
                    tile::linear_slab<WeightFormat::FORMAT, BRICKS>)
