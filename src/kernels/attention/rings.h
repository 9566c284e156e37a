// The shared memory of a warp-specialised attention kernel: rings of queries, keys and values.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/boxed_columns.h"
#include "tile/box.h"
#include "tile/ring.h"

#include <cstdint>

namespace tilewright::tile {

/// As many as of keys, unless C says otherwise.
template <class C>
constexpr int value_stages() {
  if constexpr (requires { C::kValueStages; }) return C::kValueStages;
  return C::kKvStages;
}

/// Queries have a ring per consumer warpgroup, keys and values one each: what a warpgroup has used
/// up can be filled again whatever the others do. C, the kernel's Config: Element, kHeadDim,
/// kValueDim, kKeys of a step, kConsumers, kQStages, kKvStages.
template <class C>
struct AttentionShared {
  using QBox = Box<kernels::kWarpgroupRows, 2 * kernels::boxed_columns(C::kHeadDim)>;
  using KBox = Box<C::kKeys, 2 * kernels::boxed_columns(C::kHeadDim)>;
  using VBox = Box<C::kKeys, 2 * kernels::boxed_columns(C::kValueDim)>;
  static constexpr int kQBytes = QBox::kBytes, kKBytes = KBox::kBytes, kVBytes = VBox::kBytes;

  std::uint8_t q[C::kQStages][C::kConsumers][kQBytes];
  std::uint8_t k[C::kKvStages][kKBytes];
  std::uint8_t v[value_stages<C>()][kVBytes];
  RingBarriers<C::kQStages> q_ring[C::kConsumers];
  RingBarriers<C::kKvStages> k_ring;
  RingBarriers<value_stages<C>()> v_ring;

  /// One thread. A warp of a consumer releases a stage with one arrival; keys and values have come
  /// with kv_arrivals.
  __device__ void initialise(std::uint32_t kv_arrivals = 1) {
    for (auto& ring : q_ring) ring.initialise(4);
    k_ring.initialise(4 * C::kConsumers, kv_arrivals);
    v_ring.initialise(4 * C::kConsumers, kv_arrivals);
  }
};

}  // namespace tilewright::tile
