#include "ops/linear/slab_tile.h"

#include "ops/operator/ceil_div.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

using kernels::SlabParams;
using kernels::SlabTile;

// As many stages as there is room for, or blocks of K for a warp.
int slab_stages(const device::DeviceInfo& device, SlabTile tile, SlabParams sizes) {
  tile.stages = 0;
  const int fixed = static_cast<int>(tile.cut(sizes));
  const std::int64_t blocks = sizes.slots * ceil_div(sizes.all_blocks, tile.k_warps);
  const std::int64_t stages =
      (device.shared_per_block_optin_bytes - fixed) / (tile.warps() * (tile.stage_bytes() + 8));
  return std::clamp(static_cast<int>(std::min(stages, blocks)), 1, kSlabStages);
}

}  // namespace

std::string slab_obstacle(const LinearWeightInfo& w, std::int64_t m) {
  if (w.format != NumberFormat::kFp8 && w.format != NumberFormat::kBf16)
    return "is for FP8 and bf16 weights";
  if (m > SlabTile::kMaxTokens)
    return fmt::format("is for at most {} rows of x", SlabTile::kMaxTokens);
  return {};
}

SlabParams slab_sizes(const LinearWeightInfo& weight, std::int64_t m) {
  SlabParams sizes = {};
  sizes.m = static_cast<std::int32_t>(m);
  sizes.n = static_cast<std::int32_t>(weight.n / weight.groups);
  sizes.k = static_cast<std::int32_t>(weight.k);
  sizes.matrices = static_cast<std::int32_t>(weight.groups);
  return sizes;
}

std::int64_t slab_bytes(const SlabTile& tile, SlabParams sizes) {
  tile.cut(sizes);
  return std::int64_t{tile.teams} * sizes.slots * sizes.all_blocks * tile.stage_bytes();
}

SlabTile choose_slab_tile(const device::DeviceInfo& device, kernels::WeightFormat format,
                          const SlabParams& sizes, int most_ctas, std::span<const int> bricks) {
  const std::int64_t blocks = ceil_div(sizes.k, kernels::kBrickK);
  const std::int64_t all_bricks = ceil_div(sizes.n, kernels::kBrickRows);
  // Two blocks or more for a warp; those that are left over are another team.
  int k_warps = kSlabWarps;
  while (k_warps > 1 && 2 * k_warps > blocks) k_warps /= 2;
  const int teams = kSlabWarps / k_warps;
  SlabTile best = {};
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const int tall : bricks) {
    const std::int64_t units = sizes.matrices * ceil_div(all_bricks, tall);
    const std::int64_t slots = ceil_div(units, most_ctas * teams);
    const int ctas = static_cast<int>(ceil_div(units, slots * teams));
    const SlabTile tile = {format, tall, k_warps, teams, ctas, 1};
    const std::int64_t bytes = slab_bytes(tile, sizes);
    if (bytes >= least) continue;
    least = bytes;
    best = tile;
  }
  best.stages = slab_stages(device, best, sizes);
  return best;
}

std::uint32_t slab_shared_bytes(const device::DeviceInfo& device, std::uint32_t needed) noexcept {
  const int half = device.shared_per_sm_bytes / 2 - device.shared_per_block_reserved_bytes;
  return std::max(needed, static_cast<std::uint32_t>(half + 16));
}

}  // namespace tilewright::ops
