// tcgen05.alloc, ld and st beyond the text tests: every shape and count, reductions of sm_103a, and
// what stops a kernel.
#include "sim/event/finding.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"
#include "sim/tensor/tensor_move.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using ::testing::HasSubstr;

std::string registers(int first, int count) {
  std::string out = "{";
  for (int i = 0; i < count; ++i) out += fmt::format("{}%r{}", i == 0 ? "" : ", ", first + i);
  return out + "}";
}

class TensorRun {
 public:
  explicit TensorRun(const char* device = "b200", Options options = {})
      : model_(*find_device_model(device)), machine_(model_, options) {
    machine_.set_output([](std::string_view) {}, [](std::string_view) {});
  }

  /// A kernel of so many threads, in clusters of one or two; %d1 is the address of the results.
  std::optional<Fault> run(const std::string& body, std::uint32_t threads = 32,
                           std::uint32_t cluster = 1) {
    const std::string text = fmt::format(
        ".version 9.0\n.target sm_{}a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n"
        ".reg .b32 %r<400>; .reg .b64 %d<8>; .reg .pred %p<4>; .shared .align 8 .b8 base[64];\n"
        "ld.param.u64 %d1, [out]; mov.u32 %r390, %tid.x; mov.u32 %r391, base;\n{}\nret;\n}}\n",
        model_.compute_capability, body);
    Launch launch;
    launch.module = machine_.load(parse_module(text, "k.ptx"));
    launch.kernel = "k";
    launch.block.x = threads;
    launch.grid.x = launch.cluster.x = cluster;
    const std::uint64_t address = machine_.memory().allocate(kBytes, "out");
    out_ = reinterpret_cast<const std::uint32_t*>(address);
    std::memset(reinterpret_cast<void*>(address), 0, kBytes);
    launch.params.resize(8);
    std::memcpy(launch.params.data(), &address, 8);
    return machine_.launch(launch);
  }
  std::uint32_t out(std::size_t index) const { return out_[index]; }

 private:
  static constexpr std::size_t kBytes = 128 * 32 * 4 + 256;

  const DeviceModel& model_;
  Machine machine_;
  const std::uint32_t* out_ = nullptr;
};

constexpr const char* kAlloc =
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r391], 512; bar.warp.sync -1;\n"
    "ld.shared.b32 %r380, [%r391];\n";

/// Cell (lane, column) gets 1000 lane + column.
std::string fill(int columns) {
  std::string out = "mul.lo.u32 %r392, %r390, 1000;\n";
  for (int from = 0; from < columns; from += 64) {
    for (int i = 0; i < 64; ++i) out += fmt::format("add.u32 %r{}, %r392, {};\n", i, from + i);
    out += fmt::format("add.u32 %r381, %r380, {};\n", from);
    out += "tcgen05.st.sync.aligned.32x32b.x64.b32 [%r381], " + registers(0, 64) + ";\n";
  }
  return out + "tcgen05.wait::st.sync.aligned;\n";
}

std::string write_out(int first, int count) {
  std::string out = "mad.wide.u32 %d2, %r390, 4, %d1;\n";
  for (int i = 0; i < count; ++i) {
    out += fmt::format("st.global.b32 [%d2+{}], %r{};\n", 128 * i, first + i);
  }
  return out;
}

struct NamedShape {
  const char* name;
  TensorMoveShape shape;
  int columns;  // of .x1
};
constexpr NamedShape kShapes[] = {{"32x32b", TensorMoveShape::k32x32b, 1},
                                  {"16x64b", TensorMoveShape::k16x64b, 2},
                                  {"16x128b", TensorMoveShape::k16x128b, 4},
                                  {"16x256b", TensorMoveShape::k16x256b, 8},
                                  {"16x32bx2", TensorMoveShape::k16x32bx2, 1}};

class TensorMoves : public testing::TestWithParam<NamedShape> {};

