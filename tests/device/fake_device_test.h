// Tests on a fake CUDA driver: a fresh one for every test, which must leave nothing behind.
#pragma once

#include "device/device.h"
#include "device/module.h"
#include "fake_state.h"
#include "tests/base/expect_error.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::device {

/// One of the libraries that fake_driver.cmake builds.
inline std::string fake_library(const std::string& variant) {
  return std::string(TILEWRIGHT_FAKE_CUDA) + "/" + variant + "/libcuda.so.1";
}

/// A fake driver and the strings to pull on it.
class FakeCuda {
 public:
  explicit FakeCuda(const std::string& variant = "complete")
      : driver(Driver::open(fake_library(variant))),
        state(*function<fake::StateFunction>("fake_state")()) {
    reset();
  }
  /// Forgets all calls, handles and settings, and calls cuInit.
  void reset() {
    function<fake::ResetFunction>("fake_reset")();
    driver.initialize();
    state.calls.clear();
    driver.take_release_failures();
  }
  std::size_t context_depth() const {
    return function<fake::ContextDepthFunction>("fake_context_depth")();
  }

  const Driver& driver;
  fake::State& state;

 private:
  template <class Function>
  Function function(const char* name) const {
    return reinterpret_cast<Function>(driver.function(name));
  }
};

class FakeDeviceTest : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_THAT(cuda_.state.leaks(), ::testing::IsEmpty());
    EXPECT_THAT(cuda_.state.violations, ::testing::IsEmpty());
    EXPECT_EQ(cuda_.context_depth(), 0u) << "a context was left current";
    EXPECT_THAT(cuda_.driver.take_release_failures().messages, ::testing::IsEmpty());
    EXPECT_TRUE(state().failing_function.empty())
        << "the planned failure of " << state().failing_function << " never happened";
  }

  Device open(int ordinal = 0) const {
    return {cuda_.driver, ordinal, fmt::format("cuda:{}", ordinal), "test"};
  }
  fake::State& state() const { return cuda_.state; }
  /// The next call of this function fails.
  void fail_next(const std::string& function, abi::CUresult result) {
    state().failing_function = function;
    state().failing_result = result;
  }

  FakeCuda cuda_;
};

/// Text of a PTX module as far as the fake driver cares: one kernel with an argument of that size.
inline std::string fake_ptx(const std::string& kernel, std::size_t params_bytes) {
  return fmt::format(
      ".version 8.0\n.target sm_90\n.visible .entry {}(.param .align 8 .b8 p[{}])\n{{ ret; }}\n",
      kernel, params_bytes);
}

}  // namespace tilewright::device
