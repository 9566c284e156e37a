// Tensor Memory layouts against the formulas of the manual, and the hand-offs between them.

#include "arch/fragments/tmem.h"

#include "base/error.h"
#include "layout/print.h"
#include "layout/tmem_handoff.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::arch {
namespace {

using testing::HasSubstr;

struct Cell {
  int lane, column;
  auto operator<=>(const Cell&) const = default;
};
Cell cell(std::int64_t address) {
  return {static_cast<int>(address >> 16 & 0x7F), static_cast<int>(address & 0xFFFF)};
}

template <class Formula>
void expect_access(TmemShape shape, int max_num, Formula formula) {
  for (int num = 1; num <= max_num; num *= 2) {
    const Layout tv = tmem_ld(shape, num, 64);
    ASSERT_EQ(size(tv, 0), 32);
    ASSERT_EQ(size(tv, 1), num * tmem_registers(shape));
    for (int t = 0; t < 32; ++t) {
      for (int r = 0; r < size(tv, 1); ++r) {
        ASSERT_EQ(cell(tv(t, r)), formula(t, r))
            << "x" << num << " thread " << t << " register " << r;
      }
    }
  }
}

TEST(TmemAccess, EveryShape) {
  expect_access(TmemShape::k32x32b, 128, [](int t, int r) -> Cell { return {t, r}; });
  expect_access(TmemShape::k16x64b, 128, [](int t, int r) -> Cell {
    return {t / 4 + 8 * (t % 2), 2 * r + t / 2 % 2};
  });
  expect_access(TmemShape::k16x128b, 64, [](int t, int r) -> Cell {
    return {t / 4 + 8 * (r % 2), 4 * (r / 2) + t % 4};
  });
  expect_access(TmemShape::k16x256b, 32, [](int t, int r) -> Cell {
    return {t / 4 + 8 * (r / 2 % 2), 8 * (r / 4) + 2 * (t % 4) + r % 2};
  });
  expect_access(TmemShape::k16x32bx2, 128, [](int t, int r) -> Cell {
    return {t % 16, r + (t >= 16 ? 64 : 0)};
  });
}

TEST(TmemAccess, TouchesEveryCellOnce) {
  for (const TmemShape shape : {TmemShape::k32x32b, TmemShape::k16x64b, TmemShape::k16x128b,
                                TmemShape::k16x256b, TmemShape::k16x32bx2}) {
    const Layout tv = tmem_ld(shape, 8, 32);
    std::set<Cell> seen;
    for (std::int64_t i = 0; i < size(tv); ++i) seen.insert(cell(tv(i)));
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), size(tv));
    EXPECT_LT(seen.rbegin()->lane, shape == TmemShape::k32x32b ? 32 : 16);
  }
}

struct Place {
  int cta, lane, column;
  bool operator==(const Place&) const = default;
};

template <class Formula>
void expect_rows(TmemRows rows, int n, Formula formula) {
  const Layout c = tmem_c(rows, n);
  ASSERT_EQ(size(c, 0), tmem_m(rows));
  ASSERT_EQ(size(c, 1), n);
  for (int m = 0; m < tmem_m(rows); ++m) {
    for (int j = 0; j < n; ++j) {
      const std::int64_t address = c(m, j);
      const Place at = {static_cast<int>(address >> 24), cell(address).lane, cell(address).column};
      ASSERT_EQ(at, formula(m, j)) << "row " << m << " column " << j;
    }
  }
}

TEST(TmemAccumulator, EveryForm) {
  for (const int n : {64, 128, 256}) {
    expect_rows(TmemRows::kM128, n, [](int m, int j) -> Place { return {0, m, j}; });
    expect_rows(TmemRows::kM64, n, [](int m, int j) -> Place {
      return {0, 32 * (m / 16) + m % 16, j};
    });
    expect_rows(TmemRows::kM64Ws, n, [n](int m, int j) -> Place {
      return {0, m + (j >= n / 2 ? 64 : 0), j % (n / 2)};
    });
    expect_rows(TmemRows::kM32Ws, n, [n](int m, int j) -> Place {
      return {0, m + 32 * (j / (n / 4)), j % (n / 4)};
    });
    expect_rows(TmemRows::kPairM256, n, [](int m, int j) -> Place {
      return {m / 128, m % 128, j};
    });
    expect_rows(TmemRows::kPairM128, n, [n](int m, int j) -> Place {
      return {m / 64, m % 64 + (j >= n / 2 ? 64 : 0), j % (n / 2)};
    });
  }
}

TEST(TmemOperandA, IsPackedAlongK) {
  for (const int bits : {32, 16, 8}) {
    const int per_cell = 32 / bits;
    const Layout a = tmem_a(TmemRows::kM128, 64, bits);
    const Layout half = tmem_a(TmemRows::kM64, 64, bits);
    for (int m = 0; m < 128; ++m) {
      for (int k = 0; k < 64; ++k) {
        EXPECT_EQ(cell(a(m, k) / per_cell), (Cell{m, k / per_cell}));
        EXPECT_EQ(a(m, k) % per_cell, k % per_cell) << "lower k in the lower bits";
        if (m < 64) {
          EXPECT_EQ(cell(half(m, k) / per_cell), (Cell{32 * (m / 16) + m % 16, k / per_cell}));
        }
      }
    }
    EXPECT_EQ(cell(a(0, 256 / bits) / per_cell).column, 8) << "one instruction's k takes 8 columns";
  }
}