TEST_P(TensorMoves, EveryCount) {
  constexpr int kSplit = 128;
  const NamedShape shape = GetParam();
  const bool is_split = shape.shape == TensorMoveShape::k16x32bx2;
  const int per_count = static_cast<int>(registers_of(shape.shape));
  for (int num = 1; num * per_count <= 128; num *= 2) {
    const int count = num * per_count;
    TensorRun run;
    const auto fault =
        run.run(kAlloc + fill(256) +
                fmt::format("tcgen05.ld.sync.aligned.{}.x{}.b32 {}, [%r380]{};\n", shape.name, num,
                            registers(200, count), is_split ? fmt::format(", {}", kSplit) : "") +
                "tcgen05.wait::ld.sync.aligned;\n" + write_out(200, count));
    ASSERT_FALSE(fault.has_value()) << fault->message;
    for (std::uint32_t t = 0; t < 32; ++t) {
      for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(count); ++r) {
        const TensorAddress cell = tensor_move_cell(shape.shape, t, r, kSplit);
        ASSERT_EQ(run.out(32 * r + t), 1000 * cell.lane + cell.column)
            << shape.name << ".x" << num << " thread " << t << " register " << r;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, TensorMoves, testing::ValuesIn(kShapes),
                         [](const auto& shape) { return std::string(shape.param.name); });

TEST(TensorMemoryInsn, Reductions) {
  const auto word = [](float value) {
    return fmt::format("0f{:08X}", std::bit_cast<std::uint32_t>(value));
  };
  std::string text = kAlloc;
  const float values[] = {-3.0f, 2.0f, std::nanf(""), 1.0f};
  for (int i = 0; i < 4; ++i) text += fmt::format("mov.b32 %r{}, {};\n", i, word(values[i]));
  text += "tcgen05.st.sync.aligned.32x32b.x4.b32 [%r380], " + registers(0, 4) +
          ";\ntcgen05.wait::st.sync.aligned;\n";
  const char* const forms[] = {"max.f32",     "min.f32", "max.abs.f32",
                               "max.NaN.f32", "min.s32", "max.u32"};
  for (int i = 0; i < 6; ++i) {
    text += fmt::format("tcgen05.ld.red.sync.aligned.32x32b.x4.{} {}, %r{}, [%r380];\n", forms[i],
                        registers(10, 4), 20 + i);
  }
  TensorRun run("b300");
  const auto fault = run.run(text + write_out(20, 6));
  ASSERT_FALSE(fault.has_value()) << fault->message;
  const auto result = [&](std::size_t i) { return std::bit_cast<float>(run.out(32 * i)); };
  EXPECT_EQ(result(0), 2.0f);
  EXPECT_EQ(result(1), -3.0f);
  EXPECT_EQ(result(2), 3.0f);
  EXPECT_TRUE(std::isnan(result(3)));
  EXPECT_EQ(run.out(32 * 4), std::bit_cast<std::uint32_t>(-3.0f));
  EXPECT_EQ(run.out(32 * 5), std::bit_cast<std::uint32_t>(-3.0f));
}

TEST(TensorMemoryInsn, FreshCellsAreNoNumbers) {
  const std::string twice =
      std::string(kAlloc) +
      "mov.u32 %r2, 5; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r380], {%r2};\n"
      "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r380, 512;\n" +
      kAlloc + "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r380];\n";
  Options options;
  options.checks = parse_checks("mem,sync");
  TensorRun run("b200", options);
  EXPECT_FALSE(run.run(twice + write_out(1, 1)).has_value());
  EXPECT_EQ(run.out(7), kTensorPoison);
  // The init check follows them to where they are used.
  TensorRun checked;
  const auto fault = checked.run(twice + "setp.eq.u32 %p1, %r1, 5; @%p1 bra END; END:\n");
  ASSERT_TRUE(fault.has_value());
  EXPECT_THAT(fault->message, HasSubstr("a branch on an undefined value [init]"));
  EXPECT_THAT(fault->message, HasSubstr("the warp last read such at"));
}

TEST(TensorMemoryInsn, OtherFirstColumns) {
  Options options;
  options.tensor_memory_base = 96;
  TensorRun run("b200", options);
  const auto fault = run.run(
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r391], 64; bar.warp.sync -1;\n"
      "ld.shared.b32 %r1, [%r391];\n"
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r391], 64; bar.warp.sync -1;\n"
      "ld.shared.b32 %r2, [%r391];\n" +
      write_out(1, 2));
  ASSERT_FALSE(fault.has_value()) << fault->message;
  EXPECT_EQ(run.out(0), 96u);
  EXPECT_EQ(run.out(32), 160u);
}

