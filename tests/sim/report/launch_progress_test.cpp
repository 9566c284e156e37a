#include "sim/report/launch_progress.h"

#include <vector>

#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

/// The lines of so many launches of one kernel, each so many seconds after the one before.
std::vector<std::string> lines_of(int num_launches, double seconds_apart) {
  LaunchProgress progress(0);
  std::vector<std::string> out;
  for (int i = 1; i <= num_launches; ++i) {
    const std::string line = progress.launched("kernel", i * seconds_apart);
    if (!line.empty()) out.push_back(line);
  }
  return out;
}

using Lines = std::vector<std::string>;

TEST(LaunchProgress, SlowLaunchesAreToldAtRoundNumbers) {
  EXPECT_EQ(lines_of(99, 60), Lines{});
  EXPECT_EQ(lines_of(10000, 60),
            (Lines{"sim: 100 launches of kernel so far\n", "sim: 300 launches of kernel so far\n",
                   "sim: 1000 launches of kernel so far\n", "sim: 3000 launches of kernel so far\n",
                   "sim: 10000 launches of kernel so far\n"}));
}

TEST(LaunchProgress, FastOnesAtMostOnceInTenSeconds) {
  EXPECT_EQ(lines_of(9999, 0.001), Lines{});
  EXPECT_EQ(lines_of(25000, 0.001), (Lines{"sim: 10000 launches of kernel so far\n"}));
  EXPECT_EQ(lines_of(1000, 0.0625),
            (Lines{"sim: 160 launches of kernel so far\n", "sim: 320 launches of kernel so far\n",
                   "sim: 1000 launches of kernel so far\n"}));
}

TEST(LaunchProgress, KernelsAreCountedApartAndReadable) {
  LaunchProgress progress(0);
  std::string told;
  for (int i = 1; i <= 100; ++i) {
    told += progress.launched("other" + std::to_string(i), 100);
    told += progress.launched("_ZN6models5layerIiE3runEPi", 100);
  }
  EXPECT_EQ(told, "sim: 100 launches of models::layer<int>::run so far\n");
}

}  // namespace
}  // namespace tilewright::sim
