#include "sim/async/cluster_barrier.h"

#include <bit>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr std::uint32_t kLanesPerWarp = 32;

}  // namespace

const char* to_string(ClusterBarrierError error) noexcept {
  switch (error) {
    case ClusterBarrierError::kNone:
      return "has no error";
    case ClusterBarrierError::kArrivedTwice:
      return "arrives again without having waited";
    case ClusterBarrierError::kWaitWithoutArrive:
      return "waits without having arrived";
  }
  return "?";
}

ClusterBarrier::ClusterBarrier(std::uint32_t num_ctas, std::uint32_t num_threads_per_cta)
    : num_ctas_(num_ctas),
      num_warps_((num_threads_per_cta + kLanesPerWarp - 1) / kLanesPerWarp),
      num_missing_(std::uint64_t{num_ctas} * num_threads_per_cta),
      warps_(std::size_t{num_ctas} * num_warps_) {
  for (std::size_t i = 0; i < warps_.size(); ++i) {
    const auto warp = static_cast<std::uint32_t>(i % num_warps_);
    const std::uint32_t left = num_threads_per_cta - warp * kLanesPerWarp;
    warps_[i].live = left >= kLanesPerWarp ? 0xffffffff : (1u << left) - 1;
  }
}

ClusterBarrier::Result ClusterBarrier::arrive(std::uint32_t cta, std::uint32_t warp,
                                              std::uint32_t lanes) {
  Warp& w = warp_of(cta, warp);
  lanes &= w.live;
  if ((w.owing & lanes) != 0) return {ClusterBarrierError::kArrivedTwice, false};
  w.arrived |= lanes;
  w.owing |= lanes;
  const auto num_lanes = static_cast<std::uint64_t>(std::popcount(lanes));
  num_missing_ -= num_lanes;
  num_arrived_ += num_lanes;
  return {ClusterBarrierError::kNone, complete_if_all()};
}

ClusterBarrier::Result ClusterBarrier::wait(std::uint32_t cta, std::uint32_t warp,
                                            std::uint32_t lanes) {
  Warp& w = warp_of(cta, warp);
  lanes &= w.live;
  if ((lanes & ~w.owing) != 0) return {ClusterBarrierError::kWaitWithoutArrive, false};
  if ((lanes & w.arrived) != 0) return {};
  w.owing &= ~lanes;
  return {ClusterBarrierError::kNone, true};
}

ClusterBarrier::Result ClusterBarrier::exit(std::uint32_t cta, std::uint32_t warp,
                                            std::uint32_t lanes) {
  Warp& w = warp_of(cta, warp);
  lanes &= w.live;
  w.live &= ~lanes;
  num_missing_ -= static_cast<std::uint64_t>(std::popcount(lanes & ~w.arrived));
  return {ClusterBarrierError::kNone, complete_if_all()};
}

bool ClusterBarrier::complete_if_all() {
  // Nobody arrived: the last threads left, and there is nothing to complete.
  if (num_missing_ != 0 || num_arrived_ == 0) return false;
  for (Warp& w : warps_) {
    w.arrived = 0;
    num_missing_ += static_cast<std::uint64_t>(std::popcount(w.live));
  }
  num_arrived_ = 0;
  ++generation_;
  return true;
}

std::string ClusterBarrier::describe() const {
  std::string missing;
  for (std::uint32_t cta = 0; cta < num_ctas_; ++cta) {
    std::string warps;
    for (std::uint32_t i = 0; i < num_warps_; ++i) {
      const Warp& w = warps_[cta * num_warps_ + i];
      if ((w.live & ~w.arrived) != 0) warps += fmt::format(" {}", i);
    }
    if (warps.empty()) continue;
    missing += fmt::format("{}CTA {} warps{}", missing.empty() ? "" : ", ", cta, warps);
  }
  return fmt::format("cluster barrier: {} of {} threads arrived, missing: {}", num_arrived_,
                     num_arrived_ + num_missing_, missing.empty() ? "none" : missing);
}

}  // namespace tilewright::sim
