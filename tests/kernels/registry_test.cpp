// The embedded images are what they claim to be.

#include "base/error.h"
#include "device/kernel_registry.h"

#include <map>
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
  std::map<const char*, std::string> texts;
  for (const KernelImage& image : kernel_images()) {
    EXPECT_TRUE(seen.emplace(image.name, image.target).second) << image.name;
    EXPECT_EQ(&find_kernel(image.name, image.target), &image);
    std::string& ptx = texts[image.ptx.packed.data()];
    if (ptx.empty()) ptx = image.ptx.unpack();
    EXPECT_NE(ptx.find(".entry " + std::string(image.name) + "("), ptx.npos) << image.name;
    EXPECT_NE(ptx.find(".target " + std::string(image.target)), ptx.npos) << image.name;
    EXPECT_GT(image.facts.registers, 0);
    // Kernels take one argument, by value.
    EXPECT_NE(ptx.find(std::string(image.name) + "_param_0["), ptx.npos) << image.name;
  }
}

TEST(KernelRegistry, EveryCubinUnpacksToAnImage) {
  if (kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  std::set<const char*> seen;
  for (const KernelImage& image : kernel_images()) {
    if (!seen.insert(image.cubin.packed.data()).second) continue;
    const std::string cubin = image.cubin.unpack();
    EXPECT_EQ(cubin.substr(0, 4), "\177ELF") << image.source;
    EXPECT_LT(image.cubin.packed.size(), cubin.size()) << image.source;
  }
}

// Chips of one family run the same images; what the images are made for stands in their headers.
TEST(KernelRegistry, AChipRunsTheImagesOfItsFamily) {
  EXPECT_EQ(kernel_target(90), "sm_90a");
  EXPECT_EQ(kernel_target(100), "sm_100f");
  EXPECT_EQ(kernel_target(103), "sm_100f");
  for (const int other : {80, 89, 101, 110, 120, 121}) EXPECT_EQ(kernel_target(other), "") << other;
  if (kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  constexpr std::size_t kFlagsAt = 48;  // of a 64-bit ELF header; its second byte is the chip
  std::map<std::string_view, int> chips;
  for (const KernelImage& image : kernel_images()) {
    const std::string cubin = image.cubin.unpack();
    ASSERT_GT(cubin.size(), kFlagsAt + 4);
    const int chip = static_cast<unsigned char>(cubin[kFlagsAt + 1]);
    EXPECT_EQ(chips.emplace(image.target, chip).first->second, chip) << image.name;
  }
  EXPECT_EQ(chips, (std::map<std::string_view, int>{{"sm_100f", 100}, {"sm_90a", 90}}));
}

TEST(KernelRegistry, WhatIsNoPackedImageIsRefused) {
  const auto refused = [](std::string_view packed, std::size_t size_bytes) {
    try {
      PackedBytes{packed, size_bytes}.unpack();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("unpacked");
  };
  const std::string_view packed("x\x9cKLJ\x06\x00\x02\x4d\x01\x27", 11);  // of "abc"
  EXPECT_EQ((PackedBytes{packed, 3}.unpack()), "abc");
  EXPECT_THAT(refused(packed, 4), HasSubstr("3 bytes of 4"));
  EXPECT_THAT(refused(packed, 2), HasSubstr("does not unpack"));
  EXPECT_THAT(refused(packed.substr(0, 7), 3), HasSubstr("does not unpack"));
  EXPECT_THAT(refused("abc", 3), HasSubstr("does not unpack"));
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
  EXPECT_THAT(refusal("wgmma_probe_n8_bf16_ss00", "sm_100f"), HasSubstr("it exists for sm_90a"));
}

}  // namespace
}  // namespace tilewright::device
