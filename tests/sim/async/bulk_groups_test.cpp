#include "sim/async/bulk_groups.h"

#include "base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Stage = CopyGroups::Stage;

TEST(SimCopyGroups, WaitGroup) {
  CopyGroups groups;
  EXPECT_TRUE(groups.has_at_most(0));
  const auto a = groups.issue();
  EXPECT_TRUE(groups.has_at_most(0)) << "not committed";
  EXPECT_FALSE(groups.is_all_done());
  groups.commit();
  const auto b = groups.issue(), c = groups.issue();
  groups.commit();
  EXPECT_EQ(groups.num_pending(), 2u);
  EXPECT_FALSE(groups.has_at_most(1));
  EXPECT_TRUE(groups.has_at_most(2));
  groups.advance(b, Stage::kDone);
  groups.advance(c, Stage::kDone);
  EXPECT_FALSE(groups.has_at_most(0)) << "groups complete in order";
  EXPECT_FALSE(groups.has_at_most(1));
  EXPECT_EQ(groups.num_pending(), 2u);
  groups.advance(a, Stage::kDone);
  EXPECT_TRUE(groups.has_at_most(0));
  EXPECT_TRUE(groups.is_all_done());
  EXPECT_EQ(groups.num_pending(), 0u);
}

TEST(SimCopyGroups, EmptyGroupsCountAmongTheNewest) {
  CopyGroups groups;
  const auto a = groups.issue();
  groups.commit();
  groups.commit();
  EXPECT_TRUE(groups.has_at_most(2));
  EXPECT_FALSE(groups.has_at_most(1)) << "the newest is the empty one";
  groups.advance(a, Stage::kDone);
  EXPECT_TRUE(groups.has_at_most(0));
}

TEST(SimCopyGroups, ReadIsBeforeDone) {
  CopyGroups groups;
  const auto a = groups.issue();
  groups.commit();
  EXPECT_FALSE(groups.has_at_most(0, Stage::kRead));
  groups.advance(a, Stage::kRead);
  EXPECT_TRUE(groups.has_at_most(0, Stage::kRead));
  EXPECT_FALSE(groups.has_at_most(0));
  groups.advance(a, Stage::kDone);
  EXPECT_TRUE(groups.has_at_most(0));
}

TEST(SimCopyGroups, ArrivalsWaitForEarlierCopies) {
  CopyGroups groups;
  groups.arrive_when_done(0x400);
  EXPECT_THAT(groups.take_arrivals(), ElementsAre(0x400)) << "no copy is under way";
  const auto a = groups.issue(), b = groups.issue();
  groups.arrive_when_done(0x408);
  const auto c = groups.issue();
  groups.arrive_when_done(0x410);
  groups.advance(b, Stage::kDone);
  EXPECT_THAT(groups.take_arrivals(), IsEmpty());
  groups.advance(a, Stage::kDone);
  EXPECT_THAT(groups.take_arrivals(), ElementsAre(0x408));
  EXPECT_TRUE(groups.has_deferred_arrivals());
  groups.advance(c, Stage::kDone);
  EXPECT_THAT(groups.take_arrivals(), ElementsAre(0x410));
  EXPECT_THAT(groups.take_arrivals(), IsEmpty());
}

TEST(SimCopyGroups, DoneTwiceIsADefect) {
  CopyGroups groups;
  const auto a = groups.issue();
  groups.issue();
  groups.advance(a, Stage::kDone);
  EXPECT_THROW(groups.advance(a, Stage::kDone), Error);
  EXPECT_THROW(groups.advance(7, Stage::kDone), Error);
}

}  // namespace
}  // namespace tilewright::sim
