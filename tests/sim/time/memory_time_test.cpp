// Predicted times of memory: lines that several ask for, HBM that is read and written, and the few
// SMs that are played for all.
#include "sim/time/playing.h"
#include "sim/time/time_parameters.h"
#include "tests/sim/time/timed_machine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

TimeParameters constants() {
  return time_parameters(device_models().front());
}

/// Microseconds without the launch, as clocks.
double clocks_of(const json& predicted) {
  return (predicted["us"].get<double>() - predicted["launch_us"].get<double>()) * 1980;
}

double hbm_us(const json& predicted) {
  return predicted["busy_us"]["HBM"].get<double>();
}

TEST(MemoryTime, ALineOnItsWayIsThereWhenItArrives) {
  L1Cache l1(65536);
  EXPECT_EQ(l1.touch(7), nullptr);
  l1.arrives(7, 700);
  ASSERT_NE(l1.touch(7), nullptr);
  EXPECT_EQ(l1.touch(7)->ready, 700);
  EXPECT_EQ(l1.touch(8), nullptr);
}

// Two warps load the same line; the second has 200 FMAs that need it. It does not have the line
// before it comes from HBM, though the first one has asked.
TEST(MemoryTime, WarpsWaitForALineThatAnotherAskedFor) {
  std::string prologue =
      "ld.global.b32 %r3, [%rd0];\nsetp.lt.u32 %p, %r0, 32;\n@%p bra MEET;\n"
      "cvt.rn.f32.u32 %f0, %r3;\n";
  for (int i = 0; i < 200; ++i) prologue += "fma.rn.f32 %f0, %f0, %f1, %f1;\n";
  const std::string kernel = timed_kernel("// {}", prologue + "MEET:\n");
  EXPECT_GT(TimedMachine().clocks(kernel, 64), constants().hbm_shared_latency + 200 * 4);
}

// Of 32 loads each needs the last one's result, and all CTAs load the same. An H200 takes 609
// clocks a load (memory_loads, HBM, 64 MiB, all SMs), one SM alone 682; lines of L2 take 300.
TEST(MemoryTime, CtasThatStartTogetherWaitForHbmTogether) {
  constexpr int kLoads = 32;
  std::string chain = "add.u64 %rd1, %rd0, 128;\n";  // each CTA writes the first word
  for (int i = 0; i < kLoads; ++i) {
    chain +=
        "ld.global.b32 %r3, [%rd1];\ncvt.u64.u32 %rd2, %r3;\nadd.u64 %rd1, %rd1, %rd2;\n"
        "add.u64 %rd1, %rd1, 128;\n";
  }
  const std::string kernel = timed_kernel("// {}", chain);
  // There is no more to read: all read the same.
  const auto clocks = [&](const char* ideal) {
    return clocks_of(TimedMachine(ideal, 0, "", 0, 128 * (kLoads + 1))
                         .run(kernel, 1, 132, false, true)["predicted"]);
  };
  EXPECT_NEAR((clocks("") - clocks("hbm")) / kLoads, 609 - 300, 30);
}

/// A CTA goes through 1280 lines of its own; {} says what it does with each.
std::string lines_kernel(const std::string& body) {
  return timed_kernel(
      body + "\nadd.u64 %rd1, %rd1, 128;  // {}",
      fmt::format(
          "mov.u32 %r2, %ctaid.x;\nmul.wide.u32 %rd1, %r2, {};\nadd.u64 %rd1, %rd1, %rd0;\n",
          128 * kTimedRepeats * kTimedLoops));
}
constexpr std::uint64_t kLinesBytes = std::uint64_t{132} * 128 * kTimedRepeats * kTimedLoops;
constexpr const char* kReadsLine = "ld.global.b32 %r3, [%rd1];";

json predict_lines(const std::string& kernel, std::uint32_t ctas) {
  return TimedMachine("", 0, "", 0, kLinesBytes + 128)
      .run(kernel, 1, ctas, false, true)["predicted"];
}

// What reads and writes costs more than its bytes, what only writes does not.
TEST(MemoryTime, HbmThatReadsAndWritesTurns) {
  const TimeParameters p = constants();
  const std::string write = "st.global.b32 [%rd1+32], %r3;";
  const double reads = hbm_us(predict_lines(lines_kernel(kReadsLine), 132));
  const double writes = hbm_us(predict_lines(lines_kernel(write), 132));
  const double both =
      hbm_us(predict_lines(lines_kernel(kReadsLine + std::string("\n") + write), 132));
  EXPECT_NEAR(writes / reads, 1, 0.01);
  EXPECT_NEAR(both / reads, 2 * (1 + p.hbm_turn_part), 0.02);
}

// One SM that is played, or three, stand for all that are active: HBM moves the bytes of all.
TEST(MemoryTime, TheBytesOfAllSmsMeetAtHbm) {
  const TimeParameters p = constants();
  const std::string kernel = lines_kernel(kReadsLine);
  for (const std::uint32_t ctas : {1U, 2U, 3U, 4U, 33U, 131U, 132U}) {
    const double bytes = 32 * kTimedCount * ctas;
    EXPECT_NEAR(hbm_us(predict_lines(kernel, ctas)),
                1e6 * bytes / (p.hbm_bytes_per_clock * p.clock_hz), 1e-3 + 0.01 * ctas / 132)
        << ctas;
  }
}

// 173 MB, 128 bytes a warp and load: HBM's rate is what binds 132 SMs, and not one of them.
TEST(MemoryTime, ManySmsAreBoundByHbmAndOneByItsWayThere) {
  const TimeParameters p = constants();
  constexpr std::uint64_t kWarps = 8, kOfCta = kWarps * 128 * kTimedRepeats * kTimedLoops;
  const std::string kernel = timed_kernel(
      fmt::format("ld.global.b32 %r3, [%rd1];\nadd.u64 %rd1, %rd1, {};  // {{}}", kWarps * 128),
      fmt::format("mov.u32 %r2, %ctaid.x;\nmul.wide.u32 %rd1, %r2, {};\nadd.u64 %rd1, %rd1, %rd0;\n"
                  "mul.wide.u32 %rd2, %r0, 4;\nadd.u64 %rd1, %rd1, %rd2;\n",
                  kOfCta));
  const auto clocks = [&](std::uint32_t ctas) {
    return clocks_of(TimedMachine("", 6, "", 0, 132 * kOfCta)
                         .run(kernel, 32 * kWarps, ctas, false, true)["predicted"]);
  };
  const double by_hbm = 132 * kOfCta / p.hbm_bytes_per_clock;
  const double all = clocks(132);
  EXPECT_GT(all, by_hbm);
  EXPECT_LT(all, 1.15 * by_hbm);
  EXPECT_LT(clocks(1), all / 2);
}

}  // namespace
}  // namespace tilewright::sim
