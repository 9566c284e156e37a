#include "sim/async/named_barrier.h"

#include "base/error.h"

#include <bit>

namespace tilewright::sim {

namespace {

constexpr std::uint32_t kWarpThreads = 32;

std::string warp_list(std::uint32_t warps) {
  std::string text;
  for (std::uint32_t w = 0; w < kMaxWarpsOfCta; ++w) {
    if ((warps >> w & 1) != 0) text += fmt::format(" {}", w);
  }
  return text.empty() ? " none" : text;
}

std::string explain(BarrierError error, const BarrierArrival& arrival, std::uint32_t count,
                    const std::string& state) {
  switch (error) {
    case BarrierError::kNone:
      return {};
    case BarrierError::kIdRange:
      return fmt::format("barrier {}: there are {}, from 0", arrival.id, kNumNamedBarriers);
    case BarrierError::kCountMultiple:
      return fmt::format("barrier {}: warp {} gives {} threads; expected a multiple of 32",
                         arrival.id, arrival.warp, count);
    case BarrierError::kCountMismatch:
      return fmt::format("{}; warp {} gives {} threads, the ones before it gave another number",
                         state, arrival.warp, count);
    case BarrierError::kArrivedTwice:
      return fmt::format("{}; warp {} comes again before the others have", state, arrival.warp);
    case BarrierError::kTooMany:
      return fmt::format("{}; warp {} is more than the {} threads", state, arrival.warp, count);
  }
  return {};
}

}  // namespace

NamedBarriers::NamedBarriers(std::uint32_t num_threads)
    : num_warps_((num_threads + kWarpThreads - 1) / kWarpThreads) {
  require(num_threads >= 1 && num_warps_ <= kMaxWarpsOfCta, ErrorKind::kInternal,
          "NamedBarriers: {} threads; expected 1 to 1024", num_threads);
  for (std::uint32_t w = 0; w < num_warps_; ++w) {
    const std::uint32_t left = num_threads - w * kWarpThreads;
    live_[w] = left >= kWarpThreads ? 0xffffffff : (1u << left) - 1;
  }
}

BarrierError NamedBarriers::check(const BarrierArrival& arrival, std::uint32_t count) const {
  if (arrival.id >= kNumNamedBarriers) return BarrierError::kIdRange;
  if (count == 0 || count % kWarpThreads != 0) return BarrierError::kCountMultiple;
  const Barrier& barrier = barriers_[arrival.id];
  if (barrier.arrived_warps == 0) return BarrierError::kNone;
  if ((barrier.waiting[arrival.warp] & arrival.lanes) != 0) return BarrierError::kArrivedTwice;
  return barrier.expected == count ? BarrierError::kNone : BarrierError::kCountMismatch;
}

BarrierResult NamedBarriers::arrive(const BarrierArrival& arrival) {
  const std::uint32_t count = arrival.count.value_or(num_warps_ * kWarpThreads);
  BarrierResult result;
  const auto refuse = [&](BarrierError error) {
    result.error = error;
    const bool has_state = error != BarrierError::kIdRange;
    result.problem = explain(error, arrival, count, has_state ? describe(arrival.id) : "");
    return result;
  };
  if (const BarrierError error = check(arrival, count); error != BarrierError::kNone) {
    return refuse(error);
  }
  Barrier& barrier = barriers_[arrival.id];
  const Barrier before = barrier;
  const std::uint32_t lanes = arrival.lanes & live_[arrival.warp];
  barrier.expected = count;
  // The barrier counts arrivals of any warp: bar.arrive and then bar.sync are two.
  std::uint32_t& arrived = barrier.arrived[arrival.warp];
  if ((arrived & lanes) != 0) {
    barrier.repeated_threads += counted(arrival.warp, arrived);
    arrived = 0;
  }
  arrived |= lanes;
  barrier.arrived_warps |= 1u << arrival.warp;
  if (arrived_threads(barrier) > count) {
    barrier = before;
    return refuse(BarrierError::kTooMany);
  }
  if (arrival.is_waiting) barrier.waiting[arrival.warp] |= lanes;
  const std::uint32_t true_lanes = arrival.predicates & lanes;
  barrier.reduction.popc += static_cast<std::uint32_t>(std::popcount(true_lanes));
  barrier.reduction.all = barrier.reduction.all && true_lanes == lanes;
  barrier.reduction.any = barrier.reduction.any || true_lanes != 0;

  result.generation = barrier.generation;
  result.is_released = is_complete(barrier);
  if (result.is_released) {
    result.reduction = barrier.reduction;
    result.released_warps = release(barrier);
  }
  return result;
}

BarrierReleases NamedBarriers::exit(std::uint32_t warp, std::uint32_t lanes) {
  live_[warp] &= ~lanes;
  BarrierReleases releases;
  for (std::uint32_t i = 0; i < kNumNamedBarriers; ++i) {
    Barrier& barrier = barriers_[i];
    if (barrier.arrived_warps == 0 || !is_complete(barrier)) continue;
    releases.barriers |= 1u << i;
    releases.reductions[i] = barrier.reduction;
    releases.warps[i] = release(barrier);
  }
  return releases;
}

std::uint32_t NamedBarriers::counted(std::uint32_t warp, std::uint32_t lanes) const {
  const bool is_whole = (live_[warp] & ~lanes) == 0;
  return is_whole ? kWarpThreads : static_cast<std::uint32_t>(std::popcount(lanes));
}

std::uint32_t NamedBarriers::arrived_threads(const Barrier& barrier) const {
  std::uint32_t threads = barrier.repeated_threads;
  for (std::uint32_t w = 0; w < num_warps_; ++w) {
    if ((barrier.arrived_warps >> w & 1) == 0) continue;
    threads += counted(w, barrier.arrived[w]);
  }
  return threads;
}

bool NamedBarriers::is_complete(const Barrier& barrier) const {
  const std::uint32_t arrived = arrived_threads(barrier);
  if (arrived >= barrier.expected) return true;
  std::uint32_t exited = 0;
  for (std::uint32_t w = 0; w < num_warps_; ++w) {
    // It may still come; also a second time, if it did not wait.
    if ((live_[w] & ~barrier.waiting[w]) != 0) return false;
    if (live_[w] == 0 && (barrier.arrived_warps >> w & 1) == 0) exited += kWarpThreads;
  }
  return arrived + exited >= barrier.expected;
}

std::uint32_t NamedBarriers::release(Barrier& barrier) {
  std::uint32_t warps = 0;
  for (std::uint32_t w = 0; w < num_warps_; ++w) {
    if (barrier.waiting[w] != 0) warps |= 1u << w;
  }
  const std::uint32_t generation = barrier.generation + 1;
  barrier = Barrier{};
  barrier.generation = generation;
  return warps;
}

std::string NamedBarriers::describe(std::uint32_t id) const {
  const Barrier& barrier = barriers_[id];
  if (barrier.arrived_warps == 0) return fmt::format("barrier {}: idle", id);
  std::uint32_t waiting = 0;
  for (std::uint32_t w = 0; w < num_warps_; ++w) {
    if (barrier.waiting[w] != 0) waiting |= 1u << w;
  }
  return fmt::format("barrier {}: {} of {} threads arrived (warps{}), waiting: warps{}", id,
                     arrived_threads(barrier), barrier.expected, warp_list(barrier.arrived_warps),
                     warp_list(waiting));
}

}  // namespace tilewright::sim
