// What a module may ask for when it is loaded.
#include "base/error.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

TEST(Load, RefusesVariablesThatFillTheHost) {
  Machine machine(device_models()[0], Options{});
  const std::string header = ".version 8.7\n.target sm_90a\n.address_size 64\n";
  const auto load = [&](const std::string& text) {
    return machine.load(parse_module(header + text, "input"));
  };
  EXPECT_EQ(load(".global .b8 small[4096];")->variables().size(), 1u);
  try {
    load(".global .b8 a[3000000000]; .const .b8 c[16]; .global .b8 b[3000000000];");
    FAIL() << "loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(error.what(),
                testing::HasSubstr("input: with b the global and constant variables"));
    EXPECT_THAT(error.what(), testing::HasSubstr("6000000016 bytes"));
  }
}

}  // namespace
}  // namespace tilewright::sim
