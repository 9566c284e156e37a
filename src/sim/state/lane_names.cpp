#include "sim/state/lane_names.h"

#include <bit>

#include <fmt/format.h>

namespace tilewright::sim {

std::string describe_lane_mask(std::uint32_t lanes) {
  if (lanes == kAllLanes) return "lanes 0-31";
  std::string out = std::popcount(lanes) == 1 ? "lane " : "lanes ";
  for (int lane = 0; lane < kLanes;) {
    if ((lanes >> lane & 1) == 0) {
      ++lane;
      continue;
    }
    int end = lane;
    while (end + 1 < kLanes && (lanes >> (end + 1) & 1) != 0) ++end;
    if (out.back() != ' ') out += ',';
    out += end == lane ? fmt::format("{}", lane) : fmt::format("{}-{}", lane, end);
    lane = end + 1;
  }
  return out;
}

std::string describe_warps(const std::vector<std::uint32_t>& warps) {
  std::uint32_t mask = 0;
  for (const std::uint32_t warp : warps) mask |= 1U << warp;
  return "warp" + describe_lane_mask(mask).substr(std::string_view("lane").size());
}

std::string describe_lanes(const Warp& warp, std::uint32_t lanes) {
  const Dim3& cta = warp.cta->index;
  return fmt::format("CTA ({},{},{}) warp {} {}", cta.x, cta.y, cta.z, warp.index,
                     describe_lane_mask(lanes));
}

}  // namespace tilewright::sim
