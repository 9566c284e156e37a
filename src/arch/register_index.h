// Which element of a tile a register of a tensor-core instruction holds, in closed form: the
// formulas that kernels index with. tests/arch/register_index_test.cpp proves each of them against
// the layouts of arch/fragments, for all threads and registers.
//
// Accumulators of wgmma.m64nN (128 threads) and of mma.sync.m16n8kK (32), with g = lane / 4 and
// q = lane % 4:
//
//   register     0     1     2     3     4     5   ...
//   row          g     g    g+8   g+8    g     g        + 16 * warp of the warpgroup
//   column      2q   2q+1   2q   2q+1  2q+8  2q+9       one block of 8 columns every 4 registers
#pragma once

#include <cstdint>

namespace tilewright::arch {

/// Row and column of a thread's first accumulator; the others lie a step further, the same for all
/// threads. `thread` counts within a warpgroup or a warp.
constexpr std::uint32_t accumulator_first_row(std::uint32_t thread) {
  return thread / 32 * 16 + thread % 32 / 4;
}
constexpr std::uint32_t accumulator_first_column(std::uint32_t thread) {
  return thread % 4 * 2;
}
/// Which of a thread's two rows register i is of (they are 8 apart), and its column from the first.
constexpr int accumulator_row(int i) {
  return i / 2 % 2;
}
constexpr int accumulator_column(int i) {
  return i / 4 * 8 + i % 2;
}
/// Both the other way round: the register of number `column` of a thread's columns, in row `row`.
constexpr int accumulator_of(int row, int column) {
  return column / 2 * 4 + 2 * row + column % 2;
}

/// 16-bit operands: register r of the A fragment of reduction step `step` (of 16) is made of
/// accumulators i and i + 1 of the product before, i as given. Nothing moves.
constexpr int operand_source_16bit(int step, int r) {
  return 8 * step + 2 * r;
}

}  // namespace tilewright::arch
