#include "tilewright/device.h"

#include "device/device.h"
#include "device/internal.h"
#include "fake_device_test.h"
#include "tests/base/scoped_env.h"

namespace tilewright {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A simulator, found through the environment, as a user would have it.
class PublicDeviceTest : public ::testing::Test {
 protected:
  PublicDeviceTest() {
    simulator_.state.gpus = {device::fake::Gpu{.name = "Simulated H200", .capability = 90},
                             device::fake::Gpu{.name = "Simulated B200", .capability = 100}};
  }

  device::FakeCuda simulator_{"simulator"};
  ScopedEnv library_{"TILEWRIGHT_SIM_LIBRARY", device::fake_library("simulator").c_str()};
  ScopedEnv device_{"TILEWRIGHT_DEVICE", "sim:b200"};
};

TEST_F(PublicDeviceTest, OpensWhatIsAskedForElseWhatTheVariableSays) {
  EXPECT_EQ(Device::open("sim:h200").spec(), "sim:h200");
  EXPECT_EQ(Device::open().spec(), "sim:b200");
  const ScopedEnv wrong("TILEWRIGHT_DEVICE", "b200");
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [] { Device::open(); }),
              StartsWith("TILEWRIGHT_DEVICE: \"b200\" is no device"));
}

TEST_F(PublicDeviceTest, SaysWhatItIs) {
  const Device device = Device::open("sim:b200");
  EXPECT_EQ(device.name(), "Simulated B200");
  EXPECT_EQ(device.compute_capability(), 100);
  EXPECT_EQ(device.num_sms(), 132);
  EXPECT_EQ(device.memory_bytes(), std::size_t{1} << 30);
  EXPECT_TRUE(device.is_simulated());
  EXPECT_EQ(device.why(), "asked for");
  EXPECT_THAT(device.description(),
              StartsWith("sim:b200 (Simulated B200), simulated: compute capability 10.0, 132 SMs"));
}

TEST_F(PublicDeviceTest, LendsTheContextAndTheDriver) {
  const Device device = Device::open("sim:h200");
  EXPECT_EQ(device.context(), opened(device).context());
  EXPECT_NE(device.context(), nullptr);
  EXPECT_EQ(device.driver_function("cuInit"),
            reinterpret_cast<void*>(opened(device).driver().cu.init));
  EXPECT_EQ(device.driver_function("cuNoSuchFunction"), nullptr);
}

TEST_F(PublicDeviceTest, CopiesShareTheContextAndTheLastReleasesIt) {
  {
    const Device device = Device::open("sim:h200");
    const Device copy = device;  // NOLINT: the copy is the point
    copy.synchronize();
    EXPECT_EQ(simulator_.state.gpus[0].primary_context_users, 1);
  }
  EXPECT_EQ(simulator_.state.gpus[0].primary_context_users, 0);
  EXPECT_THAT(simulator_.state.leaks(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace tilewright
