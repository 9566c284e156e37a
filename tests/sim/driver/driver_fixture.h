// The driver as a program meets it: the shared library, opened by its path.
#pragma once

#include "sim/driver/abi/function_tables.h"

#include <string>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim::abi {

/// The functions of the library under their exported names: cu.cuMemAlloc_v2(&address, 16).
struct DriverTable {
#define TILEWRIGHT_MEMBER(name, version, parameters) CUresult(*name) parameters = nullptr;
  TILEWRIGHT_SIM_FUNCTIONS(TILEWRIGHT_MEMBER)
#undef TILEWRIGHT_MEMBER
};

void PrintTo(CUresult result, std::ostream* out);

/// The library; loaded once, for H200 and B200.
void* driver_library();
const DriverTable& driver_table();

/// A test with the first device's primary context current, and nothing left behind.
class DriverTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// A module from PTX text.
  CUmodule load(const std::string& ptx);
  CUfunction function(CUmodule module, const char* name);

  const DriverTable& cu = driver_table();
  CUcontext context_ = nullptr;
};

#define EXPECT_OK(call) EXPECT_EQ((call), ::tilewright::sim::abi::CUresult::kSuccess)
#define ASSERT_OK(call) ASSERT_EQ((call), ::tilewright::sim::abi::CUresult::kSuccess)

}  // namespace tilewright::sim::abi
