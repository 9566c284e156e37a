// What instructions tell the one that follows undefined values.
#pragma once

#include "sim/state/insn.h"

#include <cstdint>

namespace tilewright::sim {

/// Called for few instructions: where Warp::undefined_flags says that an undefined value may take
/// part, and where one comes out of memory. Grid::definedness is nullptr without the init check.
class DefinednessObserver {
 public:
  /// Before an instruction that has a flag of Warp::undefined_flags; `lanes` before its guard.
  virtual void before(Warp& warp, const Insn& insn, std::uint32_t lanes, std::uint32_t active) = 0;
  /// After a load that found undefined bytes.
  virtual void after_load(Warp& warp, const Insn& insn, std::uint32_t active) = 0;
  /// A register that tcgen05.ld has just loaded: only these lanes are defined.
  virtual void loaded(Warp& warp, const Insn& insn, Row row, std::uint32_t lanes) = 0;
  /// The lanes of a register that hold a defined value.
  virtual std::uint32_t defined_lanes(const Warp& warp, Row row) const = 0;

 protected:
  ~DefinednessObserver() = default;
};

}  // namespace tilewright::sim
