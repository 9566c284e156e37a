#include "sim/report/launch_times.h"

#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

TEST(LaunchTimes, ALineForEachKernelTheLongestFirst) {
  LaunchTimes times;
  EXPECT_EQ(times.text(), "");
  times.add_load(0.25);
  times.add_launch("short", 0.5);
  times.add_launch("long", 1.5);
  times.add_launch("long", 1.0);
  times.add_prediction(0.125);
  EXPECT_EQ(times.text(),
            "sim: time   2.500000 s       2  long\n"
            "sim: time   0.500000 s       1  short\n"
            "sim: time   0.250000 s       1  (modules translated)\n"
            "sim: time   0.125000 s       1  (times predicted)\n");
}

TEST(LaunchTimes, ProcessorTimePasses) {
  const double begin = processor_seconds();
  volatile int steps = 0;
  while (processor_seconds() <= begin && steps < 100'000'000) steps = steps + 1;
  EXPECT_GT(processor_seconds(), begin);
}

}  // namespace
}  // namespace tilewright::sim
