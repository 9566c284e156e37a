#include "sim/report/access_cost.h"

#include "sim/report/footprint.h"

#include <array>

#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

struct Sample {
  std::array<std::uint64_t, kLanes> addresses{};
  WarpAccess access;

  Sample(std::uint32_t bytes, auto address_of, std::uint32_t lanes = kAllLanes) {
    for (std::uint64_t lane = 0; lane < kLanes; ++lane) addresses[lane] = address_of(lane);
    access.addresses = addresses.data();
    access.lanes = lanes;
    access.bytes = bytes;
  }
};

TEST(AccessCost, SharedWordsOfDifferentBanksTakeOneWavefront) {
  const Sample dense(4, [](auto lane) { return 1024 + 4 * lane; });
  EXPECT_EQ(shared_cost(dense.access).wavefronts, 1u);
  const Sample reversed(4, [](auto lane) { return 4 * (31 - lane); });
  EXPECT_EQ(shared_cost(reversed.access).wavefronts, 1u);
  const Sample same(4, [](auto) { return 64u; });
  EXPECT_EQ(shared_cost(same.access).wavefronts, 1u) << "one word for all is no conflict";
}

TEST(AccessCost, SharedConflictsCountDifferentWordsOfABank) {
  for (const std::uint64_t stride : {1, 2, 4, 8, 16, 32}) {
    const Sample strided(4, [stride](auto lane) { return 4 * stride * lane; });
    EXPECT_EQ(shared_cost(strided.access).wavefronts, stride);
    EXPECT_EQ(shared_cost(strided.access).ideal, 1u);
  }
  const Sample half(
      4, [](auto lane) { return 128 * lane; }, 0xffff);
  EXPECT_EQ(shared_cost(half.access).wavefronts, 16u);
}

TEST(AccessCost, WideSharedAccessesAreServedInParts) {
  const Sample wide(16, [](auto lane) { return 16 * lane; });
  EXPECT_EQ(shared_cost(wide.access).wavefronts, 4u);
  EXPECT_EQ(shared_cost(wide.access).ideal, 4u);
  const Sample rows(16, [](auto lane) { return 128 * lane; });
  EXPECT_EQ(shared_cost(rows.access).wavefronts, 32u) << "a column of 16 bytes: all in four banks";
  const Sample pairs(8, [](auto lane) { return 8 * (lane ^ 5); });
  EXPECT_EQ(shared_cost(pairs.access).wavefronts, 2u);
}

TEST(AccessCost, AtomicsOnOneWordAreServedOneByOne) {
  Sample same(4, [](auto) { return 64u; });
  same.access.kind = AccessKind::kAtomic;
  EXPECT_EQ(shared_cost(same.access).wavefronts, 32u);
}

TEST(AccessCost, GlobalSectorsAndUsedBytes) {
  const Sample dense(4, [](auto lane) { return 4096 + 4 * lane; });
  EXPECT_EQ(global_cost(dense.access).sectors, 4u);
  EXPECT_EQ(global_cost(dense.access).bytes, 128u);
  const Sample shifted(4, [](auto lane) { return 4100 + 4 * lane; });
  EXPECT_EQ(global_cost(shifted.access).sectors, 5u);
  const Sample strided(4, [](auto lane) { return 4096 + 32 * lane; });
  EXPECT_EQ(global_cost(strided.access).sectors, 32u);
  EXPECT_EQ(global_cost(strided.access).bytes, 128u);
  const Sample same(8, [](auto) { return 4096u; });
  EXPECT_EQ(global_cost(same.access).sectors, 1u);
  EXPECT_EQ(global_cost(same.access).bytes, 8u) << "bytes that lanes share count once";
  const Sample overlapping(16, [](auto lane) { return 4096 + 8 * lane; });
  EXPECT_EQ(global_cost(overlapping.access).bytes, 8 * 31 + 16u);
  EXPECT_EQ(global_cost(overlapping.access).sectors, 9u);
  const Sample straddling(16, [](auto lane) { return 4096 + 24 + 64 * lane; });
  EXPECT_EQ(global_cost(straddling.access).sectors, 64u);
}

TEST(Footprint, CountsEachSectorOnce) {
  Footprint footprint;
  footprint.add(1 << 20, 128);
  EXPECT_EQ(footprint.num_sectors(), 4u);
  footprint.add((1 << 20) + 16, 128);
  EXPECT_EQ(footprint.num_sectors(), 5u);
  footprint.add((1 << 20) - 1, 2);
  EXPECT_EQ(footprint.num_sectors(), 6u) << "across a page";
  footprint.add(1 << 20, 1 << 20);
  EXPECT_EQ(footprint.num_sectors(), (1u << 15) + 1);
}

}  // namespace
}  // namespace tilewright::sim
