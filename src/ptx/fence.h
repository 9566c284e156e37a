// Proxy fences. PTX ISA: "membar / fence".
#pragma once

namespace tilewright::ptx {

/// Makes this thread's ordinary accesses to shared memory visible to the async proxy (wgmma,
/// tcgen05 and bulk copies that read shared memory), and the other way round. Every thread that
/// wrote needs it, before the barrier.
__device__ inline void fence_proxy_async_shared_cta() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// The same for the shared memory of all CTAs of the cluster.
__device__ inline void fence_proxy_async_shared_cluster() {
  asm volatile("fence.proxy.async.shared::cluster;" ::: "memory");
}

/// Makes mbarrier initialisations visible to the cluster and to the async proxy.
__device__ inline void fence_mbarrier_init_release_cluster() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

}  // namespace tilewright::ptx
