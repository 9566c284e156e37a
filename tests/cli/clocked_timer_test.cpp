// The clock at which SMs ran, from what they counted.
#include "verify/clock/clocked_timer.h"

#include "tilewright/device.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace tilewright::cli {
namespace {

TEST(ClockedTimerTest, TakesTheMedianOfSmsThatHaveBothMarks) {
  // Clocks and nanoseconds: 1700 MHz, 1800 MHz, an SM without a mark before, 1750 MHz.
  const std::vector<std::uint64_t> before = {1000, 10, 2000, 20, 0, 0, 50, 30};
  const std::vector<std::uint64_t> after = {2700, 1010, 3800, 1020, 9000, 99, 1800, 1030};
  EXPECT_DOUBLE_EQ(median_sm_mhz(before, after), 1750);
  EXPECT_EQ(median_sm_mhz({}, {}), 0);
}

TEST(ClockedTimerTest, ASimulatorHasNoClock) {
  const Device device = Device::open("sim:h200");
  const Stream stream(device);
  ClockedTimes times;
  times.add(ClockedTimer(device).time(stream, [] {}));
  nlohmann::json log;
  times.write(log);
  EXPECT_EQ(log["samples_us"].size(), 1);
  EXPECT_FALSE(log.contains("samples_mhz"));
}

}  // namespace
}  // namespace tilewright::cli
