// A warp with nothing but registers, to run single instruction functions on.
#pragma once

#include "sim/state/insn.h"
#include "sim/state/warp.h"

#include <cstring>
#include <span>

namespace tilewright::sim {

class RowFile {
 public:
  static constexpr Row kRowBytes = 256;  // wide enough for 64-bit lanes
  RowFile() { warp_.registers = bytes_; }
  static constexpr Row row(std::size_t index) { return static_cast<Row>(index) * kRowBytes; }

  template <class T>
  T* values(std::size_t index) {
    return warp_.row<T>(row(index));
  }
  /// Rows 0, 1, 2 ... are the operands.
  Step run(ExecFn exec, std::uint32_t active = kAllLanes, std::uint8_t small = 0) {
    Insn insn;
    for (std::size_t i = 0; i < insn.op.size(); ++i) insn.op[i] = row(i);
    insn.small = small;
    return exec(warp_, insn, active);
  }

 private:
  alignas(64) std::byte bytes_[8 * kRowBytes] = {};
  Warp warp_;
};

}  // namespace tilewright::sim
