// Calls of functions that call themselves. All others are inlined (flatten.h).
//
// Such a function has one body and a frame per call in its thread's local memory:
//
//     base        where to return to, the caller's base: 4 bytes each
//     base + 8    what the function's registers held before
//     ...         its variables and parameters
//
// Frames begin behind the kernel's own local memory. A row holds the base of each lane's frame.
#pragma once

#include "sim/state/insn.h"

#include <cstdint>
#include <vector>

namespace tilewright::sim {

/// Bytes for frames that each thread of such a kernel has.
inline constexpr std::uint32_t kCallStackBytes = 16 * 1024;

struct CallStack {
  Row base = kNoRow;        ///< u32: of the frame of each lane
  std::uint32_t begin = 0;  ///< of the first frame in local memory
  std::uint32_t end = 0;
};

struct SavedRow {
  Row row = kNoRow;
  std::uint32_t lane_bytes = 0;  ///< 0: a predicate
};

/// A function that is called with frames.
struct FrameFunction {
  const CallStack* stack = nullptr;
  std::vector<SavedRow> saved;
  std::uint32_t saved_bytes = 0;
  std::uint32_t frame_bytes = 0;  ///< grows while its body is translated
};

/// One variable passed: offsets in the caller's and the callee's memory.
struct PassedVariable {
  std::uint32_t caller_offset = 0, callee_offset = 0, bytes = 0;
};

struct FrameCall {
  const FrameFunction* callee = nullptr;
  const FrameFunction* caller = nullptr;  ///< nullptr: the kernel itself or what is inlined in it
  std::vector<PassedVariable> variables;
};

/// imm: the function. extra: FrameCall with the arguments. Lanes return to the next instruction.
Step call_with_frame(Warp& warp, const Insn& insn, std::uint32_t active);
/// After it: fetches the results that FrameCall names.
Step fetch_results(Warp& warp, const Insn& insn, std::uint32_t active);
/// extra: FrameFunction. Lanes that go to the same place return, the others go on.
Step return_from_frame(Warp& warp, const Insn& insn, std::uint32_t active);

/// op[0] = op[1] (u32) + imm: the address of a variable.
Step add_to_base32(Warp& warp, const Insn& insn, std::uint32_t active);
Step add_to_base64(Warp& warp, const Insn& insn, std::uint32_t active);

}  // namespace tilewright::sim
