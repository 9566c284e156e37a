#include "sim/async/mbarrier.h"

#include <array>
#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using ::testing::HasSubstr;
using Error = MbarrierError;

class SimMbarrier : public testing::Test {
 protected:
  void init(std::uint32_t count) { EXPECT_EQ(mbarrier_init(object(), count).error, Error::kNone); }
  std::byte* object() { return bytes_.data(); }
  Mbarrier state() {
    Mbarrier state;
    EXPECT_EQ(mbarrier_read(object(), state), Error::kNone);
    return state;
  }
  bool is_over(std::uint32_t parity) {
    const MbarrierWait wait = mbarrier_test_wait_parity(object(), parity);
    EXPECT_EQ(wait.error, Error::kNone);
    return wait.is_complete;
  }
  std::array<std::byte, 8> bytes_{};
};

TEST_F(SimMbarrier, PhasesByArrivals) {
  init(2);
  EXPECT_FALSE(is_over(0));
  EXPECT_TRUE(is_over(1)) << "the phase before the first counts as over";
  const MbarrierResult first = mbarrier_arrive(object());
  EXPECT_FALSE(first.is_phase_complete);
  EXPECT_FALSE(mbarrier_test_wait(object(), first.token).is_complete);
  EXPECT_EQ(mbarrier_pending_count(first.token), 2u);
  const MbarrierResult second = mbarrier_arrive(object());
  EXPECT_TRUE(second.is_phase_complete);
  EXPECT_EQ(mbarrier_pending_count(second.token), 1u);
  EXPECT_TRUE(mbarrier_test_wait(object(), first.token).is_complete);
  EXPECT_TRUE(is_over(0));
  EXPECT_FALSE(is_over(1));
  EXPECT_TRUE(mbarrier_arrive(object(), 2).is_phase_complete);
  EXPECT_TRUE(is_over(1));
}

TEST_F(SimMbarrier, BytesHoldThePhase) {
  init(1);
  EXPECT_FALSE(mbarrier_arrive_expect_tx(object(), 4096).is_phase_complete);
  EXPECT_EQ(mbarrier_describe(object()),
            "phase parity 0, 0 of 1 arrivals pending, 4096 bytes outstanding");
  EXPECT_FALSE(mbarrier_complete_tx(object(), 4095).is_phase_complete);
  EXPECT_TRUE(mbarrier_complete_tx(object(), 1).is_phase_complete);
}

TEST_F(SimMbarrier, BytesMayBeEarly) {
  init(1);
  EXPECT_FALSE(mbarrier_complete_tx(object(), 512).is_phase_complete);
  EXPECT_EQ(state().tx_bytes, -512);
  EXPECT_THAT(mbarrier_describe(object()), HasSubstr("512 bytes more arrived than were expected"));
  EXPECT_TRUE(mbarrier_arrive_expect_tx(object(), 512).is_phase_complete);
}

TEST_F(SimMbarrier, ExpectTxAlone) {
  init(1);
  mbarrier_expect_tx(object(), 16);
  mbarrier_complete_tx(object(), 16);
  EXPECT_FALSE(is_over(0)) << "an arrival is still pending";
  EXPECT_TRUE(mbarrier_arrive(object()).is_phase_complete);
}

TEST_F(SimMbarrier, DropLowersLaterPhases) {
  init(3);
  mbarrier_arrive_drop(object());
  EXPECT_TRUE(mbarrier_arrive(object(), 2).is_phase_complete);
  EXPECT_EQ(state(), (Mbarrier{.expected = 2, .pending = 2, .tx_bytes = 0, .parity = true}));
  mbarrier_arrive_drop(object(), 1, 64);
  EXPECT_EQ(state().tx_bytes, 64);
}

TEST_F(SimMbarrier, NoCompleteMustNotComplete) {
  init(3);
  EXPECT_EQ(mbarrier_arrive_no_complete(object(), 2).error, Error::kNone);
  const Mbarrier before = state();
  EXPECT_EQ(mbarrier_arrive_no_complete(object(), 1).error, Error::kWouldComplete);
  EXPECT_EQ(mbarrier_arrive_drop_no_complete(object(), 1).error, Error::kWouldComplete);
  EXPECT_EQ(state(), before);
}

TEST_F(SimMbarrier, ErrorsLeaveTheObjectAlone) {
  init(2);
  mbarrier_arrive_expect_tx(object(), kMaxMbarrierTxBytes);
  const std::array<std::byte, 8> before = bytes_;
  EXPECT_EQ(mbarrier_expect_tx(object(), 1).error, Error::kTxRange);
  EXPECT_EQ(mbarrier_complete_tx(object(), 2u * kMaxMbarrierTxBytes + 1).error, Error::kTxRange);
  EXPECT_EQ(mbarrier_expect_tx(object(), 0xffffffff).error, Error::kTxRange);
  EXPECT_EQ(mbarrier_arrive(object(), 2).error, Error::kUnderflow);
  EXPECT_EQ(mbarrier_arrive(object(), 0).error, Error::kCountRange);
  EXPECT_EQ(mbarrier_arrive(object(), 1 << 20).error, Error::kCountRange);
  EXPECT_EQ(mbarrier_init(object(), 0).error, Error::kCountRange);
  EXPECT_EQ(mbarrier_init(object(), 1 << 20).error, Error::kCountRange);
  EXPECT_EQ(bytes_, before);
}

