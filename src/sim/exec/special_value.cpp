#include "sim/exec/special_value.h"

namespace tilewright::sim {

namespace {

std::uint32_t component_of(const Dim3& dim, std::uint8_t component) {
  return component == 0 ? dim.x : component == 1 ? dim.y : dim.z;
}

/// Of those with components x, y and z.
Dim3 coordinates(const Warp& warp, SpecialRegister which, int lane) {
  const Cta& cta = *warp.cta;
  const Launch& launch = *warp.grid->launch;
  switch (which) {
    case SpecialRegister::kTid:
      return index_of(warp.index * 32ULL + static_cast<unsigned>(lane), launch.block);
    case SpecialRegister::kNtid:
      return launch.block;
    case SpecialRegister::kCtaid:
      return cta.index;
    case SpecialRegister::kNctaid:
      return launch.grid;
    case SpecialRegister::kClusterid:
      return divide(cta.index, launch.cluster);
    case SpecialRegister::kNclusterid:
      return divide(launch.grid, launch.cluster);
    case SpecialRegister::kClusterCtaid:
      return index_of(cta.rank, launch.cluster);
    default:
      return launch.cluster;  // %cluster_nctaid
  }
}

/// %lanemask_lt and its kin.
std::uint32_t lane_mask(SpecialRegister which, int lane) {
  const std::uint32_t one = 1U << lane;
  switch (which) {
    case SpecialRegister::kLanemaskLt:
      return one - 1;
    case SpecialRegister::kLanemaskLe:
      return one | (one - 1);
    case SpecialRegister::kLanemaskGt:
      return ~(one | (one - 1));
    case SpecialRegister::kLanemaskGe:
      return ~(one - 1);
    default:
      return one;
  }
}

}  // namespace

std::uint64_t special_value(const Warp& warp, const SpecialRow& special, int lane) {
  const Cta& cta = *warp.cta;
  const Launch& launch = *warp.grid->launch;
  const std::uint8_t c = special.component;
  switch (special.which) {
    case SpecialRegister::kTid:
    case SpecialRegister::kNtid:
    case SpecialRegister::kCtaid:
    case SpecialRegister::kNctaid:
    case SpecialRegister::kClusterid:
    case SpecialRegister::kNclusterid:
    case SpecialRegister::kClusterCtaid:
    case SpecialRegister::kClusterNctaid:
      return component_of(coordinates(warp, special.which, lane), c);
    case SpecialRegister::kClusterCtarank:
      return cta.rank;
    case SpecialRegister::kClusterNctarank:
      return launch.cluster.count();
    case SpecialRegister::kIsExplicitCluster:
      return launch.cluster.count() > 1;
    case SpecialRegister::kEnvreg:
      if (c == 1) return warp.grid->workspace_address >> 32;
      return c == 2 ? warp.grid->workspace_address & 0xffffffff : 0;
    case SpecialRegister::kLaneid:
      return static_cast<unsigned>(lane);
    case SpecialRegister::kWarpid:
      return warp.index;
    case SpecialRegister::kNwarpid:
      return cta.warps.size();
    case SpecialRegister::kSmid:
      return cta.linear_index % warp.grid->device->num_sms;
    case SpecialRegister::kNsmid:
      return warp.grid->device->num_sms;
    case SpecialRegister::kGridid:
      return warp.grid->id;
    case SpecialRegister::kLanemaskEq:
    case SpecialRegister::kLanemaskLt:
    case SpecialRegister::kLanemaskLe:
    case SpecialRegister::kLanemaskGt:
    case SpecialRegister::kLanemaskGe:
      return lane_mask(special.which, lane);
    case SpecialRegister::kTotalSmemSize:
    case SpecialRegister::kAggrSmemSize:
      return cta.shared_bytes;
    case SpecialRegister::kDynamicSmemSize:
      return launch.dynamic_shared_bytes;
    case SpecialRegister::kReservedSmemOffsetEnd:
    case SpecialRegister::kReservedSmemOffsetCap:
      return kSharedReservedBytes;
    default:
      return 0;
  }
}

}  // namespace tilewright::sim
