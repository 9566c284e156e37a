// Tensor copies of a pair of CTAs: the data go to this CTA, the bytes are announced to a barrier of
// either CTA of the pair. PTX ISA: "cp.async.bulk.tensor" with .cta_group.
#pragma once

#include "ptx/bulk_tensor_copy.h"

#include <cstdint>

namespace tilewright::ptx {

/// cp_async_bulk_tensor_2d_shared_global() with CtaGroup 1; with 2, `barrier` may be the
/// shared::cluster address of one in the other CTA of the pair.
template <int CtaGroup>
__device__ inline void cp_async_bulk_tensor_2d_cta_group(std::uint32_t destination,
                                                         const void* tensor_map, std::int32_t x,
                                                         std::int32_t y, std::uint32_t barrier) {
  if constexpr (CtaGroup == 1) {
    cp_async_bulk_tensor_2d_shared_global(destination, tensor_map, x, y, barrier);
  } else {
    asm volatile(
        "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx"
        "::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(destination),
        "l"(tensor_map), "r"(x), "r"(y), "r"(barrier)
        : "memory");
  }
}

/// The same for a 3-D map.
template <int CtaGroup>
__device__ inline void cp_async_bulk_tensor_3d_cta_group(std::uint32_t destination,
                                                         const void* tensor_map, std::int32_t x,
                                                         std::int32_t y, std::int32_t z,
                                                         std::uint32_t barrier) {
  if constexpr (CtaGroup == 1) {
    cp_async_bulk_tensor_3d_shared_global(destination, tensor_map, x, y, z, barrier);
  } else {
    asm volatile(
        "cp.async.bulk.tensor.3d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx"
        "::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(destination),
        "l"(tensor_map), "r"(x), "r"(y), "r"(z), "r"(barrier)
        : "memory");
  }
}

/// The same for a 4-D map.
template <int CtaGroup>
__device__ inline void cp_async_bulk_tensor_4d_cta_group(std::uint32_t destination,
                                                         const void* tensor_map, std::int32_t x,
                                                         std::int32_t y, std::int32_t z,
                                                         std::int32_t w, std::uint32_t barrier) {
  if constexpr (CtaGroup == 1) {
    cp_async_bulk_tensor_4d_shared_global(destination, tensor_map, x, y, z, w, barrier);
  } else {
    asm volatile(
        "cp.async.bulk.tensor.4d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx"
        "::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(destination),
        "l"(tensor_map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier)
        : "memory");
  }
}

/// For pairs of CTAs: the box to the same place in every CTA of the cluster whose bit is set. Each
/// announces all its bytes to the barrier at the place of `barrier` in its own pair, in the CTA
/// whose parity is that of the CTA that holds `barrier`.
__device__ inline void cp_async_bulk_tensor_2d_cta_group_2_multicast(std::uint32_t destination,
                                                                     const void* tensor_map,
                                                                     std::int32_t x, std::int32_t y,
                                                                     std::uint32_t barrier,
                                                                     std::uint16_t cta_mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx"
      "::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(destination),
      "l"(tensor_map), "r"(x), "r"(y), "r"(barrier), "h"(cta_mask)
      : "memory");
}

/// The same for a 3-D map.
__device__ inline void cp_async_bulk_tensor_3d_cta_group_2_multicast(
    std::uint32_t destination, const void* tensor_map, std::int32_t x, std::int32_t y,
    std::int32_t z, std::uint32_t barrier, std::uint16_t cta_mask) {
  asm volatile(
      "cp.async.bulk.tensor.3d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx"
      "::bytes.multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(destination),
      "l"(tensor_map), "r"(x), "r"(y), "r"(z), "r"(barrier), "h"(cta_mask)
      : "memory");
}

}  // namespace tilewright::ptx
