// Operands of wgmma in shared memory that were not written, wholly or in part.
#include "sim/check/init/init_checker.h"
#include "sim/state/warp.h"

#include <algorithm>
#include <array>

namespace tilewright::sim {
namespace {

constexpr std::uint32_t kBytesOfK = 32;

/// What is known of rows of A, or of columns of B, bit by bit.
struct OperandLines {
  std::array<std::uint64_t, 4> missing{};  ///< lines without any defined byte
  bool has_partial = false;                ///< lines with some

  bool is_missing(std::uint32_t line) const { return (missing[line / 64] >> line % 64 & 1) != 0; }
};

/// The operand lies in the shared memory that `shadow` is of.
OperandLines lines_of(const std::uint8_t* shadow, std::uint32_t shared_bytes,
                      const SharedOperand& operand) {
  const bool is_k = operand.major == OperandMajor::kK;
  const std::uint32_t element_bytes = is_k ? 1 : kBytesOfK / operand.outer;
  const std::uint32_t lines = is_k ? operand.outer : operand.contiguous_bytes / element_bytes;
  OperandLines out;
  for (std::uint32_t line = 0; line < lines; ++line) {
    std::uint32_t num_defined = 0;
    for (std::uint32_t i = 0; i < kBytesOfK; ++i) {
      const std::uint32_t byte = is_k ? i : line * element_bytes + i % element_bytes;
      const std::uint32_t other = is_k ? line : i / element_bytes;
      const std::uint32_t at =
          shared_operand_address(operand.descriptor, operand.major, byte, other);
      // What lies beyond shared memory stops the instruction.
      num_defined += at >= shared_bytes || shadow[at] == kDefinedByte ? 1 : 0;
    }
    if (num_defined == 0) out.missing[line / 64] |= std::uint64_t{1} << line % 64;
    out.has_partial = out.has_partial || (num_defined != 0 && num_defined != kBytesOfK);
  }
  return out;
}

/// Lanes whose part of accumulator `i` comes of missing lines. A register of fp32 has one column,
/// of fp16 two.
std::uint32_t lanes_of(const OperandLines& a, const OperandLines& b, std::uint32_t i,
                       bool is_half) {
  const std::uint32_t columns = is_half ? 2 : 1;
  const std::uint32_t first = is_half ? i / 2 * 8 : i / 4 * 8 + i % 2;
  const std::uint32_t row = 8 * (is_half ? i % 2 : i / 2 % 2);
  std::uint32_t lanes = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    bool is_missing = a.is_missing(row + lane / 4);
    for (std::uint32_t c = 0; c < columns; ++c) {
      is_missing = is_missing || b.is_missing(first + lane % 4 * 2 + c);
    }
    lanes |= std::uint32_t{is_missing} << lane;
  }
  return lanes;
}

}  // namespace

void InitChecker::forget_results(Warp& warp, const Insn& insn) {
  warp.undefined_flags = kMaybeUndefined | kHasRows;
  warp.definedness->load = &insn;
  warp.definedness->load_mark = 0;
}

// Half-filled tiles are the rule at the edges of matrices: their results are not used. An operand
// without any defined byte was forgotten.
void InitChecker::read_operands(Warp& warp, const Insn& insn, const AsyncOperation& operation) {
  if (is_strict_) return read_lines(warp, insn, operation);
  constexpr std::uint64_t kBytesOfA = 16 * kBytesOfK;
  const bool has_a = insn.op[0] != kNoRow;
  std::uint64_t bytes[2] = {}, undefined[2] = {};
  for (const AsyncRange& range : operation.ranges) {
    const std::size_t which = has_a && bytes[0] < kBytesOfA ? 0 : 1;
    bytes[which] += range.bytes;
    undefined[which] += count_undefined(shadow_of(warp, range), range.bytes);
  }
  for (const std::size_t which : {0, 1}) {
    if (bytes[which] == 0 || undefined[which] != bytes[which]) continue;
    const KernelCode& code = *warp.grid->code;
    const RowUse& use = code.uses[static_cast<std::size_t>(&insn - code.insns.data())];
    for (int i = 0; i < use.num_written; ++i) {
      set(warp, code.rows[use.begin + static_cast<std::uint32_t>(i)], kAllLanes, 0);
    }
    forget_results(warp, insn);
  }
}

// strict: an operand is written row by row, or not. A row of A, or a column of B, without any
// defined byte makes a row or column of D that has no value, and is followed to its use: nobody
// looks at what lies behind the end of a matrix. In a row that is written in part, k is.
void InitChecker::read_lines(Warp& warp, const Insn& insn, const AsyncOperation& operation) {
  const auto is_undefined = [&](const AsyncRange& range) {
    return count_undefined(shadow_of(warp, range), range.bytes) != 0;
  };
  if (std::ranges::none_of(operation.ranges, is_undefined)) return;
  OperandLines a, b;
  for (const SharedOperand& operand : operation.warp_operands) {
    (operand.name == 'A' ? a : b) =
        lines_of(warp.cta->shared_defined.data(), warp.shared_bytes, operand);
  }
  if (a.has_partial || b.has_partial) {
    report(warp, insn, operation.lanes, "a tensor operand in shared memory that was never written",
           true);
    return;
  }
  const bool is_half = has_half_results(warp, insn);
  const KernelCode& code = *warp.grid->code;
  const RowUse& use = code.uses[static_cast<std::size_t>(&insn - code.insns.data())];
  for (std::uint32_t i = 0; i < use.num_written; ++i) {
    set(warp, code.rows[use.begin + i], lanes_of(a, b, i, is_half), 0);
  }
  forget_results(warp, insn);
}

}  // namespace tilewright::sim
