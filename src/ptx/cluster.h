// Clusters: ranks, addresses in the shared memory of other CTAs, and the cluster's barrier.
// PTX ISA: "%cluster_ctarank", "mapa", "barrier.cluster", "State Spaces: shared".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Rank of this CTA in its cluster; 0 without clusters.
__device__ inline std::uint32_t cluster_ctarank() {
  std::uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// CTAs in the cluster; 1 without clusters.
__device__ inline std::uint32_t cluster_nctarank() {
  std::uint32_t count;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
  return count;
}

/// Number of the cluster in the grid along x, and how many there are.
__device__ inline std::uint32_t clusterid_x() {
  std::uint32_t id;
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(id));
  return id;
}
__device__ inline std::uint32_t nclusterid_x() {
  std::uint32_t count;
  asm("mov.u32 %0, %%nclusterid.x;" : "=r"(count));
  return count;
}

/// The shared::cluster address of what lies at `address` (of this CTA) in the CTA of that rank.
__device__ inline std::uint32_t mapa_shared_cluster(std::uint32_t address, std::uint32_t rank) {
  std::uint32_t mapped;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

/// The same as a generic pointer.
template <class T>
__device__ inline T* mapa(T* pointer, std::uint32_t rank) {
  T* mapped;
  asm("mapa.u64 %0, %1, %2;" : "=l"(mapped) : "l"(pointer), "r"(rank));
  return mapped;
}

/// Reads a word of the shared memory of any CTA of the cluster, which must be running.
__device__ inline std::uint32_t ld_shared_cluster_u32(std::uint32_t address) {
  std::uint32_t word;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  return word;
}

/// The same for 8 and 16 aligned bytes.
__device__ inline float2 ld_shared_cluster_v2_f32(std::uint32_t address) {
  float2 v;
  asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];"
               : "=f"(v.x), "=f"(v.y)
               : "r"(address)
               : "memory");
  return v;
}
__device__ inline float4 ld_shared_cluster_v4_f32(std::uint32_t address) {
  float4 v;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

/// Writes 16 bytes, aligned, to the shared memory of any CTA of the cluster, which must be running.
__device__ inline void st_shared_cluster_v4_f32(std::uint32_t address, const float (&x)[4]) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(x[0]),
               "f"(x[1]), "f"(x[2]), "f"(x[3])
               : "memory");
}

/// The same for 4 bytes.
__device__ inline void st_shared_cluster_f32(std::uint32_t address, float x) {
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address), "f"(x) : "memory");
}

/// Arrives at the barrier of the cluster, with release at cluster scope. Every thread of every CTA
/// arrives once and waits before it arrives again. All lanes of a warp together.
__device__ inline void barrier_cluster_arrive_aligned() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

/// The same without release: for barriers that fence_mbarrier_init_release_cluster() has made
/// known, and nothing else. A release waits for all that the CTA has asked of memory.
__device__ inline void barrier_cluster_arrive_relaxed_aligned() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

/// Waits until all threads of the cluster have arrived, with acquire at cluster scope.
__device__ inline void barrier_cluster_wait_aligned() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ inline void cluster_sync() {
  barrier_cluster_arrive_aligned();
  barrier_cluster_wait_aligned();
}

}  // namespace tilewright::ptx
