// Launches with programmatic stream serialization: what a kernel touches before it knows that those
// before it have ended.
#include "sim/check/order/dependent_launch.h"

#include "sim/machine.h"
#include "sim/parse/parser.h"

#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using testing::HasSubstr;

constexpr const char* kWait = "griddepcontrol.wait;\n";
constexpr const char* kTrigger = "griddepcontrol.launch_dependents;\n";
constexpr const char* kBarrier = "bar.sync 0;\n";
constexpr const char* kReadA = "ld.global.u32 %v, [%a];\n";
constexpr const char* kWriteA = "st.global.u32 [%a], %t;\n";
constexpr const char* kReadB = "ld.global.u32 %v, [%b];\n";
constexpr const char* kWriteB = "st.global.u32 [%b], %t;\n";
constexpr const char* kAddA = "red.global.add.u32 [%a], 1;\n";

/// One launch: what its kernel does, with %a and %b of the thread, its number %t, and %first for
/// thread 0 of a CTA.
struct Step {
  std::string body;
  bool is_dependent = true;
  std::uint32_t ctas = 1;
  bool syncs_before = false;  ///< the host waits before it
};

std::string module_of(const std::vector<Step>& steps) {
  std::string text = ".version 8.7\n.target sm_90a\n.address_size 64\n";
  for (std::size_t i = 0; i < steps.size(); ++i) {
    text += fmt::format(R"(
.visible .entry kernel{}(.param .u64 a_param, .param .u64 b_param)
{{
  .reg .pred %first, %p;
  .reg .b32 %t, %v, %w;
  .reg .b64 %a, %b, %at, %flag;
  .shared .align 8 .b64 full;
  ld.param.u64 %a, [a_param];
  ld.param.u64 %b, [b_param];
  add.s64 %flag, %b, 4096;
  mov.u32 %t, %tid.x;
  setp.eq.u32 %first, %t, 0;
  mul.wide.u32 %at, %t, 4;
  add.s64 %a, %a, %at;
  add.s64 %b, %b, %at;
{}  ret;
}}
)",
                        i, steps[i].body);
  }
  return text;
}

/// What is found in a chain of launches, one line for each finding.
std::vector<std::string> findings_of(const std::vector<Step>& steps) {
  constexpr std::uint64_t kBytes = 8192;
  Options options;
  options.checks = parse_checks("all");
  options.report_only = true;
  options.num_threads = 1;
  Machine machine(*find_device_model("h200"), options);
  machine.set_output([](std::string_view) {}, [](std::string_view) {});
  std::vector<std::byte> params(16);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::uint64_t address = machine.memory().allocate(kBytes, "data");
    std::memset(reinterpret_cast<void*>(address), 0, kBytes);
    machine.mark_defined(address, kBytes);
    std::memcpy(params.data() + 8 * i, &address, 8);
  }
  const auto module = machine.load(parse_module(module_of(steps), "chain.ptx"));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].syncs_before) machine.forget_launches();
    Launch launch;
    launch.module = module;
    launch.kernel = fmt::format("kernel{}", i);
    launch.grid.x = steps[i].ctas;
    launch.block.x = 64;
    launch.params = params;
    launch.is_dependent = steps[i].is_dependent;
    const std::optional<Fault> fault = machine.launch(launch);
    EXPECT_FALSE(fault.has_value()) << fault->message;
  }
  std::vector<std::string> out;
  for (const Finding& finding : machine.findings().take_all()) {
    EXPECT_EQ(finding.check, "race");
    out.push_back(fmt::format("{}: {}; {}", finding.kernel, finding.what, finding.missing));
  }
  return out;
}

using Steps = std::vector<Step>;

TEST(DependentLaunch, WhatEarlierKernelsWriteIsReadAfterTheWait) {
  EXPECT_THAT(findings_of({{kWriteA, false}, {std::string(kReadA) + kWait}}),
              testing::ElementsAre(HasSubstr("kernel1: reads what the launch of kernel0 before may "
                                             "still be writing")));
  EXPECT_THAT(findings_of({{kWriteA, false}, {std::string(kWait) + kReadA}}), testing::IsEmpty());
  EXPECT_THAT(findings_of({{kWriteA, false}, {std::string(kReadB) + kWait + kReadA}}),
              testing::IsEmpty())
      << "what nobody writes may be read at once";
}

