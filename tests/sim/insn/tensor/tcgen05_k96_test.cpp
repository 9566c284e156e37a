// tcgen05.mma of 4-bit numbers with K = 96, as sm_103a has it, from shared memory with descriptors
// to results: on the simulated B300 and nowhere else.
#include "base/error.h"
#include "formats/minifloat.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"

#include <array>
#include <cstring>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using ::testing::HasSubstr;

// Two lines of 128 bytes hold the rows' 240 bytes: the third of the five products takes 32 bytes
// from the end of the first and 16 from the start of the second.
constexpr std::uint32_t kM = 128, kN = 32, kProducts = 5, kStepBytes = 48, kLine = 128;
constexpr std::uint32_t kElements = kProducts * 2 * kStepBytes;
constexpr std::uint32_t kATile = kM * kLine, kBTile = kN * kLine, kB = 2 * kATile;
constexpr std::uint32_t kImageBytes = kB + 2 * kBTile;
constexpr std::uint32_t kAColumns = 32, kBColumns = 8;  ///< of scales, and in registers of a lane

struct Case {
  const char* kind;  ///< with its scales
  std::uint32_t block;
  const FormatSpec* scale;
};

std::uint64_t descriptor(std::uint32_t operand, std::uint32_t tile_bytes, std::uint32_t byte) {
  const std::uint64_t start = operand + byte / kLine * tile_bytes + byte % kLine;
  const std::uint64_t second = operand + tile_bytes;
  return start >> 4 | second >> 4 << 16 | std::uint64_t{8 * kLine >> 4} << 32 | 1ULL << 46 |
         1ULL << 52 | 2ULL << 61;
}

std::string list(int first, std::uint32_t count) {
  std::string text;
  for (std::uint32_t i = 0; i < count; ++i) {
    text += fmt::format("{}%r{}", i == 0 ? "{" : ", ", static_cast<std::uint32_t>(first) + i);
  }
  return text + "}";
}

/// Product i takes its scales from the id and the group of four at which they begin.
std::string products(const Case& c) {
  std::string text;
  for (std::uint32_t i = 0; i < kProducts; ++i) {
    const std::uint32_t scale = i * 96 / c.block, id = scale % 4, group = scale / 4;
    const std::uint32_t idesc = 1U << 31 | id << 29 | 1U << 27 |
                                (c.scale == &kUe8m0 ? 1U : 0) << 23 | kN / 8 << 17 | 1 << 10 |
                                1 << 7 | id << 4;
    text += fmt::format(
        "mov.b64 %d6, {}; mov.b64 %d7, {}; add.s64 %d6, %d6, %d5; add.s64 %d7, %d7, %d5;\n"
        "add.u32 %r11, %r7, {}; add.u32 %r12, %r7, {}; setp.ne.u32 %p3, {}, 0;\n"
        "tcgen05.mma.cta_group::1.{} [%r7], %d6, %d7, {}, [%r11], [%r12], %p3;\n",
        descriptor(0, kATile, i * kStepBytes), descriptor(kB, kBTile, i * kStepBytes),
        kN + 4 * group, kN + kAColumns + group, i, c.kind, idesc);
  }
  return text;
}

