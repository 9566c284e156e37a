// What ptxas says of every kernel, against the committed baseline.
//
// Registers and shared memory may change, but not unnoticed; spills and local memory may not appear
// in a kernel that uses the tensor cores. To accept new numbers: TILEWRIGHT_REBASE=1
// build/release/bin/kernels_tests.

#include "base/json.h"
#include "device/kernel_registry.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::device {
namespace {

using nlohmann::json;

const std::string kBaseline = std::string(TILEWRIGHT_TEST_DATA) + "/kernels/ptxas_baseline.json";

json facts_of(const KernelImage& image) {
  const KernelFacts& facts = image.facts;
  return {{"registers", facts.registers},
          {"shared_bytes", facts.shared_bytes},
          {"stack_bytes", facts.stack_bytes},
          {"spill_bytes", facts.spill_store_bytes + facts.spill_load_bytes},
          {"barriers", facts.barriers},
          {"uses_tensor_cores", facts.uses_tensor_cores}};
}

json current_facts() {
  json kernels = json::object();
  for (const KernelImage& image : kernel_images()) {
    kernels[fmt::format("{}.{}", image.name, image.target)] = facts_of(image);
  }
  return {{"toolkit", kernel_toolkit()}, {"kernels", kernels}};
}

TEST(PtxasFacts, TensorCoreKernelsNeitherSpillNorUseLocalMemory) {
  if (kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  int tensor_core_kernels = 0;
  for (const KernelImage& image : kernel_images()) {
    if (!image.facts.uses_tensor_cores) continue;
    ++tensor_core_kernels;
    EXPECT_EQ(image.facts.spill_store_bytes, 0) << image.name << " for " << image.target;
    EXPECT_EQ(image.facts.spill_load_bytes, 0) << image.name << " for " << image.target;
    EXPECT_EQ(image.facts.stack_bytes, 0) << image.name << " for " << image.target;
  }
  EXPECT_GT(tensor_core_kernels, 0) << "the recognition of tensor-core instructions is broken";
}

TEST(PtxasFacts, AgreeWithTheBaseline) {
  if (kernel_images().empty()) GTEST_SKIP() << "built without kernels";
  const json current = current_facts();
  if (std::getenv("TILEWRIGHT_REBASE") != nullptr) {
    write_json(kBaseline, current);
    GTEST_SKIP() << "wrote " << kBaseline;
  }
  const json baseline = read_json(kBaseline);
  const bool is_same_toolkit = baseline["toolkit"] == current["toolkit"];
  for (const auto& [name, facts] : current["kernels"].items()) {
    const auto expected = baseline["kernels"].find(name);
    ASSERT_NE(expected, baseline["kernels"].end()) << name << " has no baseline; rebase";
    for (const auto& [field, value] : facts.items()) {
      // Another compiler may allocate other registers; spills and stack count with any.
      const bool depends_on_compiler = field == "registers" || field == "barriers";
      if (depends_on_compiler && !is_same_toolkit) continue;
      EXPECT_EQ(value, (*expected)[field]) << name << " " << field;
    }
  }
  for (const auto& [name, facts] : baseline["kernels"].items()) {
    EXPECT_TRUE(current["kernels"].contains(name))
        << name << " is in the baseline but not built; rebase";
  }
}

}  // namespace
}  // namespace tilewright::device
