// What the .sync instructions with a mask of member lanes share.
#pragma once

#include "sim/event/observer.h"
#include "sim/state/warp.h"

#include <bit>

namespace tilewright::sim {

/// True if every live lane of the members that the active lanes name is here. Lanes that are here
/// but switched off by their guard count as here, as on the device. Otherwise the warp's wait is
/// set, and the instruction must return Step::kRetry.
inline bool have_members_met(Warp& warp, const Insn& insn, Row mask_row, std::uint32_t active) {
  const auto* masks = warp.row<std::uint32_t>(mask_row);
  std::uint32_t members = 0;
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    members |= masks[std::countr_zero(rest)];
  }
  members &= warp.live;
  if ((members & ~(active | warp.group_lanes)) != 0) {
    warp.wait = {WaitKind::kWarpSync, members, 0};
    return false;
  }
  if (warp.observer != nullptr) warp.observer->lanes_met(warp, insn, active);
  return true;
}

/// Calls body(lanes) for each set of active lanes that name the same members.
template <class Body>
void for_each_team(Warp& warp, Row mask_row, std::uint32_t active, Body body) {
  const auto* masks = warp.row<std::uint32_t>(mask_row);
  for (std::uint32_t rest = active; rest != 0;) {
    const std::uint32_t mask = masks[std::countr_zero(rest)];
    std::uint32_t team = 0;
    for (std::uint32_t lanes = rest; lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      if (masks[lane] == mask) team |= 1u << lane;
    }
    body(team);
    rest &= ~team;
  }
}

}  // namespace tilewright::sim
