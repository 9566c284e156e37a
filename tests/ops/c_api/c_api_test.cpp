// The C interface: a C program against the shared library, and what Python would do with it.
#include "tilewright/tilewright.h"

#include "device/kernel_registry.h"
#include "tests/ops/c_api/check.h"

#include <thread>

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(CApi, ServesACProgram) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  EXPECT_EQ(check_c_api("sim:h200"), 0) << "the line in check.c; " << tw_last_error();
}

TEST(CApi, ServesACProgramThatPreparesAndDecodes) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  EXPECT_EQ(check_attention_c_api("sim:h200"), 0)
      << "the line in attention_check.c; " << tw_last_error();
}

TEST(CApi, ServesACProgramThatAttendsOverPages) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  for (const char* const chip : {"sim:h200", "sim:b200"})
    EXPECT_EQ(check_pages_c_api(chip), 0) << "the line in pages_check.c; " << tw_last_error();
}

TEST(CApi, ServesACProgramWithCaches) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  EXPECT_EQ(check_cache_c_api("sim:h200"), 0) << "the line in cache_check.c; " << tw_last_error();
}

TEST(CApi, ServesACProgramWithHyperConnections) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  EXPECT_EQ(check_hyper_c_api("sim:h200"), 0) << "the line in hyper_check.c; " << tw_last_error();
}

TEST(CApi, ServesACProgramWithAnIndexer) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  EXPECT_EQ(check_indexer_c_api("sim:h200"), 0)
      << "the line in indexer_check.c; " << tw_last_error();
}

TEST(CApi, PlansForACProgramWithoutADevice) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  EXPECT_EQ(check_plan_c_api(), 0) << "the line in plan_check.c; " << tw_last_error();
}

TEST(CApi, TakesStructsOfOlderAndNewerHeaders) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  EXPECT_EQ(check_versions_c_api("sim:h200"), 0)
      << "the line in versions_check.c; " << tw_last_error();
}

TEST(CApi, ServesAProgramCompiledWithThePreviousHeader) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  EXPECT_EQ(check_previous_header("sim:h200"), 0)
      << "the line in header_check.c; " << tw_last_error();
}

TEST(CApi, ServesAProgramCompiledWithAnOlderHeader) {
  if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  EXPECT_EQ(check_older_header("sim:h200"), 0) << "the line in header_check.c; " << tw_last_error();
}

TEST(CApi, ServesACProgramThatTokenizes) {
  EXPECT_EQ(check_tokenizer_c_api(TILEWRIGHT_TEST_DATA "/tokenizer"), 0)
      << "the line in tokenizer_check.c; " << tw_last_error();
}

TEST(CApi, ServesACProgramThatWritesTexts) {
  EXPECT_EQ(check_llm_c_api(TILEWRIGHT_SOURCE_DIR "/examples/models/tiny-dsv4"), 0)
      << "the line in llm_check.c; " << tw_last_error();
}

TEST(CApi, EveryThreadHasItsOwnError) {
  tw_device* device = nullptr;
  EXPECT_EQ(tw_device_open("nonsense", &device), TW_INVALID_ARGUMENT);
  std::thread([] { EXPECT_STREQ(tw_last_error(), ""); }).join();
  EXPECT_STRNE(tw_last_error(), "");
}

}  // namespace
}  // namespace tilewright
