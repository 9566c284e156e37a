// Tests of operators on a simulated B200.
#pragma once

#include "tests/ops/suite_device.h"

#include <gtest/gtest.h>

namespace tilewright {

template <class Suite>
class BlackwellTest : public ::testing::Test, protected SuiteDevice<Suite> {
 protected:
  using SuiteDevice<Suite>::device_;

  static void SetUpTestSuite() { SuiteDevice<Suite>::have_all_checks(); }
  static void TearDownTestSuite() { SuiteDevice<Suite>::close(); }
  void SetUp() override {
    if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
    SuiteDevice<Suite>::open("sim:b200");
  }
};

}  // namespace tilewright
