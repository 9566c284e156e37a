// What kernels of packed weights and the block-scaled GEMM count by hand, against the layouts of
// the instructions: for all threads and registers, at compile time.

#include "arch/fragments/mma_sync.h"
#include "arch/fragments/tmem.h"
#include "arch/fragments/wgmma.h"
#include "formats/packed_matrix.h"

#include <gtest/gtest.h>

namespace tilewright::arch {
namespace {

using kernels::WeightFormat;

// Weights of wgmma.m64nNk32 from packed bricks (kernels/linear/wide/e4m3_weights.h). Lane
// (g, s) reads granule (g, s); product `i` of a block of 64 takes its words 2 i and 2 i + 1.
// Register r of the operand is word 2 i + r / 2 of row g + 8 (r % 2). Its reduction index `slot` is
// that of the token's byte 32 i + slot, and so element operand_order(32 i + slot).
constexpr bool granules_are_operands(WeightFormat format, int i) {
  for (int t = 0; t < 128; ++t) {
    const int g = t % 32 / 4, s = t % 4, granule = kernels::granule_position(g, s) * 4;
    for (int value = 0; value < 16; ++value) {
      const int r = value / 4, row = g + 8 * (r % 2);
      const auto at = static_cast<int>(kWgmmaA8(t, value)), slot = at / 64;
      if (at % 64 != t / 32 * 16 + row) return false;
      const kernels::BrickPlace place =
          kernels::brick_place(format, row, kernels::operand_order(32 * i + slot));
      const int second_row = r % 2, byte = value % 4;
      const bool is_fp8 = format == WeightFormat::kFp8;
      const int plane = is_fp8 ? second_row * kernels::kGranules * 4 : 0;
      if (place.word != plane + granule + 2 * i + r / 2) return false;
      if (place.place != (is_fp8 ? byte : 4 * second_row + byte)) return false;
    }
  }
  return true;
}
static_assert(granules_are_operands(WeightFormat::kFp8, 0));
static_assert(granules_are_operands(WeightFormat::kFp8, 1));
static_assert(granules_are_operands(WeightFormat::kNvfp4, 0));
static_assert(granules_are_operands(WeightFormat::kNvfp4, 1));
static_assert(granules_are_operands(WeightFormat::kMxfp4, 0));

// Weights of wgmma.m64nNk16 from the same bricks (kernels/linear/wide/weights.h). In step `j` of 16
// lane (g, s) reads word s of granule (g, j), of FP8 one for each row, of bf16 one for each
// register. Register r of the operand is row g + 8 (r % 2), k from 2 s + 8 (r / 2) on.
constexpr bool steps_are_operands(WeightFormat format, int j) {
  for (int t = 0; t < 128; ++t) {
    const int g = t % 32 / 4, s = t % 4;
    for (int value = 0; value < 8; ++value) {
      const int r = value / 2, row = g + 8 * (r % 2), half = value % 2, upper = r / 2;
      const auto at = static_cast<int>(kWgmmaA16(t, value)), k = at / 64;
      if (at % 64 != t / 32 * 16 + row) return false;
      const bool is_bf16 = format == WeightFormat::kBf16, is_fp8 = format == WeightFormat::kFp8;
      const int part = is_bf16 ? 2 * (r % 2) + upper : is_fp8 ? r % 2 : 0;
      const int of_row = is_bf16 ? half : 2 * upper + half;
      const kernels::BrickPlace place = kernels::brick_place(format, row, 16 * j + k);
      if (place.word != part * 128 + kernels::granule_position(g, j) * 4 + s) return false;
      if (place.place != (kernels::is_fp4(format) ? 4 * (r % 2) : 0) + of_row) return false;
    }
  }
  return true;
}
constexpr bool all_steps_are_operands(WeightFormat format) {
  return steps_are_operands(format, 0) && steps_are_operands(format, 1) &&
         steps_are_operands(format, 2) && steps_are_operands(format, 3);
}
static_assert(all_steps_are_operands(WeightFormat::kNvfp4));
static_assert(all_steps_are_operands(WeightFormat::kMxfp4));
static_assert(all_steps_are_operands(WeightFormat::kFp8));
static_assert(all_steps_are_operands(WeightFormat::kBf16));

// mma.sync.m16n8k16, with which `band` and `direct` multiply, takes the fragment of a warp alike.
constexpr bool is_fragment_of_a_warp() {
  for (int t = 0; t < 32; ++t) {
    for (int value = 0; value < 8; ++value) {
      const auto at = static_cast<int>(kWgmmaA16(t, value));
      if (kMmaM16N8K16.a_tv(t, value) != at % 64 + 16 * (at / 64)) return false;
    }
  }
  return true;
}
static_assert(is_fragment_of_a_warp());

// Scales of FP4: a lane reads those of its two rows side by side, of NVFP4 a word each.
constexpr bool scales_are_side_by_side(WeightFormat format, int groups) {
  for (int row = 0; row < 16; ++row) {
    for (int k = 0; k < kernels::kBrickK; ++k) {
      const int of_lane =
          kernels::brick_code_bytes(format) + row % 8 * kernels::brick_scale_bytes(format) / 8;
      const int group = k * groups / kernels::kBrickK;
      if (kernels::brick_scale_offset(format, row, k) != of_lane + row / 8 * groups + group)
        return false;
    }
  }
  return true;
}
static_assert(scales_are_side_by_side(WeightFormat::kNvfp4, 4));
static_assert(scales_are_side_by_side(WeightFormat::kMxfp4, 2));

// Results of the block-scaled GEMM (kernels/linear/block_scaled/results.h): in each CTA of a pair
// thread t of warp w loads, by .32x32b.x64, columns 64 u to 64 u + 63 of the CTA's row 32 w + t.
constexpr bool threads_have_rows(TmemRows rows, int n) {
  const Layout c = tmem_c(rows, n), load = tmem_ld(TmemShape::k32x32b, 64);
  for (int row = 0; row < tmem_m(rows); ++row) {
    const int cta = row / 128, warp = row % 128 / 32, t = row % 32;
    for (int column = 0; column < n; ++column) {
      const std::int64_t run = column / 64 * 64, of_warp = cta * kTmemCta + 32 * warp * kTmemLane;
      if (c(row, column) != of_warp + run + load(t, column % 64)) return false;
    }
  }
  return true;
}

TEST(PackedOperand, ThreadsOfTheBlockScaledEpilogueHaveRows) {
  for (const int n : {64, 128}) EXPECT_TRUE(threads_have_rows(TmemRows::kM128, n)) << n;
  for (const int n : {192, 256}) EXPECT_TRUE(threads_have_rows(TmemRows::kPairM256, n)) << n;
}

// A pair that kept half of the columns in the other CTA would need other threads.
TEST(PackedOperand, NotOfAPairThatSharesRows) {
  EXPECT_FALSE(threads_have_rows(TmemRows::kPairM128, 128));
}

}  // namespace
}  // namespace tilewright::arch
