#include "sim/exec/random_timing.h"

#include "sim/state/code.h"

#include <algorithm>

namespace tilewright::sim {

namespace {

constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;

/// SplitMix64.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

/// The oldest wgmma that has not taken effect. Its group stays, empty in the end, until it is
/// waited for. Whether there was one.
bool run_oldest_wgmma(Warp& warp) {
  const auto group = std::ranges::find_if(warp.tensor_groups,
                                          [](const auto& pending) { return !pending.empty(); });
  if (group == warp.tensor_groups.end()) return false;
  const std::uint32_t pc = warp.pc;
  // A fault is one of that instruction.
  warp.pc = static_cast<std::uint32_t>(group->front().insn - warp.grid->code->insns.data());
  group->front().apply();
  warp.pc = pc;
  group->erase(group->begin());
  return true;
}

}  // namespace

std::uint64_t random_start(std::uint64_t seed, std::uint64_t cluster_idx) {
  return mix(mix(seed + kStep) + cluster_idx * kStep);
}

std::uint32_t random_below(Cluster& cluster, std::uint32_t bound) {
  cluster.random_state += kStep;
  return static_cast<std::uint32_t>((mix(cluster.random_state) >> 32) * bound >> 32);
}

bool run_pending(Cluster& cluster) {
  auto& pending = cluster.pending;
  if (pending.empty()) return false;
  const std::uint32_t which =
      is_random(*cluster.grid) ? random_below(cluster, static_cast<std::uint32_t>(pending.size()))
                               : 0;
  const auto at = pending.begin() + which;
  const std::function<void()> work = std::move(*at);
  pending.erase(at);
  work();
  ++cluster.num_async_done;
  return true;
}

void run_some_wgmmas(Warp& warp) {
  while (random_below(*warp.cta->cluster, 3) == 0) {
    if (!run_oldest_wgmma(warp)) return;
  }
}

void run_some_pending(Cluster& cluster, Warp& warp) {
  // Each time anything from nothing to all of it can happen.
  while (!cluster.pending.empty() && random_below(cluster, 2) != 0) run_pending(cluster);
  while (!warp.tensor_groups.empty() && random_below(cluster, 2) != 0) {
    if (!run_oldest_wgmma(warp)) return;
  }
}

}  // namespace tilewright::sim
