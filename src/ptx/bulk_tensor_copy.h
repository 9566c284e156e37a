// Tensor copies by tensor map (TMA). PTX ISA: "cp.async.bulk.tensor", "cp.async.bulk.commit_group",
// "cp.async.bulk.wait_group".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Copies the box of a 2-D tensor map that starts at element (x, y), x innermost, to shared memory.
/// Asynchronous, by the async proxy; the bytes are announced to `barrier` (complete_tx) when they
/// are visible. `x` must be a multiple of 16 bytes, else the GPU raises an illegal instruction;
/// either may be negative or past the end.
__device__ inline void cp_async_bulk_tensor_2d_shared_global(std::uint32_t destination,
                                                             const void* tensor_map, std::int32_t x,
                                                             std::int32_t y,
                                                             std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%2, %3}], "
      "[%4];" ::"r"(destination),
      "l"(tensor_map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}

/// The same for a 3-D map.
__device__ inline void cp_async_bulk_tensor_3d_shared_global(std::uint32_t destination,
                                                             const void* tensor_map, std::int32_t x,
                                                             std::int32_t y, std::int32_t z,
                                                             std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%2, %3, %4}], [%5];" ::"r"(destination),
      "l"(tensor_map), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}

/// The same for a 4-D map.
__device__ inline void cp_async_bulk_tensor_4d_shared_global(std::uint32_t destination,
                                                             const void* tensor_map, std::int32_t x,
                                                             std::int32_t y, std::int32_t z,
                                                             std::int32_t w,
                                                             std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%2, %3, %4, %5}], [%6];" ::"r"(destination),
      "l"(tensor_map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier)
      : "memory");
}

/// Copies the box to the same place in every CTA of the cluster whose bit is set in `cta_mask`, and
/// announces all its bytes to the barrier at the same place in each of them.
__device__ inline void cp_async_bulk_tensor_2d_shared_global_multicast(
    std::uint32_t destination, const void* tensor_map, std::int32_t x, std::int32_t y,
    std::uint32_t barrier, std::uint16_t cta_mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(destination),
      "l"(tensor_map), "r"(x), "r"(y), "r"(barrier), "h"(cta_mask)
      : "memory");
}

/// Copies a box from shared memory to the tensor; elements outside of it are not written. The bytes
/// must be visible to the async proxy (fence.proxy.async by their writers). Belongs to the bulk
/// group that this thread commits next.
__device__ inline void cp_async_bulk_tensor_2d_global_shared(const void* tensor_map, std::int32_t x,
                                                             std::int32_t y, std::uint32_t source) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
          tensor_map),
      "r"(x), "r"(y), "r"(source)
      : "memory");
}

/// The same for a 3-D map.
__device__ inline void cp_async_bulk_tensor_3d_global_shared(const void* tensor_map, std::int32_t x,
                                                             std::int32_t y, std::int32_t z,
                                                             std::uint32_t source) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(
          tensor_map),
      "r"(x), "r"(y), "r"(z), "r"(source)
      : "memory");
}

/// The same for a 4-D map.
__device__ inline void cp_async_bulk_tensor_4d_global_shared(const void* tensor_map, std::int32_t x,
                                                             std::int32_t y, std::int32_t z,
                                                             std::int32_t w, std::uint32_t source) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4}], "
      "[%5];" ::"l"(tensor_map),
      "r"(x), "r"(y), "r"(z), "r"(w), "r"(source)
      : "memory");
}

/// Closes a group of this thread's stores since the last one.
__device__ inline void cp_async_bulk_commit_group() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Waits until at most Pending of this thread's groups still read shared memory, which may then be
/// written again; what they write need not be visible yet.
template <int Pending>
__device__ inline void cp_async_bulk_wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

/// Waits until at most Pending of this thread's groups are in flight.
template <int Pending>
__device__ inline void cp_async_bulk_wait_group() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(Pending) : "memory");
}

/// Brings the tensor map near, before the first copy needs it.
__device__ inline void prefetch_tensormap(const void* tensor_map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(tensor_map) : "memory");
}

}  // namespace tilewright::ptx
