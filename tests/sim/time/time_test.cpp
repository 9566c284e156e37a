// Predicted times: kernels whose time follows from the device's constants by hand.
#include "base/error.h"
#include "base/json.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"
#include "sim/report/report.h"
#include "sim/time/playing.h"
#include "sim/time/time_observer.h"
#include "sim/time/time_parameters.h"
#include "tests/base/scoped_folder.h"
#include "tests/sim/insn/kernel_run.h"
#include "tests/sim/time/timed_machine.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kFmaChain = "fma.rn.f32 %f0, %f0, %f1, %f1;";
constexpr const char* kExponentials = "ex2.approx.ftz.f32 %g{0}, %f1;";

// About as many lines as the L1 has: which of them share a set decides how many miss.
TEST(TimeTest, WhereMemoryLiesDoesNotMatter) {
  const std::string kernel = timed_kernel(
      "add.u32 %r2, %r2, 4096;\nand.b32 %r2, %r2, 262143;\ncvt.u64.u32 %rd2, %r2;\n"
      "add.u64 %rd2, %rd1, %rd2;\nld.global.b32 %r3, [%rd2];\nadd.u32 %r2, %r2, %r3;  // {}",
      "mul.wide.u32 %rd1, %r0, 128;\nadd.u64 %rd1, %rd1, %rd0;\nmov.u32 %r2, 0;\n");
  const double clocks = TimedMachine().clocks(kernel, 24);
  for (const std::uint64_t before : {256, 4096, 1 << 20, 12345})
    EXPECT_EQ(TimedMachine("", 0, "", before).clocks(kernel, 24), clocks) << before;
}

// What comes beside the loop's body (its branch, loads, the store at the end, some hundreds of
// clocks) is below a tenth of these.
constexpr double kTimedTolerance = 0.1;

TEST(TimeTest, AChainWaitsForEachResult) {
  const double clocks = TimedMachine().clocks(timed_kernel(kFmaChain), 32);
  EXPECT_NEAR(clocks / (4 * kTimedCount), 1, kTimedTolerance);
}

TEST(TimeTest, ASpecialFunctionTakesItsUnitEightClocks) {
  const double one = TimedMachine().clocks(timed_kernel(kExponentials), 32);
  EXPECT_NEAR(one / (8 * kTimedCount), 1, kTimedTolerance);
  // Each of four schedulers has one.
  EXPECT_NEAR(TimedMachine().clocks(timed_kernel(kExponentials), 128) / one, 1, 0.02);
  EXPECT_NEAR(TimedMachine().clocks(timed_kernel(kExponentials), 256) / one, 2, 0.1);
}

TEST(TimeTest, ConflictsOfBanksTakeOneWavefrontAfterTheOther) {
  const std::string load = "ld.shared.f32 %g{0}, [%r2];";
  const auto kernel = [&](int shift) {
    return timed_kernel(load, fmt::format("and.b32 %r2, %r0, 31;\nshl.b32 %r2, %r2, {};\n"
                                          "add.u32 %r2, %r1, %r2;\n",
                                          shift));
  };
  const double eight_ways = TimedMachine().clocks(kernel(5), 32);
  EXPECT_NEAR(eight_ways / (8 * kTimedCount), 1, kTimedTolerance);
  EXPECT_LT(TimedMachine().clocks(kernel(2), 32), eight_ways / 4);
}

// In PTX each load stands before its use. A warp that waited for each would take 33 clocks a pair.
TEST(TimeTest, LoadsAreMovedAheadOfTheirUses) {
  const std::string pair = "ld.shared.f32 %g{0}, [%r1];\nadd.f32 %g{0}, %g{0}, %f1;";
  EXPECT_LT(TimedMachine().clocks(timed_kernel(pair), 32), 5 * kTimedCount);
}

TEST(TimeTest, ABarrierOfEightWarpsTakesItsHandOver) {
  const TimeParameters p = time_parameters(device_models().front());
  const double clocks = TimedMachine().clocks(timed_kernel("bar.sync 0;"), 256);
  EXPECT_NEAR(clocks / ((p.barrier_release + 8 * p.barrier_per_warp) * kTimedCount), 1, 0.15);
}

