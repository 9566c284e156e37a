// Tensor copies of rows that are not neighbours. PTX ISA: "cp.async.bulk.tensor", load mode
// ".tile::gather4".
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// Copies four rows of a 2-D tensor map whose box is one row, from column x on, one after another
/// to shared memory. A row outside of the tensor gives zeros, as negative ones do. Asynchronous, by
/// the async proxy; the bytes of all four are announced to `barrier`.
__device__ inline void cp_async_bulk_tensor_2d_gather4(std::uint32_t destination,
                                                       const void* tensor_map, std::int32_t x,
                                                       const std::int32_t (&rows)[4],
                                                       std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(destination),
      "l"(tensor_map), "r"(x), "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(barrier)
      : "memory");
}

/// With CtaGroup 1 the same; with 2, `barrier` may be the shared::cluster address of one in the
/// other CTA of the pair (bulk_tensor_copy_pair.h).
template <int CtaGroup>
__device__ inline void cp_async_bulk_tensor_2d_gather4_cta_group(std::uint32_t destination,
                                                                 const void* tensor_map,
                                                                 std::int32_t x,
                                                                 const std::int32_t (&rows)[4],
                                                                 std::uint32_t barrier) {
  if constexpr (CtaGroup == 1) {
    cp_async_bulk_tensor_2d_gather4(destination, tensor_map, x, rows, barrier);
  } else {
    asm volatile(
        "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile::gather4.mbarrier"
        "::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(destination),
        "l"(tensor_map), "r"(x), "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]),
        "r"(barrier)
        : "memory");
  }
}

}  // namespace tilewright::ptx
