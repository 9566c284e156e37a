#include "sim/exec/control.h"

#include "sim/state/warp.h"

#include <bit>
#include <chrono>

#include <fmt/format.h>

namespace tilewright::sim {

Step jump(Warp& warp, const Insn& insn, std::uint32_t active) {
  warp.jump_pc = static_cast<std::uint32_t>(insn.imm);
  warp.jump_lanes = active;
  return Step::kJump;
}

Step jump_unless(Warp& warp, const Insn& insn, std::uint32_t active) {
  warp.jump_pc = static_cast<std::uint32_t>(insn.imm);
  warp.jump_lanes = active & ~warp.predicate(insn.op[0]);
  return warp.jump_lanes == 0 ? Step::kNext : Step::kJump;
}

Step jump_if_different(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto* a = warp.row<std::uint64_t>(insn.op[0]);
  const auto* b = warp.row<std::uint64_t>(insn.op[1]);
  std::uint32_t lanes = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (a[lane] != b[lane]) lanes |= 1U << lane;
  }
  warp.jump_pc = static_cast<std::uint32_t>(insn.imm);
  warp.jump_lanes = lanes & active;
  return warp.jump_lanes == 0 ? Step::kNext : Step::kJump;
}

Step end_lanes(Warp&, const Insn&, std::uint32_t) {
  return Step::kExit;
}

Step bad_call(Warp& warp, const Insn& insn, std::uint32_t active) {
  const int lane = std::countr_zero(active);
  fault(FaultKind::kInvalidPc, active,
        fmt::format("indirect call of {:#x}, which is none of the functions it may call",
                    warp.row<std::uint64_t>(insn.op[0])[lane]));
}

// Time that passes for a kernel is the host's: a nanosecond a nanosecond, and two clocks a
// nanosecond.
Step read_clock(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto now =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now().time_since_epoch())
                                     .count());
  std::uint64_t value = 0;
  switch (static_cast<SpecialRegister>(insn.small)) {
    case SpecialRegister::kClock:
    case SpecialRegister::kClock64:
      value = 2 * now;
      break;
    case SpecialRegister::kClockHi:
      value = (2 * now) >> 32;
      break;
    case SpecialRegister::kGlobaltimer:
    case SpecialRegister::kGlobaltimerLo:
      value = now;
      break;
    case SpecialRegister::kGlobaltimerHi:
      value = now >> 32;
      break;
    default:
      break;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((active >> lane & 1) == 0) continue;
    if (insn.imm != 0) {
      warp.row<std::uint64_t>(insn.op[0])[lane] = value;
    } else {
      warp.row<std::uint32_t>(insn.op[0])[lane] = static_cast<std::uint32_t>(value);
    }
  }
  return Step::kNext;
}

}  // namespace tilewright::sim