TEST(TimeTest, AnIdealUnitTakesNoTime) {
  const std::string ptx = timed_kernel(kExponentials);
  EXPECT_LT(TimedMachine("mufu").clocks(ptx, 32), TimedMachine().clocks(ptx, 32) / 4);
  EXPECT_DOUBLE_EQ(TimedMachine("tensor").clocks(ptx, 32), TimedMachine().clocks(ptx, 32));
  try {
    with_ideal_units({}, "mufu,tensr");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("tensr"));
    EXPECT_THAT(error.what(), HasSubstr("tensor, mufu"));
  }
}

TEST(TimeTest, WavesFollowEachOther) {
  const std::string ptx = timed_kernel(kFmaChain);
  TimedMachine machine;
  // An SM holds two CTAs of 1024 threads, the device 264.
  const auto us = [&](std::uint32_t ctas) {
    const json predicted = machine.run(ptx, 1024, ctas)["predicted"];
    return predicted["us"].get<double>() - predicted["launch_us"].get<double>();
  };
  const double one = us(264);
  EXPECT_GT(us(265) / one, 1.2);
  EXPECT_NEAR(us(2 * 264) / one, 2, 0.25);
}

TEST(TimeTest, CountsAndResultsAreThoseWithoutIt) {
  const std::string ptx = timed_kernel(kFmaChain);
  TimedMachine timed;
  json with = timed.run(ptx, 64, 3);
  Options plain;
  plain.checks = parse_checks("none");
  plain.report_path = "memory";
  Machine machine(device_models().front(), plain);
  const std::uint64_t data = machine.memory().allocate(1 << 20, "data");
  Launch launch;
  launch.module = machine.load(parse_module(ptx, "timed.ptx"));
  launch.kernel = "timed";
  launch.grid.x = 3;
  launch.block.x = 64;
  launch.params.resize(8);
  std::memcpy(launch.params.data(), &data, 8);
  ASSERT_FALSE(machine.launch(launch));
  const json without = parse_json(machine.take_report(), "report")["kernels"][0];
  EXPECT_EQ(with["total"], without["total"]);
  EXPECT_FALSE(without.contains("predicted"));
  EXPECT_EQ(*timed.words(), *reinterpret_cast<const std::uint32_t*>(data));
  EXPECT_EQ(with["predicted"], TimedMachine().run(ptx, 64, 3)["predicted"]);
}

// The next CTA starts at once, while arrivals of the last one are still under way. Whether that one
// is still there the sanitizers see.
TEST(TimeTest, ArrivalsOfACtaThatHasEndedFindIt) {
  const std::string ptx = timed_kernel("mbarrier.arrive.shared.b64 _, [%r1];",
                                       "mbarrier.init.shared.b64 [%r1], 2048;\n");
  const std::string late = "  mbarrier.arrive.shared.b64 _, [%r1];\n  ret;";
  std::string ends_with_arrival = ptx;
  ends_with_arrival.replace(ptx.find("  ret;"), 6, late);
  TimedMachine machine("launch", 2);
  const json predicted = machine.run(ends_with_arrival, 32, 3 * 32 * 132)["predicted"];
  EXPECT_FALSE(predicted.contains("problem")) << predicted;
  EXPECT_GT(predicted["us"], 0);
}

TEST(TimeTest, TheTimelineNamesWaits) {
  const ScopedFolder folder;
  const std::string path = folder / "timeline.json";
  TimedMachine("", 0, path).run(timed_kernel("bar.sync 0;"), 64);
  const json timeline = read_json(path);
  bool has_barrier = false;
  for (const json& event : timeline["traceEvents"]) has_barrier |= event["name"] == "named barrier";
  EXPECT_TRUE(has_barrier);
}

// Warp 1 computes, then both meet at a barrier: warp 0 waits, and warp 1 ends the wait.
std::string late_warp() {
  std::string prologue = "setp.lt.u32 %p, %r0, 32;\n@%p bra MEET;\n";
  for (int i = 0; i < 200; ++i) prologue += "fma.rn.f32 %f0, %f0, %f1, %f1;\n";
  return timed_kernel("// {}", prologue + "MEET:\nbar.sync 0;\n");
}

