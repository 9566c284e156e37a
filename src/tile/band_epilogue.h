// The end of a unit of the bandwidth kernel: sums of the cluster's CTAs added in the order of their
// ranks, by whoever owns a fragment, and results written.
#pragma once

#include "tile/band_consumer.h"
#include "tile/element.h"

namespace tilewright::tile {

/// Writes fragments: 16 rows by 8 tokens, c[0] and c[1] row g of tokens 2t and 2t + 1, c[2] and
/// c[3] row g + 8.
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
    const std::int64_t at = row * params.y_stride + column;
    if (params.is_y_f32) {
      static_cast<float*>(params.y)[at] = value;
    } else {
      static_cast<__nv_bfloat16*>(params.y)[at] = __float2bfloat16_rn(value);
    }
  }
  __device__ float activate(float gate, float up) const {
    gate = gate > params.limit ? params.limit : gate;  // NaN stays NaN
    up = up > params.limit ? params.limit : up < -params.limit ? -params.limit : up;
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
        put(to, row / 16 * 8 + lane / 4, activate(low, high) * weight);
        continue;
      }
      if (row < params.n) put(to, row, low);
      if (row + 8 < params.n) put(to, row + 8, high);
    }
  }
};

/// The cluster's exchange of sums. Fragment u = brick * Tiles + tile belongs to the CTA u % cluster
/// and has slot u / cluster there, once for each source.
template <class C>
struct BandExchange {
  const BandParams& params;
  const BandShared<C>& shared;
  std::uint32_t rank, cluster;
  std::uint32_t parity = 0;  ///< of the unit
  bool has_sent = false;

  __device__ BandExchange(const BandParams& p, const BandShared<C>& s)
      : params(p),
        shared(s),
        rank(ptx::cluster_ctarank()),
        cluster(static_cast<std::uint32_t>(p.cluster)) {}

  /// One thread, with the other barriers.
  static __device__ void initialise(const BandShared<C>& shared, std::uint32_t arrivals) {
    ptx::mbarrier_init(shared.sums_full(), arrivals);
    ptx::mbarrier_init(shared.sums_empty(), arrivals);
  }

  template <int Tiles>
  __device__ void send(const BandSums<Tiles>& sums, std::uint32_t warp) const {
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t fragments = static_cast<std::uint32_t>(params.tile_bricks) * Tiles;
    const std::uint32_t slots = (fragments + cluster - 1) / cluster;
    const std::uint32_t mine = ptx::shared_address(shared.sums) + (rank * slots * 32 + lane) * 16;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int tile = 0; tile < Tiles; ++tile) {
        const std::uint32_t u = (warp * 2 + i) * Tiles + tile;
        ptx::st_shared_cluster_v4_f32(
            ptx::mapa_shared_cluster(mine + u / cluster * 512, u % cluster), sums[i][tile]);
      }
    }
  }
  // One arrival of this warp at the barrier `barrier` of every CTA.
  __device__ void arrive_everywhere(std::uint32_t barrier) const {
    __syncwarp();
    const std::uint32_t lane = threadIdx.x % 32;
    if (lane < cluster) ptx::mbarrier_arrive_cluster(ptx::mapa_shared_cluster(barrier, lane));
  }

  /// All warps of all CTAs. `has_next`: another unit follows.
  template <int Tiles>
  __device__ void add_and_write(const BandSums<Tiles>& sums, std::uint32_t warp,
                                std::uint32_t warps, const BandEpilogue& epilogue, bool has_next) {
    if (has_sent) ptx::mbarrier_wait_parity_cluster(shared.sums_empty(), parity ^ 1);
    has_sent = true;
    send<Tiles>(sums, warp);
    arrive_everywhere(shared.sums_full());
    ptx::mbarrier_wait_parity_cluster(shared.sums_full(), parity);
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t fragments = static_cast<std::uint32_t>(params.tile_bricks) * Tiles;
    const std::uint32_t slots = (fragments + cluster - 1) / cluster;
    for (std::uint32_t slot = warp; slot < slots; slot += warps) {
      const std::uint32_t u = slot * cluster + rank;
      if (u >= fragments) break;
      float total[4] = {0, 0, 0, 0};
      for (std::uint32_t source = 0; source < cluster; ++source) {
        const float4 part = shared.sums[(source * slots + slot) * 32 + lane];
        total[0] += part.x;
        total[1] += part.y;
        total[2] += part.z;
        total[3] += part.w;
      }
      epilogue.write(static_cast<std::int32_t>(u / Tiles), static_cast<std::int32_t>(u % Tiles),
                     total);
    }
    // The next unit's sums may come when everybody has read these. After the last unit nobody
    // arrives: this CTA may end before others.
    if (has_next) arrive_everywhere(shared.sums_empty());
    parity ^= 1;
  }
};

}  // namespace tilewright::tile
