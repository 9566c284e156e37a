// The end of a unit of the bandwidth kernel: sums of the cluster's CTAs added in the order of their
// ranks by the owner of each fragment, and results written.
#pragma once

#include "kernels/linear/band/consumer.h"
#include "kernels/linear/swiglu.h"
#include "tile/element.h"

namespace tilewright::tile {

/// Writes fragments: 16 rows by 8 tokens, c[0] and c[1] row g of tokens 2t and 2t + 1, c[2] and
/// c[3] row g + 8.
template <class C>
struct BandEpilogue {
  const BandParams& params;
  BandUnit unit;
  float alpha[2];  ///< of rows g and g + 8

  __device__ BandEpilogue(const BandParams& p, const BandUnit& u) : params(p), unit(u) {
    alpha[0] = alpha[1] = p.alpha;
    if (p.alphas == nullptr) return;
    alpha[0] *= p.is_swiglu ? p.alphas[2 * u.matrix] : p.alphas[u.matrix];
    alpha[1] *= p.is_swiglu ? p.alphas[2 * u.matrix + 1] : p.alphas[u.matrix];
  }

  __device__ void put(std::int32_t row, std::int32_t column, float value) const {
    std::int64_t at = row * params.y_stride + column;
    if constexpr (C::kHasColumns) at += std::int64_t{unit.matrix} * params.n;
    if (params.is_y_f32) {
      static_cast<float*>(params.y)[at] = value;
    } else {
      static_cast<__nv_bfloat16*>(params.y)[at] = __float2bfloat16_rn(value);
    }
  }
  __device__ float activate(GateAndUp sums) const {
    const auto [gate, up] = limited(sums, params.limit);
    return gate / (1 + __expf(-params.gate_slope * gate)) * (up + params.up_offset);
  }

  /// Fragment (rows from 16 * brick of the unit, tokens from 8 * tile).
  __device__ void write(std::int32_t brick, std::int32_t tile, const float (&sums)[4]) const {
    if (brick >= unit.bricks) return;
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    const std::int32_t row = (unit.first_brick + brick) * kernels::kBrickRows + lane / 4;
    const std::int32_t token = tile * 8 + lane % 4 * 2;
    float bias[2] = {0, 0};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (params.bias != nullptr && row + 8 * half < params.n)
        bias[half] = params.bias[std::int64_t{unit.matrix} * params.n + row + 8 * half];
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (token + i >= unit.tokens) continue;
      const std::int32_t to = unit.first_row + token + i;
      const float low = sums[i] * alpha[0] + bias[0], high = sums[2 + i] * alpha[1] + bias[1];
      if (params.is_swiglu) {
        if (row + 8 >= params.n) continue;
        const float weight = params.row_weight == nullptr ? 1.0f : params.row_weight[to];
        put(to, row / 16 * 8 + lane / 4, activate({low, high}) * weight);
        continue;
      }
      if (row < params.n) put(to, row, low);
      if (row + 8 < params.n) put(to, row + 8, high);
    }
  }
};

/// The exchange of sums between all that share a unit: the CTAs of the cluster, and in each the
/// k_groups. Fragment u = brick * Tiles + tile belongs to the CTA u % cluster and has slot
/// u / cluster there, once for each source.
template <class C>
struct BandExchange {
  const BandParams& params;
  BandShared shared;
  std::uint32_t cluster, groups;
  std::uint32_t units = 0;  ///< finished

  __device__ BandExchange(const BandParams& p, const BandShared& s)
      : params(p),
        shared(s),
        cluster(static_cast<std::uint32_t>(p.cut.cluster)),
        groups(static_cast<std::uint32_t>(p.cut.k_groups)) {}

  /// One thread, with the other barriers.
  __device__ void initialise(std::uint32_t arrivals) const {
    ptx::mbarrier_init(shared.sums_full(), arrivals);
    ptx::mbarrier_init(shared.sums_empty(), arrivals);
  }

