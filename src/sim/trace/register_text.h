// Registers of a warp as text: lanes in rows, accumulators as matrices.
#pragma once

#include "sim/state/code.h"
#include "sim/state/warp.h"

#include <string>
#include <vector>

namespace tilewright::sim {

/// A register that an instruction names.
struct NamedRow {
  std::string name;
  Row row = kNoRow;
  Type type = Type::kB32;  ///< of the register's width; how its values are shown
  bool is_source = false, is_destination = false;
};

/// The registers of an instruction, destinations first, each once, with the guard at the end.
std::vector<NamedRow> named_rows(const KernelCode& code, const Insn& insn);

/// One value: floats in decimal, .bN in hex, the others as integers.
std::string value_text(Warp& warp, const NamedRow& named, int lane);

/// "%f1 f32   all lanes 1.5", or four rows of eight lanes. Lanes outside of `lanes` in brackets.
std::string lanes_text(Warp& warp, const NamedRow& named, std::uint32_t lanes);

/// The accumulator of mma.sync.m16n8 and wgmma as this warp's 16 rows; "" for other instructions.
std::string accumulator_text(Warp& warp, const Insn& insn);
/// What a tcgen05.mma multiplies, lines for a breakpoint; empty for other instructions.
std::string descriptors_text(Warp& warp, const Insn& insn, std::uint32_t active);

/// All registers on one line, short: for traces.
std::string short_text(Warp& warp, const NamedRow& named, std::uint32_t lanes);

}  // namespace tilewright::sim
