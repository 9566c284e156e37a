// Two witnesses for tcgen05.ld and st: the layouts that kernels are built from, and the simulator's
// formulas, which were written without them. Every shape and count, every (thread, register).
#include "arch/fragments/tmem.h"
#include "sim/tensor/tensor_move.h"

#include <set>

#include <gtest/gtest.h>

namespace tilewright::arch {
namespace {

struct Shape {
  TmemShape layout;
  sim::TensorMoveShape formula;
};

constexpr Shape kShapes[] = {{TmemShape::k32x32b, sim::TensorMoveShape::k32x32b},
                             {TmemShape::k16x64b, sim::TensorMoveShape::k16x64b},
                             {TmemShape::k16x128b, sim::TensorMoveShape::k16x128b},
                             {TmemShape::k16x256b, sim::TensorMoveShape::k16x256b},
                             {TmemShape::k16x32bx2, sim::TensorMoveShape::k16x32bx2}};

TEST(TensorMoveWitness, EveryThreadAndRegister) {
  for (const Shape& shape : kShapes) {
    const int registers = tmem_registers(shape.layout);
    ASSERT_EQ(static_cast<int>(sim::registers_of(shape.formula)), registers);
    for (int num = 1; num * registers <= 128; num *= 2) {
      for (const int split : {0, 16, 64}) {
        const Layout layout = tmem_ld(shape.layout, num, split);
        for (int t = 0; t < 32; ++t) {
          for (int r = 0; r < num * registers; ++r) {
            const sim::TensorAddress cell = sim::tensor_move_cell(
                shape.formula, static_cast<std::uint32_t>(t), static_cast<std::uint32_t>(r),
                static_cast<std::uint32_t>(split));
            ASSERT_EQ(cell.lane * kTmemLane + cell.column, layout(t, r))
                << "shape " << static_cast<int>(shape.layout) << ".x" << num << " thread " << t
                << " register " << r;
          }
        }
      }
    }
  }
}

/// No cell is moved twice, but by .16x32bx2 without a distance between its halves.
TEST(TensorMoveWitness, EveryCellOnce) {
  for (const Shape& shape : kShapes) {
    std::set<std::int64_t> cells;
    const int registers = tmem_registers(shape.layout) * 4;
    for (int t = 0; t < 32; ++t) {
      for (int r = 0; r < registers; ++r) {
        const sim::TensorAddress cell = sim::tensor_move_cell(
            shape.formula, static_cast<std::uint32_t>(t), static_cast<std::uint32_t>(r), 8);
        EXPECT_TRUE(cells.insert(cell.lane * kTmemLane + cell.column).second);
      }
    }
    EXPECT_EQ(cells.size(), static_cast<std::size_t>(32 * registers));
  }
}

}  // namespace
}  // namespace tilewright::arch
