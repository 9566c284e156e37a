#include "sim/state/waits.h"

#include "sim/async/mbarrier.h"
#include "sim/tensor/tensor_memory.h"

#include <algorithm>

namespace tilewright::sim {

namespace {

bool has_warpgroup_reached(const Warp& warp, std::uint64_t Warp::*count, std::uint64_t least) {
  const std::vector<Warp>& warps = warp.cta->warps;
  const std::size_t first = warp.index / 4 * 4;
  for (std::size_t w = first; w < std::min(first + 4, warps.size()); ++w) {
    if (warps[w].live != 0 && warps[w].*count < least) return false;
  }
  return true;
}

}  // namespace

bool has_warpgroup_committed(const Warp& warp, std::uint64_t num_groups) {
  return has_warpgroup_reached(warp, &Warp::num_tensor_commits, num_groups);
}

bool has_warpgroup_come(const Warp& warp, std::uint64_t num_wgmmas) {
  return has_warpgroup_reached(warp, &Warp::num_wgmmas, num_wgmmas);
}

std::uint64_t registers_missing(const Warp& warp, std::uint64_t registers_per_thread) {
  return (registers_per_thread - warp.num_registers) * kLanes;
}

bool is_over(const Warp& warp, const Wait& wait) {
  switch (wait.kind) {
    case WaitKind::kNamedBarrier:
      return warp.cta->barriers->generation(static_cast<std::uint32_t>(wait.a)) != wait.b;
    case WaitKind::kClusterBarrier:
      return warp.cta->cluster->barrier->generation() != wait.b;
    case WaitKind::kMbarrier: {
      const auto offset = static_cast<std::uint32_t>(wait.a) & ((1U << kSharedRankShift) - 1);
      const MbarrierWait test =
          mbarrier_test_wait_parity(warp.shared + offset, static_cast<std::uint32_t>(wait.b));
      return test.is_complete || test.error != MbarrierError::kNone;
    }
    case WaitKind::kWarpgroup:
      return has_warpgroup_committed(warp, wait.b);
    case WaitKind::kWgmma:
      return has_warpgroup_come(warp, wait.b);
    case WaitKind::kAsync:
      return warp.cta->cluster->num_async_done != wait.b;
    case WaitKind::kColumns: {
      std::uint64_t version = warp.cta->tensor_memory->version();
      if (wait.a != 0) {
        version += warp.cta->cluster->ctas[warp.cta->rank ^ 1]->tensor_memory->version();
      }
      return version != wait.b;
    }
    case WaitKind::kRegisters:
      return warp.cta->free_registers >= registers_missing(warp, wait.a);
    default:
      return true;  // asked again by the instruction itself
  }
}

}  // namespace tilewright::sim