constexpr const char* kText = R"(.version 9.0
.target {}
.address_size 64
.visible .entry k(.param .u64 image, .param .u64 scales, .param .u64 out) {{
  .shared .align 1024 .b8 tile[{}];
  .shared .align 8 .b64 done;
  .shared .b32 columns;
  .reg .pred %p<8>; .reg .b32 %r<200>; .reg .b64 %d<16>;
  ld.param.u64 %d1, [image]; ld.param.u64 %d2, [scales]; ld.param.u64 %d3, [out];
  mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r0, 0;
  mov.u32 %r2, columns; mov.u32 %r3, done; mov.u32 %r4, tile;
  @%p0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 128;
  @%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
  mul.wide.u32 %d4, %r0, 8; add.s64 %d4, %d1, %d4; mad.lo.u32 %r5, %r0, 8, %r4; mov.u32 %r6, 0;
FILL:
  ld.global.b64 %d5, [%d4]; st.shared.b64 [%r5], %d5;
  add.s64 %d4, %d4, 1024; add.u32 %r5, %r5, 1024; add.u32 %r6, %r6, 1024;
  setp.lt.u32 %p2, %r6, {};
  @%p2 bra FILL;
  fence.proxy.async.shared::cta; fence.mbarrier_init.release.cluster;
  bar.sync 0;
  ld.shared.u32 %r7, [%r2];
  and.b32 %r8, %r0, 31; mul.wide.u32 %d4, %r8, {}; add.s64 %d4, %d2, %d4;
  {}
  shl.b32 %r9, %r1, 21; add.u32 %r9, %r9, %r7; add.u32 %r10, %r9, {};
  tcgen05.st.sync.aligned.32x32b.x32.b32 [%r10], {};
  add.u32 %r10, %r10, 32;
  tcgen05.st.sync.aligned.32x32b.x8.b32 [%r10], {};
  tcgen05.wait::st.sync.aligned;
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
  @!%p1 bra WAIT;
  shr.u32 %r11, %r4, 4; cvt.u64.u32 %d5, %r11; shl.b64 %d6, %d5, 16; add.s64 %d5, %d5, %d6;
  {}
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r3];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r3], 0;
  @!%p5 bra WAIT;
  tcgen05.fence::after_thread_sync;
  tcgen05.ld.sync.aligned.32x32b.x32.b32 {}, [%r9];
  tcgen05.wait::ld.sync.aligned;
  mul.wide.u32 %d4, %r0, {}; add.s64 %d4, %d4, %d3;
  {}
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
  @%p1 mbarrier.inval.shared::cta.b64 [%r3];
  @%p0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 128;
  @%p0 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
  ret;
}})";

/// D is in the columns from 0 on, the scales of A and of B behind it.
std::string kernel_text(const Case& c, const char* target) {
  std::string loads, stores;
  for (std::uint32_t i = 0; i < kAColumns + kBColumns; ++i) {
    loads += fmt::format("ld.global.b32 %r{}, [%d4+{}];\n", 100 + i, 4 * i);
  }
  for (std::uint32_t i = 0; i < kN; ++i) {
    stores += fmt::format("st.global.b32 [%d4+{}], %r{};\n", 4 * i, 100 + i);
  }
  return fmt::format(kText, target, kImageBytes, kImageBytes, 4 * (kAColumns + kBColumns), loads,
                     kN, list(100, kAColumns), list(100 + kAColumns, kBColumns), products(c),
                     list(100, kN), 4 * kN, stores);
}

/// A row's bytes: lines of 128, each swizzled within eight rows.
std::uint32_t place(std::uint32_t operand, std::uint32_t tile_bytes, std::uint32_t row,
                    std::uint32_t byte) {
  const std::uint32_t linear = row * kLine + byte % kLine;
  return operand + byte / kLine * tile_bytes + (linear ^ (linear / kLine % 8 * 16));
}

struct Matrix {
  std::vector<std::array<double, kElements>> values;
  std::vector<std::array<double, kElements / 16>> scales;
};

class K96 : public ::testing::TestWithParam<Case> {
 protected:
  /// Random numbers, in the image and, by group of 32 rows and of four scales, among the scales.
  Matrix fill(std::uint32_t rows, std::uint32_t operand, std::uint32_t tile_bytes,
              std::uint32_t first_column) {
    Matrix m{std::vector<std::array<double, kElements>>(rows),
             std::vector<std::array<double, kElements / 16>>(rows)};
    for (std::uint32_t row = 0; row < rows; ++row) {
      for (std::uint32_t k = 0; k < kElements; ++k) {
        const std::uint32_t code = rng_() % 16;
        m.values[row][k] = decode(kE2m1, code);
        image_[place(operand, tile_bytes, row, k / 2)] |=
            static_cast<std::uint8_t>(code << k % 2 * 4);
      }
      for (std::uint32_t s = 0; s < kElements / GetParam().block; ++s) {
        const double value = std::ldexp(1.0, static_cast<int>(rng_() % 3) - 1);
        m.scales[row][s] = value;
        const std::uint32_t column = first_column + s / 4 * (rows / 32) + row / 32;
        scales_[row % 32][column] |= encode(*GetParam().scale, value) << s % 4 * 8;
      }
    }
    return m;
  }

