// Tests of kernels on the devices that run them: the simulated H200 always, a real one if there is
// one. TEST_P bodies of a KernelTest run on both; tests that want both at once ask for them.
#pragma once

#include "base/error.h"
#include "device/kernel_registry.h"
#include "device/memory.h"
#include "device/open_device.h"
#include "device/tensor_map.h"
#include "formats/minifloat.h"
#include "tests/reference/inputs.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::kernels {

using device::Buffer;
using device::Device;
using reference::Random;

/// Opens devices once and remembers why one is missing.
class TestDevices {
 public:
  static constexpr const char* kSimulator = "sim:h200";
  static constexpr const char* kBlackwell = "sim:b200";
  static constexpr const char* kGpu = "cuda";

  const Device* find(const std::string& spec, int capability = 90) {
    const std::string key = key_of(spec, capability);
    if (!devices_.contains(key)) {
      try {
        devices_[key] = device::open_device(device::parse_device_spec(spec));
        if (!kept_) kept_.emplace();
        const int found = devices_[key]->info().compute_capability;
        if (found != capability) {
          reasons_[key] = fmt::format("{} has compute capability {}, not {}",
                                      devices_[key]->label(), found, capability);
          devices_[key].reset();
        } else if (devices_[key]->is_simulated() != spec.starts_with("sim:")) {
          // Once it is loaded, the simulator is what the loader finds as libcuda.so.1.
          reasons_[key] = "the driver that is loaded is the simulator";
          devices_[key].reset();
        }
      } catch (const Error& error) {
        devices_[key].reset();
        reasons_[key] = error.what();
      }
    }
    return devices_[key] ? &*devices_[key] : nullptr;
  }
  const std::string& reason(const std::string& spec, int capability = 90) {
    return reasons_[key_of(spec, capability)];
  }
  void close() {
    kept_.reset();
    devices_.clear();
    reasons_.clear();
  }

 private:
  static std::string key_of(const std::string& spec, int capability) {
    return fmt::format("{} {}", spec, capability);
  }

  std::map<std::string, std::optional<Device>> devices_;
  std::map<std::string, std::string> reasons_;
  std::optional<device::KeptModules> kept_;  // goes before the devices
};

class KernelTest : public ::testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    // Findings of the simulator's checks are failures of these tests.
    if (std::getenv("TILEWRIGHT_SIM_CHECK") == nullptr) ::setenv("TILEWRIGHT_SIM_CHECK", "all", 0);
  }
  static void TearDownTestSuite() { devices_.close(); }

  void SetUp() override {
    if (device::kernel_images().empty()) GTEST_SKIP() << "built without kernels";
    device_ = devices_.find(GetParam(), capability());
    if (device_ != nullptr) return;
    const std::string& reason = devices_.reason(GetParam(), capability());
    if (is_simulator()) FAIL() << reason;
    GTEST_SKIP() << "no GPU: " << reason;
  }
  void TearDown() override {
    if (device_ == nullptr) return;
    try {
      device_->synchronize();
    } catch (const Error& error) {
      ADD_FAILURE() << "a broken context is left: " << error.what();
      devices_.close();  // the next test gets a new one
    }
  }

  /// Compute capability of the devices that the kernels are for.
  virtual int capability() const { return 90; }
  static bool is_simulator() { return std::string(GetParam()).starts_with("sim:"); }
  const Device& device() const { return *device_; }
  /// After a fault that the test wanted: the next test gets a new context.
  void abandon_device() {
    device_ = nullptr;
    devices_.close();
  }

  /// On the GPU, runs the same once more on the simulator: to the bit the same?
  template <class Run>
  void expect_same_on_simulator(Run&& run, const std::invoke_result_t<Run, const Device&>& out) {
    if (is_simulator()) return;
    const char* spec = capability() == 100 ? TestDevices::kBlackwell : TestDevices::kSimulator;
    const Device* simulator = devices_.find(spec, capability());
    ASSERT_NE(simulator, nullptr) << devices_.reason(spec, capability());
    const auto simulated = run(*simulator);
    ASSERT_EQ(simulated.size(), out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(std::memcmp(&simulated[i], &out[i], sizeof(out[i])), 0)
          << "element " << i << ": simulated " << simulated[i] << ", real " << out[i];
    }
  }

  static bool is_there(int capability) { return devices_.find(GetParam(), capability) != nullptr; }

 private:
  static inline TestDevices devices_;
  const Device* device_ = nullptr;
};

/// The tests of a suite once for each device; SimTest and GpuTest stand in their names.
#define TILEWRIGHT_ON_EVERY_DEVICE(SUITE)                                              \
  INSTANTIATE_TEST_SUITE_P(SimTest, SUITE, ::testing::Values(TestDevices::kSimulator), \
                           [](const auto&) { return "h200"; });                        \
  INSTANTIATE_TEST_SUITE_P(GpuTest, SUITE, ::testing::Values(TestDevices::kGpu),       \
                           [](const auto&) { return "cuda"; })