TEST(DependentLaunch, WhatEarlierKernelsTouchIsWrittenAfterTheWait) {
  EXPECT_THAT(findings_of({{kWriteA, false}, {std::string(kWriteA) + kWait}}),
              testing::ElementsAre(HasSubstr("kernel1: writes what the launch of kernel0 before "
                                             "may still be writing")));
  EXPECT_THAT(findings_of({{kReadA, false}, {std::string(kWriteA) + kWait}}),
              testing::ElementsAre(HasSubstr("kernel1: writes what the launch of kernel0 before "
                                             "may still be reading")));
  EXPECT_THAT(findings_of({{kReadA, false}, {std::string(kWait) + kWriteA}}), testing::IsEmpty());
  EXPECT_THAT(findings_of({{kReadA, false}, {std::string(kReadA) + kWait}}), testing::IsEmpty());
}

TEST(DependentLaunch, AKernelThatNeverWaitsIsNamed) {
  EXPECT_THAT(findings_of({{kWriteA, false}, {kReadA}}),
              testing::ElementsAre(HasSubstr("may begin early: griddepcontrol.wait")));
  EXPECT_THAT(findings_of({{kWriteA, false}, {kReadB}}), testing::IsEmpty());
}

TEST(DependentLaunch, WithoutTheAttributeOrAfterTheHostHasWaitedAllIsOver) {
  EXPECT_THAT(findings_of({{kWriteA, false}, {kReadA, false}}), testing::IsEmpty());
  EXPECT_THAT(findings_of({{kWriteA, false}, {kReadA, true, 1, true}}), testing::IsEmpty());
  EXPECT_THAT(findings_of({{kWriteA, false}, {kReadB, false}, {kReadA}}), testing::IsEmpty())
      << "the second waits for the end of the first as every launch does";
}

// The third knows of the first only through the second.
TEST(DependentLaunch, AChainHasNoGapInItsWaits) {
  const std::string waits = kWait;
  EXPECT_THAT(findings_of({{kWriteA, false}, {waits + kWriteB}, {waits + kReadA + kReadB}}),
              testing::IsEmpty());
  EXPECT_THAT(findings_of({{kWriteA, false}, {kReadB}, {waits + kReadA}}),
              testing::ElementsAre(testing::AllOf(
                  HasSubstr("kernel2: reads what the launch of kernel0 before"),
                  HasSubstr("a launch between the two has no griddepcontrol.wait"))));
  EXPECT_THAT(findings_of({{kWriteA, false}, {waits + kWriteB}, {kReadA + waits}}),
              testing::IsEmpty())
      << "the second has no trigger before its end, and the first had ended by then";
  EXPECT_THAT(findings_of({{kWriteA, false}, {kTrigger + waits + kWriteB}, {kReadA + waits}}),
              testing::ElementsAre(HasSubstr("kernel2: reads what the launch of kernel0 before")));
  EXPECT_THAT(findings_of({{kWriteA, false}, {waits + kTrigger + kWriteB}, {kReadA + waits}}),
              testing::IsEmpty());
  EXPECT_THAT(findings_of({{kWriteA, false}, {waits + kTrigger + kWriteB}, {kReadB + waits}}),
              testing::ElementsAre(HasSubstr("kernel2: reads what the launch of kernel1 before")));
}

TEST(DependentLaunch, OneThreadWaitsAndABarrierTellsTheOthers) {
  const std::string one_waits = "@!%first bra MET;\n" + std::string(kWait) + "MET:\n";
  EXPECT_THAT(findings_of({{kWriteA, false}, {one_waits + kBarrier + kReadA}}), testing::IsEmpty());
  EXPECT_THAT(findings_of({{kWriteA, false}, {one_waits + kReadA}}),
              testing::ElementsAre(HasSubstr("kernel1: reads")))
      << "the other warp has not met the one that waited";
  EXPECT_THAT(findings_of({{kWriteA, false}, {kBarrier + one_waits + kReadA}}),
              testing::ElementsAre(HasSubstr("kernel1: reads")));
}

