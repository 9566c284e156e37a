// CTAs, barriers, calls, faults.
#include "run_ptx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

TEST(Engine, SpecialRegisters) {
  RunSetup setup;
  setup.grid = {4, 1, 1};
  setup.block = {64, 1, 1};
  setup.cluster = {2, 1, 1};
  const RunResult run = run_ptx(kernel_with(R"(
    mov.u32 %x, %cluster_ctarank;
    mov.u32 %y, %clusterid.x;
    mad.lo.u32 %x, %y, 10, %x;
    mov.u32 %y, %warpid;
    mad.lo.u32 %x, %y, 100, %x;
    mov.u32 %y, %laneid;
    mad.lo.u32 %x, %y, 1000, %x;
    mov.u32 %y, %nclusterid.x;
    mad.lo.u32 %x, %y, 100000, %x;
    st.global.u32 [%mine], %x;
    ret;)"),
                                setup);
  ASSERT_EQ(run.fault, "");
  for (std::uint32_t i = 0; i < run.out.size(); ++i) {
    const std::uint32_t cta = i / 64, t = i % 64;
    EXPECT_EQ(run.out[i], 200000 + t % 32 * 1000 + t / 32 * 100 + cta / 2 * 10 + cta % 2);
  }
}

TEST(Engine, BarriersOrderWarps) {
  RunSetup setup;
  setup.block = {256, 1, 1};
  const RunResult run = run_ptx(kernel_with(R"(
    mov.u32 %y, buffer;
    shl.b32 %x, %t, 2;
    add.u32 %y, %y, %x;
    st.shared.u32 [%y], %t;
    bar.sync 0;
    sub.u32 %x, 1020, %x;
    mov.u32 %y, buffer;
    add.u32 %y, %y, %x;
    ld.shared.u32 %z, [%y];
    st.global.u32 [%mine], %z;
    ret;)",
                                            ".shared .align 4 .b8 buffer[1024];"),
                                setup);
  ASSERT_EQ(run.fault, "");
  for (std::uint32_t t = 0; t < 256; ++t) EXPECT_EQ(run.out[t], 255 - t);
}

TEST(Engine, BarrierReductions) {
  RunSetup setup;
  setup.block = {96, 1, 1};
  const RunResult run = run_ptx(kernel_with(R"(
    setp.lt.u32 %p, %t, 40;
    bar.red.popc.u32 %x, 1, %p;
    bar.red.and.pred %q, 2, %p;
    selp.u32 %y, 1000, 0, %q;
    bar.red.or.pred %q, 2, %p;
    selp.u32 %z, 10000, 0, %q;
    add.u32 %x, %x, %y;
    add.u32 %x, %x, %z;
    st.global.u32 [%mine], %x;
    ret;)"),
                                setup);
  ASSERT_EQ(run.fault, "");
  EXPECT_THAT(run.out, Each(10040u));
}

TEST(Engine, ProducerArrivesAndConsumerWaits) {
  RunSetup setup;
  setup.block = {64, 1, 1};
  const RunResult run = run_ptx(kernel_with(R"(
    setp.ge.u32 %p, %t, 32;
    @%p bra CONSUMER;
    add.u32 %x, %t, 5;
    mov.u32 %y, buffer;
    shl.b32 %z, %t, 2;
    add.u32 %y, %y, %z;
    st.shared.u32 [%y], %x;
    bar.arrive 3, 64;
    st.global.u32 [%mine], %x;
    ret;
  CONSUMER:
    bar.sync 3, 64;
    mov.u32 %y, buffer;
    shl.b32 %z, %t, 2;
    add.u32 %y, %y, %z;
    ld.shared.u32 %x, [%y+-128];
    st.global.u32 [%mine], %x;
    ret;)",
                                            ".shared .align 4 .b8 buffer[128];"),
                                setup);
  ASSERT_EQ(run.fault, "");
  for (std::uint32_t t = 0; t < 64; ++t) EXPECT_EQ(run.out[t], t % 32 + 5);
}

