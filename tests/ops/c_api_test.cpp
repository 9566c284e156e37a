// The C interface: a C program against the shared library, and what Python would do with it.
#include "tilewright/tilewright.h"

#include "device/kernel_registry.h"
#include "tests/ops/c_api_check.h"

#include <thread>

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(CApi, ServesACProgram) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  EXPECT_EQ(check_c_api("sim:h200"), 0) << "the line in c_api_check.c; " << tw_last_error();
}

TEST(CApi, ServesACProgramWithCaches) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  EXPECT_EQ(check_cache_c_api("sim:h200"), 0)
      << "the line in c_api_cache_check.c; " << tw_last_error();
}

TEST(CApi, ServesACProgramThatDecodes) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  EXPECT_EQ(check_decode_c_api("sim:h200"), 0)
      << "the line in c_api_decode_check.c; " << tw_last_error();
}

TEST(CApi, ServesACProgramWithHyperConnections) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  EXPECT_EQ(check_hyper_c_api("sim:h200"), 0)
      << "the line in c_api_hyper_check.c; " << tw_last_error();
}

TEST(CApi, ServesACProgramWithAnIndexer) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  EXPECT_EQ(check_indexer_c_api("sim:h200"), 0)
      << "the line in c_api_indexer_check.c; " << tw_last_error();
}

TEST(CApi, EveryThreadHasItsOwnError) {
  tw_device* device = nullptr;
  EXPECT_EQ(tw_device_open("nonsense", &device), TW_INVALID_ARGUMENT);
  std::thread([] { EXPECT_STREQ(tw_last_error(), ""); }).join();
  EXPECT_STRNE(tw_last_error(), "");
}

}  // namespace
}  // namespace tilewright
