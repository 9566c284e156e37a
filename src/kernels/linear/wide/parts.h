// What each cluster of a linear layer for many tokens does, in pieces: units as a whole, and a
// range of the steps of the last ones, whose sums clusters pass on to each other.
#pragma once

#include "kernels/linear/wide/sm90_wide.h"
#include "ptx/cluster.h"
#include "ptx/load_store.h"
#include "ptx/warp_roles.h"

#include <cstdint>

namespace tilewright::tile {

/// Steps begin .. end of k of a unit.
struct WidePiece {
  std::int32_t unit, begin, end;

  /// The same for all threads, and known to be.
  __device__ WidePiece uniform() const {
    return {ptx::uniform(unit), ptx::uniform(begin), ptx::uniform(end)};
  }
};

/// How units are dealt out. A multiple of the clusters' number goes as a whole. If there are units
/// left over, those and one more for each cluster (so that a piece which another cluster waits for
/// ends long before) are one row of steps, of which each cluster has an equal part. Cluster 0
/// has the last part: a cluster that waits for a piece waits for one that began before it. In
/// shared memory: consumers have no registers for it.
struct WideDeal {
  std::int32_t steps;   ///< of a unit
  std::int32_t whole;   ///< units
  std::int32_t shared;  ///< steps of all others
  std::int32_t clusters;
  std::int32_t begin, end;            ///< of this cluster's shared steps
  std::int32_t whole_pieces, pieces;  ///< of this cluster

  __device__ static WideDeal of(const kernels::WideParams& params, std::int32_t units,
                                std::int32_t k_steps) {
    WideDeal deal;
    deal.clusters = static_cast<std::int32_t>(ptx::nclusterid_x());
    deal.steps = k_steps;
    const bool is_cut =
        params.parts != nullptr && params.segments == nullptr && units % deal.clusters != 0;
    deal.whole = is_cut ? max(units / deal.clusters - 1, 0) * deal.clusters : units;
    deal.whole_pieces = (deal.whole + deal.cluster()) / deal.clusters;
    deal.shared = (units - deal.whole) * k_steps;
    deal.begin = deal.begin_of(deal.cluster());
    deal.end = deal.begin_of(deal.cluster() + 1);
    const std::int32_t first = deal.begin / k_steps, last = (deal.end + k_steps - 1) / k_steps;
    deal.pieces = deal.whole_pieces + (deal.begin < deal.end ? last - first : 0);
    return deal;
  }
  __device__ std::int32_t cluster() const {
    return clusters - 1 - static_cast<std::int32_t>(ptx::clusterid_x());
  }
  /// Number `number` of this cluster.
  __device__ WidePiece piece(std::int32_t number) const {
    const std::int32_t later = number - whole_pieces;
    if (later < 0)
      return {static_cast<std::int32_t>(ptx::clusterid_x()) + number * clusters, 0, steps};
    const std::int32_t unit = begin / steps + later, first = unit * steps;
    return {whole + unit, max(begin - first, 0), min(end - first, steps)};
  }
  /// Of a cluster, among the shared steps. (In 64 bits the quotient would be a call, across which
  /// products are serialised.)
  __device__ std::int32_t begin_of(std::int32_t of_cluster) const {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(shared * of_cluster) /
                                     static_cast<std::uint32_t>(clusters));
  }
};

/// Passes sums on: a warpgroup's to the same warpgroup of the cluster that has a unit's first step.
struct WideExchange {
  const kernels::WideParams& params;
  const WideDeal& deal;
  std::int32_t row, rows;  ///< of the CTA in its cluster
  std::uint32_t warpgroup, warpgroups;
  std::uint32_t barrier;  ///< a named one of this warpgroup's

  __device__ std::int32_t cta(std::int32_t cluster) const { return cluster * rows + row; }
  __device__ std::uint64_t* flag(std::int32_t cluster) const {
    return params.part_flags + cta(cluster) * kernels::WideParts::kFlags + warpgroup;
  }
  /// This thread's sums of eight tokens; from one eight to the next.
  __device__ float4* part(std::int32_t cluster) const {
    const std::int64_t eights = params.tile_tokens / 8;
    return reinterpret_cast<float4*>(params.parts) + cta(cluster) * eights * eight() +
           warpgroup * 128 + threadIdx.x % 128;
  }
  __device__ std::int64_t eight() const { return warpgroups * 128; }

  template <int Count>
  __device__ void send(const float (&d)[Count], std::int32_t tokens) const {
    float4* const to = part(deal.cluster());
#pragma unroll
    for (int i = 0; i < Count / 4; ++i) {
      if (i * 8 < tokens)
        __stcg(to + i * eight(), make_float4(d[4 * i], d[4 * i + 1], d[4 * i + 2], d[4 * i + 3]));
    }
    ptx::bar_sync<128>(barrier);
    if (threadIdx.x % 128 == 0) ptx::st_release_gpu_u64(flag(deal.cluster()), params.part_key);
  }
  /// Adds what others have of the piece's unit, in the order of k.
  template <int Count>
  __device__ void add(float (&d)[Count], const WidePiece& piece, std::int32_t tokens) const {
    const std::int32_t end = (piece.unit - deal.whole + 1) * deal.steps;
    for (std::int32_t other = deal.cluster() + 1; ptx::uniform(deal.begin_of(other)) < end;
         ++other) {
      while (ptx::ld_acquire_gpu_u64(flag(other)) != params.part_key) {
      }
      ptx::bar_sync<128>(barrier);
      if (threadIdx.x % 128 == 0) ptx::st_release_gpu_u64(flag(other), 0);
      __syncwarp();
      const float4* const from = part(other);
#pragma unroll
      for (int i = 0; i < Count / 4; ++i) {
        if (i * 8 < tokens) {
          const float4 sums = __ldcg(from + i * eight());
          d[4 * i] += sums.x;
          d[4 * i + 1] += sums.y;
          d[4 * i + 2] += sums.z;
          d[4 * i + 3] += sums.w;
        }
      }
    }
  }
};

}  // namespace tilewright::tile
