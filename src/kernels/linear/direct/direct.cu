// targets: sm_90a sm_100f
//
// The direct kernel: a linear layer of one to 32 tokens with FP4 weights, which every warp loads
// for itself, straight into registers. What changed against the bandwidth kernel (band.cu): no
// ring in shared memory, no warp that feeds others, no barrier in the loop. There a warp waited for
// its stage most of the time; here each has its own loads in flight, four to six K blocks ahead,
// and 14 or so of them on an SM hide each other's waits. Tokens, which all warps need,
// still come through shared memory, once.
//
//   time ->   loads ahead | wait for preceding kernel | tokens | loop: decode, 4 products, load |
//             sums to their owner's shared memory | cluster barrier | add, store
//
// Limits: bytes (0.5625 a weight of NVFP4) and issue slots: some 95 instructions for 32 weights of
// a thread, 60 of them decoding. At N = K = 7168 and one token both are near 6.7 us; the rest is
// the way in and out, some 3.5 us that a dependent launch does not hide.
// Measured (H200, chain of dependent launches, weights cold, us for 1 / 8 / 16 / 32 tokens, 7168 x
// 7168 NVFP4): 11.4 / 12.0 / 14.2 / 18.7; band 15.9 / 16.6 / 18.0 / 22.8; the floor 6.7 to
// 6.9. docs/notes/2026-11-22-linear-bandwidth.md has what was tried.
#include "kernels/linear/direct/direct.h"
#include "kernels/linear/unpack_fp4.h"
#include "ptx/address.h"
#include "ptx/cache_policy.h"
#include "ptx/cluster.h"
#include "ptx/grid_dependency.h"
#include "ptx/load_store.h"
#include "ptx/mma_sync.h"
#include "tile/entry.h"

namespace tilewright::kernels {
namespace {

/// Tiles: tokens / 8. Bricks: of a warp. Ahead: K blocks loaded before their turn.
template <WeightFormat Format, int Tiles, int Bricks, int Ahead>
struct Direct {
  static constexpr int kBrickBytes = brick_bytes(Format);
  /// Products into one sum wait for each other: few tokens get several sums, added at the end.
  static constexpr int kChains = Tiles * Bricks >= 4 ? 1 : 4 / (Tiles * Bricks);
  using Sums = float[Bricks][Tiles][kChains][4];

  struct Block {
    uint4 codes[Bricks];
    uint2 scales[Bricks];  // of rows g and g + 8
  };

  const DirectParams& p;
  std::uint8_t* shared;
  std::uint32_t rank, row_warp, part;
  std::int32_t all_bricks, first_brick;         // of the matrix; of this cluster
  std::int32_t begin, end, cta_begin, cta_end;  // K blocks of this warp and of its CTA
  std::uint32_t lane, g, t;

  __device__ Direct(const DirectParams& params, std::uint8_t* memory) : p(params), shared(memory) {
    const std::uint32_t warp = threadIdx.x / 32;
    lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    rank = p.cluster > 1 ? ptx::cluster_ctarank() : 0;
    row_warp = warp % p.warps;
    part = rank * p.k_groups + warp / p.warps;
    all_bricks = (p.n + kBrickRows - 1) / kBrickRows;
    first_brick = static_cast<std::int32_t>(blockIdx.x / p.cluster) * p.warps * Bricks;
    begin = block_of(part), end = block_of(part + 1);
    cta_begin = block_of(rank * p.k_groups), cta_end = block_of((rank + 1) * p.k_groups);
  }
  __device__ std::int32_t block_of(std::uint32_t parts) const {
    const std::int64_t blocks = (p.k + kBrickK - 1) / kBrickK;
    return static_cast<std::int32_t>(blocks * parts / (p.cluster * p.k_groups));
  }

  __device__ static void load(Block& block, const std::uint8_t* const (&at)[Bricks],
                              std::uint64_t policy, std::uint32_t codes_at,
                              std::uint32_t scales_at) {
#pragma unroll
    for (int i = 0; i < Bricks; ++i) {
      block.codes[i] = ptx::ld_global_nc_no_allocate_v4_u32(at[i] + codes_at, policy);
      if constexpr (Format == WeightFormat::kNvfp4) {
        block.scales[i] = ptx::ld_global_nc_no_allocate_v2_u32(at[i] + scales_at, policy);
      } else {
        block.scales[i].x = ptx::ld_global_nc_no_allocate_u32(at[i] + scales_at, policy);
      }
    }
  }

  // Factors of rows g and g + 8 for group t.
  __device__ void find_factors(std::uint32_t (&factors)[2], const uint2& scales) const {
    if constexpr (Format == WeightFormat::kNvfp4) {
      const std::uint32_t selector = tile::scale_selector(t);
      factors[0] = tile::bf16_factors<Format>(scales.x, selector);
      factors[1] = tile::bf16_factors<Format>(scales.y, selector);
    } else {
      factors[0] = tile::bf16_factors<Format>(scales.x, tile::scale_selector(t / 2));
      factors[1] = tile::bf16_factors<Format>(scales.x, tile::scale_selector(t / 2 + 2));
    }
  }