/// Tests of kernels for both chips.
class ChipKernelTest : public KernelTest {
 protected:
  int capability() const override {
    if (is_simulator()) return GetParam() == std::string(TestDevices::kBlackwell) ? 100 : 90;
    return is_there(90) ? 90 : 100;
  }
};

#define TILEWRIGHT_ON_EVERY_CHIP_OF_KERNELS(SUITE)                                              \
  INSTANTIATE_TEST_SUITE_P(SimTest, SUITE,                                                      \
                           ::testing::Values(TestDevices::kSimulator, TestDevices::kBlackwell), \
                           [](const auto& tested) { return std::string(tested.param + 4); });   \
  INSTANTIATE_TEST_SUITE_P(GpuTest, SUITE, ::testing::Values(TestDevices::kGpu),                \
                           [](const auto&) { return "cuda"; })

/// Tests of kernels for sm_100f.
class BlackwellKernelTest : public KernelTest {
 protected:
  int capability() const override { return 100; }
};

/// The same for the tests of a BlackwellKernelTest.
#define TILEWRIGHT_ON_EVERY_BLACKWELL(SUITE)                                           \
  INSTANTIATE_TEST_SUITE_P(SimTest, SUITE, ::testing::Values(TestDevices::kBlackwell), \
                           [](const auto&) { return "b200"; });                        \
  INSTANTIATE_TEST_SUITE_P(GpuTest, SUITE, ::testing::Values(TestDevices::kGpu),       \
                           [](const auto&) { return "cuda"; })

/// What a kernel writes: poisoned before, with a margin behind it that must stay poisoned.
template <class T>
class Output {
 public:
  Output(const Device& device, std::size_t count)
      : count_(count), buffer_(device, count * sizeof(T) + kMarginBytes) {
    buffer_.poison();
  }

  device::abi::CUdeviceptr address() const { return buffer_.address(); }
  T* pointer() const { return reinterpret_cast<T*>(buffer_.address()); }

  std::vector<T> read() const {
    const std::vector<std::byte> bytes = buffer_.to_vector<std::byte>();
    for (std::size_t i = count_ * sizeof(T); i < bytes.size(); ++i) {
      EXPECT_EQ(bytes[i], Buffer::kPoison) << i - count_ * sizeof(T) << " bytes past the end";
    }
    std::vector<T> elements(count_);
    if (count_ > 0) std::memcpy(elements.data(), bytes.data(), count_ * sizeof(T));
    return elements;
  }

 private:
  static constexpr std::size_t kMarginBytes = 256;

  std::size_t count_;
  Buffer buffer_;
};

template <class T>
T* pointer_to(const Buffer& buffer) {
  return reinterpret_cast<T*>(buffer.address());
}

/// Launches an embedded kernel and waits for it.
template <class Params>
void run_kernel(const Device& device, const std::string& name, const device::LaunchConfig& config,
                const Params& params) {
  const device::Kernel kernel = device::load_kernel(device, name);
  if (config.dynamic_shared_bytes > 48 * 1024)
    kernel.allow_dynamic_shared_bytes(config.dynamic_shared_bytes);
  const device::Stream stream(device);
  kernel.launch(config, params, stream);
  stream.synchronize();
}

inline std::uint32_t ceil_div(std::int64_t a, std::int64_t b) {
  return static_cast<std::uint32_t>((a + b - 1) / b);
}

template <std::size_t Size>
void store_map(std::uint8_t (&to)[Size], const device::abi::CUtensorMap& map) {
  static_assert(sizeof(map) == Size);
  std::memcpy(to, &map, Size);
}

/// Numbers of a format, uniform in [-2, 2) with tiny ones zero, or small integers, for which all
/// sums of the tests are exact.
enum class Numbers { kUniform, kIntegers };

inline double draw(Random& random, Numbers numbers, const FormatSpec& format) {
  if (numbers == Numbers::kIntegers)
    return static_cast<double>(static_cast<int>(random.bits() % 5) - 2);
  const double x = round_to(format, random.uniform(-2, 2));
  return x < min_normal(format) && -x < min_normal(format) ? 0.0 : x;
}

inline std::vector<double> draw_many(std::uint64_t seed, std::int64_t count, Numbers numbers,
                                     const FormatSpec& format) {
  Random random(seed);
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(draw(random, numbers, format));
  return values;
}

/// Codes of a format; of at most 16 bits.
template <class Code>
std::vector<Code> encode_all(const FormatSpec& format, const std::vector<double>& values) {
  std::vector<Code> codes;
  for (const double x : values) codes.push_back(static_cast<Code>(encode(format, x)));
  return codes;
}

inline std::vector<float> to_floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

}  // namespace tilewright::kernels
