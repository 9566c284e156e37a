// Tests on a real GPU, or on whatever TILEWRIGHT_DEVICE names, e.g. the simulator. Without a GPU
// they are skipped with the reason; if TILEWRIGHT_DEVICE asks for a device, its absence is a
// failure.
#pragma once

#include "device/open_device.h"
#include "tests/base/expect_error.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::device {

class GpuTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const DeviceSpec asked = resolve_device_spec();
    is_asked_for_ = asked != DeviceSpec{};
    try {
      device_ = open_device(is_asked_for_ ? asked : parse_device_spec("cuda"));
    } catch (const Error& error) {
      reason_ = error.what();
    }
  }
  static void TearDownTestSuite() { device_.reset(); }

  void SetUp() override {
    if (!device_ && is_asked_for_) FAIL() << reason_;
    if (!device_) GTEST_SKIP() << "no GPU: " << reason_;
    device_->driver().take_release_failures();
  }
  void TearDown() override {
    if (!device_) return;
    EXPECT_NO_THROW(device_->synchronize()) << "the test left a broken context";
    EXPECT_THAT(device_->driver().take_release_failures().messages, ::testing::IsEmpty());
    abi::CUcontext current = nullptr;
    device_->check(device_->cu().ctx_get_current(&current), "cuCtxGetCurrent");
    EXPECT_EQ(current, nullptr) << "a context was left current";
  }

  static const Device& device() { return *device_; }

 private:
  static inline std::optional<Device> device_;
  static inline std::string reason_;
  static inline bool is_asked_for_ = false;
};

}  // namespace tilewright::device
