// The indexer's selection on rows of any numbers: exact sets, ties, NaN, every way to the
// threshold, page translation.
#include "kernels/sparse_attention/indexer/indexer_topk.h"

#include "ops/operator/make_fast_divisor.h"
#include "reference/top_k.h"
#include "tests/kernels/kernel_test.h"

#include <cmath>
#include <limits>

namespace tilewright::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct TopkCase {
  std::vector<std::vector<float>> rows;  ///< of logits, as long as the token's length
  std::int32_t topk = 16;
  std::uint32_t cluster = 1;
  std::int32_t held = 4096;
  std::int32_t page_size = 0;  ///< 0: no table
};

class IndexerTopkTest : public KernelTest {
 protected:
  // Pages in no order; every fifth is not there.
  static std::vector<std::int32_t> make_table(std::int32_t blocks) {
    std::vector<std::int32_t> table;
    for (std::int32_t i = 0; i < blocks; ++i) table.push_back(i % 5 == 4 ? -1 : blocks - 1 - i);
    return table;
  }

  static std::vector<std::int32_t> expect_rows(const TopkCase& c, const std::vector<float>& row,
                                               const std::vector<std::int32_t>& table) {
    const auto count = std::min<std::size_t>(row.size(), static_cast<std::size_t>(c.topk));
    std::vector<std::int32_t> entries = reference::top_k(
        std::vector<double>(row.begin(), row.end()), static_cast<std::int64_t>(count));
    std::sort(entries.begin(), entries.end());
    for (std::int32_t& entry : entries) {
      if (c.page_size == 0) continue;
      const std::int32_t page = table[static_cast<std::size_t>(entry / c.page_size)];
      entry = page < 0 ? -1 : page * c.page_size + entry % c.page_size;
    }
    entries.resize(static_cast<std::size_t>(c.topk), -1);
    return entries;
  }

  void check(const TopkCase& c) const {
    const auto tokens = static_cast<std::int32_t>(c.rows.size());
    std::size_t longest = 4;
    std::vector<std::int32_t> lengths;
    for (const auto& row : c.rows) {
      lengths.push_back(static_cast<std::int32_t>(row.size()));
      longest = std::max(longest, (row.size() + 3) / 4 * 4);
    }
    // What lies behind a row would win if it were looked at.
    std::vector<float> logits(longest * c.rows.size(), kInfinity);
    for (std::size_t t = 0; t < c.rows.size(); ++t)
      std::copy(c.rows[t].begin(), c.rows[t].end(),
                logits.begin() + static_cast<std::ptrdiff_t>(t * longest));
    const std::int32_t blocks =
        c.page_size == 0 ? 1 : static_cast<std::int32_t>(longest) / c.page_size + 1;
    const std::vector<std::int32_t> table = make_table(blocks);
    const Buffer logits_buffer = Buffer::from(device(), logits);
    const Buffer lengths_buffer = Buffer::from(device(), lengths);
    const Buffer table_buffer = Buffer::from(device(), table);
    Output<std::int32_t> rows(device(), static_cast<std::size_t>(tokens * c.topk));
    Output<std::int32_t> counts(device(), c.rows.size());
    IndexerTopkParams params = {};
    params.logits = pointer_to<float>(logits_buffer);
    params.logits_stride = static_cast<std::int64_t>(longest);
    const Buffer positions = Buffer::from(device(), std::vector<std::int32_t>(c.rows.size()));
    params.lengths = {.positions = pointer_to<std::int32_t>(positions),
                      .lengths = pointer_to<std::int32_t>(lengths_buffer),
                      .ratio_divisor = make_fast_divisor(1),
                      .num_positions = 1,
                      .max_len = static_cast<std::int32_t>(longest)};
    params.sequences = {nullptr, nullptr, 1, tokens};
    if (c.page_size != 0) {
      params.table = {pointer_to<std::int32_t>(table_buffer), blocks, blocks};
      params.page_size = c.page_size;
      params.num_rows = blocks * c.page_size;
    }
    params.rows = rows.pointer();
    params.counts = counts.pointer();
    params.rows_stride = c.topk;
    params.tokens = tokens;
    params.topk = c.topk;
    params.held = c.held;
    device::LaunchConfig config = {.grid = {c.cluster, static_cast<std::uint32_t>(tokens)},
                                   .block = {kIndexerTopkThreads},
                                   .dynamic_shared_bytes = static_cast<std::uint32_t>(4 * c.held)};
    if (c.cluster > 1) config.cluster = device::Dim3{c.cluster, 1, 1};
    run_kernel(device(), "indexer_topk", config, params);
    const auto found = rows.read(), found_counts = counts.read();
    for (std::size_t t = 0; t < c.rows.size(); ++t) {
      const auto first = found.begin() + static_cast<std::ptrdiff_t>(t) * c.topk;
      ASSERT_EQ(found_counts[t], std::min(lengths[t], c.topk)) << "row " << t;
      ASSERT_EQ(std::vector<std::int32_t>(first, first + c.topk), expect_rows(c, c.rows[t], table))
          << "row " << t;
    }
  }