TEST_F(SimMbarrier, OverArrivalInAPhaseThatBytesHoldOpen) {
  init(1);
  mbarrier_arrive_expect_tx(object(), 32);
  EXPECT_EQ(mbarrier_arrive(object()).error, Error::kUnderflow);
}

TEST_F(SimMbarrier, LifeAndDeath) {
  EXPECT_EQ(mbarrier_arrive(object()).error, Error::kNotInitialized);
  bytes_.fill(std::byte{0xcd});
  EXPECT_EQ(mbarrier_test_wait_parity(object(), 0).error, Error::kNotInitialized);
  EXPECT_EQ(mbarrier_describe(object()), "not an mbarrier");
  bool was_live = true;
  mbarrier_init(object(), 1, &was_live);
  EXPECT_FALSE(was_live);
  mbarrier_init(object(), 1, &was_live);
  EXPECT_TRUE(was_live);
  EXPECT_EQ(mbarrier_inval(object()).error, Error::kNone);
  EXPECT_EQ(mbarrier_inval(object()).error, Error::kInvalidated);
  EXPECT_EQ(mbarrier_expect_tx(object(), 1).error, Error::kInvalidated);
  EXPECT_EQ(mbarrier_describe(object()), "invalidated");
  EXPECT_EQ(mbarrier_add_pending(object()).error, Error::kInvalidated);
}

TEST_F(SimMbarrier, CpAsyncWithoutNoincMakesRoom) {
  init(1);
  EXPECT_EQ(mbarrier_add_pending(object()).error, Error::kNone);
  EXPECT_FALSE(mbarrier_arrive(object()).is_phase_complete) << "the copy's";
  EXPECT_TRUE(mbarrier_arrive(object()).is_phase_complete);
  EXPECT_EQ(state().pending, 1u) << "of later phases nothing changed";
  init(kMaxMbarrierCount);
  EXPECT_EQ(mbarrier_add_pending(object()).error, Error::kOverflow);
}

TEST_F(SimMbarrier, RangesFitTheWord) {
  init(kMaxMbarrierCount);
  mbarrier_expect_tx(object(), kMaxMbarrierTxBytes);
  EXPECT_EQ(state(), (Mbarrier{kMaxMbarrierCount, kMaxMbarrierCount, kMaxMbarrierTxBytes, false}));
  mbarrier_complete_tx(object(), 2 * kMaxMbarrierTxBytes);
  EXPECT_EQ(state().tx_bytes, -kMaxMbarrierTxBytes);
  EXPECT_EQ(state().pending, kMaxMbarrierCount);
}

/// Against a model of three plain numbers.
TEST_F(SimMbarrier, RandomOperations) {
  std::mt19937 rng(11);
  int num_phases = 0;
  for (int round = 0; round < 50; ++round) {
    std::int64_t expected = 1 + static_cast<int>(rng() % 5), pending = expected, tx = 0;
    std::uint32_t phase = 0;
    init(static_cast<std::uint32_t>(expected));
    for (int i = 0; i < 200 && expected > 0; ++i) {
      const std::uint32_t n = 1 + rng() % 2;
      const std::uint32_t bytes = 16 * (rng() % 4);
      MbarrierResult result;
      const bool has_room = n <= pending;
      switch (rng() % 4) {
        case 0:
          result = mbarrier_arrive(object(), n);
          if (has_room) pending -= n;
          break;
        case 1:
          result = mbarrier_arrive_expect_tx(object(), bytes, n);
          if (has_room) pending -= n, tx += bytes;
          break;
        case 2:
          result = mbarrier_complete_tx(object(), bytes);
          tx -= bytes;
          break;
        default:
          result = mbarrier_expect_tx(object(), bytes);
          tx += bytes;
          break;
      }
      const bool is_over_now = pending == 0 && tx == 0;
      if (is_over_now) ++phase, ++num_phases, pending = expected;
      ASSERT_EQ(result.is_phase_complete, is_over_now);
      ASSERT_EQ(state(),
                (Mbarrier{static_cast<std::uint32_t>(expected), static_cast<std::uint32_t>(pending),
                          static_cast<std::int32_t>(tx), phase % 2 == 1}));
    }
  }
  EXPECT_GT(num_phases, 50);
}

TEST(SimMbarrierErrors, HaveTexts) {
  EXPECT_THAT(to_string(Error::kUnderflow), HasSubstr("more often than the phase expects"));
  EXPECT_THAT(to_string(Error::kNotInitialized), HasSubstr("no mbarrier"));
}

}  // namespace
}  // namespace tilewright::sim
