// What if a unit took no time: each makes a kernel shorter that it binds, and none longer.
#include "sim/time/playing.h"
#include "sim/time/time_parameters.h"
#include "tests/sim/time/timed_machine.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

/// One thread copies 1 KiB again and again, and waits for each.
std::string copies() {
  std::string text =
      "add.u32 %r2, %r1, 4096;\nmbarrier.init.shared::cta.b64 [%r2], 1;\n"
      "fence.mbarrier_init.release.cluster;\n";
  for (int i = 0; i < 32; ++i) {
    text += fmt::format(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 1024;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0], 1024, "
        "[%r2];\nWAIT{0}:\nmbarrier.try_wait.parity.shared::cta.b64 %p, [%r2], {1};\n"
        "@!%p bra WAIT{0};\n",
        i, i % 2);
  }
  return timed_kernel("// {}", text);
}

/// Loads of a line for each lane, each after the last one, of `bytes` of memory.
std::string far_loads(int bytes) {
  return timed_kernel(
      fmt::format("add.u32 %r2, %r2, 4096;\nand.b32 %r2, %r2, {};\ncvt.u64.u32 %rd2, %r2;\n"
                  "add.u64 %rd2, %rd1, %rd2;\nld.global.b32 %r3, [%rd2];\n"
                  "add.u32 %r2, %r2, %r3;  // {{}}",
                  bytes - 1),
      "mul.wide.u32 %rd1, %r0, 128;\nadd.u64 %rd1, %rd1, %rd0;\nmov.u32 %r2, 0;\n");
}

struct BoundKernel {
  const char* unit;
  std::string ptx;
  std::uint32_t threads = 32;
  double most = 0.7;  ///< part of its time that is left
};

std::vector<BoundKernel> bound_kernels() {
  std::string once = "mov.u64 %rd1, %rd0;\n";
  for (int i = 0; i < 64; ++i) {
    once +=
        "ld.global.b32 %r3, [%rd1];\ncvt.u64.u32 %rd2, %r3;\nadd.u64 %rd1, %rd1, %rd2;\n"
        "add.u64 %rd1, %rd1, 4096;\n";
  }
  return {
      {"tensor", timed_kernel("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                              "{{%f2,%f3,%f4,%f5}}, {{%r2,%r3,%r4,%r5}}, {{%r6,%r7}}, "
                              "{{%f2,%f3,%f4,%f5}};  // {}")},
      {"mufu", timed_kernel("ex2.approx.ftz.f32 %g{0}, %f1;")},
      {"fma", timed_kernel("fma.rn.f32 %f0, %f0, %f1, %f1;  // {}")},
      {"alu", timed_kernel("xor.b32 %r2, %r2, %r3;  // {}")},
      {"shared",
       timed_kernel("ld.shared.f32 %g{0}, [%r2];",
                    "and.b32 %r2, %r0, 31;\nshl.b32 %r2, %r2, 5;\nadd.u32 %r2, %r1, %r2;\n")},
      {"l2", far_loads(1 << 19)},
      {"hbm", timed_kernel("// {}", once), 1},
      {"tma", copies(), 1, 0.8},
      {"barriers", timed_kernel("bar.sync 0;  // {}"), 256},
  };
}

double us_of(const std::string& ideal, const BoundKernel& kernel) {
  const json predicted = TimedMachine(ideal).run(kernel.ptx, kernel.threads)["predicted"];
  EXPECT_FALSE(predicted.contains("problem")) << predicted;
  return predicted["us"];
}

double launch_us(const std::string& ideal, const BoundKernel& kernel) {
  return TimedMachine(ideal).run(kernel.ptx, kernel.threads)["predicted"]["launch_us"];
}

TEST(IdealUnits, EachShortensWhatItBindsAndNoneLengthens) {
  const std::vector<BoundKernel> kernels = bound_kernels();
  for (const BoundKernel& kernel : kernels) {
    const double whole = us_of("", kernel), launch = launch_us("", kernel);
    for (const std::string_view unit : ideal_units()) {
      const double us = us_of(std::string(unit), kernel);
      // A unit that answers sooner may let warps meet at another: not by a hundredth.
      EXPECT_LT(us, whole * 1.01) << kernel.unit << " with ideal " << unit;
      if (unit != kernel.unit) continue;
      EXPECT_LT(us - launch, kernel.most * (whole - launch)) << unit;
    }
  }
}

// Of the two that are left `launch` is between kernels, and `code` of machine code alone.
TEST(IdealUnits, LaunchAndCode) {
  const BoundKernel fma = bound_kernels()[2];
  EXPECT_GT(launch_us("", fma), 1);
  EXPECT_EQ(launch_us("launch", fma), 0);
  const TimeParameters p = with_ideal_units(time_parameters(device_models().front()), "code");
  CodeCache code(p, true);
  code.expect(std::vector<bool>(4096, true));
  EXPECT_EQ(code.use(100, 5), 5);
}

TEST(IdealUnits, AllAreTested) {
  std::vector<std::string_view> tested = {"launch", "code"};
  const std::vector<BoundKernel> kernels = bound_kernels();
  for (const BoundKernel& kernel : kernels) tested.emplace_back(kernel.unit);
  for (const std::string_view unit : ideal_units()) {
    EXPECT_NE(std::ranges::find(tested, unit), tested.end()) << unit;
  }
}

}  // namespace
}  // namespace tilewright::sim
