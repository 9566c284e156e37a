// The second witness for fragment layouts: the index formulas of the PTX manual, written out here
// without any layout, against the algebra's layouts, for every (thread, value).

#include "arch/fragments/matrix_copy.h"
#include "arch/fragments/mma_sync.h"
#include "arch/fragments/wgmma.h"
#include "base/error.h"
#include "layout/print.h"

#include <gtest/gtest.h>

namespace tilewright::arch {
namespace {

struct Element {
  int row, column;
};

// Checks a (thread, value) layout over a column-major tile of `rows` rows against a formula.
template <class Formula>
void expect_map(const Layout& tv, int threads, int values, int rows, Formula formula) {
  ASSERT_EQ(size(tv, 0), threads) << to_string(tv);
  ASSERT_EQ(size(tv, 1), values) << to_string(tv);
  for (int t = 0; t < threads; ++t) {
    for (int v = 0; v < values; ++v) {
      const Element at = formula(t, v);
      ASSERT_EQ(tv(t, v), at.row + rows * at.column)
          << to_string(tv) << " thread " << t << " value " << v;
    }
  }
}

// g = lane / 4 and q = lane % 4: "groupID" and "threadID_in_group" of the manual.
int g(int t) {
  return t % 32 / 4;
}
int q(int t) {
  return t % 4;
}

TEST(MmaSync, M16N8K16SixteenBit) {
  expect_map(kMmaM16N8K16.a_tv, 32, 8, 16, [](int t, int i) -> Element {
    return {g(t) + (i / 2 % 2 ? 8 : 0), 2 * q(t) + i % 2 + (i >= 4 ? 8 : 0)};
  });
  expect_map(kMmaM16N8K16.b_tv, 32, 4, 8, [](int t, int i) -> Element {
    return {g(t), 2 * q(t) + i % 2 + (i >= 2 ? 8 : 0)};
  });
  expect_map(kMmaM16N8K16.c_tv, 32, 4, 16, [](int t, int i) -> Element {
    return {g(t) + (i >= 2 ? 8 : 0), 2 * q(t) + i % 2};
  });
}

TEST(MmaSync, M16N8K8SixteenBit) {
  expect_map(kMmaM16N8K8.a_tv, 32, 4, 16, [](int t, int i) -> Element {
    return {g(t) + (i >= 2 ? 8 : 0), 2 * q(t) + i % 2};
  });
  expect_map(kMmaM16N8K8.b_tv, 32, 2, 8, [](int t, int i) -> Element {
    return {g(t), 2 * q(t) + i};
  });
  expect_map(kMmaM16N8K8.c_tv, 32, 4, 16, [](int t, int i) -> Element {
    return {g(t) + (i >= 2 ? 8 : 0), 2 * q(t) + i % 2};
  });
}

TEST(MmaSync, M16N8K8Tf32) {
  expect_map(kMmaM16N8K8Tf32.a_tv, 32, 4, 16, [](int t, int i) -> Element {
    return {g(t) + (i % 2 ? 8 : 0), q(t) + (i >= 2 ? 4 : 0)};
  });
  expect_map(kMmaM16N8K8Tf32.b_tv, 32, 2, 8, [](int t, int i) -> Element {
    return {g(t), q(t) + 4 * i};
  });
  expect_map(kMmaM16N8K8Tf32.c_tv, 32, 4, 16, [](int t, int i) -> Element {
    return {g(t) + (i >= 2 ? 8 : 0), 2 * q(t) + i % 2};
  });
}

TEST(MmaSync, M16N8K32EightBit) {
  expect_map(kMmaM16N8K32.a_tv, 32, 16, 16, [](int t, int i) -> Element {
    return {g(t) + (i / 4 % 2 ? 8 : 0), 4 * q(t) + i % 4 + (i >= 8 ? 16 : 0)};
  });
  expect_map(kMmaM16N8K32.b_tv, 32, 8, 8, [](int t, int i) -> Element {
    return {g(t), 4 * q(t) + i % 4 + (i >= 4 ? 16 : 0)};
  });
}

TEST(MmaSync, M16N8K16EightBit) {
  expect_map(kMmaM16N8K16Bytes.a_tv, 32, 8, 16, [](int t, int i) -> Element {
    return {g(t) + (i >= 4 ? 8 : 0), 4 * q(t) + i % 4};
  });
  expect_map(kMmaM16N8K16Bytes.b_tv, 32, 4, 8, [](int t, int i) -> Element {
    return {g(t), 4 * q(t) + i};
  });
}

TEST(MatrixCopy, LdmatrixAndStmatrix) {
  for (const int matrices : {1, 2, 4}) {
    const int rows = 8 * matrices;
    const auto registers = [&](int t, int v, bool transposed) -> Element {
      const int matrix = v / 2, half = v % 2;
      const int row = transposed ? 2 * q(t) + half : g(t);
      const int column = transposed ? g(t) : 2 * q(t) + half;
      return {8 * matrix + row, column};
    };
    expect_map(matrix_registers(matrices, false), 32, 2 * matrices, rows,
               [&](int t, int v) { return registers(t, v, false); });
    expect_map(matrix_registers(matrices, true), 32, 2 * matrices, rows,
               [&](int t, int v) { return registers(t, v, true); });
    expect_map(matrix_rows(matrices), 32, 8, rows, [&](int t, int v) -> Element {
      return {t % rows, v};  // lanes beyond the last row repeat
    });
  }
}

// What a kernel does with ldmatrix: lane 8j + r addresses row r of matrix j, and the registers that
// arrive are the A fragment of m16n8k16 when the four matrices are the quarters of the 16x16 tile
// in the right order.
TEST(MatrixCopy, LdmatrixX4LoadsTheAFragment) {
  const Layout received = matrix_registers(4, false);
  for (int t = 0; t < 32; ++t) {
    for (int v = 0; v < 8; ++v) {
      const auto at = static_cast<int>(received(t, v));
      const int stacked_row = at % 32, column = at / 32;
      const int matrix =
          stacked_row / 8;  // matrices: (rows 0-7, k 0-7) (8-15, 0-7) (0-7, 8-15) (8-15, 8-15)
      const int m = stacked_row % 8 + matrix % 2 * 8, k = column + matrix / 2 * 8;
      EXPECT_EQ(kMmaM16N8K16.a_tv(t, v), m + 16 * k);
    }
  }
}

TEST(Wgmma, AccumulatorForEveryN) {
  for (int n = 8; n <= 256; n += 8) {
    expect_map(wgmma_c(n), 128, n / 2, 64, [](int t, int v) -> Element {
      return {16 * (t / 32) + g(t) + 8 * (v / 2 % 2), 8 * (v / 4) + 2 * q(t) + v % 2};
    });
  }
}

TEST(Wgmma, AFromRegisters) {
  expect_map(kWgmmaA16, 128, 8, 64, [](int t, int i) -> Element {
    return {16 * (t / 32) + g(t) + 8 * (i / 2 % 2), 2 * q(t) + i % 2 + 8 * (i / 4)};
  });
  expect_map(kWgmmaA8, 128, 16, 64, [](int t, int i) -> Element {
    return {16 * (t / 32) + g(t) + 8 * (i / 4 % 2), 4 * q(t) + i % 4 + 16 * (i / 8)};
  });
  expect_map(kWgmmaATf32, 128, 4, 64, [](int t, int i) -> Element {
    return {16 * (t / 32) + g(t) + 8 * (i % 2), q(t) + 4 * (i / 2)};
  });
}

TEST(Wgmma, AtomsAreConsistent) {
  for (const int bits : {8, 16, 32}) {
    for (int n = 8; n <= 256; n += 8) {
      for (const MmaAtom& atom : {make_wgmma_ss(n, bits), make_wgmma_rs(n, bits)}) {
        EXPECT_EQ(atom.k() * bits, 256) << "one instruction reduces over 32 bytes";
        EXPECT_EQ(cosize(atom.a_tv), atom.m() * atom.k());
        EXPECT_EQ(cosize(atom.b_tv), atom.n() * atom.k());
        EXPECT_EQ(cosize(atom.c_tv), atom.m() * atom.n());
        EXPECT_EQ(size(atom.c_tv), atom.m() * atom.n());
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::arch