  std::mt19937 rng_{17};
  std::array<std::uint8_t, kImageBytes> image_{};
  std::array<std::array<std::uint32_t, kAColumns + kBColumns>, 32> scales_{};
};

// Values are multiples of 1/2, scales of 1/2: each sum is a multiple of 1/16 below 2^17, exact in
// fp32 however it is made.
TEST_P(K96, EqualsFloat64) {
  const Matrix a = fill(kM, 0, kATile, 0), b = fill(kN, kB, kBTile, kAColumns);
  Options options;
  options.checks = parse_checks("all,strict");
  Machine machine(*find_device_model("b300"), options);
  Launch launch;
  launch.module = machine.load(parse_module(kernel_text(GetParam(), "sm_103a"), "k.ptx"));
  ASSERT_EQ(launch.module->kernels().at(0).problem, "");
  launch.kernel = "k";
  launch.block.x = kM;
  const auto allocate = [&](const void* from, std::size_t bytes) {
    const std::uint64_t address = machine.memory().allocate(bytes, "test");
    if (from != nullptr) std::memcpy(reinterpret_cast<void*>(address), from, bytes);
    machine.mark_defined(address, bytes);
    return address;
  };
  const std::uint64_t pointers[] = {allocate(image_.data(), image_.size()),
                                    allocate(scales_.data(), sizeof scales_),
                                    allocate(nullptr, kM * kN * 4)};
  launch.params.resize(sizeof pointers);
  std::memcpy(launch.params.data(), pointers, sizeof pointers);
  const auto fault = machine.launch(launch);
  ASSERT_FALSE(fault.has_value()) << fault->message;
  const auto* const out = reinterpret_cast<const float*>(pointers[2]);
  const std::uint32_t block = GetParam().block;
  for (std::uint32_t row = 0; row < kM; ++row) {
    for (std::uint32_t column = 0; column < kN; ++column) {
      double sum = 0;
      for (std::uint32_t k = 0; k < kElements; ++k) {
        sum += a.values[row][k] * a.scales[row][k / block] * b.values[column][k] *
               b.scales[column][k / block];
      }
      ASSERT_EQ(out[row * kN + column], sum) << row << ", " << column;
    }
  }
}

constexpr Case kCases[] = {{"kind::mxf4nvf4.block_scale.block16", 16, &kUe4m3},
                           {"kind::mxf4nvf4.block_scale.block32", 32, &kUe8m0},
                           {"kind::mxf4.block_scale.block32", 32, &kUe8m0}};
INSTANTIATE_TEST_SUITE_P(Kinds, K96, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return fmt::format("kind{}", test.index); });

TEST(K96OnB200, IsRefused) {
  Machine machine(*find_device_model("b200"), {});
  Launch launch;
  launch.module = machine.load(parse_module(kernel_text(kCases[0], "sm_100a"), "k.ptx"));
  launch.kernel = "k";
  launch.block.x = kM;
  const std::uint64_t address = machine.memory().allocate(kImageBytes, "test");
  const std::uint64_t pointers[] = {address, address, address};
  launch.params.resize(sizeof pointers);
  std::memcpy(launch.params.data(), pointers, sizeof pointers);
  const auto fault = machine.launch(launch);
  ASSERT_TRUE(fault.has_value());
  EXPECT_THAT(fault->message, HasSubstr("k96 needs .target sm_103a"));
}

// ------------------------------------------------------------------------------ targets and
// devices