TEST(TimeTest, TheTimelineSaysWhoEndsAWait) {
  const ScopedFolder folder;
  const std::string path = folder / "timeline.json";
  TimedMachine("", 0, path).run(late_warp(), 64);
  double longest = 0;
  json of_longest;
  const json timeline = read_json(path);
  for (const json& event : timeline["traceEvents"]) {
    if (event["name"] != "named barrier" || event["dur"] < longest) continue;
    longest = event["dur"], of_longest = event;
  }
  EXPECT_GT(longest, 200 * 4 / 1980.0 * 0.9);
  ASSERT_TRUE(of_longest.is_object());
  EXPECT_EQ(of_longest["tid"], 0);
  EXPECT_EQ(of_longest["args"]["ended by"], "warp 1");
}

TEST(TimeTest, TheTimelineIsAPicture) {
  const ScopedFolder folder;
  const std::string path = folder / "timeline.svg";
  TimedMachine("", 0, path).run(late_warp(), 64);
  std::ifstream file(path);
  const std::string svg{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr(">warp 0</text>"));
  EXPECT_THAT(svg, HasSubstr(">warp 1</text>"));
  EXPECT_THAT(svg, testing::Not(HasSubstr(">warp 2</text>")));
  // One line, from warp 1's row up to warp 0's, and the tip at the latter.
  EXPECT_EQ(svg.find("class='wakes'"), svg.rfind("class='wakes'"));
  EXPECT_NE(svg.find("class='wakes'"), std::string::npos);
  EXPECT_THAT(svg, HasSubstr("class='barrier'"));
}

TEST(TimeTest, TheReportSaysWhereWarpsWait) {
  KernelUsage usage;
  usage.lines[7].text = "bar.sync 0", usage.lines[7].source = "src/demo.cu:12";
  usage.lines[9].text = "ret";
  usage.prediction.emplace();
  const auto wait = [&](std::uint32_t line, WaitCause cause) -> double& {
    return usage.prediction->lines[line][static_cast<std::size_t>(cause)];
  };
  wait(7, WaitCause::kNamedBarrier) = 6, wait(7, WaitCause::kOwn) = 2, wait(9, WaitCause::kOwn) = 2;
  Report report;
  report.add(usage);
  const std::string text = report_table(report, device_models().front());
  EXPECT_THAT(
      text, HasSubstr("       7      80.0 %  named barrier 75 %, own 25 %: bar.sync 0  demo.cu:12\n"
                      "         9      20.0 %  own 100 %: ret\n"));
}

TEST(TimeTest, ASampleHasNoPeriodOfTheGrid) {
  const std::vector<std::uint64_t> few = sample_clusters(3, 12);
  EXPECT_THAT(few, testing::ElementsAre(0, 1, 2));
  const std::vector<std::uint64_t> sample = sample_clusters(2048, 16);
  ASSERT_EQ(sample.size(), 16U);
  EXPECT_TRUE(std::ranges::is_sorted(sample));
  std::vector<std::uint64_t> columns;  // of a grid 32 wide
  for (const std::uint64_t cluster : sample) columns.push_back(cluster % 32);
  std::ranges::sort(columns);
  columns.erase(std::ranges::unique(columns).begin(), columns.end());
  EXPECT_GE(columns.size(), 8U);
}

