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

/// A kernel with these directives and instructions.
KernelInfo kernel_with_bounds(const std::string& bounds, const std::string& body) {
  Machine machine(device_models()[0], Options{});
  const std::string text = ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n" +
                           bounds + "\n{\n" + body + "ret;\n}\n";
  return machine.load(parse_module(text, "input"))->kernels().at(0);
}

// As ptxas 13.0 gave them: docs/notes/2026-11-27-registers-of-a-launch.md.
TEST(Load, RegistersOfALaunchAreThoseOfPtxas) {
  const std::string one = ".maxntid 384\n.minnctapersm 1";
  const auto dec = [](int count) {
    return "setmaxnreg.dec.sync.aligned.u32 " + std::to_string(count) + ";\n";
  };
  const auto inc = [](int count) {
    return "setmaxnreg.inc.sync.aligned.u32 " + std::to_string(count) + ";\n";
  };
  struct Case {
    std::string bounds, body;
    std::uint32_t registers;  ///< 0: the instructions are left out
  };
  const Case cases[] = {
      {"", dec(40) + inc(232), 0},
      {".maxntid 384", dec(40) + inc(232), 0},
      {".reqntid 384", dec(40) + inc(232), 0},
      {".minnctapersm 1", dec(40) + inc(232), 0},
      {".maxntid 1024\n.minnctapersm 4", dec(24) + inc(104), 0},
      {one, "", 0},
      {one, dec(40) + inc(232), 168},
      {".reqntid 384\n.minnctapersm 1", dec(40) + inc(232), 168},
      {one, dec(40), 168},
      {one, dec(24) + inc(160), 160},
      {one, inc(128), 128},
      {one, dec(24) + inc(24), 24},
      {one, inc(96) + inc(232), 168},
      {one, inc(128) + inc(160), 160},
      {".maxntid 384\n.minnctapersm 2", dec(40) + inc(232), 80},
      {".maxntid 160\n.minnctapersm 1", dec(40) + inc(232), 232},
      {".maxntid 416\n.minnctapersm 1", dec(40) + inc(232), 128},
      {".maxntid 160\n.minnctapersm 3", inc(256), 128},
      {".maxntid 288\n.minnctapersm 3", inc(256), 72},
      {".maxntid 352\n.minnctapersm 1", inc(256), 168},
      {".maxntid 128\n.minnctapersm 2", dec(40) + inc(256), 255},
      {".maxnreg 100", dec(40) + inc(232), 100},
      {".maxnreg 20", dec(24) + inc(232), 24},
      {".maxntid 384\n.maxnreg 200", dec(24) + inc(232), 200},
      {one + "\n.maxnreg 100", dec(40) + inc(232), 100},
      {".maxntid 384\n.minnctapersm 2\n.maxnreg 100", dec(40) + inc(232), 80},
  };
  for (const Case& each : cases) {
    const KernelInfo info = kernel_with_bounds(each.bounds, each.body);
    EXPECT_EQ(info.entry_registers, each.registers) << each.bounds << "\n" << each.body;
    if (each.registers != 0) {
      EXPECT_EQ(info.num_registers, each.registers) << each.bounds;
    }
  }
}

}  // namespace
}  // namespace tilewright::sim
