// The embedded images are what they claim to be.

#include "base/error.h"
#include "device/kernel_registry.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::device {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(std::string_view name, std::string_view target) {
  try {
    find_kernel(name, target);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    return error.what();
  }
  return "found";
}

TEST(KernelRegistry, EveryImageHoldsItsEntry) {
  if (kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const KernelImage& image : kernel_images()) {
    EXPECT_TRUE(seen.emplace(image.name, image.target).second) << image.name;
    EXPECT_EQ(&find_kernel(image.name, image.target), &image);
    EXPECT_THAT(std::string(image.ptx), HasSubstr(".entry " + std::string(image.name) + "("));
    EXPECT_THAT(std::string(image.ptx), HasSubstr(".target " + std::string(image.target)));
    EXPECT_EQ(image.cubin.substr(0, 4), std::string_view("\x7f"
                                                         "ELF"));
    EXPECT_GT(image.facts.registers, 0);
    // Kernels take one argument, by value.
    EXPECT_THAT(std::string(image.ptx), HasSubstr(std::string(image.name) + "_param_0["));
  }
}

TEST(KernelRegistry, UnknownKernelsAndTargetsAreNamed) {
  if (kernel_images().empty()) {
    EXPECT_THAT(refusal("layout_probe", "sm_90a"), HasSubstr("built without kernels"));
    return;
  }
  EXPECT_THAT(refusal("layout_prob", "sm_90a"),
              AllOf(HasSubstr("does not exist"), HasSubstr("layout_probe")));
  EXPECT_THAT(refusal("layout_probe", "sm_80"),
              AllOf(HasSubstr("not built for sm_80"), HasSubstr("sm_90a")));
  EXPECT_THAT(refusal("wgmma_probe_n8_bf16_ss00", "sm_100a"), HasSubstr("it exists for sm_90a"));
}

}  // namespace
}  // namespace tilewright::device