TEST(TimeTest, MoreOfASampleIsWhatItLacks) {
  for (const std::uint64_t all : {13U, 400U, 1188U}) {
    std::vector<std::uint64_t> seen = sample_clusters(all, 12);
    const std::vector<std::uint64_t> more = more_clusters(all, 12, all);
    seen.insert(seen.end(), more.begin(), more.end());
    std::ranges::sort(seen);
    ASSERT_EQ(seen.size(), all);
    for (std::uint64_t i = 0; i < all; ++i) ASSERT_EQ(seen[i], i) << all;
  }
  EXPECT_LE(more_clusters(100'000, 12, 4096).size(), 4096U);
}

// One CTA of 400 multiplies 100000 times, the others not at all.
constexpr const char* kOneWorks = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry timed(.param .u64 data)
{
  .reg .pred %p;
  .reg .b32 %r<3>;
  .reg .f32 %f<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd0, [data];
  mov.u32 %r0, %ctaid.x;
  setp.ne.u32 %p, %r0, 301;
  @%p bra DONE;
  mov.f32 %f0, 0f3F800000;
  mov.u32 %r1, 0;
LOOP:
  fma.rn.f32 %f0, %f0, %f0, %f0;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p, %r1, 100000;
  @%p bra LOOP;
  st.global.f32 [%rd0], %f0;
DONE:
  ret;
}
)";

TEST(TimeTest, ASampleThatHasNothingToDoIsNotAll) {
  const json predicted = TimedMachine("", 6).run(kOneWorks, 32, 400)["predicted"];
  EXPECT_EQ(predicted["ctas_traced"], 400);
  EXPECT_GT(predicted["us"].get<double>(), 4 * 100'000 / 1980.0);  // FMAs that wait for each other
}

/// Clocks for a line of code, in the second round of a loop of so many bytes.
double clocks_of_a_line(std::uint32_t bytes) {
  const TimeParameters p = time_parameters(device_models().front());
  CodeCache code(p, false);
  const std::uint32_t lines = bytes / 128;
  double now = 0, begin = 0;
  for (std::uint32_t i = 0; i < 2 * lines; ++i) {
    if (i == lines) begin = now;
    now = std::max(now, code.use(i % lines, now)) + CodeCache::kLineInstructions;
  }
  return (now - begin) / lines;
}

TEST(TimeTest, LongLoopsWaitForTheirCode) {
  const TimeParameters p = time_parameters(device_models().front());
  EXPECT_DOUBLE_EQ(clocks_of_a_line(24 << 10), CodeCache::kLineInstructions);
  EXPECT_NEAR(clocks_of_a_line(64 << 10), p.code_line, 1);
  EXPECT_NEAR(clocks_of_a_line(256 << 10), p.code_line_from_l2, 1);
}

// CTAs draw numbers from a counter until there are none; each writes how often it did.
constexpr const char* kTickets = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry timed(.param .u64 data)
{
  .reg .pred %p;
  .reg .b32 %r<9>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd0, [data];
  mov.u32 %r2, 0;
  mov.u32 %r0, %ctaid.x;
NEXT:
  atom.global.add.u32 %r1, [%rd0], 1;
  setp.ge.u32 %p, %r1, 1600;
  @%p bra DONE;
  add.u32 %r2, %r2, 1;
  bra NEXT;
DONE:
  mul.wide.u32 %rd1, %r0, 4;
  add.s64 %rd1, %rd0, %rd1;
  st.global.u32 [%rd1 + 4], %r2;
  ret;
}
)";

TEST(TimeTest, CtasOfASampleDrawForThoseThatDoNotRun) {
  TimedMachine machine("", 12);
  const json predicted = machine.run(kTickets, 1, 100)["predicted"];
  EXPECT_EQ(predicted["ctas"], 100);
  EXPECT_EQ(predicted["ctas_traced"], 4);  // all are resident at once: a third of the sample
  std::uint32_t drawn = 0, ran = 0;
  for (int i = 0; i < 100; ++i) {
    drawn += machine.words()[1 + i];
    ran += machine.words()[1 + i] != 0;
  }
  EXPECT_LE(ran, 4U);
  EXPECT_EQ(drawn, 1600U / 25);
}

// Eight CTAs meet as cooperative_groups lets them: a thread counts and polls, the others of its
// warp wait for it. One of them works before, one behind it.
constexpr const char* kGridOfEight = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry timed(.param .u64 data)
{
  .reg .pred %p;
  .reg .b32 %r<9>;
  .reg .f32 %f<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd0, [data];
  mov.f32 %f0, 0f3F800000;
  mov.u32 %r0, %ctaid.x;
  setp.ne.u32 %p, %r0, 5;
  @%p bra MEET;
  mov.u32 %r1, 0;
BEFORE:
  fma.rn.f32 %f0, %f0, %f0, %f0;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p, %r1, 20000;
  @%p bra BEFORE;
MEET:
  bar.sync 0;
  mov.u32 %r2, %tid.x;
  setp.ne.u32 %p, %r2, 0;
  @%p bra MET;
  mov.u32 %r3, %envreg1;
  mov.u32 %r4, %envreg2;
  mov.b64 %rd1, {%r4, %r3};
  atom.add.release.gpu.u32 %r5, [%rd1+4], 1;
POLL:
  ld.acquire.gpu.u32 %r6, [%rd1+4];
  setp.lt.u32 %p, %r6, 8;
  @%p bra POLL;
MET:
  bar.sync 0;
  setp.ne.u32 %p, %r0, 2;
  @%p bra DONE;
  mov.u32 %r1, 0;
BEHIND:
  fma.rn.f32 %f0, %f0, %f0, %f0;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p, %r1, 30000;
  @%p bra BEHIND;
DONE:
  st.global.f32 [%rd0], %f0;
  ret;
}
)";

