// One translated instruction and what runs it.
//
// A register is a row: 32 lanes of its own width side by side (a predicate is one 32-bit mask). All
// rows of a warp lie in one block of bytes, the registers of the program, its constants and the
// special registers alike, so that an operand is nothing but the offset of its row.
#pragma once

#include "sim/parse/ast.h"

#include <array>
#include <bit>
#include <cstdint>

namespace tilewright::sim {

inline constexpr std::uint32_t kAllLanes = 0xffffffff;
inline constexpr int kLanes = 32;

/// f(lane) for the lanes of a mask, the lowest first.
template <class F>
void for_each_lane(std::uint32_t lanes, F&& f) {
  for (; lanes != 0; lanes &= lanes - 1) f(std::countr_zero(lanes));
}

struct Warp;
struct Insn;

/// What becomes of the lanes that ran an instruction.
enum class Step : std::uint8_t {
  kNext,   ///< go on
  kJump,   ///< Warp::jump_lanes go to Warp::jump_pc, the others go on
  kExit,   ///< the active lanes end
  kWait,   ///< wait until Warp::wait is over, then go on
  kRetry,  ///< wait until Warp::wait is over, then run this instruction again
  kYield,  ///< go on, but let others run first: a poll that failed
};

/// Runs an instruction for the lanes of `active`, never none of them.
using ExecFn = Step (*)(Warp& warp, const Insn& insn, std::uint32_t active);

/// Properties that the engine and the checkers ask for.
enum InsnFlags : std::uint16_t {
  kAligned = 1 << 0,  ///< all live lanes of the warp must be here together (.aligned)
  kControl = 1 << 1,  ///< changes the control flow
  kMemoryRead = 1 << 2,
  kMemoryWrite = 1 << 3,
  kAtomic = 1 << 4,
  kBarrier = 1 << 5,  ///< orders lanes, warps or CTAs
  kAsync = 1 << 6,    ///< starts or awaits asynchronous work
  kTensor = 1 << 7,   ///< tensor-core arithmetic
  /// CTAs may talk to each other through it: they then run in one fixed order
  kCrossCta = 1 << 8,
  /// An undefined source lane must not get here (address, branch, store, tensor operand)
  kUsesUndefined = 1 << 9,
  /// Reads or writes a row that may hold undefined lanes even if all memory is defined
  kMaybeUndefined = 1 << 10,
  kHasRows = 1 << 11,  ///< reads or writes any row
  /// Of kCrossCta: memory is the same in whatever order they run, if all of a kernel have the same
  /// Insn::small
  kCommutes = 1 << 13,
  kClaimsCluster = 1 << 12,  ///< may take over the work of a cluster that has not started
};

/// Classes of instructions for the report.
enum class InsnClass : std::uint8_t {
  kInteger,
  kFloat,
  kHalf,
  kDouble,
  kConvert,
  kSpecialFunction,
  kMove,
  kPredicate,
  kControl,
  kLoad,
  kStore,
  kAtomic,
  kShuffle,
  kBarrier,
  kAsync,
  kTensor,
  kOther,
};

/// A row: the offset of its first byte in the warp's registers.
using Row = std::uint32_t;

inline constexpr Row kNoRow = 0xffffffff;
inline constexpr Row kTrueRow = 0;  ///< the predicate that always holds

struct Insn {
  ExecFn exec = nullptr;
  Row guard = kTrueRow;
  std::uint32_t guard_flip = 0;                                              ///< kAllLanes for @!p
  std::array<Row, 6> op = {kNoRow, kNoRow, kNoRow, kNoRow, kNoRow, kNoRow};  ///< destinations first
  std::int64_t imm = 0;         ///< an address offset, a target, whatever exec wants
  const void* extra = nullptr;  ///< more of it; lives as long as the code
  std::uint16_t flags = 0;
  InsnClass insn_class = InsnClass::kOther;
  std::uint8_t small = 0;    ///< a few bits for exec
  std::uint32_t syntax = 0;  ///< index into KernelCode::syntax: where it came from
};

}  // namespace tilewright::sim
