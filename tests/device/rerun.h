// One test of this program once more, in a process of its own with other settings of the simulator.
#pragma once

#include "device/kernel_registry.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright {

inline constexpr const char* kStrictTiming = "TILEWRIGHT_SIM_CHECK=all,strict";
inline constexpr const char* kLateTiming = "TILEWRIGHT_SIM_CHECK=all TILEWRIGHT_SIM_ASYNC=late";
inline constexpr const char* kRandomTiming =
    "TILEWRIGHT_SIM_CHECK=all TILEWRIGHT_SIM_ASYNC=random TILEWRIGHT_SIM_SEED=5";

/// Expects that the one test of that name passes under `settings` (NAME=VALUE ...).
inline void expect_pass_again(const std::string& settings, const std::string& test) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = fmt::format(
      "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX -u GTEST_OUTPUT {} '{}' "
      "'--gtest_filter={}' 2>&1",
      settings, program, test);
  FILE* const pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  std::array<char, 4096> part;
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe))
    output.append(part.data(), got);
  EXPECT_EQ(::pclose(pipe), 0) << output;
  EXPECT_THAT(output, ::testing::HasSubstr("[  PASSED  ] 1 test")) << output;
}

}  // namespace tilewright