TEST(TmemOperandA, APairWithM128HoldsItsRowsTwice) {
  const Layout a = tmem_a(TmemRows::kPairM128, 64, 16);
  for (int m = 0; m < 128; ++m) {
    for (int copy = 0; copy < 2; ++copy) {
      const std::int64_t address = a(m, 6, copy) / 2;
      EXPECT_EQ(address >> 24, m / 64);
      EXPECT_EQ(cell(address), (Cell{m % 64 + 64 * copy, 3}));
    }
  }
  EXPECT_THROW(tmem_a(TmemRows::kM32Ws, 64, 16), Error);
}

TEST(TmemOperandA, RecastChangesBetweenElementsAndColumns) {
  EXPECT_EQ(recast(tmem_a(TmemRows::kM128, 64, 16), 16, 32), tmem_c(TmemRows::kM128, 32));
  EXPECT_EQ(recast(tmem_a(TmemRows::kM128, 64, 8), 8, 32), tmem_c(TmemRows::kM128, 16));
}

// The finding of the DeepSeek-V4 kernel document: the accumulator's places are not those of the A
// operand.
TEST(TmemHandoffs, ABf16OperandIsNotReadWhereTheAccumulatorWasWritten) {
  const TmemHandoff handoff =
      analyze_tmem_handoff(tmem_c(TmemRows::kM128, 128), tmem_a(TmemRows::kM128, 128, 16), 16);
  EXPECT_EQ(handoff.verdict, TmemVerdict::kPack);
  EXPECT_EQ(handoff.elements, 128 * 128);
  EXPECT_EQ(handoff.misplaced, 128 * 127) << "only column 0 stays where it was";
  EXPECT_EQ(handoff.columns_written, 128);
  EXPECT_EQ(handoff.columns_read, 64);
  EXPECT_THAT(
      handoff.explain(),
      HasSubstr("written as accumulator column 40 of row 3 (lane 3, column 40), read as A elements "
                "k = 80-81 of row 3"));
  EXPECT_THAT(handoff.explain(), HasSubstr("packs 2 to a register"));
  for (const TmemMismatch& at : handoff.examples) {
    EXPECT_EQ(at.cell, at.column);
    EXPECT_EQ(at.lane, at.row);
    EXPECT_EQ(at.read_k, at.column < 64 ? 2 * at.column : -1);
  }
}

TEST(TmemHandoffs, Tf32NeedsNothingAndEightBitPacksFour) {
  EXPECT_EQ(analyze_tmem_handoff(tmem_c(TmemRows::kM128, 64), tmem_a(TmemRows::kM128, 64, 32), 32)
                .verdict,
            TmemVerdict::kSame);
  const TmemHandoff bytes =
      analyze_tmem_handoff(tmem_c(TmemRows::kM64, 64), tmem_a(TmemRows::kM64, 64, 8), 8);
  EXPECT_EQ(bytes.verdict, TmemVerdict::kPack);
  EXPECT_EQ(bytes.columns_read, 16);
}

TEST(TmemHandoffs, SomeFormsMustChangeLanes) {
  EXPECT_EQ(analyze_tmem_handoff(tmem_c(TmemRows::kM64Ws, 64), tmem_a(TmemRows::kM64, 64, 16), 16)
                .verdict,
            TmemVerdict::kLanes);
  EXPECT_EQ(analyze_tmem_handoff(tmem_c(TmemRows::kPairM128, 128),
                                 tmem_a(TmemRows::kPairM128, 128, 16), 16)
                .verdict,
            TmemVerdict::kLanes);
  EXPECT_THROW(
      analyze_tmem_handoff(tmem_c(TmemRows::kM64, 64), tmem_a(TmemRows::kM128, 64, 16), 16), Error);
}

// The remedy works: the thread of a lane loads its row with 32x32b, packs pairs and stores half as
// many columns.
TEST(TmemHandoffs, PackingWithinTheLanePutsEveryElementWhereTheMmaReadsIt) {
  constexpr int kN = 128;
  const Layout load = tmem_ld(TmemShape::k32x32b, kN), store = tmem_ld(TmemShape::k32x32b, kN / 2);
  const Layout c = tmem_c(TmemRows::kM128, kN), a = tmem_a(TmemRows::kM128, kN, 16);
  for (int warp = 0; warp < 4; ++warp) {
    for (int t = 0; t < 32; ++t) {
      const int row = 32 * warp + t;
      for (int r = 0; r < kN / 2; ++r) {
        for (int half = 0; half < 2; ++half) {
          const int column = 2 * r + half;
          EXPECT_EQ(load(t, column) + 32 * warp * kTmemLane, c(row, column))
              << "what the thread loads";
          EXPECT_EQ((store(t, r) + 32 * warp * kTmemLane) * 2 + half, a(row, column))
              << "where it must go";
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::arch
