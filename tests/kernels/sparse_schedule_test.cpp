// The schedule of sparse decode: every block once, in order, evenly.
#include "kernels/sparse_attention/sparse_schedule.h"

#include "tests/kernels/kernel_test.h"

namespace tilewright::kernels {
namespace {

class SparseScheduleTest : public KernelTest {
 protected:
  struct Schedule {
    std::vector<SparseWork> work;
    std::vector<std::int32_t> begin;
    std::vector<SparseMerge> merges;
    std::vector<SparseMerge> merge_of_slot;
    std::vector<std::uint64_t> counters;
  };
  static constexpr std::int32_t kPieceCost = 20, kPartialCost = 5, kCombineCost = 6;

  // Lists of `topk` entries with lengths [batch] for the first and [batch, q_len] for the second.
  Schedule make(std::int32_t q_len, std::int32_t groups, const std::vector<std::int32_t>& first,
                const std::vector<std::int32_t>& second) const {
    const Buffer lengths = Buffer::from(device(), first), more = Buffer::from(device(), second);
    const auto batch = static_cast<std::int32_t>(first.size());
    const auto queries = static_cast<std::size_t>(batch * q_len);
    const auto all = static_cast<std::size_t>(groups);
    Output<SparseWork> work(device(), queries + all);
    Output<std::int32_t> begin(device(), all + 1);
    Output<SparseMerge> merges(device(), all);
    Output<SparseMerge> merge_of_slot(device(), sparse_partial_slots(groups));
    Output<std::uint64_t> counters(device(), all * kSparseCountersOfGroup);
    SparseScheduleParams params = {};
    params.keys[0] = params.keys[1] = {};
    params.keys[0].topk = params.keys[1].topk = kTopk;
    params.keys[0].lengths = pointer_to<std::int32_t>(lengths);
    params.keys[0].length_stride_batch = 1;
    params.keys[1].lengths = pointer_to<std::int32_t>(more);
    params.keys[1].length_stride_batch = q_len;
    params.keys[1].length_stride_query = 1;
    params.batch = batch;
    params.q_len = q_len;
    params.groups = groups;
    params.piece_cost = kPieceCost;
    params.partial_cost = kPartialCost;
    params.combine_cost = kCombineCost;
    params.work = work.pointer();
    params.work_begin = begin.pointer();
    params.merges = merges.pointer();
    params.merge_of_slot = merge_of_slot.pointer();
    params.counters = counters.pointer();
    run_kernel(device(), "sparse_schedule", {.grid = {1}, .block = {kSparseScheduleThreads}},
               params);
    return {work.read(), begin.read(), merges.read(), merge_of_slot.read(), counters.read()};
  }

  static std::int32_t blocks_of(std::int32_t length) {
    return (std::clamp(length, 0, kTopk) + kSparseBlockKeys - 1) / kSparseBlockKeys;
  }

  void check(std::int32_t q_len, std::int32_t groups, const std::vector<std::int32_t>& first,
             const std::vector<std::int32_t>& second) const {
    SCOPED_TRACE(fmt::format("{} x {} queries, {} groups", first.size(), q_len, groups));
    const Schedule s = make(q_len, groups, first, second);
    const auto queries = static_cast<std::int32_t>(second.size());
    std::vector<std::vector<std::int32_t>> slots(second.size());
    std::int32_t query = 0, block = 0;
    std::int64_t total = 0, dearest = 0;
    ASSERT_EQ(s.begin[0], 0);
    for (std::int32_t g = 0; g < groups; ++g) {
      std::int64_t cost = 0;
      ASSERT_LE(s.begin[g], s.begin[g + 1]);
      for (std::int32_t i = s.begin[g]; i < s.begin[g + 1]; ++i) {
        const SparseWork& w = s.work[i];
        const std::int32_t blocks = blocks_of(first[query / q_len]) + blocks_of(second[query]);
        ASSERT_EQ(w.query, query);
        ASSERT_EQ(w.begin_block, block);
        ASSERT_LE(w.end_block, blocks);
        ASSERT_TRUE(w.end_block > w.begin_block || blocks == 0);
        const bool is_whole = w.begin_block == 0 && w.end_block == blocks;
        ASSERT_EQ(w.partial < 0, is_whole);
        ASSERT_LT(w.partial, sparse_partial_slots(groups));
        if (!is_whole) slots[query].push_back(w.partial);
        cost += kPieceCost + kSparseBlockCost * (w.end_block - w.begin_block) +
                (is_whole ? 0 : kPartialCost);
        block = w.end_block;
        if (block == blocks) ++query, block = 0;
      }
      dearest = std::max(dearest, cost);
    }
    EXPECT_EQ(query, queries);
    check_merges(s, slots);
    for (std::int32_t i = 0; i < queries; ++i)
      total += kPieceCost + kSparseBlockCost * (blocks_of(first[i / q_len]) + blocks_of(second[i]));
    // A group's even share, a piece more for a cut at each end, and a block of rounding.
    EXPECT_LE(dearest, (total + groups - 1) / groups + kPieceCost + 2 * kPartialCost +
                           kCombineCost + 2 * kSparseBlockCost);
  }

