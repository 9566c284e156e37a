// Accumulators as an operand of 8 bits, in closed form; as register_index.h, and proved beside it.
#pragma once

namespace tilewright::arch {

/// 8-bit operands: register r of step `step` (of 32) is made of accumulators i, i + 1, i + 4 and
/// i + 5. The reduction index then is in another order than the columns were:
/// byte_operand_column(k) is the column that takes part as number k, and the rows of B must be in
/// that order as well.
constexpr int operand_source_8bit(int step, int r) {
  return 16 * step + r / 2 * 8 + r % 2 * 2;
}
constexpr int byte_operand_column(int k) {
  return k / 16 * 16 + k / 2 % 2 * 8 + k / 4 % 4 * 2 + k % 2;
}

}  // namespace tilewright::arch
