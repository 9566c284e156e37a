// What the kernels of a Mixture-of-Experts layer reach on an H200: what plan() chooses by.
#pragma once

#include "ops/moe_plan.h"

namespace tilewright::ops {

struct MoeRates {
  double bytes_per_s, flops_per_s;
  int granule;         ///< tokens of an expert are padded to a multiple of it
  int tile_tokens;     ///< of one pass over an expert's weights
  bool rereads;        ///< weights come from memory again for the next tile
  double moved_bytes;  ///< per element of a gathered row, beside what every kernel moves
  double fixed_us;
};

/// Estimates, from the floors of 4.3 TB/s, 790 (bf16) and 1600 TFLOP/s (FP8).
constexpr MoeRates moe_rates(MoeKernel kernel) {
  switch (kernel) {
    case MoeKernel::kBand:
      return {3.5e12, 330e12, 8, 64, false, 0, 8};
    case MoeKernel::kWide:
      return {3.0e12, 600e12, 32, 256, false, 2, 14};
    default:
      return {3.0e12, 1100e12, 64, 128, false, 2, 16};
  }
}

}  // namespace tilewright::ops
