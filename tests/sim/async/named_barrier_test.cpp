#include "sim/async/named_barrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using ::testing::HasSubstr;
using Error = BarrierError;

BarrierArrival sync(std::uint32_t id, std::uint32_t warp, std::optional<std::uint32_t> count = {}) {
  return {.id = id, .warp = warp, .count = count};
}
BarrierArrival arrive(std::uint32_t id, std::uint32_t warp, std::uint32_t count) {
  return {.id = id, .warp = warp, .count = count, .is_waiting = false};
}

TEST(SimNamedBarriers, SyncThreads) {
  NamedBarriers barriers(96);
  EXPECT_FALSE(barriers.arrive(sync(0, 2)).is_released);
  EXPECT_FALSE(barriers.arrive(sync(0, 0)).is_released);
  EXPECT_EQ(barriers.describe(0),
            "barrier 0: 64 of 96 threads arrived (warps 0 2), waiting: warps 0 2");
  const BarrierResult last = barriers.arrive(sync(0, 1));
  EXPECT_TRUE(last.is_released);
  EXPECT_EQ(last.released_warps, 0b111u);
  EXPECT_NE(barriers.generation(0), last.generation);
  EXPECT_TRUE(barriers.is_idle(0));
  EXPECT_FALSE(barriers.arrive(sync(0, 1)).is_released) << "ready for the next generation";
  EXPECT_EQ(barriers.describe(1), "barrier 1: idle");
}

TEST(SimNamedBarriers, ArriveAndSyncBetweenWarpgroups) {
  NamedBarriers barriers(256);
  for (std::uint32_t w = 0; w < 4; ++w)
    EXPECT_FALSE(barriers.arrive(arrive(3, w, 256)).is_released);
  for (std::uint32_t w = 4; w < 7; ++w) {
    EXPECT_FALSE(barriers.arrive(sync(3, w, 256)).is_released);
    EXPECT_EQ(barriers.waiting_lanes(3, w), 0xffffffffu);
  }
  const BarrierResult last = barriers.arrive(sync(3, 7, 256));
  EXPECT_TRUE(last.is_released);
  EXPECT_EQ(last.released_warps, 0xf0u) << "the first four do not wait";
}

TEST(SimNamedBarriers, ArrivesThenSyncsItself) {
  NamedBarriers barriers(256);
  for (std::uint32_t w = 0; w < 4; ++w)
    EXPECT_FALSE(barriers.arrive(arrive(3, w, 256)).is_released);
  for (std::uint32_t w = 0; w < 3; ++w) EXPECT_FALSE(barriers.arrive(sync(3, w, 256)).is_released);
  EXPECT_THAT(barriers.describe(3), HasSubstr("224 of 256 threads arrived"));
  const BarrierResult last = barriers.arrive(sync(3, 3, 256));
  EXPECT_TRUE(last.is_released) << "four warps have come twice";
  EXPECT_EQ(last.released_warps, 0xfu);
  EXPECT_TRUE(barriers.is_idle(3));
  EXPECT_FALSE(barriers.arrive(sync(3, 0, 256)).is_released) << "nothing is left of it";
}

TEST(SimNamedBarriers, Reductions) {
  NamedBarriers barriers(64);
  BarrierArrival first = sync(1, 0);
  first.predicates = 0xffffffff;
  barriers.arrive(first);
  BarrierArrival second = sync(1, 1);
  second.predicates = 0b101;
  BarrierResult last = barriers.arrive(second);
  EXPECT_EQ(last.reduction.popc, 34u);
  EXPECT_FALSE(last.reduction.all);
  EXPECT_TRUE(last.reduction.any);
  barriers.arrive(first);
  second.predicates = 0xffffffff;
  last = barriers.arrive(second);
  EXPECT_EQ(last.reduction.popc, 64u) << "nothing is left of the last generation";
  EXPECT_TRUE(last.reduction.all);
}

TEST(SimNamedBarriers, ThreadByThread) {
  NamedBarriers barriers(64);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    BarrierArrival arrival = sync(2, 0);
    arrival.lanes = 1u << lane;
    EXPECT_FALSE(barriers.arrive(arrival).is_released);
  }
  EXPECT_TRUE(barriers.arrive(sync(2, 1)).is_released);
}

