// Powers by multiply-adds, and half sums in three bytes, against their derived bounds.
#include "kernels/probe/row_math.h"

#include "tests/kernels/kernel_test.h"

#include <cmath>
#include <limits>

namespace tilewright::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class RowMath : public BlackwellKernelTest {
 protected:
  std::vector<float> powers(const std::vector<float>& x) {
    const Buffer in = Buffer::from(device(), x);
    const Output<float> out(device(), x.size());
    const auto pairs = static_cast<std::int32_t>(x.size() / 2);
    run_kernel(device(), "row_math_powers",
               {.grid = {static_cast<std::uint32_t>(ceil_div(pairs, 256))}, .block = {256}},
               RowMathPowersParams{pointer_to<const float>(in), out.pointer(), pairs});
    return out.read();
  }
  std::vector<float> sums(const std::vector<float>& x, const std::vector<float>& away,
                          float scale_log2) {
    const Buffer in = Buffer::from(device(), x), sent = Buffer::from(device(), away);
    const Output<float> out(device(), x.size());
    run_kernel(device(), "row_math_half_sums", {.grid = {1}, .block = {64}},
               RowMathHalfSumsParams{pointer_to<const float>(in), pointer_to<const float>(sent),
                                     out.pointer(), scale_log2});
    return out.read();
  }
  static std::size_t partner(std::size_t i) { return (i + 32 * 32) % (64 * 32); }
};
TILEWRIGHT_ON_EVERY_BLACKWELL(RowMath);

TEST_P(RowMath, PowersAreAsExactAsTheSpecialFunctionUnits) {
  std::vector<float> x;
  for (int i = 0; i < 1 << 16; ++i)
    x.push_back(-126.0f + 134.0f * static_cast<float>(i) / 65536.0f);
  for (int i = 0; i < 1 << 14; ++i) x.push_back(std::ldexp(1.0f, -i % 30) * (i % 2 == 0 ? 1 : -1));
  const std::vector<float> y = powers(x);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp2(static_cast<double>(x[i]));
    worst = std::max(worst, std::fabs(y[i] / exact - 1));
  }
  EXPECT_LE(worst, 1.75e-7);  // derived beside the function; the bound that is used is 2^-22
  EXPECT_GT(worst, 0x1p-24);  // it is no exp2f
}

TEST_P(RowMath, PowersOfWhatIsFarAway) {
  const std::vector<float> y =
      powers({-127.0f, -1000.0f, -kInf, kNan, 0.0f, -0.0f, 127.0f, -126.0f});
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 0);
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_EQ(y[4], 1);
  EXPECT_EQ(y[5], 1);
  EXPECT_EQ(y[6], 0x1p127f);
  EXPECT_EQ(y[7], 0x1p-126f);
}

// Rows of all sizes: a sum is off by at most 2^-22 of its row's largest, and by its own rounding.
TEST_P(RowMath, HalfSumsInThreeBytes) {
  Random random(7);
  std::vector<float> x(64 * 32), away = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const int row = static_cast<int>(i / 32), size = row % 32 < 28 ? row % 32 - 24 : -140 - row % 4;
    x[i] = static_cast<float>(random.uniform(-1, 1));
    away[i] = std::ldexp(static_cast<float>(random.uniform(-1, 1)), size);
  }
  away[0] = 8, away[1] = -8, away[32 * 31 + 5] = 0;  // powers of two are sent exactly
  const std::vector<float> y = sums(x, away, -1.0f);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t from = partner(i), row = from / 32 * 32;
    double largest = 0;
    for (std::size_t j = 0; j < 32; ++j)
      largest = std::max(largest, std::fabs(static_cast<double>(away[row + j])));
    const double exact = static_cast<double>(x[i]) + away[from];
    const double error = std::fabs(y[i] - exact) - 0x1p-24 * std::fabs(exact);
    EXPECT_LE(error, 0x1p-22 * largest) << i;
    worst = std::max(worst, error / std::max(largest, 1e-30));
  }
  EXPECT_GT(worst, 0x1p-26);  // three bytes
  EXPECT_EQ(y[partner(0)], x[partner(0)] + 8);
  EXPECT_EQ(y[partner(1)], x[partner(1)] - 8);
}

// A sum that is not finite, or too large for three bytes, sends its warp's as they are.
TEST_P(RowMath, HalfSumsAsTheyAre) {
  Random random(8);
  std::vector<float> x(64 * 32), away = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(random.uniform(-1, 1));
    away[i] = static_cast<float>(random.uniform(-1, 1));
  }
  for (const float large : {kInf, -kInf, kNan, 1e30f, 65.0f}) {
    away[32 * 3 + 7] = large;
    const std::vector<float> y = sums(x, away, 0.5f);
    for (std::size_t i = 32 * 32; i < x.size(); ++i) {  // the other warp's
      const float exact = x[i] + away[partner(i)];
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(y[i]));
      } else {
        EXPECT_EQ(y[i], exact) << large << " " << i;
      }
    }
    for (std::size_t i = 0; i < 32 * 32; ++i)
      EXPECT_NEAR(y[i], x[i] + away[partner(i)], 0x1p-22 + 0x1p-23);
  }
}

}  // namespace
}  // namespace tilewright::kernels
