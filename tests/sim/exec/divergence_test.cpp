// Lanes of a warp at different places: they part, go on, and meet again.
#include "run_ptx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

TEST(Divergence, BothSidesOfAnIfRunAndMeet) {
  const RunResult run = run_ptx(kernel_with(R"(
    and.b32 %x, %t, 1;
    setp.eq.u32 %p, %x, 0;
    @%p bra EVEN;
    mov.u32 %y, 100;
    bra MEET;
  EVEN:
    mov.u32 %y, 200;
  MEET:
    vote.sync.ballot.b32 %z, 1, 0xffffffff;  // all are here
    add.u32 %y, %y, %t;
    setp.ne.u32 %q, %z, 0xffffffff;
    @%q mov.u32 %y, 0;
    st.global.u32 [%mine], %y;
    ret;)"));
  ASSERT_EQ(run.fault, "");
  for (std::uint32_t t = 0; t < 32; ++t) EXPECT_EQ(run.out[t], (t % 2 == 0 ? 200 : 100) + t);
}

TEST(Divergence, LoopsEndForEachLaneAlone) {
  const RunResult run = run_ptx(kernel_with(R"(
    mov.u32 %x, 0;
    mov.u32 %y, 0;
  LOOP:
    setp.gt.u32 %p, %x, %t;
    @%p bra DONE;
    add.u32 %y, %y, %x;
    add.u32 %x, %x, 1;
    bra LOOP;
  DONE:
    st.global.u32 [%mine], %y;
    ret;)"));
  ASSERT_EQ(run.fault, "");
  for (std::uint32_t t = 0; t < 32; ++t) EXPECT_EQ(run.out[t], t * (t + 1) / 2);
}

// The elected lane waits for what another lane of its warp does later in the text.
TEST(Divergence, ASpinningLaneDoesNotStarveTheOthers) {
  const RunResult run = run_ptx(kernel_with(R"(
    setp.eq.u32 %p, %t, 0;
    mov.u32 %z, 0;
    @%p st.shared.u32 [flag], %z;
    bar.sync 0;
    @!%p bra OTHERS;
  SPIN:
    ld.volatile.shared.u32 %x, [flag];
    setp.ne.u32 %q, %x, 7;
    @%q bra SPIN;
    bra MEET;
  OTHERS:
    setp.eq.u32 %q, %t, 31;
    mov.u32 %y, 7;
    @%q st.volatile.shared.u32 [flag], %y;
  MEET:
    bar.warp.sync 0xffffffff;
    ld.volatile.shared.u32 %x, [flag];
    st.global.u32 [%mine], %x;
    ret;)",
                                            ".shared .align 4 .u32 flag;"));
  ASSERT_EQ(run.fault, "");
  EXPECT_THAT(run.out, Each(7u));
}

TEST(Divergence, WarpSyncAtSeveralPlaces) {
  const RunResult run = run_ptx(kernel_with(R"(
    and.b32 %x, %t, 1;
    setp.eq.u32 %p, %x, 0;
    @%p bra EVEN;
    bar.warp.sync 0xffffffff;
    mov.u32 %y, 1;
    bra MEET;
  EVEN:
    bar.warp.sync 0xffffffff;
    mov.u32 %y, 2;
  MEET:
    st.global.u32 [%mine], %y;
    ret;)"));
  ASSERT_EQ(run.fault, "");
  for (std::uint32_t t = 0; t < 32; ++t) EXPECT_EQ(run.out[t], t % 2 == 0 ? 2u : 1u);
}

TEST(Divergence, LanesThatHaveEndedAreNotWaitedFor) {
  const RunResult run = run_ptx(kernel_with(R"(
    setp.lt.u32 %p, %t, 10;
    @%p ret;
    bar.warp.sync 0xffffffff;
    bar.sync 0;
    activemask.b32 %x;
    st.global.u32 [%mine], %x;
    ret;)"));
  ASSERT_EQ(run.fault, "");
  for (std::uint32_t t = 0; t < 32; ++t) EXPECT_EQ(run.out[t], t < 10 ? 0xdeadbeef : 0xfffffc00);
}

TEST(Divergence, BranchTables) {
  const RunResult run = run_ptx(kernel_with(R"(
    and.b32 %x, %t, 3;
    mov.u32 %y, 0;
  targets: .branchtargets A, B, A, C;
    brx.idx %x, targets;
  A: add.u32 %y, %y, 1;
  B: add.u32 %y, %y, 10;
  C: add.u32 %y, %y, 100;
    st.global.u32 [%mine], %y;
    ret;)"));
  ASSERT_EQ(run.fault, "");
  const std::uint32_t expected[] = {111, 110, 111, 100};
  for (std::uint32_t t = 0; t < 32; ++t) EXPECT_EQ(run.out[t], expected[t % 4]);
}

TEST(Divergence, AnIndexOutsideOfTheTableIsAFault) {
  const RunResult run = run_ptx(kernel_with(R"(
  targets: .branchtargets A, B;
    brx.idx %t, targets;
  A: ret;
  B: ret;)"));
  EXPECT_EQ(run.kind, FaultKind::kInvalidPc);
  EXPECT_THAT(run.fault, HasSubstr("index 2 in a table of 2 targets"));
}

// An .aligned barrier under a condition that only half of the warp meets.
TEST(Divergence, AlignedInstructionThatLanesNeverReach) {
  const RunResult run = run_ptx(kernel_with(R"(
    mov.u32 %z, 0;
    st.volatile.shared.u32 [flag], %z;
    setp.lt.u32 %p, %t, 16;
    @%p bra HALF;
  SPIN:
    ld.volatile.shared.u32 %x, [flag];
    setp.eq.u32 %q, %x, 1;
    @!%q bra SPIN;
    ret;
  HALF:
    bar.sync 0;
    mov.u32 %y, 1;
    st.volatile.shared.u32 [flag], %y;
    ret;)",
                                            ".shared .align 4 .u32 flag;"));
  EXPECT_EQ(run.kind, FaultKind::kDeadlock);
  EXPECT_THAT(run.fault, HasSubstr("executed divergently: lanes 16-31 are elsewhere"));
}

}  // namespace
}  // namespace tilewright::sim
