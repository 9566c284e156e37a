// The formulas that kernels index registers and shared memory with, against the layouts of the
// instructions: for all threads and registers, at compile time.

#include "arch/register_index.h"

#include "arch/byte_operand.h"
#include "arch/fragments/matrix_copy.h"
#include "arch/fragments/mma_sync.h"
#include "arch/fragments/smem_tiles.h"
#include "arch/fragments/tmem.h"
#include "arch/fragments/wgmma.h"
#include "arch/tensor_memory_index.h"
#include "layout/fragment_views.h"

#include <gtest/gtest.h>

namespace tilewright::arch {
namespace {

// (thread, register) -> offset into the column-major tile of m rows, by the formula.
constexpr bool holds_accumulators(const Layout& c_tv, int m) {
  for (int t = 0; t < size(c_tv, 0); ++t) {
    for (int i = 0; i < size(c_tv, 1); ++i) {
      const int row = static_cast<int>(accumulator_first_row(t)) + 8 * accumulator_row(i);
      const int column = static_cast<int>(accumulator_first_column(t)) + accumulator_column(i);
      if (c_tv(t, i) != row + m * column) return false;
    }
  }
  return true;
}
static_assert(holds_accumulators(kMmaM16N8K16.c_tv, 16));
static_assert(holds_accumulators(kMmaM16N8K32.c_tv, 16));
static_assert(holds_accumulators(wgmma_c(8), 64));

TEST(RegisterIndex, AccumulatorsOfEveryWidth) {
  for (int n = 8; n <= 256; n += 8) EXPECT_TRUE(holds_accumulators(wgmma_c(n), 64)) << n;
}

// Rows and columns of a thread, as the softmax walks them: registers 4j + 2h + c.
constexpr bool walks_rows_and_columns(int n) {
  const TiledMma mma = {.atom = make_wgmma_ss(n, 16)};
  const Layout mn = layout_acc_mn(mma, make_fragment(mma, Operand::kC, make_shape(64, n)));
  if (size(mn, 0) != 2 || size(mn, 1) != n / 4) return false;
  for (int row = 0; row < 2; ++row) {
    for (int column = 0; column < n / 4; ++column) {
      const std::int64_t i = mn(row, column);
      if (i != column / 2 * 4 + 2 * row + column % 2) return false;
      if (accumulator_row(static_cast<int>(i)) != row) return false;
      if (accumulator_of(row, column) != i) return false;
    }
  }
  // A row is shared by four neighbours: two shuffles, by 1 and by 2.
  return reduction_target_n(mma) == make_layout(make_shape(4));
}
static_assert(walks_rows_and_columns(64));

TEST(RegisterIndex, TheSoftmaxWalksRowsAndColumns) {
  for (const int n : {64, 80, 96, 128, 176, 192, 256}) EXPECT_TRUE(walks_rows_and_columns(n)) << n;
}

// Scores handed on as 16-bit weights: the layout function names the same registers, and they hold
// what the A fragment wants.
constexpr bool hands_off_16bit(int n) {
  const TiledMma mma = {.atom = make_wgmma_ss(n, 16)};
  const Layout fragment = make_fragment(mma, Operand::kC, make_shape(64, n));
  const Layout operand = convert_c_layout_to_a_layout(fragment, make_shape(2, 2, 2));
  const Layout c = wgmma_c(n);
  for (int step = 0; step < n / 16; ++step) {
    for (int value = 0; value < 8; ++value) {
      const int source = operand_source_16bit(step, value / 2) + value % 2;
      if (operand(make_coord(value, 0, make_coord(0, step))) != source) return false;
      for (int t = 0; t < 128; ++t) {
        if (c(t, source) != kWgmmaA16(t, value) + 64 * 16 * step) return false;
      }
    }
  }
  return true;
}

TEST(RegisterIndex, WeightsOf16BitsAreHandedOnAsTheyAre) {
  for (const int n : {64, 80, 128, 176}) EXPECT_TRUE(hands_off_16bit(n)) << n;
}

// The same for 8 bits: in every thread the register that feeds operand element (row, k) holds
// column byte_operand_column(k) of the same row.
constexpr bool hands_off_8bit(int n) {
  constexpr int kFrom[4] = {0, 1, 4, 5};
  const Layout c = wgmma_c(n);
  for (int step = 0; step < n / 32; ++step) {
    for (int value = 0; value < 16; ++value) {
      const int source = operand_source_8bit(step, value / 4) + kFrom[value % 4];
      for (int t = 0; t < 128; ++t) {
        const std::int64_t at = kWgmmaA8(t, value), row = at % 64, k = 32 * step + at / 64;
        if (c(t, source) != row + 64 * byte_operand_column(static_cast<int>(k))) return false;
      }
    }
  }
  return true;
}

TEST(RegisterIndex, WeightsOf8BitsArePermutedInTheReductionIndexOnly) {
  for (const int n : {64, 128, 192}) EXPECT_TRUE(hands_off_8bit(n)) << n;
  std::vector<bool> is_used(128);
  for (int k = 0; k < 128; ++k) {
    EXPECT_EQ(byte_operand_column(k) / 16, k / 16) << "within groups of 16";
    EXPECT_FALSE(is_used[byte_operand_column(k)]);
    is_used[byte_operand_column(k)] = true;
  }
}

// What kernels say of ldmatrix.trans and stmatrix of four matrices: word i of a lane.
constexpr bool moves_matrices() {
  const Layout plain = matrix_registers(4, false), transposed = matrix_registers(4, true);
  for (int lane = 0; lane < 32; ++lane) {
    for (int at = 0; at < 8; ++at) {
      const int g = lane / 4, q = lane % 4, word = at / 2, half = at % 2;
      if (transposed(lane, at) != 8 * word + 2 * q + half + 32 * g) return false;
      if (plain(lane, at) != 8 * word + g + 32 * (2 * q + half)) return false;
    }
  }
  return true;
}
static_assert(moves_matrices());

// Tensor Memory: rows of accumulators, of what threads load and store, and of operands are lanes.
constexpr bool has_rows_in_lanes(int n) {
  const Layout c = tmem_c(TmemRows::kM128, n), a = tmem_a(TmemRows::kM128, n, 16),
               a8 = tmem_a(TmemRows::kM128, n, 8), moved = tmem_ld(TmemShape::k32x32b, n);
  for (int row = 0; row < 128; ++row) {
    for (int i = 0; i < n; ++i) {
      const std::int64_t cell = tensor_cell(row, i);
      if (c(row, i) != cell || (row < 32 && moved(row, i) != cell)) return false;
      if (a(row, i) / 2 != tensor_cell(row, packed_columns(i))) return false;
      if (a8(row, i) / 4 != tensor_cell(row, packed_columns(i, 8))) return false;
    }
  }
  return true;
}

TEST(TensorMemoryIndex, RowsAreLanes) {
  for (const int n : {16, 64, 128, 256}) EXPECT_TRUE(has_rows_in_lanes(n)) << n;
}

}  // namespace
}  // namespace tilewright::arch