  static void check_merges(const Schedule& s, const std::vector<std::vector<std::int32_t>>& slots) {
    std::vector<bool> is_merged(slots.size(), false);
    for (const SparseMerge& m : s.merges) {
      if (m.query < 0) continue;
      ASSERT_FALSE(is_merged[m.query]);
      is_merged[m.query] = true;
      ASSERT_EQ(m.parts, static_cast<std::int32_t>(slots[m.query].size()));
      for (std::int32_t i = 0; i < m.parts; ++i)
        ASSERT_EQ(sparse_part_slot(m.first_slot, i), slots[m.query][i]);
      for (const std::int32_t slot : slots[m.query]) {
        const SparseMerge& of = s.merge_of_slot[slot];
        ASSERT_EQ(of.query, m.query);
        ASSERT_EQ(of.first_slot, m.first_slot) << m.query;
        ASSERT_EQ(of.parts, m.parts) << m.query;
      }
    }
    for (std::size_t i = 0; i < slots.size(); ++i) ASSERT_EQ(is_merged[i], !slots[i].empty()) << i;
    for (const std::uint64_t counter : s.counters) ASSERT_EQ(counter, 0);
  }

  static constexpr std::int32_t kTopk = 2000;
};
TILEWRIGHT_ON_EVERY_DEVICE(SparseScheduleTest);

TEST_P(SparseScheduleTest, GivesEveryBlockOnce) {
  Random random(1);
  for (const std::int32_t groups : {1, 2, 5, 33, 132, 264}) {
    for (const std::int32_t batch : {1, 2, 7, 75}) {
      const std::int32_t q_len = 1 + batch % 3;
      std::vector<std::int32_t> first, second;
      for (std::int32_t i = 0; i < batch; ++i)
        first.push_back(static_cast<std::int32_t>(random.uniform(-50, 3000)));
      for (std::int32_t i = 0; i < batch * q_len; ++i)
        second.push_back(static_cast<std::int32_t>(random.uniform(-300, 700)));
      check(q_len, groups, first, second);
    }
  }
}
TEST_P(SparseScheduleTest, HandlesOneLongListAndNone) {
  check(1, 132, {2000}, {2000});
  check(1, 132, {0, 2000, 0, 0}, {0, 2000, 0, 1});
  check(2, 132, {0, 0, 0}, {0, 0, 0, 0, 0, 0});
  check(1, 1024, {2000, 1, 64, 65}, {0, 0, 0, 2000});
}
TEST_P(SparseScheduleTest, TakesAsManyQueriesAsItSays) {
  const std::vector<std::int32_t> lengths(kSparseScheduleMaxQueries, 640);
  check(1, 132, lengths, lengths);
}
// 4 queries of 32 blocks over 66 groups: no group has more than 3 blocks, and none less than 2.
TEST_P(SparseScheduleTest, CutsFewQueriesEvenly) {
  check(2, 66, {1024, 1024}, std::vector<std::int32_t>(4, 1024));
  const Schedule s = make(2, 66, {1024, 1024}, std::vector<std::int32_t>(4, 1024));
  for (std::int32_t i = 0; i < s.begin[66]; ++i) {
    const std::int32_t blocks = s.work[i].end_block - s.work[i].begin_block;
    EXPECT_GE(blocks, 2) << i;
    EXPECT_LE(blocks, 3) << i;
  }
  EXPECT_EQ(s.begin[66], 4 * 11);
}
// One of four has fewer blocks than others have parts: as many parts as blocks.
TEST_P(SparseScheduleTest, CutsShortQueriesIntoTheirBlocks) {
  check(1, 132, {2000, 128, 0, 2000}, {2000, 0, 0, 2000});
  check(1, 264, {2000, 1984, 2000, 64}, {2000, 2000, 1920, 64});
}
// 256 queries of 10 blocks over 132 groups: two whole ones for each of 128.
TEST_P(SparseScheduleTest, PrefersWholeQueries) {
  const std::vector<std::int32_t> lengths(256, 320);
  const Schedule s = make(1, 132, lengths, lengths);
  EXPECT_TRUE(std::ranges::all_of(s.merges, [](const SparseMerge& m) { return m.query < 0; }));
  std::int32_t most = 0;
  for (int g = 0; g < 132; ++g) most = std::max(most, s.begin[g + 1] - s.begin[g]);
  EXPECT_EQ(most, 2);
}

}  // namespace
}  // namespace tilewright::kernels