TEST(DependentLaunch, AnMbarrierTellsTheOthersToo) {
  const std::string init = R"(
  mov.u32 %w, full;
  @%first mbarrier.init.shared::cta.b64 [%w], 1;
  bar.sync 0;
  @!%first bra MET;
)";
  const std::string arrive = R"(
  mbarrier.arrive.shared::cta.b64 _, [%w];
MET:
)";
  const std::string wait = R"(
AGAIN:
  mbarrier.try_wait.parity.shared::cta.b64 %p, [%w], 0;
  @!%p bra AGAIN;
)";
  EXPECT_THAT(findings_of({{kWriteA, false}, {init + kWait + arrive + wait + kReadA}}),
              testing::IsEmpty());
  EXPECT_THAT(findings_of({{kWriteA, false}, {init + arrive + wait + kReadA + kWait}}),
              testing::ElementsAre(HasSubstr("kernel1: reads")));
}

// CTA 0 waits and says so by a flag; the others poll it.
TEST(DependentLaunch, AFlagTellsOtherCtas) {
  const std::string tell = R"(
  mov.u32 %v, %ctaid.x;
  setp.ne.u32 %p, %v, 0;
  @%p bra POLL;
  griddepcontrol.wait;
  st.release.gpu.global.u32 [%flag], 1;
POLL:
  ld.acquire.gpu.global.u32 %v, [%flag];
  setp.eq.u32 %p, %v, 0;
  @%p bra POLL;
)";
  EXPECT_THAT(findings_of({{kWriteA, false}, {tell + kReadA, true, 3}}), testing::IsEmpty());
}

TEST(DependentLaunch, AtomicsMayMeetAndPlainAccessesMayNot) {
  EXPECT_THAT(findings_of({{kAddA, false}, {std::string(kAddA) + kWait}}), testing::IsEmpty());
  EXPECT_THAT(findings_of({{kAddA, false}, {std::string(kWriteA) + kWait}}),
              testing::ElementsAre(HasSubstr("kernel1: writes")));
  EXPECT_THAT(findings_of({{kAddA, false}, {std::string(kReadA) + kWait}}),
              testing::ElementsAre(HasSubstr("kernel1: reads")));
}

// Halves of one word belong to different kernels.
TEST(DependentLaunch, NeighboursOfOneWordAreApart) {
  const std::string low = "cvt.u16.u32 %h, %t;\nst.global.u16 [%a], %h;\n";
  const std::string high = "cvt.u16.u32 %h, %t;\nst.global.u16 [%a+2], %h;\n";
  const std::string half = ".reg .b16 %h;\n";
  EXPECT_THAT(findings_of({{half + low, false}, {half + high + kWait}}), testing::IsEmpty());
  EXPECT_THAT(findings_of({{half + low, false}, {half + low + kWait}}),
              testing::ElementsAre(HasSubstr("kernel1: writes")));
  EXPECT_THAT(findings_of({{half + low, false}, {std::string(kReadA) + kWait}}),
              testing::ElementsAre(HasSubstr("kernel1: reads")));
  EXPECT_THAT(findings_of({{kWriteA, false}, {half + high + kWait}}),
              testing::ElementsAre(HasSubstr("kernel1: writes")));
}

TEST(DependentLaunch, CopiesCountAsTheirBytes) {
  const std::string copy = R"(
  .shared .align 128 .b8 tile[256];
  mov.u32 %w, full;
  @%first mbarrier.init.shared::cta.b64 [%w], 1;
  bar.sync 0;
  @!%first bra DONE;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%w], 256;
  mov.u32 %v, tile;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%v], [%a], 256, [%w];
AGAIN:
  mbarrier.try_wait.parity.shared::cta.b64 %p, [%w], 0;
  @!%p bra AGAIN;
DONE:
)";
  EXPECT_THAT(findings_of({{kWriteA, false}, {copy}}),
              testing::ElementsAre(HasSubstr("kernel1: reads")));
  EXPECT_THAT(findings_of({{kWriteA, false}, {kWait + copy}}), testing::IsEmpty());
  EXPECT_THAT(findings_of({{copy, false}, {std::string(kWriteA) + kWait}}),
              testing::ElementsAre(HasSubstr("may still be reading")));
}

}  // namespace
}  // namespace tilewright::sim
