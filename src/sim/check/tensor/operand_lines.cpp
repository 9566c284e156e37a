// Whether a descriptor reads the lines of a box one after another, as the tensor copy wrote them.
//
// An operand is read in blocks: up to a span of the swizzle along its contiguous index, and row
// after row of its other index. The first chunk of a block lies in some line of a box. The rows
// that follow must be the lines that follow, as long as the box has any; what comes behind it is
// left to the kernel, which may put boxes one behind another. All addresses here are those before
// swizzling, the same for the copy and the descriptor.
#include "sim/check/tensor/operand_checker.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {}  // namespace

/// The block whose first byte along the contiguous index is `first`.
void OperandChecker::read_block(const CtaState& state, const SharedOperand& operand,
                                std::uint32_t first, LineTally& tally) {
  const SharedDescriptor& d = operand.descriptor;
  const std::uint32_t span = span_bytes(d.swizzle);
  const std::uint32_t bytes = std::min(span, operand.contiguous_bytes - first);
  tally.num_chunks += operand.outer * (bytes / kOperandChunkBytes);
  const auto count = [](Tally& part, const Copy* copy, std::uint32_t address) {
    if (part.num_wrong++ == 0) part.copy = copy, part.address = address;
  };
  const std::uint32_t start = shared_linear_address(d, operand.major, first, 0);
  const Copy* const box = state.copy_at(swizzled(d.swizzle, start));
  if (box == nullptr || box->line_bytes != span || start < box->address) return;
  const std::uint32_t column = (start - box->address) % span;
  const std::uint32_t line = (start - box->address) / span % box->num_lines;
  for (std::uint32_t row = 0; row < operand.outer; ++row) {
    for (std::uint32_t byte = 0; byte < bytes; byte += kOperandChunkBytes) {
      const std::uint32_t linear = shared_linear_address(d, operand.major, first + byte, row);
      const std::uint32_t address = swizzled(d.swizzle, linear);
      const std::uint32_t expected = start + row * span + byte;
      const Copy* const there = state.copy_at(address);
      if (column + byte >= span) {
        if (there == box) count(tally.wrapped, box, address);
      } else if (line + row < box->num_lines) {
        const std::uint32_t place = swizzled(d.swizzle, expected);
        if (linear == expected || state.copy_at(place) != box) continue;
        if (tally.moved.num_wrong == 0) tally.expected = place;
        count(tally.moved, box, address);
      } else if (line != 0 && linear == expected && there != nullptr && there != box &&
                 there->mbarrier != box->mbarrier) {
        if (tally.crossed.num_wrong == 0) tally.behind = there;
        count(tally.crossed, box, address);
      }
    }
  }
}

OperandChecker::LineTally OperandChecker::read_lines(const CtaState& state,
                                                     const SharedOperand& operand) {
  LineTally tally;
  const SharedDescriptor& d = operand.descriptor;
  if (d.swizzle == SharedSwizzle::kNone || d.is_leading_absolute) return tally;
  for (std::uint32_t first = 0; first < operand.contiguous_bytes; first += span_bytes(d.swizzle)) {
    read_block(state, operand, first, tally);
  }
  return tally;
}

// As with swizzles, a quarter must be wrong; but for a box of which the operand takes the end, and
// goes on in bytes that another barrier stands for.
void OperandChecker::check_lines(Warp& warp, const Insn& insn, const AsyncOperation& operation,
                                 const SharedOperand& operand, const CtaState& state) {
  const LineTally tally = read_lines(state, operand);
  const auto is_much = [&](const Tally& part) {
    return part.num_wrong != 0 && 4 * part.num_wrong >= tally.num_chunks;
  };
  const char name = operand.name;
  const std::uint32_t span = span_bytes(operand.descriptor.swizzle);
  const auto first_of = [&](const Tally& part) {
    return fmt::format("first at shared[{:#x}..{:#x}], {} of {} bytes in all", part.address,
                       part.address + kOperandChunkBytes - 1, part.num_wrong * kOperandChunkBytes,
                       tally.num_chunks * kOperandChunkBytes);
  };
  if (is_much(tally.moved)) {
    return report(
        warp, insn, operation, *tally.moved.copy,
        fmt::format("{} in shared memory is not read line after line, as it was written", name),
        {first_of(tally.moved),
         fmt::format("the next line of that copy is at shared[{:#x}..{:#x}]", tally.expected,
                     tally.expected + kOperandChunkBytes - 1)},
        fmt::format("8 lines of the copy are {} bytes: that must be the stride offset of the "
                    "descriptor of {} (bits 45..32 of it, in units of 16)",
                    8 * span, name));
  }
  if (is_much(tally.wrapped)) {
    return report(
        warp, insn, operation, *tally.wrapped.copy,
        fmt::format("a row of {} in shared memory begins within a line and goes on in the next",
                    name),
        {first_of(tally.wrapped)},
        fmt::format("a row has {} bytes here and a line {}: the start address of the descriptor "
                    "of {}, or which of its indices is contiguous (transposition)",
                    std::min(span, operand.contiguous_bytes), span, name));
  }
  if (tally.crossed.num_wrong == 0) return;
  report(warp, insn, operation, *tally.crossed.copy,
         fmt::format("{} in shared memory begins within a box and goes on in another copy's", name),
         {first_of(tally.crossed),
          fmt::format("the copy there completes on another mbarrier, at shared {:#x}",
                      tally.behind->mbarrier & ((1U << kSharedRankShift) - 1))},
         fmt::format("the start address of the descriptor of {} (bits 13..0), or its number of "
                     "rows",
                     name));
}

}  // namespace tilewright::sim
