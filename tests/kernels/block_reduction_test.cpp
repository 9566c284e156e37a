// Reductions and a scan per CTA: integers exactly, floats within the bound of any order.
#include "kernels/probe/block_reduction.h"

#include "reference/error_bound.h"
#include "tests/kernels/kernel_test.h"

#include <cmath>
#include <limits>

namespace tilewright::kernels {
namespace {

struct Results {
  std::vector<float> sum, largest;
  std::vector<std::int32_t> int_sum, prefix;
  std::vector<std::uint32_t> int_xor, num_negative;
};

class BlockReduction : public KernelTest {
 protected:
  static Results reduce(const Device& device, int rows, int cols, const std::vector<float>& floats,
                        const std::vector<std::int32_t>& ints) {
    const Buffer float_buffer = Buffer::from(device, floats),
                 int_buffer = Buffer::from(device, ints);
    const Output<float> sum(device, rows), largest(device, rows);
    const Output<std::int32_t> int_sum(device, rows), prefix(device, ints.size());
    const Output<std::uint32_t> int_xor(device, rows), num_negative(device, rows);
    if (rows > 0) {
      run_kernel(device, "block_reduction",
                 {.grid = {static_cast<std::uint32_t>(rows)}, .block = {kBlockReductionThreads}},
                 BlockReductionParams{pointer_to<const float>(float_buffer),
                                      pointer_to<const std::int32_t>(int_buffer), sum.pointer(),
                                      largest.pointer(), int_sum.pointer(), int_xor.pointer(),
                                      num_negative.pointer(), prefix.pointer(), cols});
    }
    return {sum.read(),    largest.read(), int_sum.read(),
            prefix.read(), int_xor.read(), num_negative.read()};
  }

  static void check_row(int row, int cols, const std::vector<float>& floats,
                        const std::vector<std::int32_t>& ints, const Results& results) {
    double exact = 0, magnitude = 0;
    float largest = -std::numeric_limits<float>::infinity();
    std::uint32_t int_sum = 0, int_xor = 0, num_negative = 0;
    for (int i = row * cols; i < (row + 1) * cols; ++i) {
      exact += floats[i];
      magnitude += std::abs(floats[i]);
      largest = std::max(largest, floats[i]);
      int_sum += static_cast<std::uint32_t>(ints[i]);
      int_xor ^= static_cast<std::uint32_t>(ints[i]);
      num_negative += ints[i] < 0 ? 1 : 0;
      ASSERT_EQ(static_cast<std::uint32_t>(results.prefix[i]), int_sum) << "up to " << i;
    }
    const double bound = reference::dot_error_bound(
        {.length = cols, .accumulate_roundoff = reference::kRoundoffFp32}, exact, magnitude);
    EXPECT_LE(std::abs(results.sum[row] - exact), bound);
    EXPECT_EQ(results.largest[row], largest);
    EXPECT_EQ(static_cast<std::uint32_t>(results.int_sum[row]), int_sum);
    EXPECT_EQ(results.int_xor[row], int_xor);
    EXPECT_EQ(results.num_negative[row], num_negative);
  }

  void check(int rows, int cols) {
    SCOPED_TRACE(fmt::format("{} rows of {}", rows, cols));
    Random random(static_cast<std::uint64_t>(rows * 1000 + cols));
    std::vector<float> floats;
    std::vector<std::int32_t> ints;
    for (int i = 0; i < rows * cols; ++i) {
      floats.push_back(static_cast<float>(random.uniform(-100, 100)));
      ints.push_back(static_cast<std::int32_t>(random.bits()));  // sums wrap around
    }
    const auto run = [&](const Device& where) { return reduce(where, rows, cols, floats, ints); };
    const Results results = run(device());
    for (int row = 0; row < rows; ++row) check_row(row, cols, floats, ints, results);
    // The order of the additions is that of the program.
    expect_same_on_simulator([&](const Device& where) { return run(where).sum; }, results.sum);
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(BlockReduction);

TEST_P(BlockReduction, WholeBlocks) {
  check(7, 2 * kBlockReductionThreads);
}
TEST_P(BlockReduction, RaggedRows) {
  check(3, 1);
  check(4, 31);
  check(5, 33);
  check(2, 257);
  check(3, 1000);
}
TEST_P(BlockReduction, EmptyRows) {
  check(3, 0);
  check(0, 5);
}

}  // namespace
}  // namespace tilewright::kernels