TEST(TimeTest, ACooperativeLaunchWaitsForItsSlowestCtaAtEachBarrier) {
  const json predicted = TimedMachine().run(kGridOfEight, 64, 8, true)["predicted"];
  ASSERT_FALSE(predicted.contains("problem")) << predicted;
  const auto clocks = [](const json& of) {
    return (of["us"].get<double>() - of["launch_us"].get<double>()) * 1980;
  };
  // The same loop, 100000 times. Less than 2000 clocks are the barriers and the start.
  const double round = clocks(TimedMachine("", 6).run(kOneWorks, 32, 400)["predicted"]) / 100'000;
  EXPECT_NEAR(clocks(predicted), 50'000 * round, 2000);
}

// 132 CTAs read a megabyte, 160 KiB each. Behind a kernel that wrote, L2 sends two thirds as much
// to HBM first.
TEST(TimeTest, ALaunchBetweenTwoEventsFindsWrittenLines) {
  const std::string kernel = timed_kernel(
      "ld.global.b32 %r3, [%rd1];\nadd.u64 %rd1, %rd1, 128;  // {}",
      "mov.u32 %r2, %ctaid.x;\nmul.wide.u32 %rd1, %r2, 6400;\nadd.u64 %rd1, %rd1, %rd0;\n");
  const TimeParameters p = time_parameters(device_models().front());
  const json cold = TimedMachine().run(kernel, 1, 132)["predicted"];
  const json in_graph = TimedMachine().run(kernel, 1, 132, false, true)["predicted"];
  EXPECT_NEAR(cold["launch_us"].get<double>(), 1e6 * p.launch / p.clock_hz, 1e-3);
  EXPECT_NEAR(in_graph["launch_us"].get<double>(), 1e6 * p.graph_launch / p.clock_hz, 1e-3);
  const auto hbm = [](const json& of) { return of["busy_us"]["HBM"].get<double>(); };
  EXPECT_GT(hbm(in_graph), 0);
  EXPECT_NEAR(hbm(cold) / hbm(in_graph), 1 + p.dirty_bytes / p.l2_bytes, 0.02);
}

// Products leave a quarter of shared memory's time.
TEST(TimeTest, ProductsOfSharedMemoryComeFirst) {
  Sm sm(65536, time_parameters(device_models().front()), false);
  sm.product_shared = 0.75;
  sm.tensor.free_at = 100;
  EXPECT_DOUBLE_EQ(sm.serve_shared(0, 10), 40);
  EXPECT_DOUBLE_EQ(sm.serve_shared(0, 30), 115);  // 15 in the 60 clocks that are left, 15 behind
  EXPECT_DOUBLE_EQ(sm.serve_shared(200, 10), 210);
  EXPECT_DOUBLE_EQ(sm.shared.busy, 50);
}

// Code of an earlier launch is near if all of it has room there.
TEST(TimeTest, CodeThatIsRunOnceIsNearIfAllOfItIs) {
  const TimeParameters p = time_parameters(device_models().front());
  for (const std::uint32_t kib : {16U, 64U}) {
    CodeCache code(p, false);
    code.expect(std::vector<bool>(kib * 8, true));
    EXPECT_EQ(code.use(0, 0), kib == 16 ? 0 : p.code_line) << kib;
    CodeCache behind_another(p, true);
    behind_another.expect(std::vector<bool>(kib * 8, true));
    EXPECT_EQ(behind_another.use(0, 0), p.code_line) << kib;
  }
}

// The clock is low from the first product until some time behind the last one; what is between two
// that are closer counts once.
TEST(TimeTest, ProductsKeepTheClockLow) {
  Sm sm(65536, time_parameters(device_models().front()), false);
  sm.lower_clock(100, 150, 1000);
  EXPECT_DOUBLE_EQ(sm.low_clocks, 1050);
  sm.lower_clock(600, 700, 1000);
  EXPECT_DOUBLE_EQ(sm.low_clocks, 1600);
  sm.lower_clock(650, 660, 1000);
  EXPECT_DOUBLE_EQ(sm.low_clocks, 1600);
  sm.lower_clock(5000, 5010, 1000);
  EXPECT_DOUBLE_EQ(sm.low_clocks, 2610);
}

/// A box of eight rows that one thread asks for and waits for.
json time_of_box(const TensorMapFields& fields, std::uint32_t bytes) {
  Options options;
  options.checks = parse_checks("none");
  options.report_path = "memory";
  options.has_time = true;
  KernelRun kernel(fmt::format(R"(.shared .align 1024 .b8 tile[2048]; .shared .align 8 .b64 bar;
    setp.ne.u32 %p0, %r0, 0; @%p0 bra DONE;
    mov.u32 %r1, tile; mov.u32 %r2, bar; mov.b64 %rd3, map; cvta.param.u64 %rd3, %rd3;
    mbarrier.init.shared::cta.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {};
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1],
      [%rd3, {{0, 0}}], [%r2];
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0; @!%p1 bra WAIT;
    DONE:)",
                               bytes),
                   options);
  TensorMapFields filled = fields;
  filled.address = reinterpret_cast<std::uint64_t>(kernel.allocate<std::byte>(4096));
  EXPECT_EQ(validate(filled), "");
  encode(filled, std::span<std::byte, kTensorMapBytes>(kernel.map(), kTensorMapBytes));
  kernel.run_well(nullptr);
  return parse_json(kernel.take_report(), "report")["kernels"][0]["predicted"];
}

