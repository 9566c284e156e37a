// targets: sm_90a sm_100f
//
// The CTAs of a cluster share the work of loading a tile: each multicasts its rows to all. A stage
// may be overwritten when the consumers of all CTAs have read it, because all CTAs write into it;
// they say so at the barriers of the others. At the end the CTAs look into each other's shared
// memory.
#include "kernels/probe/multicast_copy.h"
#include "ptx/address.h"
#include "ptx/bulk_tensor_copy.h"
#include "ptx/cluster.h"
#include "ptx/fence.h"
#include "ptx/mbarrier.h"
#include "ptx/warp_roles.h"

namespace tilewright::kernels {
namespace {

constexpr int kStages = 2;
constexpr int kTileBytes = kMulticastCopyTileWords * 4;
constexpr int kConsumerWarps = kMulticastCopyConsumers / 32;

struct Shared {
  alignas(128) std::uint32_t stages[kStages][kMulticastCopyTileWords];
  std::uint64_t full[kStages], empty[kStages];
  std::uint32_t arrivals;
};

struct Cluster {
  int rank, size, id, count;
};

__device__ void initialise(Shared& shared, int cluster_size) {
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::mbarrier_init(ptx::shared_address(&shared.full[stage]), 1);
      ptx::mbarrier_init(ptx::shared_address(&shared.empty[stage]), cluster_size * kConsumerWarps);
    }
    shared.arrivals = 0;
    ptx::fence_mbarrier_init_release_cluster();
  }
  ptx::cluster_sync();  // nobody may signal a barrier that is not there yet
}

__device__ void produce(const MulticastCopyParams& params, Shared& shared, const Cluster& cluster) {
  const int rows = kMulticastCopyRows / cluster.size;
  const auto everybody = static_cast<std::uint16_t>((1u << cluster.size) - 1);
  int n = 0;
  for (int tile = cluster.id; tile < params.tiles_x * params.tiles_y; tile += cluster.count, ++n) {
    const int stage = n % kStages;
    const std::uint32_t full = ptx::shared_address(&shared.full[stage]);
    ptx::mbarrier_wait_parity_cluster(ptx::shared_address(&shared.empty[stage]),
                                      (n / kStages & 1) ^ 1);
    ptx::mbarrier_arrive_expect_tx(full, kTileBytes);  // the parts of all CTAs
    const int row = cluster.rank * rows;
    ptx::cp_async_bulk_tensor_2d_shared_global_multicast(
        ptx::shared_address(&shared.stages[stage][row * kMulticastCopyCols / 2]), params.source_map,
        tile % params.tiles_x * kMulticastCopyCols,
        tile / params.tiles_x * kMulticastCopyRows + row, full, everybody);
  }
}

// Returns how many tiles there were.
__device__ int consume(const MulticastCopyParams& params, Shared& shared, const Cluster& cluster) {
  const int thread = static_cast<int>(threadIdx.x) - 32, lane = thread % 32;
  int n = 0;
  for (int tile = cluster.id; tile < params.tiles_x * params.tiles_y; tile += cluster.count, ++n) {
    const int stage = n % kStages;
    ptx::mbarrier_wait_parity(ptx::shared_address(&shared.full[stage]), n / kStages & 1);
    std::uint32_t* out =
        params.tiles_out +
        (static_cast<std::int64_t>(tile) * cluster.size + cluster.rank) * kMulticastCopyTileWords;
    for (int i = thread; i < kMulticastCopyTileWords; i += kMulticastCopyConsumers)
      out[i] = shared.stages[stage][i];
    __syncwarp();
    if (lane < cluster.size) {
      const std::uint32_t empty = ptx::shared_address(&shared.empty[stage]);
      ptx::mbarrier_arrive_cluster(ptx::mapa_shared_cluster(empty, lane));
    }
  }
  return n;
}

__device__ void look_into_next_cta(const MulticastCopyParams& params, Shared& shared,
                                   const Cluster& cluster, int num_tiles) {
  if (threadIdx.x < 32) return;
  const int thread = static_cast<int>(threadIdx.x) - 32;
  atomicAdd(ptx::mapa(&shared.arrivals, 0), cluster.rank + 1);
  if (num_tiles == 0) return;
  const std::uint32_t tile =
      ptx::mapa_shared_cluster(ptx::shared_address(shared.stages[(num_tiles - 1) % kStages]),
                               (cluster.rank + 1) % cluster.size);
  std::uint32_t* out =
      params.from_next_cta + (static_cast<std::int64_t>(cluster.id) * cluster.size + cluster.rank) *
                                 kMulticastCopyTileWords;
  for (int i = thread; i < kMulticastCopyTileWords; i += kMulticastCopyConsumers)
    out[i] = ptx::ld_shared_cluster_u32(tile + i * 4);
}

}  // namespace
}  // namespace tilewright::kernels

extern "C" __global__ void __launch_bounds__(tilewright::kernels::kMulticastCopyThreads)
    multicast_copy(const __grid_constant__ tilewright::kernels::MulticastCopyParams params) {
  namespace ptx = tilewright::ptx;
  using namespace tilewright::kernels;
  __shared__ Shared shared;
  const Cluster cluster = {
      static_cast<int>(ptx::cluster_ctarank()), static_cast<int>(ptx::cluster_nctarank()),
      static_cast<int>(ptx::clusterid_x()), static_cast<int>(ptx::nclusterid_x())};
  initialise(shared, cluster.size);
  int num_tiles = 0;
  if (threadIdx.x >= 32) {
    num_tiles = consume(params, shared, cluster);
  } else if (ptx::elect_sync()) {
    produce(params, shared, cluster);
  }
  __syncwarp();         // the cluster barrier is for converged warps
  ptx::cluster_sync();  // every CTA has all its tiles
  look_into_next_cta(params, shared, cluster, num_tiles);
  __syncwarp();
  ptx::cluster_sync();  // nobody leaves while others look
  if (cluster.rank == 0 && threadIdx.x == 0) params.arrivals[cluster.id] = shared.arrivals;
}
