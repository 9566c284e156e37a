#include "sim/tensor/fragments.h"

#include <functional>
#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

/// Expects that threads x elements cover rows x cols exactly once.
void expect_bijection(int threads, int elems, int rows, int cols,
                      const std::function<FragmentElement(int thread, int elem)>& element) {
  ASSERT_EQ(threads * elems, rows * cols);
  std::set<std::pair<int, int>> seen;
  for (int thread = 0; thread < threads; ++thread) {
    for (int elem = 0; elem < elems; ++elem) {
      const FragmentElement at = element(thread, elem);
      ASSERT_TRUE(0 <= at.row && at.row < rows) << thread << " " << elem;
      ASSERT_TRUE(0 <= at.col && at.col < cols) << thread << " " << elem;
      seen.insert({at.row, at.col});
    }
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(rows * cols));
}

struct MmaShape {
  FragmentWidth width;
  int k;
};
constexpr MmaShape kMmaShapes[] = {
    {FragmentWidth::k16Bit, 8},  {FragmentWidth::k16Bit, 16}, {FragmentWidth::k32Bit, 4},
    {FragmentWidth::k32Bit, 8},  {FragmentWidth::k8Bit, 16},  {FragmentWidth::k8Bit, 32},
    {FragmentWidth::k4Bit, 32},  {FragmentWidth::k4Bit, 64},  {FragmentWidth::k1Bit, 128},
    {FragmentWidth::k1Bit, 256}, {FragmentWidth::k64Bit, 4},  {FragmentWidth::k64Bit, 8},
    {FragmentWidth::k64Bit, 16}};

TEST(Fragments, MmaOperandsAreBijections) {
  for (const auto& [width, k] : kMmaShapes) {
    const auto a = mma_operand_extents(16, k, width);
    expect_bijection(32, a.registers * a.elems_per_register, 16, k, [&](int lane, int i) {
      return mma_a_element(width, lane, i / a.elems_per_register, i % a.elems_per_register);
    });
    const auto b = mma_operand_extents(8, k, width);
    expect_bijection(32, b.registers * b.elems_per_register, 8, k, [&](int lane, int i) {
      return mma_b_element(width, lane, i / b.elems_per_register, i % b.elems_per_register);
    });
  }
  expect_bijection(32, 4, 16, 8, mma_c_element);
  expect_bijection(32, 1, 8, 4, [](int lane, int) { return mma_m8n8k4_f64_operand_element(lane); });
  expect_bijection(32, 2, 8, 8, mma_m8n8k4_f64_c_element);
}

TEST(Fragments, WgmmaOperandsAreBijections) {
  expect_bijection(128, 8, 64, 16, wgmma_a16_element);
  expect_bijection(128, 16, 64, 32, wgmma_a8_element);
  expect_bijection(128, 4, 64, 8, wgmma_a32_element);
  expect_bijection(128, 128, 64, 256, wgmma_a1_element);
  for (int n = 8; n <= 256; n += 8) expect_bijection(128, n / 2, 64, n, wgmma_d_element);
}

TEST(Fragments, MatricesOfLdmatrixAreBijections) {
  expect_bijection(32, 2, 8, 8, matrix_m8n8_element);
  EXPECT_EQ(matrix_address_lane(3, 5), 29);
}

TEST(Fragments, NumbersOfRegisters) {
  const auto extents = [](int rows, int k, FragmentWidth width) {
    const auto e = mma_operand_extents(rows, k, width);
    return std::pair(e.registers, e.elems_per_register);
  };
  EXPECT_EQ(extents(16, 16, FragmentWidth::k16Bit), std::pair(4, 2));
  EXPECT_EQ(extents(8, 16, FragmentWidth::k16Bit), std::pair(2, 2));
  EXPECT_EQ(extents(16, 8, FragmentWidth::k32Bit), std::pair(4, 1));
  EXPECT_EQ(extents(16, 32, FragmentWidth::k8Bit), std::pair(4, 4));
  EXPECT_EQ(extents(8, 64, FragmentWidth::k4Bit), std::pair(2, 8));
  EXPECT_EQ(extents(16, 256, FragmentWidth::k1Bit), std::pair(4, 32));
  EXPECT_EQ(extents(16, 16, FragmentWidth::k64Bit), std::pair(8, 1));
  EXPECT_EQ(extents(8, 4, FragmentWidth::k64Bit), std::pair(1, 1));
}

TEST(Fragments, SpotValuesOfMma) {
  // Lane 21: groupID 5, threadID_in_group 1.
  EXPECT_EQ(mma_a_element(FragmentWidth::k16Bit, 21, 1, 1), (FragmentElement{13, 3}));
  EXPECT_EQ(mma_a_element(FragmentWidth::k16Bit, 21, 2, 0), (FragmentElement{5, 10}));
  EXPECT_EQ(mma_b_element(FragmentWidth::k16Bit, 21, 1, 1), (FragmentElement{5, 11}));
  EXPECT_EQ(mma_a_element(FragmentWidth::k32Bit, 21, 3, 0), (FragmentElement{13, 5}));
  EXPECT_EQ(mma_a_element(FragmentWidth::k8Bit, 21, 2, 3), (FragmentElement{5, 23}));
  EXPECT_EQ(mma_b_element(FragmentWidth::k8Bit, 21, 1, 0), (FragmentElement{5, 20}));
  EXPECT_EQ(mma_a_element(FragmentWidth::k4Bit, 21, 3, 7), (FragmentElement{13, 47}));
  EXPECT_EQ(mma_a_element(FragmentWidth::k1Bit, 21, 2, 31), (FragmentElement{5, 191}));
  EXPECT_EQ(mma_a_element(FragmentWidth::k64Bit, 21, 5, 0), (FragmentElement{13, 9}));
  EXPECT_EQ(mma_c_element(21, 2), (FragmentElement{13, 2}));
  EXPECT_EQ(mma_c_element(21, 1), (FragmentElement{5, 3}));
  EXPECT_EQ(mma_m8n8k4_f64_c_element(21, 1), (FragmentElement{5, 3}));
}

TEST(Fragments, SpotValuesOfWgmma) {
  // Thread 85: warp 2, groupID 5, threadID_in_group 1.
  EXPECT_EQ(wgmma_d_element(85, 0), (FragmentElement{37, 2}));
  EXPECT_EQ(wgmma_d_element(85, 3), (FragmentElement{45, 3}));
  EXPECT_EQ(wgmma_d_element(85, 126), (FragmentElement{45, 250}));
  EXPECT_EQ(wgmma_a16_element(85, 5), (FragmentElement{37, 11}));
  EXPECT_EQ(wgmma_a8_element(85, 14), (FragmentElement{45, 22}));
  EXPECT_EQ(wgmma_a32_element(85, 2), (FragmentElement{37, 5}));
  EXPECT_EQ(wgmma_a1_element(85, 33), (FragmentElement{45, 33}));
}

TEST(Fragments, AWarpOfWgmmaHoldsWhatMmaHolds) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(wgmma_a16_element(lane, i),
                mma_a_element(FragmentWidth::k16Bit, lane, i / 2, i % 2));
    }
    for (int i = 0; i < 128; ++i) {
      EXPECT_EQ(wgmma_a1_element(lane, i),
                mma_a_element(FragmentWidth::k1Bit, lane, i / 32, i % 32));
    }
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(wgmma_a8_element(lane, i), mma_a_element(FragmentWidth::k8Bit, lane, i / 4, i % 4));
    }
  }
}

}  // namespace
}  // namespace tilewright::sim