/// "" if it loads and translates.
std::string outcome(const char* device, const std::string& target, const std::string& instruction) {
  Machine machine(*find_device_model(device), {});
  try {
    const auto module = machine.load(parse_module(
        ".version 9.0 .target " + target +
            " .address_size 64 .visible .entry k() { .reg .b32 %r<8>; .reg .b64 %d<4>; "
            ".reg .pred %p<2>; .reg .f32 %f<8>; .reg .b16 %h<4>; .reg .b8 %b<2>; " +
            instruction + " ret; }",
        "k.ptx"));
    return module->kernels().at(0).problem;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Targets, RunOnTheirDevices) {
  struct Row {
    const char* target;
    bool on_h200, on_b200, on_b300;
  };
  for (const Row& row : {Row{"sm_90", true, true, true},
                         {"sm_90a", true, false, false},
                         {"sm_100", false, true, true},
                         {"sm_100a", false, true, false},
                         {"sm_100f", false, true, true},
                         {"sm_101f", false, false, false},
                         {"sm_103", false, false, true},
                         {"sm_103a", false, false, true},
                         {"sm_103f", false, false, true}}) {
    EXPECT_EQ(outcome("h200", row.target, "").empty(), row.on_h200) << row.target;
    EXPECT_EQ(outcome("b200", row.target, "").empty(), row.on_b200) << row.target;
    EXPECT_EQ(outcome("b300", row.target, "").empty(), row.on_b300) << row.target;
  }
  EXPECT_THAT(outcome("b300", "sm_100a", ""),
              HasSubstr(".target sm_100a does not run on compute capability 10.3 (NVIDIA B300 "
                        "(simulated)); compile for sm_103a"));
}

/// For which of sm_100, 100a, 100f, 103, 103a, 103f ptxas 13.0 assembles it.
struct Feature {
  const char* targets;  ///< "-++-++"
  const char* instruction;
};

TEST(Targets, HaveWhatTheAssemblerGivesThem) {
  const Feature features[] = {
      {"-+----", "tcgen05.mma.cta_group::1.kind::i8 [%r1], %d1, %d2, %r2, %p1;"},
      {"-++-++", "tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2, %r2, %p1, 3;"},
      {"-++-++",
       "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%r1], %d1, %d2, %r2, "
       "[%r3], [%r4], %p1;"},
      {"-+--+-",
       "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%r1], %d1, "
       "%d2, %r2, [%r3], [%r4], %p1;"},
      {"-+--+-", "tcgen05.shift.cta_group::1.down [%r1];"},
      {"----++", "tcgen05.ld.red.sync.aligned.32x32b.x2.max.f32 {%r1, %r3}, %r4, [%r2];"},
      {"-++-++", "cvt.rn.satfinite.e2m1x2.f32 %b1, %f1, %f2;"},
      {"-+--+-", "cvt.rs.f16x2.f32 %r1, %f1, %f2, %r2;"},
      {"-++-++", "redux.sync.max.f32 %f1, %f2, 0xffffffff;"},
      {"++++++", "add.rn.f32x2 %d1, %d2, %d3;"},
      {"-++-++", "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r1], 15;"},
      {"----+-", "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r1], 4;"},
      {"-++-++", "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r2, %r3}, [%r1];"},
      {"------", "wgmma.fence.sync.aligned;"},
  };
  const char* const targets[] = {"sm_100", "sm_100a", "sm_100f", "sm_103", "sm_103a", "sm_103f"};
  for (const Feature& feature : features) {
    std::string found;
    for (int i = 0; i < 6; ++i) {
      found +=
          outcome(i < 3 ? "b200" : "b300", targets[i], feature.instruction).empty() ? '+' : '-';
    }
    EXPECT_EQ(found, feature.targets) << feature.instruction;
  }
  EXPECT_THAT(outcome("b300", "sm_103a", features[0].instruction),
              HasSubstr("sm_103a does not have it"));
  EXPECT_THAT(outcome("b200", "sm_100a", features[5].instruction),
              HasSubstr("needs .target sm_103a or sm_103f"));
}

}  // namespace
}  // namespace tilewright::sim
