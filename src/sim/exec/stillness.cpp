#include "sim/exec/stillness.h"

#include "sim/state/code.h"

#include <algorithm>
#include <cstring>

namespace tilewright::sim {

namespace {

std::uint64_t mix(std::uint64_t sum, std::uint64_t word) {
  sum = (sum ^ word) * 0x9e3779b97f4a7c15;
  return sum ^ sum >> 29;
}

std::uint64_t fingerprint_of(std::uint64_t sum, const Warp& warp) {
  for (const LaneGroup& group : warp.groups) {
    sum = mix(sum, std::uint64_t{group.pc} << 32 | group.lanes);
    sum = mix(sum, group.wait.a * 31 + group.wait.b);
  }
  const std::uint32_t bytes = warp.grid->code->register_bytes;
  for (std::uint32_t at = 0; at + 8 <= bytes; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, warp.registers + at, sizeof word);
    sum = mix(sum, word);
  }
  return sum;
}

}  // namespace

bool Stillness::has_stopped(const std::vector<std::unique_ptr<Cluster>>& clusters) {
  constexpr std::uint32_t kRoundsApart = 16, kTimesEqual = 3;
  // Well below a second of the host's time, whatever the number of warps.
  constexpr std::uint32_t kMostPolls = 250'000, kFewestRounds = 250, kMostRounds = 100'000;
  if (++num_rounds_ % kRoundsApart != 0) return false;
  std::uint64_t now = 0;
  std::uint32_t num_live = 0;
  for (const auto& cluster : clusters) {
    for (const auto& cta : cluster->ctas) {
      for (const Warp& warp : cta->warps) {
        now = fingerprint_of(now, warp);
        num_live += warp.groups.empty() ? 0 : 1;
      }
    }
  }
  num_equal_ = now == fingerprint_ && num_rounds_ != kRoundsApart ? num_equal_ + 1 : 0;
  fingerprint_ = now;
  const std::uint32_t limit =
      std::clamp(kMostPolls / std::max(1U, num_live), kFewestRounds, kMostRounds);
  return num_equal_ == kTimesEqual || num_rounds_ > limit;
}

}  // namespace tilewright::sim
