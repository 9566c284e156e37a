// What a prediction costs. Not under the sanitizers (tests/release_only.txt).
#include "tests/sim/time/timed_machine.h"

#include <ctime>

#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// Ten million thread instructions a second of one core, run, written down and played each. An idle
// core does some hundred million.
TEST(TimeSpeed, TenMillionThreadInstructionsASecond) {
  const std::string kernel = timed_kernel(
      "fma.rn.f32 %f0, %f0, %f1, %f1;\nxor.b32 %r2, %r2, %r3;\nex2.approx.ftz.f32 %g{0}, %f1;");
  TimedMachine machine;
  const double begin = processor_seconds();
  const json report = machine.run(kernel, 1024);
  const double seconds = processor_seconds() - begin;
  const double instructions = 32 * report["total"]["warp_instructions"].get<double>();
  EXPECT_EQ(report["predicted"]["ctas_left_out"], 0);
  EXPECT_GT(instructions, 3.9e6);
  EXPECT_GT(instructions / seconds, 1e7) << seconds << " s";
}

}  // namespace
}  // namespace tilewright::sim
