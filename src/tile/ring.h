// A ring of shared-memory stages between one producer thread and consumer warps: a stage is full
// when its bytes have landed, empty when every consumer warp has released it.
#pragma once

#include "ptx/address.h"
#include "ptx/mbarrier.h"

#include <cstdint>

namespace tilewright::tile {

/// The barriers of a ring, in shared memory.
template <int Stages>
struct RingBarriers {
  std::uint64_t full[Stages], empty[Stages];

  /// One thread, before the first barrier of the whole CTA. A stage is filled by
  /// one thread, or by warps, each of which arrives once.
  __device__ void initialise(std::uint32_t consumer_arrivals, std::uint32_t producer_arrivals = 1) {
    for (int i = 0; i < Stages; ++i) {
      ptx::mbarrier_init(ptx::shared_address(&full[i]), producer_arrivals);
      ptx::mbarrier_init(ptx::shared_address(&empty[i]), consumer_arrivals);
    }
  }
};

/// One side's place in a ring: the stage and the parity of the round it is in.
template <int Stages>
struct RingPosition {
  std::uint32_t stage = 0, parity = 0;

  __device__ void advance() {
    if constexpr (Stages == 1) {
      parity ^= 1;
    } else if constexpr (Stages == 2) {
      parity ^= stage;
      stage ^= 1;
    } else {
      stage = stage + 1 == Stages ? 0 : stage + 1;
      parity ^= stage == 0 ? 1 : 0;
    }
  }
};

template <int Stages>
struct Ring {
  std::uint32_t full_barriers, empty_barriers;  // shared addresses

  __device__ explicit Ring(RingBarriers<Stages>& barriers)
      : full_barriers(ptx::shared_address(barriers.full)),
        empty_barriers(ptx::shared_address(barriers.empty)) {}

  __device__ std::uint32_t full(RingPosition<Stages> at) const {
    return full_barriers + at.stage * 8;
  }
  __device__ std::uint32_t empty(RingPosition<Stages> at) const {
    return empty_barriers + at.stage * 8;
  }
  /// The producer: waits until the stage may be written; the first round of a ring is free.
  __device__ void wait_empty(RingPosition<Stages> at) const {
    ptx::mbarrier_wait_parity(empty_barriers + at.stage * 8, at.parity ^ 1);
  }
  /// The producer: waits until what it put at this position was released.
  __device__ void wait_released(RingPosition<Stages> at) const {
    ptx::mbarrier_wait_parity(empty_barriers + at.stage * 8, at.parity);
  }
  /// Waits until the stage may be written, and says how many bytes will come.
  __device__ void start_filling(RingPosition<Stages> at, std::uint32_t bytes) const {
    wait_empty(at);
    ptx::mbarrier_arrive_expect_tx(full(at), bytes);
  }
  /// A consumer thread: waits until the stage may be read.
  __device__ void wait_full(RingPosition<Stages> at) const {
    ptx::mbarrier_wait_parity(full(at), at.parity);
  }
  /// Every lane of a consumer warp, none of which reads the stage any more.
  __device__ void release(RingPosition<Stages> at) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(empty_barriers + at.stage * 8);
  }
};

}  // namespace tilewright::tile
