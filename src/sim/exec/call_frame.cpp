#include "sim/exec/call_frame.h"

#include "sim/state/warp.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr std::uint32_t kReturnAt = 0, kCallerBaseAt = 4, kSavedAt = 8;

std::byte* memory_of(Warp& warp, int lane) {
  return warp.local + static_cast<std::size_t>(lane) * warp.local_bytes;
}

/// What the init check knows of a lane's local memory; nullptr if it does not look.
std::uint8_t* definedness_of(Warp& warp, int lane) {
  std::uint8_t* const all = warp.cta->local_defined.data();
  if (all == nullptr) return nullptr;
  return all +
         (std::size_t{warp.index} * kLanes + static_cast<std::size_t>(lane)) * warp.local_bytes;
}

std::uint32_t callee_base(const FrameCall& call, std::uint32_t caller_base) {
  return call.caller == nullptr ? call.callee->stack->begin
                                : caller_base + call.caller->frame_bytes;
}

void copy_local(Warp& warp, int lane, std::uint32_t to, std::uint32_t from, std::uint32_t bytes) {
  std::byte* const memory = memory_of(warp, lane);
  std::memcpy(memory + to, memory + from, bytes);
  if (std::uint8_t* const defined = definedness_of(warp, lane)) {
    std::memcpy(defined + to, defined + from, bytes);
  }
}

/// Visits the bytes of a lane in the function's registers: row bytes, frame bytes, how many.
void save(Warp& warp, const FrameFunction& function, int lane, std::byte* frame) {
  std::byte* to = frame + kSavedAt;
  for (const SavedRow& saved : function.saved) {
    if (saved.lane_bytes == 0) {
      *to++ = static_cast<std::byte>(warp.predicate(saved.row) >> lane & 1);
      continue;
    }
    std::memcpy(to, warp.registers + saved.row + static_cast<std::size_t>(lane) * saved.lane_bytes,
                saved.lane_bytes);
    to += saved.lane_bytes;
  }
}

void restore(Warp& warp, const FrameFunction& function, int lane, const std::byte* frame) {
  const std::byte* from = frame + kSavedAt;
  for (const SavedRow& saved : function.saved) {
    if (saved.lane_bytes == 0) {
      warp.set_predicate(saved.row, 1u << lane, *from++ == std::byte{0} ? 0 : kAllLanes);
      continue;
    }
    std::memcpy(warp.registers + saved.row + static_cast<std::size_t>(lane) * saved.lane_bytes,
                from, saved.lane_bytes);
    from += saved.lane_bytes;
  }
}

template <class T>
void add_to_base(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto* base = warp.row<std::uint32_t>(insn.op[1]);
  auto* d = warp.row<T>(insn.op[0]);
  for_each_lane(active, [&](int lane) { d[lane] = static_cast<T>(base[lane] + insn.imm); });
}

}  // namespace

Step add_to_base32(Warp& warp, const Insn& insn, std::uint32_t active) {
  add_to_base<std::uint32_t>(warp, insn, active);
  return Step::kNext;
}

Step add_to_base64(Warp& warp, const Insn& insn, std::uint32_t active) {
  add_to_base<std::uint64_t>(warp, insn, active);
  return Step::kNext;
}

Step call_with_frame(Warp& warp, const Insn& insn, std::uint32_t active) {
  const FrameCall& call = *static_cast<const FrameCall*>(insn.extra);
  const FrameFunction& callee = *call.callee;
  auto* const bases = warp.row<std::uint32_t>(callee.stack->base);
  for_each_lane(active, [&](int lane) {
    const std::uint32_t caller_base = call.caller == nullptr ? 0 : bases[lane];
    const std::uint32_t base = callee_base(call, caller_base);
    if (base + callee.frame_bytes > callee.stack->end) {
      fault(FaultKind::kHardwareStackError, 1u << lane,
            fmt::format("call stack overflow: recursion needs more than the {} bytes a thread has",
                        callee.stack->end - callee.stack->begin));
    }
    std::byte* const frame = memory_of(warp, lane) + base;
    const std::uint32_t return_pc = warp.pc + 1;
    std::memcpy(frame + kReturnAt, &return_pc, 4);
    std::memcpy(frame + kCallerBaseAt, &caller_base, 4);
    save(warp, callee, lane, frame);
    for (const PassedVariable& passed : call.variables) {
      copy_local(warp, lane, base + passed.callee_offset, caller_base + passed.caller_offset,
                 passed.bytes);
    }
    bases[lane] = base;
  });
  warp.jump_pc = static_cast<std::uint32_t>(insn.imm);
  warp.jump_lanes = active;
  return Step::kJump;
}

Step fetch_results(Warp& warp, const Insn& insn, std::uint32_t active) {
  const FrameCall& call = *static_cast<const FrameCall*>(insn.extra);
  const auto* const bases = warp.row<std::uint32_t>(call.callee->stack->base);
  for_each_lane(active, [&](int lane) {
    const std::uint32_t caller_base = call.caller == nullptr ? 0 : bases[lane];
    const std::uint32_t base = callee_base(call, caller_base);
    for (const PassedVariable& passed : call.variables) {
      copy_local(warp, lane, caller_base + passed.caller_offset, base + passed.callee_offset,
                 passed.bytes);
    }
  });
  return Step::kNext;
}

Step return_from_frame(Warp& warp, const Insn& insn, std::uint32_t active) {
  const FrameFunction& function = *static_cast<const FrameFunction*>(insn.extra);
  auto* const bases = warp.row<std::uint32_t>(function.stack->base);
  std::uint32_t target = 0, returning = 0;
  for_each_lane(active, [&](int lane) {
    const std::byte* const frame = memory_of(warp, lane) + bases[lane];
    std::uint32_t return_pc = 0;
    std::memcpy(&return_pc, frame + kReturnAt, 4);
    if (returning == 0) target = return_pc;
    if (return_pc != target) return;
    returning |= 1u << lane;
    restore(warp, function, lane, frame);
    std::memcpy(bases + lane, frame + kCallerBaseAt, 4);
  });
  warp.jump_pc = target;
  warp.jump_lanes = returning;
  return Step::kJump;
}

}  // namespace tilewright::sim