struct Refused {
  const char* name;
  std::string text;
  const char* says;
  std::uint32_t cluster = 1;
};

TEST(TensorMemoryInsn, WhatStopsAKernel) {
  const std::string alloc = kAlloc;
  const Refused cases[] = {
      {"count", "mov.u32 %r1, 48; tcgen05.alloc.cta_group::1.sync.aligned.b32 [%d1], %r1;",
       "32, 64, 128, 256 or 512"},
      {"permit",
       "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
       "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r391], 32;",
       "relinquish_alloc_permit"},
      {"dealloc", alloc + "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r380, 256;",
       "no such allocation"},
      {"pair", "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r391], 32;", "cluster"},
      {"columns",
       alloc + "add.u32 %r1, %r380, 511; "
               "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r2, %r3}, [%r1];",
       "511 to 512"},
      {"lane",
       alloc + "add.u32 %r1, %r380, 0x100000; "
               "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];",
       "no multiple of 32"},
      {"lanes",
       alloc + "add.u32 %r1, %r380, %r390; "
               "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];",
       "must give one address"},
      {"full", alloc + alloc, "free columns of Tensor Memory"},
      {"unequal",
       "mov.u32 %r1, %cluster_ctarank; add.u32 %r1, %r1, 5; mov.u32 %r2, 1; shl.b32 %r2, %r2, %r1;"
       "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r391], %r2;",
       "must ask for the same", 2},
      {"shift", alloc + "add.u32 %r1, %r380, 0x10000; tcgen05.shift.cta_group::1.down [%r1];",
       "multiple of 32"},
  };
  for (const Refused& refused : cases) {
    SCOPED_TRACE(refused.name);
    TensorRun run;
    const auto fault = run.run(refused.text, 32, refused.cluster);
    ASSERT_TRUE(fault.has_value());
    EXPECT_THAT(fault->message, HasSubstr(refused.says));
    EXPECT_THAT(fault->message, HasSubstr("k.ptx:"));
  }
}

struct Unknown {
  const char* text;
  const char* says;
};

TEST(TensorMemoryInsn, FormsThatDoNotExist) {
  const Unknown cases[] = {
      {"tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1}, [%r2];", "expected 2 registers"},
      {"tcgen05.ld.sync.aligned.16x256b.x64.b32 {%r1}, [%r2];", "at most 128"},
      {"tcgen05.ld.sync.aligned.32x8b.x2.b32 {%r1}, [%r2];", "expected a shape"},
      {"tcgen05.ld.red.sync.aligned.32x32b.x2.max.f32 {%r1, %r3}, %r4, [%r2];", "sm_103a"},
      {"tcgen05.cp.cta_group::1.32x128b [%r2], %d1;", "warpx4"},
      {"tcgen05.cp.cta_group::1.64x128b [%r2], %d1;", "warpx2"},
      {"tcgen05.alloc.sync.aligned.shared::cta.b32 [%r2], 32;", "cta_group"},
      {"tcgen05.commit.cta_group::1.b64 [%r2];", "mbarrier::arrive::one"},
  };
  for (const Unknown& unknown : cases) {
    SCOPED_TRACE(unknown.text);
    const std::string text = fmt::format(
        ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{{\n"
        ".reg .b32 %r<8>; .reg .b64 %d<2>;\n{}\nret;\n}}\n",
        unknown.text);
    Machine machine(*find_device_model("b200"), {});
    const auto module = machine.load(parse_module(text, "k.ptx"));
    EXPECT_THAT(module->kernels().at(0).problem, HasSubstr(unknown.says));
  }
}

}  // namespace
}  // namespace tilewright::sim
