// Tests of operators on the devices that run them: a simulated H200 always, a simulated B200 where
// the operator runs on both chips, a real GPU if there is one.
#pragma once

#include "base/error.h"
#include "tests/ops/suite_device.h"

#include <gtest/gtest.h>

namespace tilewright {

/// Opens the device once for a suite, and skips its tests with the reason if there is none.
/// `HasAllChecks`: findings of all the simulator's checks are failures, not of the usual ones only.
/// `RunsOnBlackwell`: a real GPU may be a Blackwell, too.
template <class Suite, bool HasAllChecks = true, bool RunsOnBlackwell = false>
class HopperTest : public ::testing::TestWithParam<const char*>, protected SuiteDevice<Suite> {
 protected:
  using SuiteDevice<Suite>::device_;

  static void SetUpTestSuite() {
    if (HasAllChecks) SuiteDevice<Suite>::have_all_checks();
  }
  static void TearDownTestSuite() { SuiteDevice<Suite>::close(); }
  void SetUp() override {
    if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
    try {
      SuiteDevice<Suite>::open(GetParam());
    } catch (const Error& error) {
      if (is_simulator()) FAIL() << error.what();
      GTEST_SKIP() << "no GPU: " << error.what();
    }
    // Once it is loaded, the simulator is what the loader finds as libcuda.so.1.
    if (device_->is_simulated() != is_simulator()) GTEST_SKIP() << "no GPU";
    const bool is_hopper = device_->compute_capability() == 90;
    if (!is_simulator() && !is_hopper && !RunsOnBlackwell) GTEST_SKIP() << "no Hopper GPU";
  }
  void TearDown() override {
    try {
      if (device_) device_->synchronize();
    } catch (const Error& error) {
      ADD_FAILURE() << "a broken context is left: " << error.what();
      TearDownTestSuite();  // the next test gets a new one
    }
  }

  static bool is_blackwell() { return device_->compute_capability() >= 100; }
  static bool is_simulator() { return std::string(GetParam()).starts_with("sim"); }
};

/// Of an operator that runs on both chips.
template <class Suite, bool HasAllChecks = true>
using ChipTest = HopperTest<Suite, HasAllChecks, true>;

/// The tests of a suite once for each device; SimTest and GpuTest stand in their names.
#define TILEWRIGHT_ON_EVERY_HOPPER(SUITE)                                 \
  INSTANTIATE_TEST_SUITE_P(SimTest, SUITE, ::testing::Values("sim:h200"), \
                           [](const auto&) { return "h200"; });           \
  INSTANTIATE_TEST_SUITE_P(GpuTest, SUITE, ::testing::Values("cuda"),     \
                           [](const auto&) { return "cuda"; })

/// The same for the tests of a ChipTest: the simulated H200, the simulated B200, a real GPU.
#define TILEWRIGHT_ON_EVERY_CHIP(SUITE)                                                       \
  INSTANTIATE_TEST_SUITE_P(SimTest, SUITE, ::testing::Values("sim:h200", "sim:b200"),         \
                           [](const auto& tested) { return std::string(tested.param + 4); }); \
  INSTANTIATE_TEST_SUITE_P(GpuTest, SUITE, ::testing::Values("cuda"),                         \
                           [](const auto&) { return "cuda"; })

}  // namespace tilewright
