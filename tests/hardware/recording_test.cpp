// The third witness: what an H200 did with operands laid out by the library, against what the
// layouts predict.

#include "base/error.h"
#include "base/safetensors.h"
#include "device/open_device.h"
#include "hardware/probe.h"

#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::hardware {
namespace {

const SafetensorsFile& recording() {
  static const SafetensorsFile file(std::string(TILEWRIGHT_TEST_DATA) +
                                    "/hardware/h200_fragments.safetensors");
  return file;
}

TEST(HardwareRecording, SaysWhereItIsFrom) {
  for (const char* key : {"device", "driver", "toolkit", "date"}) {
    EXPECT_FALSE(recording().metadata().at(key).empty()) << key;
  }
}

TEST(HardwareRecording, EveryCaseIsAsTheLayoutsPredict) {
  const std::vector<ProbeCase> cases = probe_cases();
  EXPECT_EQ(recording().entries().size(), cases.size())
      << "cases were added or removed; record again";
  for (const ProbeCase& probe : cases) {
    ASSERT_TRUE(recording().contains(probe.name)) << probe.name << " was not recorded";
    ASSERT_EQ(recording().metadata().at("digest." + probe.name),
              fmt::format("{:016x}", digest(probe)))
        << probe.name << ": the recording is of other inputs; record again";
    EXPECT_EQ(load_words(recording().tensor(probe.name)), probe.expected) << probe.name;
  }
}

// A wrong layout would be noticed: results of neighbouring cases do not fit each other.
TEST(HardwareRecording, AWrongLayoutWouldBeNoticed) {
  const std::vector<ProbeCase> cases = probe_cases();
  for (std::size_t i = 1; i < cases.size(); ++i) {
    EXPECT_NE(load_words(recording().tensor(cases[i].name)), cases[i - 1].expected)
        << cases[i].name;
  }
}

TEST(StoredWords, SurviveStoring) {
  for (const std::vector<std::uint32_t>& words :
       {std::vector<std::uint32_t>{0x3f800000, 0xc2800000, 0},
        std::vector<std::uint32_t>{0x3f800001, 0}, std::vector<std::uint32_t>{0x80000000},
        std::vector<std::uint32_t>{0x43000000}, std::vector<std::uint32_t>{}}) {
    const StoredWords stored = store_words(words);
    const auto count = static_cast<std::int64_t>(words.size());
    EXPECT_EQ(load_words(contiguous_view(static_cast<const void*>(stored.bytes.data()),
                                         stored.dtype, {count})),
              words);
  }
  EXPECT_EQ(store_words({0x3f800000, 0xc2800000}).dtype, DType::kI8);
  EXPECT_EQ(store_words({0x80000000}).dtype, DType::kU32) << "-0 keeps its sign";
}

void expect_as_predicted(const device::Device& device) {
  for (const ProbeCase& probe : probe_cases())
    EXPECT_EQ(run_probe(device, probe), probe.expected) << probe.name;
}

// The same cases on the GPU at hand.
TEST(HardwareGpu, EveryCaseIsAsTheLayoutsPredict) {
  std::optional<device::Device> device;
  try {
    device = device::open_device(device::parse_device_spec("cuda"));
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  if (device->info().compute_capability != 90) GTEST_SKIP() << "needs compute capability 9.0";
  expect_as_predicted(*device);
}

// The simulator states all of this a second time, as index formulas of its own.
TEST(HardwareSim, EveryCaseIsAsTheLayoutsPredict) {
  expect_as_predicted(device::open_device(device::parse_device_spec("sim:h200")));
}

}  // namespace
}  // namespace tilewright::hardware
