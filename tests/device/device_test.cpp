#include "device/device.h"

#include "device/memory.h"
#include "device/stream.h"
#include "fake_device_test.h"

#include <thread>

namespace tilewright::device {
namespace {

using abi::CUresult;
using ::testing::AllOf;
using ::testing::HasSubstr;

using DeviceTest = FakeDeviceTest;

TEST_F(DeviceTest, ReadsWhatTheDriverSays) {
  state().gpus = {fake::Gpu{}, fake::Gpu{.name = "Fake B200", .capability = 103}};
  const DeviceInfo info = query_device(cuda_.driver, 1);
  EXPECT_EQ(info.name, "Fake B200");
  EXPECT_EQ(info.uuid, "GPU-10213243-5465-7687-98a9-bacbdcedfe0f");
  EXPECT_EQ(info.ordinal, 1);
  EXPECT_EQ(info.compute_capability, 103);
  EXPECT_EQ(info.num_sms, 132);
  EXPECT_EQ(info.memory_bytes, std::size_t{1} << 30);
  EXPECT_EQ(info.l2_bytes, 50 << 20);
  EXPECT_EQ(info.shared_per_sm_bytes, 233472);
  EXPECT_EQ(info.shared_per_block_bytes, 49152);
  EXPECT_EQ(info.shared_per_block_optin_bytes, 232448);
  EXPECT_EQ(info.shared_per_block_reserved_bytes, 1024);
  EXPECT_EQ(info.registers_per_sm, 65536);
  EXPECT_EQ(info.threads_per_sm, 2048);
  EXPECT_EQ(info.clock_khz, 1980000);
  EXPECT_EQ(info.memory_clock_khz, 3201000);
  EXPECT_EQ(info.memory_bus_bits, 6144);
  EXPECT_TRUE(info.has_clusters);
  EXPECT_TRUE(info.has_tensor_maps);
  EXPECT_EQ(state().count("cuDevicePrimaryCtxRetain"), 0u) << "asking needs no context";
}

TEST_F(DeviceTest, UnknownOrdinalIsAnError) {
  EXPECT_THAT(error_of(ErrorKind::kDeviceError, [&] { query_device(cuda_.driver, 7); }),
              AllOf(HasSubstr("cuDeviceGet: CUDA_ERROR_INVALID_DEVICE"), HasSubstr("ordinal = 7")));
}

TEST_F(DeviceTest, CopiesShareOneContextAndTheLastReleasesIt) {
  {
    const Device device = open();
    const Device copy = device;  // NOLINT: the copy is the point
    EXPECT_EQ(copy.context(), device.context());
    EXPECT_EQ(state().gpus[0].primary_context_users, 1);
    const Device second = open();
    EXPECT_EQ(state().gpus[0].primary_context_users, 2);
  }
  EXPECT_EQ(state().gpus[0].primary_context_users, 0);
}

TEST_F(DeviceTest, WhatLivesOnADeviceKeepsItsContext) {
  auto buffer = std::make_unique<Buffer>(open(), 64);
  EXPECT_EQ(state().gpus[0].primary_context_users, 1);
  buffer.reset();
  EXPECT_EQ(state().gpus[0].primary_context_users, 0);
}

TEST_F(DeviceTest, Texts) {
  const Device device = open();
  EXPECT_EQ(device.label(), "cuda:0 (Fake H200)");
  EXPECT_EQ(device.describe(),
            "cuda:0 (Fake H200): compute capability 9.0, 132 SMs, 1.0 GiB, L2 50 MiB, driver with "
            "CUDA 13.0 at " +
                fake_library("complete"));
  EXPECT_EQ(device.why(), "test");
}

TEST_F(DeviceTest, MemoryCountsWhatIsInUse) {
  const Device device = open();
  const Buffer buffer(device, 4096);
  const MemoryInfo memory = device.memory();
  EXPECT_EQ(memory.total_bytes, std::size_t{1} << 30);
  EXPECT_EQ(memory.free_bytes, memory.total_bytes - 4096);
}

TEST_F(DeviceTest, ErrorsNameFunctionCodeAndDevice) {
  const Device device = open();
  fail_next("cuCtxSynchronize", CUresult::kIllegalAddress);
  EXPECT_THAT(error_of(ErrorKind::kDeviceError, [&] { device.synchronize(); }),
              AllOf(HasSubstr("cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS ("),
                    HasSubstr("device = cuda:0 (Fake H200)"), HasSubstr("compute-sanitizer")));
}

TEST_F(DeviceTest, CallsLeaveTheCurrentContextAlone) {
  state().gpus = {fake::Gpu{}, fake::Gpu{.name = "other"}};
  const Device one = open(0);
  const Device other = open(1);
  {
    const auto current = other.make_current();
    EXPECT_EQ(cuda_.context_depth(), 1u);
    one.synchronize();  // switches and switches back
    abi::CUcontext now = nullptr;
    ASSERT_EQ(cuda_.driver.cu.ctx_get_current(&now), CUresult::kSuccess);
    EXPECT_EQ(now, other.context());
    EXPECT_EQ(cuda_.context_depth(), 1u);
  }
  EXPECT_EQ(cuda_.context_depth(), 0u);
}

TEST_F(DeviceTest, ACurrentContextIsNotPushedAgain) {
  const Device device = open();
  const auto current = device.make_current();
  state().calls.clear();
  device.synchronize();
  EXPECT_THAT(state().calls, ::testing::ElementsAre("cuCtxGetCurrent", "cuCtxSynchronize"));
}

TEST_F(DeviceTest, FailedSwitchIsAnErrorAndLeavesNothingPushed) {
  const Device device = open();
  fail_next("cuCtxPushCurrent_v2", CUresult::kContextIsDestroyed);
  EXPECT_THAT(error_of(ErrorKind::kDeviceError, [&] { device.synchronize(); }),
              AllOf(HasSubstr("cuCtxPushCurrent"), HasSubstr("cuDevicePrimaryCtxReset")));
  EXPECT_EQ(state().count("cuCtxSynchronize"), 0u);
  EXPECT_EQ(state().count("cuCtxPopCurrent_v2"), 0u);
}

TEST_F(DeviceTest, ThreadsNeedNoPreparation) {
  state().gpus.push_back(fake::Gpu{});
  const Device devices[] = {open(0), open(1)};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const Device& device = devices[(t + i) % 2];
        const Stream stream(device);
        const std::vector<int> values = {t, i};
        const Buffer buffer = Buffer::from(device, values);
        stream.synchronize();
        EXPECT_EQ(buffer.to_vector<int>(), values);
      }
      EXPECT_EQ(cuda_.context_depth(), 0u);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tilewright::device
