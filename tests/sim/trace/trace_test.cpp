#include "sim/machine.h"
#include "sim/parse/parser.h"
#include "sim/trace/trace_observer.h"
#include "tests/base/expect_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kKernel = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry demo()
{
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .f32 %f<8>;
  .shared .align 8 .b64 full;
  mov.u32 %r0, %tid.x;
  setp.eq.u32 %p, %r0, 0;
  @%p mbarrier.init.shared.b64 [full], 3;
  cvt.rn.f32.u32 %f0, %r0;
  mov.u32 %r1, 0x3f803f80;
  mov.f32 %f4, 0f00000000;
  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f0,%f1,%f2,%f3}, {%r1,%r1,%r1,%r1},
      {%r1,%r1}, {%f4,%f4,%f4,%f4};
  ret;
}
)";

std::string run(TraceOptions options) {
  Options how;
  how.checks = parse_checks("none");
  Machine machine(device_models().front(), how);
  Launch launch;
  launch.module = machine.load(parse_module(kKernel, "demo.ptx"));
  launch.kernel = "demo";
  launch.block.x = 64;
  launch.grid.x = 2;
  std::string text;
  TraceObserver observer(std::move(options), [&text](std::string_view part) { text += part; });
  machine.set_observer(&observer);
  const auto fault = machine.launch(launch);
  EXPECT_FALSE(fault) << fault->message;
  return text;
}

TEST(TraceFilter, Parses) {
  const TraceFilter full = parse_breakpoint("41:2:3,1");
  EXPECT_TRUE(full.matches(41, 2, {3, 1, 0}));
  EXPECT_FALSE(full.matches(41, 2, {3, 1, 1}));
  EXPECT_FALSE(full.matches(41, 1, {3, 1, 0}));
  EXPECT_FALSE(full.matches(40, 2, {3, 1, 0}));
  EXPECT_TRUE(parse_breakpoint("41:*:3").matches(41, 7, {3, 0, 0}));
  EXPECT_TRUE(parse_trace("").matches(1, 9, {5, 5, 5}));
  EXPECT_FALSE(parse_trace("1").matches(1, 0, {0, 0, 0}));
  for (const char* bad : {"", "x", "0", "41:x", "41:1:1,2,3,4", "41:1:2:3"}) {
    EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [&] { parse_breakpoint(bad); }),
                HasSubstr("expected LINE[:WARP[:CTA]]"))
        << bad;
  }
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [] { parse_trace("a"); }),
              HasSubstr("expected WARP[:CTA]"));
}

TEST(Trace, ShowsEveryInstructionOfAWarp) {
  const std::string text = run({{parse_trace("1:1")}, {}});
  EXPECT_THAT(text, HasSubstr("1,0,0 w1  ffffffff    10  mov.u32 %r0, %tid.x"));
  EXPECT_THAT(text, HasSubstr("%r0 = 32 .. 63"));
  EXPECT_THAT(text, Not(HasSubstr("w0")));
  EXPECT_THAT(text, Not(HasSubstr("mbarrier.init"))) << "its guard holds in no lane of warp 1";
}

TEST(Trace, BreakpointShowsRegistersBeforeAndAfter) {
  const std::string text = run({{}, {parse_breakpoint("13:0:0")}});
  EXPECT_THAT(text, HasSubstr("demo.ptx:13  CTA (0,0,0) warp 0 lanes 0-31"));
  EXPECT_THAT(text, HasSubstr("before\n    %r0      u32     0:  0  1  2  3  4  5  6  7"));
  EXPECT_THAT(text, HasSubstr("after\n    %f0      f32     0:  0  1  2  3"));
}

TEST(Trace, BreakpointShowsAccumulatorsAndBarriers) {
  const std::string text = run({{}, {parse_breakpoint("16:0:1")}});
  EXPECT_THAT(text, HasSubstr("D, the 16 rows of this warp\n      0: 16 16 16 16 16 16 16 16\n"));
  EXPECT_THAT(text, HasSubstr("%r1      bf16x2"));
  EXPECT_THAT(text, HasSubstr("mbarriers of the CTA\n      shared 0x00400: "));
  EXPECT_THAT(text, HasSubstr("3 of 3 arrivals pending"));
}

TEST(Trace, StopsAfterSoManyStops) {
  TraceOptions options{{}, {parse_breakpoint("13")}};
  options.max_stops = 3;
  const std::string text = run(options);
  EXPECT_THAT(text, HasSubstr("1 more stops at breakpoints are not shown"));
}

}  // namespace
}  // namespace tilewright::sim