// The bytes that an mbarrier counts are those of global memory: fewer than a box fills or spans in
// shared memory where 16 codes of 4 bits get 16 bytes each, and where a swizzled row is short. With
// those of shared memory the phase would not end and the CTA wait for ever.
TEST(TimeTest, AnMbarrierCountsTheBytesThatACopyReads) {
  TensorMapFields fields;
  fields.rank = 2;
  fields.element_strides = {1, 1};
  fields.swizzle = TensorSwizzle::k128B;
  fields.element = TensorElement::k16U4Align16B;
  fields.dims = {128, 8}, fields.box = {128, 8}, fields.strides_bytes = {64};
  const json codes = time_of_box(fields, 64 * 8);
  fields.element = TensorElement::kBf16;
  fields.dims = {16, 8}, fields.box = {16, 8}, fields.strides_bytes = {32};
  const json narrow = time_of_box(fields, 32 * 8);
  fields.dims = {64, 8}, fields.box = {64, 8}, fields.strides_bytes = {128};
  const json whole = time_of_box(fields, 128 * 8);
  for (const json& predicted : {codes, narrow, whole}) {
    EXPECT_FALSE(predicted.contains("problem")) << predicted;
  }
  // All take as much of shared memory: eight wavefronts.
  EXPECT_EQ(codes["busy_us"]["shared memory"], whole["busy_us"]["shared memory"]);
  EXPECT_EQ(narrow["busy_us"]["shared memory"], whole["busy_us"]["shared memory"]);
}

}  // namespace
}  // namespace tilewright::sim