  template <int Tiles>
  __device__ void send(const BandSums<Tiles>& sums, const BandConsumer<C>& from,
                       std::uint32_t slots) const {
    const std::uint32_t source = ptx::cluster_ctarank() * groups + from.k_group(),
                        lane = threadIdx.x % 32;
    const std::uint32_t mine = shared.base + params.cut.sums_at + (source * slots * 32 + lane) * 16;
    std::uint32_t slot = from.row_warp() * 2 * Tiles / cluster;
    std::uint32_t owner = from.row_warp() * 2 * Tiles % cluster;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int tile = 0; tile < Tiles; ++tile) {
        ptx::st_shared_cluster_v4_f32(ptx::mapa_shared_cluster(mine + slot * 512, owner),
                                      sums[i][tile]);
        const bool wraps = ++owner == cluster;
        slot += wraps ? 1 : 0;
        owner = wraps ? 0 : owner;
      }
    }
  }
  // One arrival of this warp at the barrier `barrier` of every CTA.
  __device__ void arrive_everywhere(std::uint32_t barrier) const {
    __syncwarp();
    const std::uint32_t lane = threadIdx.x % 32;
    if (lane < cluster) ptx::mbarrier_arrive_cluster(ptx::mapa_shared_cluster(barrier, lane));
  }

  /// Of the warp's own fragments the one with that index, out of registers: a few selections
  /// instead of as many copies of what follows.
  template <int Tiles>
  static __device__ void select(float (&fragment)[4], const BandSums<Tiles>& sums,
                                std::uint32_t index) {
#pragma unroll
    for (int f = 0; f < 2 * Tiles; ++f) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        if (f == 0 || index == static_cast<std::uint32_t>(f))
          fragment[c] = sums[f / Tiles][f % Tiles][c];
      }
    }
  }

  // Sum of the slot over the sources, in their order.
  __device__ void add_up(float (&total)[4], std::uint32_t slot, std::uint32_t slots) const {
#pragma unroll
    for (int c = 0; c < 4; ++c) total[c] = 0;
    for (std::uint32_t source = 0; source < cluster * groups; ++source) {
      const float4 part = shared.sums()[(source * slots + slot) * 32 + threadIdx.x % 32];
      total[0] += part.x;
      total[1] += part.y;
      total[2] += part.z;
      total[3] += part.w;
    }
  }

  /// Writes the unit's results. All warps of all CTAs. `has_next`: another unit follows.
  template <int Tiles>
  __device__ void finish(const BandSums<Tiles>& sums, const BandConsumer<C>& from,
                         const BandEpilogue<C>& epilogue, bool has_next) {
    const bool is_shared = cluster * groups > 1;
    const std::uint32_t fragments = static_cast<std::uint32_t>(params.cut.tile_bricks) * Tiles;
    const std::uint32_t slots = (fragments + cluster - 1) / cluster;
    if (is_shared) {
      if (units > 0) ptx::mbarrier_wait_parity_cluster(shared.sums_empty(), (units - 1) % 2);
      send<Tiles>(sums, from, slots);
      arrive_everywhere(shared.sums_full());
      ptx::mbarrier_wait_parity_cluster(shared.sums_full(), units % 2);
      ++units;
    }
    const std::uint32_t warp = threadIdx.x / 32 - 1, warps = blockDim.x / 32 - 1;
    const std::uint32_t rank = ptx::cluster_ctarank(), own = from.row_warp() * 2 * Tiles;
    std::uint32_t u = is_shared ? warp * cluster + rank : own;
    const std::uint32_t end = is_shared ? fragments : own + 2 * Tiles;
    const std::uint32_t stride = is_shared ? warps * cluster : 1;
#pragma unroll 1
    for (; u < end; u += stride) {
      float total[4];
      if (is_shared) {
        add_up(total, u / cluster, slots);
      } else {
        select<Tiles>(total, sums, u - own);
      }
      epilogue.write(static_cast<std::int32_t>(u / Tiles), static_cast<std::int32_t>(u % Tiles),
                     total);
    }
    // The sums of the next unit may come when all threads have read these. After the last unit
    // none arrives: this CTA may end before others.
    if (is_shared && has_next) arrive_everywhere(shared.sums_empty());
  }
};

}  // namespace tilewright::tile
