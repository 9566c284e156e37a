// Deadlocks among warps that poll: how soon they are found, and what is said first.
#include "sim/event/finding.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"
#include "sim/report/launch_times.h"

#include <cstring>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using testing::HasSubstr;

struct Outcome {
  std::string message, text;
  std::vector<Finding> findings;
  double seconds = 0;  ///< of the processor
};

struct Shape {
  std::uint32_t ctas = 1, cluster = 1, threads = 64;
};

/// Runs a kernel that gets the address of 4 KiB of zeros as %flag; %rank is its number in the
/// cluster, %cta in the grid, and `full` an mbarrier that expects one arrival.
Outcome run(const std::string& body, const Shape& shape) {
  const std::string text = fmt::format(R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 flag_param)
{{
  .reg .pred %first, %p;
  .reg .b32 %t, %v, %w, %rank, %cta;
  .reg .b64 %flag;
  .shared .align 8 .b64 full;
  ld.param.u64 %flag, [flag_param];
  mov.u32 %t, %tid.x;
  mov.u32 %cta, %ctaid.x;
  mov.u32 %rank, %cluster_ctarank;
  setp.eq.u32 %first, %t, 0;
  mov.u32 %w, full;
  @%first mbarrier.init.shared::cta.b64 [%w], 1;
  bar.sync 0;
{}  ret;
}}
)",
                                       body);
  Options options;
  options.checks = parse_checks("all");
  Machine machine(*find_device_model("h200"), options);
  Outcome out;
  machine.set_output([](std::string_view) {}, [&](std::string_view said) { out.text += said; });
  Launch launch;
  launch.module = machine.load(parse_module(text, "deadlock.ptx"));
  launch.kernel = "kernel";
  launch.grid.x = shape.ctas;
  launch.block.x = shape.threads;
  launch.cluster.x = shape.cluster;
  const std::uint64_t flag = machine.memory().allocate(4096, "flag");
  std::memset(reinterpret_cast<void*>(flag), 0, 4096);
  machine.mark_defined(flag, 4096);
  launch.params.resize(8);
  std::memcpy(launch.params.data(), &flag, 8);
  const double begin = processor_seconds();
  const std::optional<Fault> fault = machine.launch(launch);
  out.seconds = processor_seconds() - begin;
  if (fault) out.message = fault->message;
  out.findings = machine.findings().take_all();
  return out;
}

constexpr const char* kWaitForFull = R"(
AGAIN:
  mbarrier.try_wait.parity.shared::cta.b64 %p, [%w], 0;
  @!%p bra AGAIN;
)";
constexpr const char* kPollFlag = R"(
POLL:
  ld.acquire.gpu.global.u32 %v, [%flag];
  setp.eq.u32 %p, %v, 0;
  @%p bra POLL;
)";
constexpr const char* kMeetCluster = R"(
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
)";

/// A second, and as much again and again for a machine that is busy.
#ifdef __SANITIZE_ADDRESS__
constexpr double kMostSeconds = 20;
#else
constexpr double kMostSeconds = 3;
#endif

void expect_deadlock(const Outcome& outcome) {
  EXPECT_THAT(outcome.message, HasSubstr("deadlock: nothing can go on"));
  EXPECT_LT(outcome.seconds, kMostSeconds);
  ASSERT_EQ(outcome.findings.size(), 1);
  EXPECT_EQ(outcome.findings[0].check, "sync");
  const std::size_t first = outcome.text.find("deadlock:");
  ASSERT_NE(first, std::string::npos) << outcome.text;
  EXPECT_EQ(outcome.text.find("deadlock:", first + 1), std::string::npos) << outcome.text;
}

TEST(Deadlock, OfOneCtaIsFoundSoon) {
  expect_deadlock(run(kWaitForFull, {}));
  expect_deadlock(run(kPollFlag, {}));
}

TEST(Deadlock, OfManyCtasThatPollIsFoundSoon) {
  expect_deadlock(run(kWaitForFull, {.ctas = 264}));
  expect_deadlock(run(kPollFlag, {.ctas = 264, .threads = 256}));
}

