#include "ops/linear_blackwell/few_tokens.h"

#include "ops/block_scaled_linear/kernels.h"
#include "ops/linear/problem.h"
#include "ops/operator/ceil_div.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::ops {

namespace {

constexpr int kRowsOfFew = 128;

}  // namespace

FewTokensShape::FewTokensShape(const kernels::BlockScaledConfig& config,
                               const LinearWeightInfo& weight, const LinearProblem& p) noexcept
    : tiles_m(ceil_div(weight.n, kRowsOfFew)),
      tiles_n(ceil_div(p.m, config.tile.n)),
      tile_columns(static_cast<int>(std::min<std::int64_t>(ceil_div(p.m, 16) * 16, config.tile.n))),
      steps_(ceil_div(weight.k, config.step_k())),
      bytes_(linear_bytes(weight, p)) {}

FewTokensShape::Split FewTokensShape::choose_split(
    const device::DeviceInfo& device) const noexcept {
  constexpr double kPortBytes = 64, kLaunchUs = 3, kFillUs = 0.5, kClusterUs = 0.1;
  const double columns = tile_columns;
  const double step_clocks = (kRowsOfFew + columns) * kernels::kBlockScaledStepBytes / kPortBytes;
  const double memory_us = bytes_ / memory_bytes_per_us(device);
  Split best = {1, std::numeric_limits<double>::infinity()};
  for (const int ctas : {1, 2, 4, 8}) {
    if (ctas > steps_) break;
    const double at_once = resident_clusters(device, static_cast<std::uint32_t>(ctas));
    const double waves = std::ceil(static_cast<double>(tiles_m * tiles_n) / at_once);
    const double sums = 2 * columns * kRowsOfFew * 4 / kPortBytes;
    const double clocks = static_cast<double>(ceil_div(steps_, ctas)) * step_clocks + sums;
    const double us = kLaunchUs + std::max(memory_us, waves * clocks / (1e-3 * device.clock_khz)) +
                      kFillUs * waves + kClusterUs * ctas;
    if (us < best.us) best = {ctas, us};
  }
  return best;
}

}  // namespace tilewright::ops
