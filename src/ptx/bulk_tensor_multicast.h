// Tensor copies to several CTAs of a cluster at once, of maps with more than two dimensions. PTX
// ISA: "cp.async.bulk.tensor", .multicast::cluster.
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Copies the box of a 4-D tensor map that starts at (x, y, z, w), x innermost, to the same place
/// in every CTA of the cluster whose bit is set in `cta_mask`, and announces all its bytes to the
/// barrier at the same place in each of them. Coordinates as in bulk_tensor_copy.h.
__device__ inline void cp_async_bulk_tensor_4d_shared_global_multicast(
    std::uint32_t destination, const void* tensor_map, std::int32_t x, std::int32_t y,
    std::int32_t z, std::int32_t w, std::uint32_t barrier, std::uint16_t cta_mask) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(destination),
      "l"(tensor_map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier), "h"(cta_mask)
      : "memory");
}

}  // namespace tilewright::ptx