TEST(Deadlock, OfClustersIsFoundSoon) {
  expect_deadlock(run(std::string(kWaitForFull) + kMeetCluster, {.ctas = 64, .cluster = 4}));
  expect_deadlock(run(std::string(kPollFlag) + kMeetCluster, {.ctas = 132, .cluster = 2}));
}

// Registers that only count the rounds change for ever: a limit of rounds ends it.
TEST(Deadlock, OfACountedPollIsFoundSoon) {
  const std::string poll = R"(
  mov.u32 %t, 0;
POLL:
  add.u32 %t, %t, 1;
  ld.acquire.gpu.global.u32 %v, [%flag];
  setp.eq.u32 %p, %v, 0;
  @%p bra POLL;
  st.global.u32 [%flag+8], %t;
)";
  expect_deadlock(run(poll, {.threads = 32}));
  expect_deadlock(run(poll, {.ctas = 8, .cluster = 2}));
  expect_deadlock(run(poll, {.ctas = 132, .threads = 256}));
}

TEST(Deadlock, CountingMayEndAPoll) {
  const Outcome outcome = run(R"(
  mov.u32 %t, 0;
POLL:
  add.u32 %t, %t, 1;
  setp.gt.u32 %p, %t, 10000;
  @%p bra DONE;
  ld.acquire.gpu.global.u32 %v, [%flag];
  setp.eq.u32 %p, %v, 0;
  @%p bra POLL;
DONE:
)",
                              {.ctas = 8, .cluster = 2});
  EXPECT_EQ(outcome.message, "");
}

// Rank 1 never arrives at the mbarrier of rank 0; the others are only held up by that.
TEST(Deadlock, TheCauseComesFirst) {
  const Outcome outcome = run(std::string("setp.ne.u32 %p, %rank, 0;\n@%p bra MEET;\n") +
                                  kWaitForFull + "MEET:\n" + kMeetCluster,
                              {.ctas = 8, .cluster = 4});
  expect_deadlock(outcome);
  ASSERT_FALSE(outcome.findings.empty());
  const auto& places = outcome.findings[0].places;
  ASSERT_GE(places.size(), 2);
  EXPECT_THAT(places[0].role, HasSubstr("waits for phase parity 0 of the mbarrier"));
  EXPECT_THAT(describe(places[0].who), HasSubstr("CTA (0,0,0)"));
  EXPECT_THAT(places.back().role, HasSubstr("waits for the barrier of the cluster"));
}

// A kernel may ask for a phase that has not ended, again and again, and go on without it.
TEST(Deadlock, AskingManyTimesInVainIsNone) {
  const Outcome outcome = run(std::string(R"(
  @!%first bra AGAIN;
  mov.u32 %v, 0;
ASK:
  mbarrier.try_wait.parity.shared::cta.b64 %p, [%w], 0;
  add.u32 %v, %v, 1;
  setp.lt.u32 %p, %v, 40;
  @%p bra ASK;
  mbarrier.arrive.shared::cta.b64 _, [%w];
)") + kWaitForFull,
                              {.ctas = 8, .cluster = 2});
  EXPECT_EQ(outcome.message, "");
}

TEST(Deadlock, PollsThatSomebodyEndsAreNone) {
  const Outcome outcome = run(R"(
  setp.ne.u32 %p, %cta, 63;
  @%p bra POLL;
  mov.u32 %t, 0;
SPIN:
  add.u32 %t, %t, 1;
  setp.lt.u32 %p, %t, 20000;
  @%p bra SPIN;
  st.release.gpu.global.u32 [%flag], 1;
POLL:
  ld.acquire.gpu.global.u32 %v, [%flag];
  setp.eq.u32 %p, %v, 0;
  @%p bra POLL;
)",
                              {.ctas = 64, .cluster = 2, .threads = 32});
  EXPECT_EQ(outcome.message, "");
}

}  // namespace
}  // namespace tilewright::sim
