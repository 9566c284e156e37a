// What a block-scaled weight is made of.
#pragma once

#include "tilewright/block_scaled_linear.h"

#include "device/memory.h"

namespace tilewright {

struct BlockScaledWeight::State {
  Device handle;  // keeps the device open
  BlockScaledWeightInfo info;
  device::Buffer values;  ///< rows of row_bytes
  device::Buffer scales;  ///< 128x4 order, padding of zeros
  std::int64_t row_bytes;
  float global_scale;  ///< 1 if the format has none
};

}  // namespace tilewright
