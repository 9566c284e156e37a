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

}  // namespace tilewright::ptx