  static std::vector<float> random_row(std::uint64_t seed, std::int64_t count) {
    std::vector<float> row;
    for (const double x : reference::random_doubles(seed, count, -1, 1))
      row.push_back(static_cast<float>(x));
    return row;
  }
  // More than it is worth simulating, on a GPU.
  static std::int64_t many(std::int64_t simulated, std::int64_t real) {
    return is_simulator() ? simulated : real;
  }
};
TILEWRIGHT_ON_EVERY_DEVICE(IndexerTopkTest);

TEST_P(IndexerTopkTest, EmptyAndShortRows) {
  check({.rows = {{}, {3.0f}, {kNan}, random_row(1, 16), random_row(2, 17)}});
}

TEST_P(IndexerTopkTest, TiesGoToTheLowerEntry) {
  std::vector<float> equal(200, 0.25f), two(200, -1.0f), few = random_row(3, 200);
  for (std::size_t i = 50; i < 60; ++i) two[i] = 7.0f;  // fewer than topk: the rest are ties
  for (std::size_t i = 0; i < few.size(); i += 3) few[i] = 2.0f;
  check({.rows = {equal, two, few}});
  check({.rows = {equal, two, few}, .cluster = 2});
}

TEST_P(IndexerTopkTest, ZerosOfBothSignsAreEqual) {
  std::vector<float> row(100, -0.0f);
  for (std::size_t i = 1; i < row.size(); i += 2) row[i] = 0.0f;
  row[70] = 1e-38f;
  check({.rows = {row}});
}

TEST_P(IndexerTopkTest, NanCountsAsMinusInfinity) {
  std::vector<float> row = random_row(4, 300);
  for (std::size_t i = 0; i < row.size(); i += 2) row[i] = i % 4 == 0 ? kNan : -kNan;
  std::vector<float> most(300, kNan);  // four numbers, then the first of those that are none
  most[7] = -kInfinity, most[100] = 1.0f, most[101] = -3e38f, most[299] = 3e38f, most[20] = 0.0f;
  check({.rows = {row, most, std::vector<float>(300, kNan)}});
}

TEST_P(IndexerTopkTest, Infinities) {
  std::vector<float> row = random_row(5, 400);
  for (std::size_t i = 0; i < 40; ++i) row[i * 7] = i % 2 == 0 ? kInfinity : -kInfinity;
  check({.rows = {row, std::vector<float>(64, kInfinity), std::vector<float>(64, -kInfinity)}});
}

// More keys than can be ranked lie in one of the equal steps: the threshold is found by digits.
TEST_P(IndexerTopkTest, SearchesDigitsWhereStepsAreTooCoarse) {
  std::vector<float> row = random_row(6, many(3000, 60000));
  row[1234] = 3e38f;  // all others are one step
  std::vector<float> nearly(row.size());
  for (std::size_t i = 0; i < row.size(); ++i)
    nearly[i] = std::bit_cast<float>(0x3f800000u + static_cast<std::uint32_t>(i * 7 % 1021));
  nearly[5] = -1e30f;
  check({.rows = {row, nearly}, .topk = 100});
  check({.rows = {row, nearly}, .topk = 100, .cluster = 4});
}

TEST_P(IndexerTopkTest, RowsThatSharedMemoryDoesNotHold) {
  const std::int64_t count = many(5000, 300000);
  check({.rows = {random_row(7, count), random_row(8, count - 3)}, .topk = 512, .held = 512});
  check({.rows = {random_row(9, count)}, .topk = 2048, .cluster = 8, .held = 256});
}

TEST_P(IndexerTopkTest, PagesOfOddSizes) {
  for (const std::int32_t page_size : {1, 7, 61})
    check({.rows = {random_row(10, 333), random_row(11, 5)}, .page_size = page_size});
}

}  // namespace
}  // namespace tilewright::kernels
