// Atomics on shared and global memory: every count, minimum, maximum and sum is exact.
#include "kernels/probe/histogram.h"

#include "tests/kernels/kernel_test.h"

namespace tilewright::kernels {
namespace {

struct Histogram {
  std::vector<std::uint32_t> counts = std::vector<std::uint32_t>(kHistogramBins);
  std::vector<std::uint32_t> last_index = counts;
  std::vector<std::uint32_t> first_index = std::vector<std::uint32_t>(kHistogramBins, ~0u);
  unsigned long long index_sum = 0;
};

Histogram expected_of(const std::vector<std::uint8_t>& values) {
  Histogram expected;
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    const std::uint8_t value = values[i];
    ++expected.counts[value];
    expected.last_index[value] = i;
    expected.first_index[value] = std::min(expected.first_index[value], i);
    expected.index_sum += (i + 1ull) * value;
  }
  return expected;
}

class HistogramKernel : public KernelTest {
 protected:
  void check(const std::vector<std::uint8_t>& values, std::uint32_t ctas) {
    SCOPED_TRACE(fmt::format("{} values, {} CTAs", values.size(), ctas));
    const Histogram zero;
    const Buffer in = Buffer::from(device(), values);
    const Buffer counts = Buffer::from(device(), zero.counts);
    const Buffer last = Buffer::from(device(), zero.last_index);
    const Buffer first = Buffer::from(device(), zero.first_index);
    const Buffer weights = Buffer::from(device(), std::vector<float>(kHistogramBins, 1.0f));
    const Buffer index_sum = Buffer::from(device(), std::vector<unsigned long long>(1));
    const Buffer finished = Buffer::from(device(), std::vector<std::uint32_t>(1));
    const Output<std::uint32_t> total(device(), 1);
    run_kernel(
        device(), "histogram", {.grid = {ctas}, .block = {kHistogramThreads}},
        HistogramParams{pointer_to<const std::uint8_t>(in), pointer_to<std::uint32_t>(counts),
                        pointer_to<float>(weights), pointer_to<std::uint32_t>(last),
                        pointer_to<std::uint32_t>(first), pointer_to<unsigned long long>(index_sum),
                        pointer_to<std::uint32_t>(finished), total.pointer(),
                        static_cast<std::uint32_t>(values.size())});
    const Histogram expected = expected_of(values);
    EXPECT_EQ(counts.to_vector<std::uint32_t>(), expected.counts);
    EXPECT_EQ(last.to_vector<std::uint32_t>(), expected.last_index);
    EXPECT_EQ(first.to_vector<std::uint32_t>(), expected.first_index);
    EXPECT_EQ(index_sum.to_vector<unsigned long long>()[0], expected.index_sum);
    EXPECT_EQ(finished.to_vector<std::uint32_t>()[0], ctas);
    EXPECT_EQ(total.read()[0], values.size());
    std::vector<float> halves;  // exact: multiples of 1/2 below 2^23
    for (const std::uint32_t count : expected.counts)
      halves.push_back(1.0f + 0.5f * static_cast<float>(count));
    EXPECT_EQ(weights.to_vector<float>(), halves);
  }

  static std::vector<std::uint8_t> random_values(std::size_t count, std::uint64_t mask) {
    Random random(count);
    std::vector<std::uint8_t> values;
    for (std::size_t i = 0; i < count; ++i)
      values.push_back(static_cast<std::uint8_t>(random.bits() & mask));
    return values;
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(HistogramKernel);

TEST_P(HistogramKernel, AllValues) {
  check(random_values(20011, 0xff), 7);
}
TEST_P(HistogramKernel, FewValuesManyCollisions) {
  check(random_values(5000, 0x81), 4);
}
TEST_P(HistogramKernel, OneValue) {
  check({201}, 1);
}
TEST_P(HistogramKernel, MoreThreadsThanValues) {
  check(random_values(300, 0x0f), 5);
}
TEST_P(HistogramKernel, NoValues) {
  check({}, 3);
}

}  // namespace
}  // namespace tilewright::kernels