TEST(Engine, ClusterBarrierOrdersRemoteStores) {
  RunSetup setup;
  setup.grid = {4, 1, 1};
  setup.cluster = {4, 1, 1};
  const RunResult run = run_ptx(kernel_with(R"(
    mov.u32 %x, %cluster_ctarank;
    add.u32 %y, %x, 1;
    and.b32 %y, %y, 3;
    mov.u32 %z, slot;
    mapa.shared::cluster.u32 %z, %z, %y;
    setp.eq.u32 %p, %t, 0;
    @%p st.shared::cluster.u32 [%z], %x;
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
    ld.shared.u32 %y, [slot];
    st.global.u32 [%mine], %y;
    ret;)",
                                            ".shared .align 4 .u32 slot;"),
                                setup);
  ASSERT_EQ(run.fault, "");
  for (std::uint32_t i = 0; i < 128; ++i) EXPECT_EQ(run.out[i], (i / 32 + 3) % 4);
}

// Each CTA waits for the one before it: they must be resident together.
TEST(Engine, CtasThatWaitForEachOtherThroughMemory) {
  RunSetup setup;
  setup.grid = {100, 1, 1};
  const RunResult run = run_ptx(kernel_with(R"(
    setp.ne.u32 %p, %t, 0;
    @%p bra DONE;
    sub.u32 %y, 99, %block;  // the last CTA goes first
  SPIN:
    ld.acquire.gpu.global.u32 %x, [%in];
    setp.ne.u32 %q, %x, %y;
    @%q bra SPIN;
    add.u32 %x, %x, 1;
    st.release.gpu.global.u32 [%in], %x;
  DONE:
    st.global.u32 [%mine], %block;
    ret;)"),
                                setup);
  ASSERT_EQ(run.fault, "");
  for (std::uint32_t i = 0; i < run.out.size(); ++i) EXPECT_EQ(run.out[i], i / 32);
}

TEST(Engine, CallsAreInlined) {
  const RunResult run = run_ptx(kernel_with(R"(
    {
      .param .b32 a; .param .b32 r;
      st.param.b32 [a], %t;
      call (r), twice_plus, (a);
      ld.param.b32 %x, [r];
      st.param.b32 [a], %x;
      setp.lt.u32 %p, %t, 4;
      @%p call (r), twice_plus, (a);
      ld.param.b32 %x, [r];
    }
    st.global.u32 [%mine], %x;
    ret;)",
                                            R"(
.func (.param .b32 result) twice_plus(.param .b32 value)
{
  .reg .b32 %v; .reg .pred %early;
  ld.param.b32 %v, [value];
  shl.b32 %v, %v, 1;
  setp.gt.u32 %early, %v, 20;
  st.param.b32 [result], %v;
  @%early ret;
  add.u32 %v, %v, 1;
  st.param.b32 [result], %v;
  ret;
})"));
  ASSERT_EQ(run.fault, "");
  const auto f = [](std::uint32_t v) { return 2 * v > 20 ? 2 * v : 2 * v + 1; };
  for (std::uint32_t t = 0; t < 32; ++t) EXPECT_EQ(run.out[t], t < 4 ? f(f(t)) : f(t));
}

