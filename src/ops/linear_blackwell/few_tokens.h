// Few tokens on Blackwell: the weight's rows by tokens, k divided among the CTAs of a cluster
// (kernels/linear/block_scaled/few_tokens.h).
#pragma once

#include "kernels/linear/block_scaled/sm100_block_scaled.h"
#include "ops/linear/kernel.h"

#include <cstdint>

namespace tilewright::ops {

/// Tiles of 128 rows of a weight by up to 64 tokens.
class FewTokensShape {
 public:
  /// `config` of the kernel.
  FewTokensShape(const kernels::BlockScaledConfig& config, const LinearWeightInfo& weight,
                 const LinearProblem& p) noexcept;

  std::int64_t tiles_m, tiles_n;
  int tile_columns;  ///< 16, 32, 48 or 64

  struct Split {
    int ctas;  ///< of a cluster: 1, 2, 4 or 8
    double us;
  };
  /// By count: the memory's bytes, or what arrives at the busiest SM, which takes longer than its
  /// products (a step's bytes at 64 a cycle against 128 for reading them).
  Split choose_split(const device::DeviceInfo& device) const noexcept;

 private:
  std::int64_t steps_;
  double bytes_;  ///< of the whole problem
};

}  // namespace tilewright::ops
