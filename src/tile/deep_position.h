// A place in a ring of shared-memory stages whose number is known at the launch alone (ring.h has
// rings of a fixed number).
#pragma once

#include <cstdint>

namespace tilewright::tile {

/// One side's place in a ring whose length is known at the launch.
struct DeepPosition {
  std::uint32_t stage = 0, parity = 0;

  __device__ void advance(std::uint32_t stages) {
    const bool wraps = stage + 1 == stages;
    stage = wraps ? 0 : stage + 1;
    parity ^= wraps ? 1 : 0;
  }
};

}  // namespace tilewright::tile