  /// One K block: `tokens` are this lane's token and group.
  __device__ void multiply(Sums& sums, const Block& block, const std::uint8_t* tokens) const {
    std::uint32_t a[Bricks][4][4];
#pragma unroll
    for (int i = 0; i < Bricks; ++i) {
      std::uint32_t factors[2];
      find_factors(factors, block.scales[i]);
      const std::uint32_t words[4] = {block.codes[i].x, block.codes[i].y, block.codes[i].z,
                                      block.codes[i].w};
#pragma unroll
      for (int j = 0; j < 4; ++j)
        tile::decode_fp4_bf16<WordOrder::kBf16>(a[i][j], words[j], factors);
    }
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
      const auto* x = reinterpret_cast<const uint4*>(tokens + n * 8 * p.token_bytes);
      const uint4 u = x[0], v = x[1];
      const std::uint32_t b[4][2] = {{u.x, u.y}, {u.z, u.w}, {v.x, v.y}, {v.z, v.w}};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int i = 0; i < Bricks; ++i) {
          float(&sum)[4] = sums[i][n][j % kChains];
          ptx::mma_sync_aligned_m16n8k16_f32_bf16_bf16_f32(sum, a[i][j], b[j], sum);
        }
      }
    }
  }

  /// This CTA's K of all tokens, groups of 16 permuted so that a product's two registers are
  /// neighbours: elements 0 1 8 9 2 3 10 11 and so on. Tokens that are none are zeros.
  __device__ void load_tokens() const {
    const std::int32_t groups = (cta_end - cta_begin) * 4, all = groups * p.m;
    constexpr int kAtOnce = 4;  // loads in flight
    for (std::int32_t first = static_cast<std::int32_t>(threadIdx.x); first < all;
         first += static_cast<std::int32_t>(blockDim.x) * kAtOnce) {
      uint4 low[kAtOnce], high[kAtOnce];
      std::uint32_t to[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const std::int32_t at = first + i * static_cast<std::int32_t>(blockDim.x);
        const std::int32_t token = at / groups, group = at - token * groups;
        const std::int32_t k = cta_begin * kBrickK + group * kGroupK;
        to[i] = static_cast<std::uint32_t>(token) * p.token_bytes +
                static_cast<std::uint32_t>(group) * 32;
        low[i] = high[i] = uint4{};
        const auto* from = reinterpret_cast<const uint4*>(p.x + token * p.x_stride + k);
        if (at < all && k < p.k) low[i] = from[0];
        if (at < all && k + 8 < p.k) high[i] = from[1];
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (first + i * static_cast<std::int32_t>(blockDim.x) >= all) break;
        auto* x = reinterpret_cast<uint4*>(shared + to[i]);
        x[0] = {low[i].x, high[i].x, low[i].y, high[i].y};
        x[1] = {low[i].z, high[i].z, low[i].w, high[i].w};
      }
    }
  }
  __device__ void clear_other_tokens() const {
    const std::uint32_t all = Tiles * 8 * p.token_bytes;
    for (std::uint32_t at = static_cast<std::uint32_t>(p.m) * p.token_bytes + threadIdx.x * 16;
         at < all; at += blockDim.x * 16)
      *reinterpret_cast<uint4*>(shared + at) = uint4{};
  }

  /// Brick i of the cluster belongs to CTA i % cluster, which gets the sums of all parts.
  __device__ void send(const Sums& sums) const {
#pragma unroll
    for (int i = 0; i < Bricks; ++i) {
      const std::uint32_t brick = row_warp * Bricks + i;
      const std::uint32_t slot = brick / p.cluster * (p.cluster * p.k_groups) + part;
      const std::uint32_t at = p.sums_at + slot * Tiles * 512 + lane * 16;
      const std::uint32_t owner =
          ptx::mapa_shared_cluster(ptx::shared_address(shared + at), brick % p.cluster);
#pragma unroll
      for (int n = 0; n < Tiles; ++n) {
        float v[4];
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          v[c] = sums[i][n][0][c];
#pragma unroll
          for (int chain = 1; chain < kChains; ++chain) v[c] += sums[i][n][chain][c];
        }
        ptx::st_shared_cluster_v4_f32(owner + n * 512, v);
      }
    }
  }

  __device__ void store(std::int32_t token, std::int32_t row, float value) const {
    const std::int64_t at = token * p.y_stride + row;
    if (p.is_y_f32) {
      static_cast<float*>(p.y)[at] = value;
    } else {
      static_cast<__nv_bfloat16*>(p.y)[at] = __float2bfloat16_rn(value);
    }
  }
  /// Adds the parts in their order. Threads side by side have rows side by side.
  __device__ void finish() const {
    const int parts = p.cluster * p.k_groups;
    const int mine = (p.warps * Bricks - static_cast<int>(rank) + p.cluster - 1) / p.cluster;
    const float* all = reinterpret_cast<const float*>(shared + p.sums_at);
    for (int i = static_cast<int>(threadIdx.x); i < mine * Tiles * 128;
         i += static_cast<int>(blockDim.x)) {
      const int r = i % 16, token = i / 16 % (Tiles * 8), brick = i / (Tiles * 128);
      const int row = (first_brick + brick * p.cluster + static_cast<int>(rank)) * 16 + r;
      if (token >= p.m || row >= p.n) continue;
      const int fragment = (r % 8 * 4 + token % 8 / 2) * 4 + r / 8 * 2 + token % 2;
      const float* sums = all + (brick * parts * Tiles + token / 8) * 128 + fragment;
      float value = 0;
      for (int other = 0; other < parts; ++other) value += sums[other * Tiles * 128];
      value *= p.alpha;
      store(token, row, p.bias != nullptr ? value + p.bias[row] : value);
    }
  }

  __device__ void run() const {
    ptx::griddepcontrol_launch_dependents();
    ptx::barrier_cluster_arrive_aligned();  // sums are sent when all of the cluster run
    const std::uint64_t policy = ptx::createpolicy_fractional_l2_evict_first();
    const std::uint32_t codes_at =
        static_cast<std::uint32_t>(granule_position(static_cast<int>(g), static_cast<int>(t))) * 16;
    const std::uint32_t scales_at = 512 + g * (Format == WeightFormat::kNvfp4 ? 8 : 4);
    const std::int64_t stride = std::int64_t{all_bricks} * kBrickBytes;
    const std::uint8_t* at[Bricks];
#pragma unroll
    for (int i = 0; i < Bricks; ++i) {
      // Bricks behind the last are read as the last, and their sums forgotten.
      const int brick = min(first_brick + static_cast<int>(row_warp) * Bricks + i, all_bricks - 1);
      at[i] = p.weights + begin * stride + brick * kBrickBytes;
    }
    Block blocks[Ahead];
    std::int32_t left = end - begin;
    const auto load_next = [&](Block& block) {
      load(block, at, policy, codes_at, scales_at);
#pragma unroll
      for (int i = 0; i < Bricks; ++i) at[i] += stride;
    };
#pragma unroll
    for (int d = 0; d < Ahead; ++d) {
      if (d < left) load_next(blocks[d]);
    }
    clear_other_tokens();
    ptx::griddepcontrol_wait();  // the preceding kernel wrote x, and may have read y
    load_tokens();
    __syncthreads();
    Sums sums = {};
    const std::uint8_t* tokens = shared + g * p.token_bytes + t * 32 + (begin - cta_begin) * 128;
    while (left > 0) {
#pragma unroll
      for (int d = 0; d < Ahead; ++d) {
        if (left <= 0) break;
        multiply(sums, blocks[d], tokens);
        if (left > Ahead) load_next(blocks[d]);
        tokens += 128;
        --left;
      }
    }
    ptx::barrier_cluster_wait_aligned();
    send(sums);
    ptx::cluster_sync();
    finish();
  }
};

