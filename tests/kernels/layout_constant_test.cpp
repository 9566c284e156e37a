// Layouts as constants of device code: what the compiler made of them, and what they compute on a
// device.

#include "base/error.h"
#include "device/kernel_registry.h"
#include "device/memory.h"
#include "device/open_device.h"
#include "kernels/probe/layout_probe.h"

#include <regex>

#include <gtest/gtest.h>

namespace tilewright::device {
namespace {

using kernels::kLayoutProbeFragment;
using kernels::kLayoutProbeOdd;
using kernels::kLayoutProbeTile;

TEST(LayoutConstants, LeaveNoDivisionAndNoMemoryInThePtx) {
  if (kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  for (const char* target : {"sm_90a", "sm_100a"}) {
    const std::string ptx = find_kernel("layout_probe", target).ptx.unpack();
    const std::regex costly(
        R"((^|\s)(div|rem|call|ld\.local|st\.local|ld\.const|ld\.global)\.?[^\n]*)");
    std::smatch found;
    EXPECT_FALSE(std::regex_search(ptx, found, costly)) << target << ": " << found.str();
    EXPECT_EQ(ptx.find(".local"), std::string::npos) << target;
    EXPECT_NE(ptx.find("st.global"), std::string::npos) << "the kernel does store its offsets";
  }
}

TEST(LayoutConstantsGpu, ComputeTheOffsetsOfTheAlgebra) {
  std::optional<Device> device;
  try {
    device = open_device(parse_device_spec("cuda"));
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  constexpr std::uint32_t kCount = 128 * 128;
  Buffer offsets(*device, kernels::kLayoutProbeCases * kCount * sizeof(std::uint32_t));
  offsets.poison();
  const kernels::LayoutProbeParams params = {reinterpret_cast<std::uint32_t*>(offsets.address()),
                                             kCount};
  const Stream stream(*device);
  load_kernel(*device, "layout_probe")
      .launch({.grid = {kCount / kernels::kLayoutProbeThreads},
               .block = {kernels::kLayoutProbeThreads}},
              params, stream);
  stream.synchronize();
  const auto found = offsets.to_vector<std::uint32_t>();
  for (std::uint32_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(found[i], kLayoutProbeTile(i % 128, i / 128)) << i;
    ASSERT_EQ(found[kCount + i], kLayoutProbeFragment(i % 128, i / 128)) << i;
    ASSERT_EQ(found[2 * kCount + i], kLayoutProbeOdd(i)) << i;
  }
}

}  // namespace
}  // namespace tilewright::device