TEST(SimNamedBarriers, Errors) {
  NamedBarriers barriers(128);
  BarrierResult result = barriers.arrive(sync(16, 0));
  EXPECT_EQ(result.error, Error::kIdRange);
  EXPECT_THAT(result.problem, HasSubstr("there are 16"));
  result = barriers.arrive(sync(1, 0, 48));
  EXPECT_EQ(result.error, Error::kCountMultiple);
  EXPECT_THAT(result.problem, HasSubstr("warp 0 gives 48 threads; expected a multiple of 32"));
  EXPECT_EQ(barriers.arrive(sync(1, 0, 0)).error, Error::kCountMultiple);
  barriers.arrive(sync(1, 0, 64));
  result = barriers.arrive(sync(1, 1, 128));
  EXPECT_EQ(result.error, Error::kCountMismatch);
  EXPECT_THAT(result.problem, HasSubstr("barrier 1: 32 of 64 threads arrived"));
  EXPECT_EQ(barriers.arrive(arrive(1, 0, 64)).error, Error::kArrivedTwice);
  EXPECT_TRUE(barriers.arrive(sync(1, 1, 64)).is_released) << "errors change nothing";
}

TEST(SimNamedBarriers, TooMany) {
  NamedBarriers barriers(128);
  BarrierArrival half = sync(1, 0, 32);
  half.lanes = 0xffff;
  barriers.arrive(half);
  const BarrierResult result = barriers.arrive(sync(1, 1, 32));
  EXPECT_EQ(result.error, Error::kTooMany);
  half.lanes = 0xffff0000;
  EXPECT_TRUE(barriers.arrive(half).is_released);
}

TEST(SimNamedBarriers, LastWarpIsNotFull) {
  NamedBarriers barriers(40);
  EXPECT_FALSE(barriers.arrive(sync(0, 0)).is_released);
  BarrierArrival rest = sync(0, 1);
  rest.lanes = 0xff;
  EXPECT_TRUE(barriers.arrive(rest).is_released);
  barriers.arrive(sync(1, 0, 64));
  rest.id = 1;
  rest.count = 64;
  EXPECT_TRUE(barriers.arrive(rest).is_released) << "counts as a whole warp";
}

TEST(SimNamedBarriers, ExitedBeforeTheBarrier) {
  NamedBarriers barriers(96);
  EXPECT_EQ(barriers.exit(1, 0xffffffff).barriers, 0u) << "nobody waits";
  barriers.arrive(sync(0, 0));
  EXPECT_TRUE(barriers.arrive(sync(0, 2)).is_released);
}

TEST(SimNamedBarriers, ExitReleasesThoseWhoWait) {
  NamedBarriers barriers(96);
  barriers.arrive(sync(0, 0));
  BarrierArrival second = sync(0, 2);
  second.predicates = 1;
  barriers.arrive(second);
  EXPECT_EQ(barriers.exit(1, 0xffff).barriers, 0u) << "half of the warp is still there";
  const BarrierReleases releases = barriers.exit(1, 0xffff0000);
  EXPECT_EQ(releases.barriers, 1u);
  EXPECT_EQ(releases.warps[0], 0b101u);
  EXPECT_EQ(releases.reductions[0].popc, 1u);
}

TEST(SimNamedBarriers, ExitedLanesOfAWarpThatArrives) {
  NamedBarriers barriers(64);
  barriers.exit(0, 0x1);
  BarrierArrival rest = sync(5, 0, 64);
  rest.lanes = 0xfffffffe;
  barriers.arrive(rest);
  EXPECT_TRUE(barriers.arrive(sync(5, 1, 64)).is_released);
}

TEST(SimNamedBarriers, ExitedWarpsDoNotFillABarrierThatOthersMayReach) {
  NamedBarriers barriers(128);
  barriers.exit(3, 0xffffffff);
  EXPECT_FALSE(barriers.arrive(sync(1, 0, 64)).is_released) << "warp 1 or 2 may still come";
  EXPECT_TRUE(barriers.arrive(sync(1, 1, 64)).is_released);
  barriers.exit(2, 0xffffffff);
  barriers.exit(1, 0xffffffff);
  EXPECT_TRUE(barriers.arrive(sync(2, 0, 64)).is_released) << "only exited ones can be missing";
  EXPECT_FALSE(barriers.arrive(sync(2, 0, 256)).is_released) << "more than the CTA ever had";
}

TEST(SimNamedBarriers, WhoArrivedMayStillComeToWait) {
  NamedBarriers barriers(128);
  barriers.exit(2, 0xffffffff);
  barriers.exit(3, 0xffffffff);
  barriers.arrive(arrive(1, 0, 96));
  EXPECT_FALSE(barriers.arrive(arrive(1, 1, 96)).is_released) << "the third arrival is its wait";
  EXPECT_TRUE(barriers.arrive(sync(1, 1, 96)).is_released);
  // If it ends instead, only warps that have ended are missing.
  barriers.arrive(sync(1, 0, 96));
  EXPECT_FALSE(barriers.arrive(arrive(1, 1, 96)).is_released);
  EXPECT_EQ(barriers.exit(1, 0xffffffff).barriers, 2u);
}

}  // namespace
}  // namespace tilewright::sim
