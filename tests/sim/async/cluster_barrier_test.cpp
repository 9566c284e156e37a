#include "sim/async/cluster_barrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

constexpr std::uint32_t kAll = 0xffffffff;
using Error = ClusterBarrierError;

TEST(SimClusterBarrier, AllThreadsOfAllCtas) {
  ClusterBarrier barrier(2, 64);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(barrier.arrive(i / 2, i % 2, kAll).is_complete);
    EXPECT_FALSE(barrier.wait(i / 2, i % 2, kAll).is_complete);
  }
  EXPECT_EQ(barrier.describe(),
            "cluster barrier: 96 of 128 threads arrived, missing: CTA 1 warps 1");
  EXPECT_FALSE(barrier.arrive(1, 1, 0xffff).is_complete);
  EXPECT_TRUE(barrier.arrive(1, 1, 0xffff0000).is_complete);
  EXPECT_EQ(barrier.generation(), 1u);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(barrier.wait(i / 2, i % 2, kAll).is_complete);
  }
}

TEST(SimClusterBarrier, AFastWarpMayBeOneGenerationAhead) {
  ClusterBarrier barrier(1, 64);
  barrier.arrive(0, 0, kAll);
  EXPECT_TRUE(barrier.arrive(0, 1, kAll).is_complete);
  EXPECT_TRUE(barrier.wait(0, 0, kAll).is_complete);
  EXPECT_FALSE(barrier.arrive(0, 0, kAll).is_complete);
  EXPECT_FALSE(barrier.wait(0, 0, kAll).is_complete);
  EXPECT_TRUE(barrier.wait(0, 1, kAll).is_complete) << "of the generation before";
  EXPECT_TRUE(barrier.arrive(0, 1, kAll).is_complete);
  EXPECT_TRUE(barrier.wait(0, 0, kAll).is_complete);
}

TEST(SimClusterBarrier, ArriveAndWaitAlternate) {
  ClusterBarrier barrier(1, 64);
  EXPECT_EQ(barrier.wait(0, 0, 1).error, Error::kWaitWithoutArrive);
  EXPECT_EQ(barrier.arrive(0, 0, kAll).error, Error::kNone);
  EXPECT_EQ(barrier.arrive(0, 0, 1).error, Error::kArrivedTwice);
  EXPECT_TRUE(barrier.arrive(0, 1, kAll).is_complete);
  EXPECT_EQ(barrier.arrive(0, 0, kAll).error, Error::kArrivedTwice) << "complete, but not waited";
  EXPECT_TRUE(barrier.wait(0, 0, kAll).is_complete);
  EXPECT_EQ(barrier.wait(0, 0, kAll).error, Error::kWaitWithoutArrive);
  EXPECT_THAT(to_string(Error::kArrivedTwice), testing::HasSubstr("without having waited"));
}

TEST(SimClusterBarrier, ExitedThreadsAreNotMissed) {
  ClusterBarrier barrier(2, 40);
  EXPECT_FALSE(barrier.exit(1, 0, kAll).is_complete);
  barrier.arrive(0, 0, kAll);
  barrier.arrive(0, 1, kAll);
  EXPECT_TRUE(barrier.exit(1, 1, kAll).is_complete) << "the last that were missing";
  EXPECT_TRUE(barrier.wait(0, 0, kAll).is_complete);
  barrier.wait(0, 1, kAll);
  barrier.arrive(0, 0, kAll);
  EXPECT_TRUE(barrier.arrive(0, 1, 0xff).is_complete) << "40 threads live in all";
  barrier.exit(0, 0, kAll);
  EXPECT_FALSE(barrier.exit(0, 1, kAll).is_complete) << "nobody had arrived";
}

TEST(SimClusterBarrier, ArrivedThenExited) {
  ClusterBarrier barrier(2, 32);
  barrier.arrive(0, 0, kAll);
  EXPECT_FALSE(barrier.exit(0, 0, kAll).is_complete);
  EXPECT_TRUE(barrier.arrive(1, 0, kAll).is_complete);
  EXPECT_TRUE(barrier.wait(1, 0, kAll).is_complete);
  EXPECT_TRUE(barrier.arrive(1, 0, kAll).is_complete) << "alone now";
}

}  // namespace
}  // namespace tilewright::sim