template <WeightFormat Format, int Tiles, int Bricks, int Ahead>
__device__ void linear_direct(const DirectParams& params) {
  extern __shared__ __align__(128) std::uint8_t shared[];
  Direct<Format, Tiles, Bricks, Ahead>(params, shared).run();
}

}  // namespace

#define TILEWRIGHT_LINEAR_DIRECT(NAME, FORMAT, TILES, BRICKS, AHEAD)  \
  TILEWRIGHT_KERNEL(linear_direct_##NAME, DirectParams,               \
                    __launch_bounds__(DirectTile::kMaxWarps * 32, 1), \
                    linear_direct<WeightFormat::FORMAT, TILES, BRICKS, AHEAD>)

// On sm_100 four blocks ahead cost a register more than there is.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define TILEWRIGHT_AHEAD_N16 3
#else
#define TILEWRIGHT_AHEAD_N16 4
#endif

TILEWRIGHT_LINEAR_DIRECT(nvfp4_n8, kNvfp4, 1, 2, 4)
TILEWRIGHT_LINEAR_DIRECT(nvfp4_n8_deep, kNvfp4, 1, 1, 6)
TILEWRIGHT_LINEAR_DIRECT(nvfp4_n16, kNvfp4, 2, 2, TILEWRIGHT_AHEAD_N16)
TILEWRIGHT_LINEAR_DIRECT(nvfp4_n32, kNvfp4, 4, 1, 4)
TILEWRIGHT_LINEAR_DIRECT(mxfp4_n8, kMxfp4, 1, 2, 4)
TILEWRIGHT_LINEAR_DIRECT(mxfp4_n8_deep, kMxfp4, 1, 1, 6)
TILEWRIGHT_LINEAR_DIRECT(mxfp4_n16, kMxfp4, 2, 2, 4)
TILEWRIGHT_LINEAR_DIRECT(mxfp4_n32, kMxfp4, 4, 1, 4)

}  // namespace tilewright::kernels
