#include "sim/check/stop.h"

#include "sim/async/cluster_barrier.h"
#include "sim/async/mbarrier.h"
#include "sim/async/named_barrier.h"
#include "sim/program/engine.h"

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

std::string check_of(const FaultError& error, const Insn& insn) {
  switch (error.kind()) {
    case FaultKind::kIllegalAddress:
    case FaultKind::kMisalignedAddress:
    case FaultKind::kInvalidAddressSpace:
      return "mem";
    case FaultKind::kClusterBlockNotPresent:
    case FaultKind::kDeadlock:
    case FaultKind::kFinding:
      return "sync";
    case FaultKind::kIllegalInstruction:
      return (insn.flags & kBarrier) != 0 ? "sync" : "mem";
    default:
      return "";
  }
}

/// "CTA (0,1,0) warp 2 lanes 0-15" without the CTA and warp.
std::string lanes_of(const Warp& warp, std::uint32_t lanes) {
  const std::string all = describe_lanes(warp, lanes);
  return all.substr(all.rfind("lane"));
}

std::string wait_text(const Cta& cta, const Warp& warp, const LaneGroup& group) {
  const Insn& insn = warp.grid->code->insns[group.pc];
  switch (group.wait.kind) {
    case WaitKind::kWarpSync: {
      const std::uint32_t missing =
          static_cast<std::uint32_t>(group.wait.a) & warp.live & ~group.lanes;
      if ((insn.flags & kAligned) != 0) {
        return fmt::format("waits (.aligned, executed divergently: {} are elsewhere)",
                           lanes_of(warp, missing));
      }
      return fmt::format("waits for {} of its warp", lanes_of(warp, missing));
    }
    case WaitKind::kNamedBarrier:
      return "waits: " + cta.barriers->describe(static_cast<std::uint32_t>(group.wait.a));
    case WaitKind::kClusterBarrier:
      return "waits: " + cta.cluster->barrier->describe();
    case WaitKind::kMbarrier: {
      const auto offset = static_cast<std::uint32_t>(group.wait.a) & ((1U << kSharedRankShift) - 1);
      return fmt::format("waits for phase parity {} of the mbarrier at shared {:#x} ({}),",
                         group.wait.b, group.wait.a, mbarrier_describe(cta.shared + offset));
    }
    case WaitKind::kAsync:
      return "waits for asynchronous work of its own";
    case WaitKind::kWarpgroup:
      return "waits for a group of wgmma that not all four warps of the warpgroup have committed";
    case WaitKind::kRegisters:
      return "waits for registers of other warps";
    default:
      return "polls memory";
  }
}

}  // namespace

Finding finding_of(const Warp& warp, const FaultError& error) {
  const KernelCode& code = *warp.grid->code;
  const Insn& insn = code.insns[warp.pc];
  const std::uint32_t lanes = error.lanes() != 0 ? error.lanes() : warp.group_lanes;
  Finding out;
  out.check = check_of(error, insn);
  out.kernel = code.info.name;
  out.what = error.what();
  out.places.push_back(place_of(warp, insn, lanes, "executed"));
  return out;
}

Finding deadlock_of(const std::vector<std::unique_ptr<Cluster>>& clusters) {
  constexpr std::size_t kMostPlaces = 24;
  Finding out;
  out.check = "sync";
  out.kernel = clusters.front()->grid->code->info.name;
  out.what = "deadlock: nothing can go on";
  std::size_t num_left_out = 0;
  for (const auto& cluster : clusters) {
    for (const auto& cta : cluster->ctas) {
      for (const Warp& warp : cta->warps) {
        for (const LaneGroup& group : warp.groups) {
          if (out.places.size() == kMostPlaces) {
            ++num_left_out;
            continue;
          }
          const Insn& insn = warp.grid->code->insns[group.pc];
          out.places.push_back(place_of(warp, insn, group.lanes, wait_text(*cta, warp, group)));
        }
      }
    }
  }
  if (num_left_out != 0) out.missing = fmt::format("and {} more groups of lanes", num_left_out);
  return out;
}

}  // namespace tilewright::sim