TEST(Engine, EndlessRecursionOverflowsTheStack) {
  const RunResult run = run_ptx(kernel_with("call f; ret;", R"(
.func f() { call f; ret; })"));
  EXPECT_THAT(run.fault, AllOf(HasSubstr("call stack overflow"), HasSubstr("call f;")));
}

TEST(Engine, AFunctionThatCannotBeTranslatedLeavesTheRestUsable) {
  const std::string text = kernel_with("ret;", R"(
.func f() { rcp.u32 1; ret; }
.visible .entry bad() { call f; ret; }
.visible .entry worse() { frobnicate.u32 1; ret; })");
  EXPECT_EQ(run_ptx(text).fault, "");
  RunSetup setup;
  setup.kernel = "bad";
  EXPECT_THAT([&] { run_ptx(text, setup); }, ::testing::ThrowsMessage<Error>(HasSubstr("rcp")));
  setup.kernel = "worse";
  EXPECT_THAT([&] { run_ptx(text, setup); },
              ::testing::ThrowsMessage<Error>(
                  AllOf(HasSubstr("test.ptx:"), HasSubstr("unknown instruction frobnicate"))));
}

TEST(Engine, FaultsSayWhere) {
  const RunResult run = run_ptx(kernel_with(R"(
    setp.eq.u32 %p, %t, 5;
    @%p trap;
    ret;)"));
  EXPECT_EQ(run.kind, FaultKind::kTrap);
  EXPECT_THAT(run.fault, AllOf(HasSubstr("test: trap"), HasSubstr("test.ptx:2"),
                               HasSubstr("CTA (0,0,0) warp 0 lane 5"), HasSubstr("@%p trap;")));
}

// CTA 0 comes to its fault long after the others, which other host threads run beside it.
TEST(Engine, TheFirstFaultOfTheGridIsToldWhicheverCtaWasFaster) {
  RunSetup setup;
  setup.grid = {8, 1, 1};
  setup.options.num_threads = 4;
  const RunResult run = run_ptx(kernel_with(R"(
    mov.u32 %x, 0;
    setp.ne.u32 %p, %block, 0;
    @%p bra FAULT;
  LOOP:
    add.u32 %x, %x, 1;
    setp.lt.u32 %p, %x, 300000;
    @%p bra LOOP;
  FAULT:
    trap;)"),
                                setup);
  EXPECT_EQ(run.kind, FaultKind::kTrap);
  EXPECT_THAT(run.fault, HasSubstr("CTA (0,0,0)"));
}

TEST(Engine, DeadlocksSayWhoWaitsForWhat) {
  RunSetup setup;
  setup.block = {64, 1, 1};
  const RunResult run = run_ptx(kernel_with(R"(
    setp.lt.u32 %p, %t, 32;
    @%p bra FIRST;
    bar.sync 2, 64;
    ret;
  FIRST:
    bar.sync 1, 64;
    ret;)"),
                                setup);
  EXPECT_EQ(run.kind, FaultKind::kDeadlock);
  EXPECT_THAT(run.fault, AllOf(HasSubstr("warp 0"), HasSubstr("barrier 1: 32 of 64"),
                               HasSubstr("warp 1"), HasSubstr("barrier 2: 32 of 64")));
}

TEST(Engine, AWaitForAPhaseThatNeverEndsIsADeadlock) {
  const RunResult run = run_ptx(kernel_with(R"(
    setp.eq.u32 %p, %t, 0;
    @%p mbarrier.init.shared.b64 [bar], 2;
    bar.sync 0;
    @%p mbarrier.arrive.shared.b64 %step, [bar];
  SPIN:
    mbarrier.try_wait.parity.shared.b64 %q, [bar], 0;
    @!%q bra SPIN;
    ret;)",
                                            ".shared .align 8 .b64 bar;"));
  EXPECT_EQ(run.kind, FaultKind::kDeadlock);
  EXPECT_THAT(run.fault, HasSubstr("1 of 2 arrivals pending"));
}

// CTAs that may talk to each other run in turns; a loop around try_wait is no progress for them.
TEST(Engine, ADeadlockIsFoundWhereCtasMayWaitForEachOther) {
  RunSetup setup;
  setup.grid = {2, 1, 1};
  const RunResult run = run_ptx(kernel_with(R"(
    atom.global.add.u32 %x, [%out], 1;
    setp.eq.u32 %p, %t, 0;
    @%p mbarrier.init.shared.b64 [bar], 1;
    bar.sync 0;
  SPIN:
    mbarrier.try_wait.parity.shared.b64 %q, [bar], 0;
    @!%q bra SPIN;
    ret;)",
                                            ".shared .align 8 .b64 bar;"),
                                setup);
  EXPECT_EQ(run.kind, FaultKind::kDeadlock);
  EXPECT_THAT(run.fault, HasSubstr("1 of 1 arrivals pending"));
}

TEST(Engine, LaunchesThatTheDeviceWouldRefuse) {
  const auto refusal = [](const RunSetup& setup, const char* text) {
    EXPECT_THAT([&] { run_ptx(kernel_with("ret;"), setup); },
                ::testing::ThrowsMessage<Error>(HasSubstr(text)));
  };
  RunSetup threads;
  threads.block = {1025, 1, 1};
  refusal(threads, "block.x = 1025; at most 1024");
  RunSetup shared;
  shared.dynamic_shared_bytes = 300'000;
  refusal(shared, "shared memory of a block in bytes = 300000");
  RunSetup cluster;
  cluster.grid = {3, 1, 1};
  cluster.cluster = {2, 1, 1};
  refusal(cluster, "no multiple of the cluster");
}

}  // namespace
}  // namespace tilewright::sim
